"""Text that came from outside, as every database and page can carry it."""

from __future__ import annotations

_PICTURES = 0x1F000  # from here on Unicode has emoji, and scripts that nobody logs in
_AS_PICTURE = "\ufe0f"  # what makes an emoji of the sign before it


def storable(text: str) -> str:
    """`text` without what PostgreSQL or UTF-8 refuse: the NUL character, and halves of surrogate pairs from JSON."""
    return text.encode(errors="replace").decode().replace("\0", "?")


def without_pictures(text: str) -> str:
    """`text` without emoji and the like, which no font of ours draws, and without what is blank around it."""
    return "".join(each for each in text if ord(each) < _PICTURES and each != _AS_PICTURE).strip()
