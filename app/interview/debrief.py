"""What a scorecard says beyond its points: question by question, what was worth most to lose, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.content.catalogue import Catalogue
from app.content.composed import concepts_of
from app.content.interview_schemas import Interview
from app.grading import levels
from app.grading.levels import is_at_least
from app.interview.asked import Asked, questions_asked
from app.interview.criteria import Criterion, criteria
from app.interview.fixes import LEAST_LOST, Fix, fixes
from app.interview.letter import Pace, letter
from app.interview.models import Sitting, SittingAnswer
from app.interview.pace import minutes_by_question, paced
from app.interview.parts import Reactions
from app.interview.rows import CORRECTED
from app.interview.scorecards import Scorecard
from app.words import listed

MOST_SHORT = 3  # criteria that a title names


@dataclass(frozen=True)
class Debrief:
    """A scorecard told. `longest_minutes` is the end of the scale of times, `letter` has paragraphs; `next_level` is
    none where not the points hold the level, but what they say is `held`, the reasons."""

    questions: tuple[Asked, ...]
    criteria: tuple[Criterion, ...]
    longest_minutes: float
    fixes: tuple[Fix, ...]
    letter: tuple[str, ...]
    next_level: levels.Threshold | None
    points_to_next: float
    strength: str = ""
    held: tuple[str, ...] = ()

    @property
    def worth(self) -> float:
        """What the fixes come to together."""
        return sum(each.points for each in self.fixes)

    @property
    def answered(self) -> tuple[Asked, ...]:
        return tuple(each for each in self.questions if not each.left_out)

    @property
    def unanswered(self) -> tuple[Asked, ...]:
        return tuple(each for each in self.questions if each.left_out)

    @property
    def reason(self) -> str:
        """What the level rests on above all, as a title goes on: questions left blank, of a hire what was right, else
        what it is short on."""
        blank, every = sum(each.left_out == "left blank" for each in self.questions), len(self.questions)
        if self.strength and blank:
            return f"{self.strength}, {blank} of {every} questions left blank"
        if 2 * blank >= every and blank:
            return f"{'every question' if blank == every else f'{blank} of {every} questions'} left blank"
        short = [each.title.lower() for each in self.criteria if each.level and not is_at_least(each.level, "hire")]
        if self.strength or not short:
            return self.strength or "nothing missed"
        return "short on everything it asks for" if len(short) > MOST_SHORT else f"short on {listed(short)}"


def debrief(
    content: Catalogue,
    interview: Interview,
    sitting: Sitting,
    card: Scorecard,
    saved: Mapping[str, SittingAnswer],
    reactions: Reactions,
) -> Debrief:
    """Everything the page of a closed sitting says."""
    card = paced(card, interview, sitting.started_at, saved)
    questions = questions_asked(interview, card, minutes_by_question(sitting.started_at, saved), reactions)
    rated, to_do = criteria(card.rows), fixes(content, interview, card)
    held = card.decision.held
    following = None if held else levels.following(card.score)
    return Debrief(
        questions,
        rated,
        max((max(float(each.budget_minutes), each.used_minutes or 0.0) for each in questions), default=0.0),
        tuple(to_do),
        letter(card, rated, _topics(content, interview), to_do, _pace(sitting)) if card.level else (),
        following,
        following.least * card.points - card.reached if following else 0.0,
        _strength(card) if card.level and is_at_least(card.level, "hire") else "",
        held,
    )


def _topics(content: Catalogue, interview: Interview) -> dict[str, str]:
    """What each question is about, as a sentence names it: the first of its concepts."""
    first = {each.id: next(iter(concepts_of(each)), "") for each in interview.questions}
    return {question: content.concepts[name].title for question, name in first.items() if name in content.concepts}


def _pace(sitting: Sitting) -> Pace:
    used = (sitting.closed_at or sitting.deadline_at) - sitting.started_at
    given = sitting.deadline_at - sitting.started_at
    return Pace(used.total_seconds() / 60, given.total_seconds() / 60, sitting.closed_by == "candidate")


def _strength(card: Scorecard) -> str:
    """What was right, as the title of a hire goes on; empty where nothing was missed."""
    asked = [row for row in card.rows if row.is_evidence]
    plain, points = [row for row in asked if row.kind != "text"], [each for row in asked for each in row.rubric]
    if all(row.lost < LEAST_LOST for row in card.rows):
        return ""
    put_right = sum(row.verdict == CORRECTED for row in plain)
    said = [f"{sum(row.verdict == 'right' for row in plain)} of {len(plain)} right"] if plain else []
    said += [f"{put_right} put right when asked"] if put_right else []
    said += [f"{sum(each.counts > 0 for each in points)} of {len(points)} points said"] if points else []
    return ", ".join(said)
