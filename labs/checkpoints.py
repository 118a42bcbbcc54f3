"""Where a run's checkpoints lie in their folder, and which of them are whole. Torch-free."""

from __future__ import annotations

from pathlib import Path

_IS_WHOLE = ".metadata"  # written last


def place_of(folder: Path, step: int) -> Path:
    """Where the checkpoint after `step` is, or is to be."""
    return folder / f"step-{step}"


def whole_steps(folder: Path) -> list[int]:
    """The steps after which there is a checkpoint that can be read, in their order."""
    found = folder.glob(f"step-*/{_IS_WHOLE}")
    return sorted(int(path.parent.name.removeprefix("step-")) for path in found)
