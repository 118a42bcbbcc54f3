"""Why a problem or an experiment comes next: what was missed of its idea, else how one stands with it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.content.concept_map import below
from app.content.evidence import Evidence, Kind
from app.content.schemas import Concept
from app.core.moment import Moment
from app.progress.mistakes import Mistake, Mistakes, when

WENT_WRONG = 0.5  # a share right below this
_WENT_RIGHT = 0.8  # from here on
_MISSED: Mapping[Kind, str] = {
    "card": "had card {} wrong",
    "problem": "missed {}",
    "free answer": "left out most of {}",
    "interview": "missed a question of {}",
    "run": "predicted {} wrong",
    "code lab": "did not pass {}",
    "puzzle": "did not solve the puzzle of {}",
}


@dataclass(frozen=True)
class Reasons:
    """What speaks for an item, in sentences: `miss`, what went wrong with its idea, empty where nothing did; `other`,
    how one stands with it; `again`, where both were said of another item already."""

    miss: str
    other: str
    again: str


class Known:
    """What a learner's evidence says of each idea. `named`: the concepts of each item. `every` is the oldest first."""

    def __init__(
        self,
        every: Iterable[Evidence],
        named: Mapping[str, Sequence[str]],
        concepts: Mapping[str, Concept],
        mistakes: Mistakes,
        moment: Moment,
    ) -> None:
        self._concepts, self._mistakes, self._moment = concepts, mistakes, moment
        self._newest: dict[str, Evidence] = {}
        for each in every:
            for concept in named.get(each.item_id, ()) if each.share is not None else ():
                self._newest[concept] = each

    def reasons(self, item: Sequence[str]) -> Reasons:
        """What speaks for an item of these concepts: its main one, the first, decides."""
        concept = self._concepts.get(item[0]) if item else None
        if concept is None:
            return Reasons("", "", "")
        return Reasons(self._miss(concept), self._other(concept), f"{concept.title} once more, from another side.")

    def _miss(self, concept: Concept) -> str:
        newest = self._newest.get(concept.id)
        if newest is None or newest.share is None:
            return ""
        mistake = self._mistake_in(newest)
        if mistake is not None:  # it says of which of the item's ideas it was
            said = mistake.sentence(self._moment) if concept.id in mistake.concepts else ""
        elif newest.share < WENT_WRONG:
            missed = _MISSED[newest.kind].format(newest.item_id.partition(".")[0])
            said = f"you {missed} {when(newest.at, self._moment)}"
        else:
            said = ""
        return f"{concept.title}: {said}." if said else ""

    def _mistake_in(self, newest: Evidence) -> Mistake | None:
        mistake = self._mistakes.get((newest.kind, newest.item_id))
        return mistake if mistake is not None and mistake.at == newest.at else None

    def _other(self, concept: Concept) -> str:
        newest = self._newest.get(concept.id)
        if newest is not None and newest.share is not None:
            at = when(newest.at, self._moment)
            if newest.share >= _WENT_RIGHT or self._mistake_in(newest) is not None:  # of another idea
                return f"{concept.title} went right {at}: try it on another case."
            return f"{concept.title} was {100 * newest.share:.0f} % right {at}."
        met = next((self._concepts[need] for need in concept.needs if self._went_right(need)), None)
        if met is not None:
            return f"{concept.title} builds on {met.title}, which you had right."
        rest = sum(concept.id in below(self._concepts, each) for each in self._concepts)
        resting = f"; {rest} other ideas rest on it" if rest > 1 else ""
        return f"You have done nothing on {concept.title} yet{resting}."

    def _went_right(self, concept: str) -> bool:
        newest = self._newest.get(concept)
        return newest is not None and newest.share is not None and newest.share >= _WENT_RIGHT
