"""An own card inside a note of Anki's: the text it was written in, in a field that is not shown. Pure.

A digest of the shown fields goes with it: where somebody changed them in Anki, what they changed is read instead.
"""

from __future__ import annotations

import base64
import binascii
import unicodedata
import zlib
from collections.abc import Sequence
from hashlib import sha256

from app.content.files import ContentError
from app.decks.cards import Stored
from app.decks.drafts import Draft
from app.decks.files import card_text, read_card_text
from app.exchange.limits import CARD_FILE_BYTES

_MARK = "rankzero1"


def pack(stored: Stored, shown: Sequence[str]) -> str:
    """The card and the digest of the fields that show it."""
    return f"{_MARK}:{_digest(shown)}:{base64.b64encode(zlib.compress(card_text(stored).encode())).decode()}"


def unpack(data: str, shown: Sequence[str]) -> tuple[int, Draft] | None:
    """Revision and draft of the card in `data`, where the fields that show it are still as they were."""
    mark, _, rest = data.strip().partition(":")
    digest, _, packed = rest.partition(":")
    if mark != _MARK or digest != _digest(shown):
        return None
    try:
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(base64.b64decode(packed, validate=True), CARD_FILE_BYTES)
        if unpacking.unconsumed_tail:
            return None
        _, revision, draft = read_card_text(text.decode(), "note")
    except (binascii.Error, zlib.error, ValueError, ContentError):
        return None
    return revision, draft


def _digest(shown: Sequence[str]) -> str:
    normal = unicodedata.normalize("NFC", "\x1f".join(each.strip() for each in shown))
    return sha256(normal.encode(errors="replace")).hexdigest()[:16]
