"""Own cards as text files: one card as Markdown, or a zip file of decks in the format of `cards/decks`."""

from __future__ import annotations

import zipfile
from pathlib import PurePosixPath
from typing import BinaryIO

from app.content.files import ContentError
from app.core.errors import DomainError
from app.decks.files import read_card_text, read_deck_text
from app.exchange.archive import open_archive, read_member, refused
from app.exchange.findings import Findings, Incoming, InTime, Progress, guid_of_text, not_shown, shown_as
from app.exchange.limits import CARD_FILE_BYTES, NOTES, ROWS

ACCEPTED = "an .apkg, a .csv, a card's .md, or a .zip of decks"


def read_card_file(text: str, name: str) -> Findings:
    """A single card's file. What is wrong with it is in the findings, with its line."""
    found = Findings()
    _take(found, text, name, None)
    return found


def read_decks_zip(file: BinaryIO, in_time: InTime, progress: Progress = not_shown) -> Findings:
    """Every card of a zip file of decks: `deck.yaml` and one .md for each card in every folder."""
    found = Findings()
    with open_archive(file, ACCEPTED) as archive:
        names = [name for name in archive.namelist() if name.endswith(".md") and not name.startswith("__MACOSX/")]
        if len(names) > NOTES:
            raise refused("It has too many cards.", len(names), f"up to {NOTES:,} cards in one file")
        if not names:
            raise refused("It holds no cards.", "…", ACCEPTED)
        deck_names = [name for name in archive.namelist() if PurePosixPath(name).name == "deck.yaml"]
        if len(deck_names) > ROWS:
            raise refused("It has too many decks.", len(deck_names), f"up to {ROWS:,} decks in one file")
        decks = {str(PurePosixPath(name).parent): _deck(archive, name, found) for name in deck_names}
        for number, name in enumerate(dict.fromkeys(names)):
            progress(number, len(names))
            if not in_time():
                raise refused("Reading it takes too long.", "…", "a smaller file")
            text = _text(archive, name, found)
            if text is not None:
                _take(found, text, name, decks.get(str(PurePosixPath(name).parent)))
    return found


def _deck(archive: zipfile.ZipFile, name: str, findings: Findings) -> str | None:
    text = _text(archive, name, findings)
    try:
        return read_deck_text(text, name) if text is not None else None
    except ContentError as error:
        findings.leave_out(name, str(error.problems[0].reason))
    return None


def _text(archive: zipfile.ZipFile, name: str, findings: Findings) -> str | None:
    try:
        return read_member(archive, name, CARD_FILE_BYTES).decode()
    except (DomainError, UnicodeDecodeError) as error:
        reason = error.violations[0].message if isinstance(error, DomainError) else "it is not text in UTF-8"
        findings.leave_out(name, reason)
    return None


def _take(findings: Findings, text: str, name: str, deck: str | None) -> None:
    try:
        guid, revision, draft = read_card_text(text, name, deck)
    except ContentError as error:
        first = error.problems[0]
        findings.leave_out(name, f"line {first.line}, {first.field}: {first.reason}")
        return
    findings.take(Incoming(guid or guid_of_text(draft), draft, revision), f"{name}: {shown_as(draft)}"[:120])
