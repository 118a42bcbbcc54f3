"""What was found in an answer, a note for each point and for each thing that is false: the words, and the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from app.reveal.words import CLASSES, UNDERLINED, Finding, Kind, cut_short, nearest, sentences, why_less, why_missed
from app.rubrics.rows import TAKEN_BACK, Row

KINDS: Mapping[str, Kind | None] = {CLASSES[verdict]: kind for verdict, kind in UNDERLINED.items()} | {"missed": None}
GUESSED = "It reads like the opposite of this, but may not be."
CORRECTED = "Not so. "  # before what is so, at a point that a false sentence contradicts
FALSE = "Not so"  # the word of a false sentence that is about no point
CRITICAL = "Critical"
LIFTED = "Lifted"


def findings(
    rows: Sequence[Row],
    answer: str,
    grade: Mapping[str, Any],
    mistakes: Mapping[str, str],
    lifted_by: tuple[str, ...] = (),
) -> list[Finding]:
    """A finding for each point, each critical mistake (`mistakes` are their texts by id), each sentence that is false
    and about no point, and for those that the answer was `lifted_by` to the floor. What is so instead of a false
    sentence stands once. `grade` is as it is kept; one of earlier days has its corrections among its notes."""
    found = _with_mistakes(_of_points(rows, answer), grade["critical"], mistakes)
    found = _corrected(found, grade.get("corrections", ()))
    if lifted_by:
        text = "Right definitions, which earn no points and lift the level."
        found.append(Finding("floor", text, LIFTED, "met", 0.0, 0.0, "ok", lifted_by))
    return found


def _of_points(rows: Sequence[Row], answer: str) -> list[Finding]:
    """What became of each point. Of what was missed the nearest sentence is quoted that nothing rests on, each once."""
    resting = [said for row in rows for said in row.evidence]
    free = [each for each in sentences(answer) if not any(each in said or said in each for said in resting)]
    surely = {said for row in rows if row.css == "met" for said in row.evidence}
    found = []
    for row in rows:
        against = tuple(said for said in row.evidence if said not in surely) or row.evidence
        close = nearest(row.point.text.striptags(), "\n".join(free)) if row.verdict == "missed" else None
        free = [each for each in free if each != close]
        kind = KINDS[row.css]
        found.append(
            Finding(
                row.point.id,
                row.point.text,
                _word(row),
                row.css,
                row.credit * row.point.weight,
                row.point.weight,
                kind,
                against if kind == "no" else row.quotes,
                _why(row, answer, close),
                row.quotes,
            )
        )
    return found


def _word(row: Row) -> str:
    word = row.verdict.capitalize()
    if row.judged and not row.is_taken_back:
        return f"{word}, you judged"
    return f"{word}, if you meant it" if row.doubted else word


def _why(row: Row, answer: str, close: str | None) -> str:
    """Why a point did not count in full; empty where it did, and where its word and its quote say so. `close` is the
    sentence nearest to a missed one."""
    if row.verdict == TAKEN_BACK or (row.judged and row.verdict == "missed"):
        return "These words say nothing of it, by your own judgement."
    if row.verdict == "missed":
        return why_missed(row.point.half, close)
    if row.is_open:
        return GUESSED if row.guessed else ""
    verdict = "met" if row.verdict in ("met", "half met") else row.verdict
    return why_less(verdict, row.credit, row.point.text.striptags(), row.point.half, answer)


def _with_mistakes(
    points: Sequence[Finding], critical: Sequence[Mapping[str, Any]], texts: Mapping[str, str]
) -> list[Finding]:
    """The findings with critical mistakes among them: where a point is contradicted by the same sentence, there; else
    as one of its own, which costs no points and holds the level."""
    marked = list(points)
    for mistake in critical:
        said = tuple(mistake["evidence"])
        at = next((at for at, each in enumerate(points) if each.kind == "no" and set(said) <= set(each.evidence)), None)
        if said and at is not None:
            marked[at] = replace(points[at], verdict=f"{points[at].verdict}, {CRITICAL.lower()}")
            continue
        text = texts.get(mistake["id"], mistake["id"])
        marked.append(Finding(f"critical-{mistake['id']}", text, CRITICAL, "contra", 0.0, 0.0, "no", said))
    return marked


def _corrected(heard: Sequence[Finding], corrections: Sequence[Mapping[str, str]]) -> list[Finding]:
    """The findings with what is so instead: at the first that rests on a false sentence, where it is said of others
    that the same sentence is against them too, or as a finding of its own where the sentence is about no point."""
    corrected = list(heard)
    for correction in corrections:
        said, so = correction["sentence"], correction["so"]
        about = [at for at, each in enumerate(heard) if each.kind == "no" and said in each.evidence]
        if not about:
            shown = Markup.escape(f"“{cut_short(said)}”")
            corrected.append(Finding(f"false-{len(corrected)}", shown, FALSE, "contra", 0.0, 0.0, "no", (said,), so))
            continue
        first = heard[about[0]]
        others = (each for each in first.evidence if each != said)
        corrected[about[0]] = replace(first, why=f"{CORRECTED}{so}", evidence=(said, *others))
        for at in about[1:]:
            if heard[at].verdict == CRITICAL:  # it is that sentence, and says what it does to the level
                continue
            corrected[at] = replace(heard[at], why="The same sentence is the opposite of this as well.", quotes=())
    return corrected
