"""What a scorecard comes to in half a sentence, as its title says it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.grading.levels import is_at_least, share
from app.interview.lessons import lessons
from app.interview.rows import CORRECTED, Row
from app.interview.scorecards import Scorecard
from app.words import number_in_words

NEARLY_ALL, MOST, HALF, HARDLY_ANY = 0.8, 0.65, 0.5, 0.25
FEW = 3  # answers, of which a share says something


def verdict_in_words(card: Scorecard) -> str:
    """Of a hire what was shown, else what stood in its way."""
    asked = [row for row in card.rows if row.is_evidence]
    shown = ", ".join((*_computed(asked), *_said(asked)))
    if is_at_least(card.level or "no hire", "hire"):
        return shown or "nothing was asked"
    plain = _plain(asked)
    late = sum(row.verdict == CORRECTED for row in plain)
    if late and 2 * late > sum(row.verdict != "right" for row in plain) and late >= HALF * len(plain):
        return "known when you are pointed at it, not used unasked"
    right = sum(row.verdict == "right" for row in plain)
    if len(plain) >= FEW and right <= HARDLY_ANY * len(plain):
        return f"{number_in_words(right)} of {number_in_words(len(plain))} answers right at the first attempt"
    did = next((each.did for each in lessons(card.rows) if each.did and not each.was_put_right), "")
    return f"you {did}" if did else shown or "hardly anything was answered"


def said_share(rows: Sequence[Row]) -> float | None:
    """The share that was said unasked of what answers in words are to say, by weight; None where nothing was asked in
    words."""
    points = [each for row in rows for each in row.rubric]
    whole = sum(each.weight for each in points)
    heard = sum(each.weight * each.credit for each in points if each.heard == "met")  # what was judged is not heard
    return heard / whole if whole else None


def _plain(asked: Sequence[Row]) -> list[Row]:
    return [row for row in asked if row.kind not in ("text", "coding")]


def _computed(asked: Sequence[Row]) -> Iterator[str]:
    plain, programs = _plain(asked), [row for row in asked if row.kind == "coding"]
    right = share(sum(row.verdict == "right" for row in plain), len(plain))
    late = share(sum(row.verdict == CORRECTED for row in plain), len(plain))
    what = "figures" if all(row.kind == "number" for row in plain) else "figures and choices"
    if plain and right == 1:
        yield f"all {what} right at once"
    elif plain and right >= NEARLY_ALL:
        yield f"nearly all {what} right at once"
    elif plain and right == HALF:
        yield f"half of the {what} right at once"
    elif plain and right > HALF:
        yield f"most {what} right at once"
    elif plain:
        yield f"most {what} right once questioned" if right + late >= HALF else f"most {what} wrong"
    if programs:
        yield "the program passes" if all(row.verdict == "right" for row in programs) else "the program does not pass"


def _said(asked: Sequence[Row]) -> Iterator[str]:
    said = said_share(asked)
    wrong = _said_wrongly(asked)
    but = f" but for {wrong}" if wrong else ""
    if said is None:
        yield "nothing asked in words"
    elif said >= MOST:
        yield f"{'full' if said == 1 else 'good'} in words{but}"
    elif said >= HALF:
        yield f"half of it heard in words{but}"
    else:
        yield "thin in words" if said >= HARDLY_ANY else "hardly anything heard in words"
        if wrong:
            yield wrong


def _said_wrongly(asked: Sequence[Row]) -> str:
    """How many sentences are marked as wrong: as false, where each is known to be; empty where there is none."""
    wrong = [(row, each) for row in asked for each in row.wrong_words]
    are_known = all(any(each in false or false in each for false in row.false_words) for row, each in wrong)
    one, many = ("false claim", "false claims") if are_known else ("thing the wrong way round",) * 2
    if not are_known and wrong[1:]:
        many = "things the wrong way round"
    return f"{number_in_words(len(wrong))} {many if wrong[1:] else one}" if wrong else ""
