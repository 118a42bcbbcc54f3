"""What a scorecard comes to in half a sentence, as its title says it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.grading.levels import is_at_least, share
from app.interview.lessons import lessons
from app.interview.rows import CORRECTED, Row
from app.interview.scorecards import Scorecard
from app.words import listed, number_in_words

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
    return sum(each.weight * each.credit for each in points) / whole if whole else None


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
    false = len({(row.id, each.quote) for row in asked for each in row.challenged if not each.is_taken_back})
    kept = sum(len(row.kept) for row in asked)
    claims = [f"{number_in_words(false)} false claim{'s' if false > 1 else ''}"] if false else []
    claims += [f"{number_in_words(kept)} kept when asked"] if kept and false else []
    claims += [f"{number_in_words(kept)} claim{'s' if kept > 1 else ''} kept when asked"] if kept and not false else []
    but = f" but for {listed(claims)}" if claims else ""
    if said is None:
        yield "nothing asked in words"
    elif said >= MOST:
        yield f"{'full' if said >= NEARLY_ALL else 'good'} in words{but}"
    elif said >= HALF:
        yield f"half of it heard in words{but}"
    else:
        yield "thin in words" if said >= HARDLY_ANY else "hardly anything heard in words"
        if false:
            yield f"{number_in_words(false)} false claim{'s' if false > 1 else ''}"
