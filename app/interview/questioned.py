"""What became of answers that were questioned, as a letter tells it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.grading import levels
from app.interview.rows import BETTER, CORRECTED, Row, has_stayed
from app.words import listed, number_in_words

HALF = 0.5
_OF_SEVERAL = {
    "right": "put {} right",
    "better": "made {} better, but not right",
    "other": "changed {} and were still wrong",
    "same": "stayed with {}",
}
_OF_ONE = {
    "right": "put it right",
    "better": "made it better, but not right",
    "other": "changed it and were still wrong",
    "same": "stayed with it",
}


def what_became(rows: Sequence[Row]) -> Iterator[str]:
    """What was computed or chosen and questioned, and what the own layout or program comes to."""
    asked = [row for row in rows if row.is_evidence]
    questioned = [row for row in asked if row.kind != "text" and any(each.said for each in row.pushed)]
    right, of = sum(row.verdict == CORRECTED for row in questioned), len(questioned)
    if of:
        what = "one answer" if of == 1 else f"{number_in_words(of)} answers"
        yield f"Of what they computed or chose I questioned {what}: they {_became(questioned)}."
    if of > 1 and right > HALF * of and _unaided_answers(asked) < HALF:
        yield "Much of this they know when pointed at it, and did not use unasked."
    own = [row for row in rows if row.is_harder and ".own." in row.id and row.said]
    if own and all(row.verdict == "right" for row in own):
        programs = {row.question for row in asked if row.kind == "coding"}
        yield f"They could say what their own {'program' if own[0].question in programs else 'layout'} comes to."


def _became(questioned: Sequence[Row]) -> str:
    """What became of what was questioned, each kind with how many it was of several."""
    kinds: dict[str, int] = {}
    for row in questioned:
        kinds[_outcome(row)] = kinds.get(_outcome(row), 0) + 1
    if len(questioned) == 1:
        return _OF_ONE[next(iter(kinds))]
    if len(kinds) == 1:
        (kind,) = kinds
        return _OF_SEVERAL[kind].format("both" if len(questioned) == 2 else "all of them")
    return listed([_OF_SEVERAL[kind].format(number_in_words(kinds[kind])) for kind in _OF_SEVERAL if kind in kinds])


def _outcome(row: Row) -> str:
    """What became of an answer that was questioned."""
    if row.verdict == CORRECTED:
        return "right"
    if any(each.verdict == BETTER for each in row.pushed):
        return "better"
    return "same" if all(has_stayed(row, each) for each in row.pushed if each.said) else "other"


def _unaided_answers(asked: Sequence[Row]) -> float:
    plain = [row for row in asked if row.kind not in ("text", "coding")]
    return levels.share(sum(row.verdict == "right" for row in plain), len(plain))
