"""A showing as JSON. What the machine checks comes without its key, until it was checked."""

from __future__ import annotations

from app.content.asked import Asked
from app.study.service import Desk, NextCard


def desk_json(desk: Desk) -> dict[str, object]:
    """The card to answer now, or null, and where the learner stands today."""
    return {
        "progress": {
            "done": desk.progress.done,
            "left": desk.progress.left,
            "new": desk.progress.new,
            "again": desk.progress.again,
        },
        "card": None if desk.card is None else _card_json(desk.card),
    }


def checked_json(shown: NextCard) -> dict[str, object]:
    """The verdict on an answer, with everything the card says once it is one that counts."""
    checked = shown.checked
    assert checked is not None, "asked of a showing that was checked"
    verdict = checked.verdict
    found = {
        "card_id": shown.card.id,
        "seed": checked.asked.seed,
        "status": verdict.status,
        "message": verdict.message.striptags(),
        "misconception": verdict.title or None,
        "cure": verdict.cure,
    }
    if not checked.counts:
        return found
    return {
        **found,
        "right_html": str(verdict.right),
        "remarks": [{"about_html": str(about), "says_html": str(says)} for about, says in verdict.remarks],
        "best_level": checked.best_level,
        "interval_seconds": _intervals(shown),
        "sections": _sections(shown),
    }


def _card_json(shown: NextCard) -> dict[str, object]:
    asked = shown.asked
    sections = _sections(shown)
    return {
        "card_id": shown.card.id,
        "revision": shown.card.head.revision,
        "version": shown.version,
        "deck": shown.card.deck.id,
        "title": shown.card.head.title,
        "kind": shown.card.head.kind,
        "is_new": shown.is_new,
        "seed": asked.seed if asked else None,
        "ask": _asked_json(asked) if asked else None,
        "sections": sections if asked is None else {"question": sections["question"]},
        "interval_seconds": _intervals(shown),
    }


def _asked_json(asked: Asked) -> dict[str, object]:
    return {
        "prompt_html": str(asked.prompt),
        "unit": asked.number.unit if asked.number else None,
        "tolerance": asked.number.tolerance if asked.number else None,
        "several": asked.several,
        "choices": [{"key": choice.key, "text_html": str(choice.text)} for choice in asked.choices],
        "lefts": [str(left) for left in asked.lefts],
    }


def _sections(shown: NextCard) -> dict[str, str]:
    return {name.lower(): str(html) for name, html in shown.card.sections.items()}


def _intervals(shown: NextCard) -> dict[int, float]:
    return {level: gap.total_seconds() for level, gap in shown.intervals.items()}
