"""A checkpoint as a tar: what ranks wrote under the names of checkpoints, and nothing that leads elsewhere."""

from __future__ import annotations

import os
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from labs.checkpoints import MOST_FILES, open_newest


def _checkpoint(folder: Path, step: int, is_whole: bool = True) -> Path:
    place = folder / f"step-{step}"
    place.mkdir(parents=True)
    for rank in range(2):
        (place / f"__{rank}_0.distcp").write_bytes(bytes([step]) * (700 + rank))
    if is_whole:
        (place / ".metadata").write_bytes(b"m" * 512)
    return place


def _read(folder: Path) -> dict[str, bytes]:
    archive = open_newest(folder)
    assert archive is not None
    content = b"".join(archive.pieces())
    assert len(content) == archive.size_bytes
    assert all(file.closed for _, _, file in archive.files)
    with tarfile.open(fileobj=BytesIO(content)) as tar:
        return {each.name: tar.extractfile(each).read() for each in tar.getmembers() if each.isfile()}  # type: ignore[union-attr]


def test_the_last_whole_one_is_read_even_when_it_is_let_go_of(tmp_path: Path) -> None:
    for step, is_whole in ((9, True), (10, True), (20, False)):
        _checkpoint(tmp_path, step, is_whole)
    files = _read(tmp_path)
    assert files == {
        "step-10/.metadata": b"m" * 512,
        "step-10/__0_0.distcp": b"\n" * 700,
        "step-10/__1_0.distcp": b"\n" * 701,
    }
    archive = open_newest(tmp_path)
    assert archive is not None
    for path in (tmp_path / "step-10").iterdir():
        path.unlink()
    assert len(b"".join(archive.pieces())) == archive.size_bytes


def test_what_is_no_file_of_a_checkpoint_is_not_given_away(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("somebody's")
    place = _checkpoint(tmp_path / "run", 3)
    (place / "notes.txt").write_text("left out by its name")
    assert len(_read(tmp_path / "run")) == 3
    link = place / "__2_0.distcp"
    link.symlink_to(secret)
    assert open_newest(tmp_path / "run") is None
    link.unlink()
    os.mkfifo(link)
    assert open_newest(tmp_path / "run") is None, "a pipe is not waited for"
    link.unlink()
    (tmp_path / "linked").symlink_to(tmp_path / "run")
    assert open_newest(tmp_path / "linked") is None
    (tmp_path / "run" / "step-4").symlink_to(place)
    assert open_newest(tmp_path / "run") is None
    assert open_newest(tmp_path / "nowhere") is None


def test_a_file_that_is_cut_short_ends_the_archive(tmp_path: Path) -> None:
    place = _checkpoint(tmp_path, 1)
    archive = open_newest(tmp_path)
    assert archive is not None
    os.truncate(place / "__1_0.distcp", 5)
    with pytest.raises(OSError, match="has become shorter"):
        b"".join(archive.pieces())
    for number in range(MOST_FILES):
        (place / f"__0_{number}.distcp").touch()
    assert open_newest(tmp_path) is None
