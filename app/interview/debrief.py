"""What a scorecard says beyond its points: question by question, what was worth most to lose, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.content.catalogue import Catalogue
from app.content.composed import concepts_of
from app.content.interview_schemas import Interview
from app.grading import levels
from app.grading.rubrics.quotes import topic
from app.interview.asked import Asked, questions_asked
from app.interview.closing import ANSWERED, ENDED
from app.interview.criteria import COMMUNICATION, Criterion, criteria, in_tenths
from app.interview.fixes import Fix, all_fixes, fixes
from app.interview.lessons import LEAST_LOST
from app.interview.letter import Pace, letter
from app.interview.models import Sitting, SittingAnswer
from app.interview.pace import minutes_by_question, paced
from app.interview.parts import Reactions
from app.interview.rows import VERDICTS, Row
from app.interview.scorecards import Scorecard
from app.interview.verdicts import verdict_in_words

STRUCTURE = "interview-structure"  # a concept of how, not of what


@dataclass(frozen=True)
class Debrief:
    """A scorecard told. `longest_minutes` is the end of the scale of times, `letter` has paragraphs; `next_level` is
    none where not the points hold the level, but what they say is `held`, the reasons. `verdict` is what a title says
    of the answers. `more_to_do` are the fixes beyond the first."""

    questions: tuple[Asked, ...]
    criteria: tuple[Criterion, ...]
    longest_minutes: float
    fixes: tuple[Fix, ...]
    more_to_do: tuple[Fix, ...]
    letter: tuple[str, ...]
    next_level: levels.Threshold | None
    points_to_next: float
    verdict: str = ""
    held: tuple[str, ...] = ()

    @property
    def worth(self) -> float:
        """What the fixes come to together."""
        return sum(each.points for each in self.fixes)

    @property
    def shared_out(self) -> Mapping[str, tuple[str, str]]:
        """What was reached of the points, and the points, of each criterion that has some: in tenths that add up to
        those of the score, by its title."""
        shared = [each for each in self.criteria if each.points and each.id != COMMUNICATION]
        reached, points = in_tenths([each.reached for each in shared]), in_tenths([each.points for each in shared])
        return dict(zip((each.title for each in shared), zip(reached, points, strict=True), strict=True))

    @property
    def most_to_gain(self) -> Fix | None:
        """The fix that has cost most points."""
        most = max(self.fixes, key=lambda each: each.points, default=None)
        return most if most and most.points >= LEAST_LOST else None

    @property
    def answered(self) -> tuple[Asked, ...]:
        return tuple(each for each in self.questions if not each.left_out)

    @property
    def unanswered(self) -> tuple[Asked, ...]:
        return tuple(each for each in self.questions if each.left_out)

    @property
    def reason(self) -> str:
        """What the level rests on above all, as a title goes on."""
        blank, every = sum(each.left_out == "left blank" for each in self.questions), len(self.questions)
        if 2 * blank >= every and blank:
            return f"{'every question' if blank == every else f'{blank} of {every} questions'} left blank"
        return self.verdict + (f", {blank} of {every} questions left blank" if blank else "")


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
    more = [each for each in all_fixes(content, interview, card) if each not in to_do]
    held = card.decision.held
    following = None if held else levels.following(card.score)
    return Debrief(
        questions,
        rated,
        max((max(float(each.budget_minutes), each.used_minutes or 0.0) for each in questions), default=0.0),
        tuple(to_do),
        tuple(more),
        letter(card, rated, topics_of(content, interview, card), _pace(sitting)) if card.level else (),
        following,
        following.least * card.points - card.reached if following else 0.0,
        verdict_in_words(card) if card.level else "",
        held,
    )


def topics_of(content: Catalogue, interview: Interview, card: Scorecard) -> dict[str, str]:
    """What each question is about, as a sentence names it: the first of its concepts; nothing where an answer about
    that was wrong, or something false said and not put right, in whatever question."""
    concepts = {each.id: concepts_of(each) for each in interview.questions}
    wrong = [row for row in card.rows if row.is_doubtful or row.verdict == VERDICTS["wrong"]]
    doubtful = {name for row in wrong for name in concepts.get(row.question, ())} | set(_wrong_about(content, card))
    named = topic(*(about for row in card.rows for about in _wrong_topics(row)))
    first = {question: next((name for name in names if name != STRUCTURE), "") for question, names in concepts.items()}
    return {
        question: content.concepts[name].title
        for question, name in first.items()
        if name in content.concepts and name not in doubtful and named.isdisjoint(topic(content.concepts[name].title))
    }


def _wrong_about(content: Catalogue, card: Scorecard) -> Iterator[str]:
    """The concepts of the cards that teach what was said that is false and not taken back."""
    cures = (each.cure for row in card.rows for each in row.challenged if not each.is_taken_back)
    yield from (concept for cure in cures if cure in content.cards for concept in content.cards[cure].head.concepts)


def _wrong_topics(row: Row) -> Iterator[str]:
    """What something wrong was said about in an answer in words."""
    yield from (each.topic for each in row.challenged if not each.is_taken_back)
    yield from (each.topic for each in row.rubric if each.is_denied)


def _pace(sitting: Sitting) -> Pace:
    used = (sitting.closed_at or sitting.deadline_at) - sitting.started_at
    given = sitting.deadline_at - sitting.started_at
    return Pace(used.total_seconds() / 60, given.total_seconds() / 60, sitting.closed_by in (ENDED, ANSWERED))
