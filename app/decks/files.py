"""Own cards as text files, in the format of `cards/decks`: what is written here is read back the same. Pure."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable
from typing import Any

import yaml

from app.content.cards import CARD_SECTIONS
from app.content.files import ContentError, parse_card, parse_outside_yaml, validated
from app.core.errors import ContentProblem
from app.decks.cards import OwnHead, Stored, deck_of
from app.decks.drafts import Draft, DraftOption

# libyaml writes in a fifth of the time; where it is missing, PyYAML's own emitter does
_SafeDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

ZIP_DATE = (2026, 1, 1, 0, 0, 0)  # the same cards give the same bytes


def card_text(stored: Stored) -> str:
    """The card as its file."""
    draft = stored.draft
    head: dict[str, object] = {
        "id": stored.card_id,
        "guid": stored.guid,
        "revision": stored.revision,
        "title": draft.title,
        "kind": draft.kind,
        "deck": draft.deck,
        "tags": list(draft.tags),
        "source": draft.source,
    }
    if draft.options:
        head["options"] = [
            {"id": f"o{index}", "text": each.text, "correct": each.correct, "message": each.message}
            for index, each in enumerate(draft.options, 1)
        ]
    parts = [f"---\n{_yaml(head)}---\n"]
    parts += [f"\n# {name}\n\n{draft.sections[name]}\n" for name in CARD_SECTIONS if name in draft.sections]
    return "".join(parts)


def read_card_text(text: str, shown: str, deck: str | None = None) -> tuple[str | None, int, Draft]:
    """GUID, revision and draft of a card's file; `deck` is that of its folder. Raises ContentError."""
    source = parse_card(text.removeprefix("\ufeff").replace("\r\n", "\n"), shown, from_outside=True)
    head = validated(OwnHead, source)
    unknown = [name for name in source.sections if name not in CARD_SECTIONS]
    if unknown:
        raise ContentError(
            [source.section_problem(unknown[0], "there is no such section, but " + ", ".join(CARD_SECTIONS))]
        )
    options = tuple(DraftOption(each.text, each.correct, each.message) for each in head.options)
    name = head.deck if "deck" in source.data or deck is None else deck
    draft = Draft(head.kind, name, head.title, head.tags, source.sections, options, head.source)
    return head.guid, head.revision, draft


def read_deck_text(text: str, shown: str) -> str:
    """The title of a deck's file. Raises ContentError."""
    title = parse_outside_yaml(text, shown).data.get("title")
    if not isinstance(title, str) or not title.strip():
        raise ContentError([ContentProblem(shown, 1, "title", "a deck needs a title")])
    return title


def decks_zip(cards: Iterable[Stored]) -> bytes:
    """Own cards as a folder for each deck, with `deck.yaml` and a file for each card, in one zip file."""
    decks: dict[str, list[Stored]] = {}
    for stored in cards:
        decks.setdefault(stored.draft.deck, []).append(stored)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(decks):
            deck = deck_of(name)
            folder = f"decks/{_slug(name)}-{deck.id[-4:]}"
            _put(archive, f"{folder}/deck.yaml", _yaml({"id": deck.id, "title": name, "about": deck.about}))
            for stored in sorted(decks[name], key=lambda each: each.card_id):
                _put(archive, f"{folder}/{stored.card_id}.md", card_text(stored))
    return buffer.getvalue()


def _put(archive: zipfile.ZipFile, name: str, text: str) -> None:
    entry = zipfile.ZipInfo(name, ZIP_DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, text)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "deck"


def _yaml(data: dict[str, object]) -> str:
    dumped: str = yaml.dump(data, Dumper=_SafeDumper, sort_keys=False, allow_unicode=True, width=10**6)
    return dumped
