"""What the engine knows of each pipeline schedule, as data: chunks, placement, what stays in flight, what idles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ScheduleFacts:
    """`chunks` a rank may hold (None: any number). `keeps` is how many micro-batches a rank has in flight, `idles`
    which closed form its fill and drain follow. `in_rounds`: micro-batches come in multiples of the stages."""

    chunks: tuple[int, int | None]
    keeps: Literal["all", "stages", "as F25 says"]
    idles: Literal["1f1b", "zb-h1", "v"]
    v_shaped: bool = False
    in_rounds: bool = False


# Narayanan et al. 2021; Qi et al. 2023 (ZB-H1) and 2024 (ZB-V); DeepSeek-AI 2024 for the pairs of DualPipe-V.
FACTS: Mapping[str, ScheduleFacts] = {
    "gpipe": ScheduleFacts((1, 1), "all", "1f1b"),
    "1f1b": ScheduleFacts((1, 1), "as F25 says", "1f1b"),
    "interleaved": ScheduleFacts((1, None), "as F25 says", "1f1b", in_rounds=True),
    "looped-bfs": ScheduleFacts((1, None), "all", "1f1b"),
    "zero-bubble": ScheduleFacts((1, 1), "stages", "zb-h1"),
    "zbv": ScheduleFacts((2, 2), "stages", "v", v_shaped=True),
    "dualpipev": ScheduleFacts((2, 2), "stages", "v", v_shaped=True),
}


def effective(schedule: str, virtual_stages: int) -> str:
    """1F1B of several chunks is the interleaved schedule, and interleaving one chunk is 1F1B."""
    if schedule in ("1f1b", "interleaved"):
        return "interleaved" if virtual_stages > 1 else "1f1b"
    return schedule
