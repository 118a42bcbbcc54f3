"""The layout that an answer in words commits to, as it is read: its first degree of each axis. Pure."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass

MOST = 100_000  # GPUs that anybody would name
_DEGREE = r"(?P<{0}>\d{{1,6}})"
_GAP = r"(?:[- ]?parallel(?:ism)?)?(?:\s+(?:degree|size))?(?:\s+of)?\s*[=:×x]?\s*"
_NAMES = {
    "tensor": r"(?:tensor|tp)",
    "pipeline": r"(?:pipeline|pp)",
    "data": r"(?:data|dp)",
    "context": r"(?:context|cp)",
}
_NONE = r"\b(?:no|without(?: a)?|zero)\s+{0}\b"
_ZERO = re.compile(r"\bzero[- ]?(?:stage[- ]?)?([0-3])\b|\b(fsdp)\b", re.IGNORECASE)

# From here on another layout than the one decided on may be meant.
_OTHERWISE = re.compile(r"\b(?:alternatives?|instead|otherwise|fall ?back|turn to|switch)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Layout:
    """Degrees as they were said. `gpus` is their product; `zero` is 0 where nothing is said to be sharded, which is no
    word about it unless somebody `says_zero`."""

    tensor: int
    pipeline: int
    data: int
    context: int
    zero: int
    says_zero: bool

    @property
    def gpus(self) -> int:
        return self.tensor * self.pipeline * self.data * self.context

    def values(self) -> dict[str, int]:
        """What expressions see as `layout`."""
        return {**asdict(self), "gpus": self.gpus}


def read_layout(text: str) -> Layout | None:
    """None where no degree of tensor and of data parallelism was said, or one is no degree.

    What comes first counts: an alternative is named after the decision.
    """
    said = {axis: _first(axis, text) for axis in _NAMES}
    if said["tensor"] is None or said["data"] is None:
        return None
    sharded = _ZERO.search(_OTHERWISE.split(text)[0])
    zero = 0 if sharded is None else 3 if sharded[2] else int(sharded[1])
    found = Layout(said["tensor"], said["pipeline"] or 1, said["data"], said["context"] or 1, zero, sharded is not None)
    return found if 0 < found.gpus <= MOST else None


def _first(axis: str, text: str) -> int | None:
    """The degree that is said first of an axis; 1 where it is said to be absent before any."""
    name = _NAMES[axis]
    degree = _DEGREE.format("after")
    before = _DEGREE.format("before")
    pattern = rf"(?P<none>{_NONE.format(name)})|\b{name}{_GAP}{degree}\b|\b{before}[- ]way\s+{name}\b"
    found = re.search(pattern, text, re.IGNORECASE)
    if found is None:
        return None
    return 1 if found["none"] else int(found["after"] or found["before"])
