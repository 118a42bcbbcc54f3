"""After a wrong number, what is right by theory counts as right, beside what follows from the own number."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from app.content.catalogue import Catalogue
from app.interview.parts import Part, known_to, parts_of
from app.interview.prompts import prompt
from app.interview.questions import leads_somewhere, number_of, right_answer
from app.units import SCALES
from tests.support.sat import Sat, sit

OFF = (0.25, 0.5, 0.7, 1.3, 2.0, 8.0)  # how far off the numbers before are, as slips are


def _numbers(sat: Sat) -> Iterator[Part]:
    """The numbers of a sitting that go by the candidate's own."""
    return (part for part in parts_of(sat.interview) if part.kind == "number" and part.goes_by_own_numbers)


def _truly(sat: Sat) -> dict[str, str]:
    """Everything that is not in words, answered rightly."""
    found: dict[str, str] = {}
    for part in parts_of(sat.interview):
        found[part.id] = "words" if part.kind == "text" else right_answer(part, sat.values, found)
    return found


def _before(part: Part) -> set[str]:
    return {each.id for each in part.leads_up} | ({part.question.id} if part.builds_on_own else set())


@pytest.mark.parametrize(("off", "seed"), list(zip(OFF, count(), strict=False)))
def test_what_is_true_is_right_after_any_wrong_number(content: Catalogue, off: float, seed: int) -> None:
    tried = 0
    for name, interview in content.interviews.items():
        if interview.is_round:
            continue
        sat = sit(content, name, seed)
        truly = _truly(sat)
        for part in _numbers(sat):
            known = known_to(part, sat.values, truly)
            assert known is not None, part.id
            true_answer, number = right_answer(part, sat.values, truly), number_of(part, known)
            wrong = dict(truly)
            for each in _before(part):
                first = next(other for other in parts_of(interview) if other.id == each)
                asked = number_of(first, known_to(first, sat.values, truly) or {})
                wrong[each] = f"{asked.key * off / SCALES[asked.unit][1]!r} {asked.unit}"
            after = known_to(part, sat.values, wrong)
            if after is None or not leads_somewhere(part, after):
                continue
            mine = number_of(part, after)
            tried += 1
            assert mine.grade(true_answer).status == "correct", (part.id, true_answer)
            assert mine.key == pytest.approx(number.key, rel=1e-3), "what is right does not depend on what was said"
            own = mine.by_own
            assert mine.grade(own.answer_text).status == "correct", (part.id, own.answer_text)
            assert prompt(part, sat.values, wrong) is not None
    assert tried >= 10


def test_a_debrief_says_what_follows_from_the_own_number_beside_what_is_right(content: Catalogue) -> None:
    truly = _truly(sit(content, "M4"))
    after = {"true": truly["idle.follow"], "own": "", "neither": "55 %"}
    for case, follow in after.items():
        sat = sit(content, "M4")
        while (part := sat.next()) is not None:
            given = {"idle": "40 %", "idle.again": "40 %", "idle.follow": follow}.get(part.id) or truly.get(part.id, "")
            if part.id == "idle.follow" and case == "own":
                known = known_to(part, sat.values, sat.own)
                given = number_of(part, known or {}).by_own.answer_text
            sat.give(part, given or "words")
        row = sat.card().row("idle.follow")
        assert row.verdict == ("wrong" if case == "neither" else "right"), case
        first = sat.card().row("idle")
        assert first.reached == pytest.approx(first.points / 2 if case == "true" else 0.0), "half of it is given back"
        assert ("half of it is given back" in first.message) is (case == "true")
        assert (row.key, row.own_from) == (truly["idle.follow"], "40 %")
        assert row.own_key not in ("", row.key)
        assert row.right_text.startswith(f"{row.key} is right, or {row.own_key} after your 40 %")
        assert ("idle.follow" in sat.reactions) == (case == "neither")
        if case == "neither":
            assert row.number is not None
            assert row.number.key == pytest.approx(float(row.own_key.removesuffix(" %")) / 100, rel=1e-3)
