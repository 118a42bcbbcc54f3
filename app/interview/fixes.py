"""What to do next: what would have been worth most, with where to learn it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from app.content.catalogue import Catalogue
from app.content.composed import concepts_of
from app.content.interview_schemas import Interview, Question
from app.grading.hints import share_left
from app.interview.lessons import LEAST_LOST, Lesson, lessons
from app.interview.rows import NO_ANSWER, JudgedPoint, Row
from app.interview.scorecards import Scorecard
from app.words import capital, listed, lowered, number_in_words

MOST_FIXES = 3
MOST_TOPICS = 2  # that a title names
LONGEST_TITLE = 9  # words, of two topics


@dataclass(frozen=True)
class Link:
    """Where a fix is made."""

    href: str
    text: str


@dataclass(frozen=True)
class Fix:
    """One thing to do, and the points it would have been worth. Of two that are worth the same the one of more `weight`
    comes first: what came again weighs more, what was put right at once less. What `is_false` and was held on to is
    among them whatever it cost."""

    title: str
    says: str
    points: float
    links: tuple[Link, ...]
    weight: float
    is_false: bool = False


def fixes(content: Catalogue, interview: Interview, card: Scorecard) -> list[Fix]:
    """What would have gained most, at most three, the most first: lessons, points missed in words, blanks."""
    asked = {each.id: each for each in interview.questions}
    found = [_to_learn(content, asked, lesson) for lesson in lessons(card.rows)]
    for row in card.rows:
        found += _to_unlearn(content, row)
        if row.lost >= LEAST_LOST:
            found += _of_row(content, interview, asked.get(row.question), row)
    ranked = sorted(found, key=lambda each: (-each.points, -each.weight))
    shown, later = ranked[:MOST_FIXES], ranked[MOST_FIXES:]
    false = next((each for each in later if each.is_false), None)
    return [*shown[:-1], false] if false and not any(each.is_false for each in shown) else shown


def _of_row(content: Catalogue, interview: Interview, question: Question | None, row: Row) -> Iterator[Fix]:
    """What to do about a row that is no lesson of a wrong answer."""
    read = _to_read(content, question, question.cure if question else None)
    if row.verdict == NO_ANSWER:
        again = Link(f"/interview/{interview.slug}", "Sit it again")
        yield Fix(f"Answer “{row.title}”", "It was left blank.", row.lost, (*read, again), row.lost)
    elif row.verdict == "right" and row.hints:
        says = f"It was right; what was open left {100 * share_left(len(row.hints)):.0f} % of its points."
        links = (*read, _see(row))
        yield Fix(f"Do “{row.title}” without a hint", says, row.lost, links, row.lost)
    elif row.kind == "text" and row.said:
        yield from _words_to_say(row, read)
    elif row.kind == "coding" and row.checks and row.verdict != "right":
        read = _to_read(content, question, row.cure)
        title = f"Mend the program: {lowered(row.slip)}" if row.slip else "Make the program pass on 2, 3 and 4 ranks"
        yield Fix(title, row.message or f"{row.verdict.capitalize()}.", row.lost, (*read, _see(row)), row.lost)


def _to_unlearn(content: Catalogue, row: Row) -> Iterator[Fix]:
    """What was said that is false and was not taken back."""
    weights = sum(point.weight for point in row.rubric) or 1.0
    for each in row.challenged:
        if each.is_taken_back:
            continue
        against = [point for point in row.rubric if point.id in each.contradicts]
        lost = row.points * sum(point.weight * (1 - point.counts) for point in against) / weights
        again = " and said it again when you were asked" if each.is_said_again else ""
        says = f"In “{row.title}” you said “{each.quote.rstrip('.')}”{again}. {each.so}"
        links = (*_to_read(content, None, each.cure, practise=True), Link(f"#part-{row.id}", "See it below"))
        yield Fix(each.learn, says, lost, links, lost, is_false=True)


def _words_to_say(row: Row, read: tuple[Link, ...]) -> Iterator[Fix]:
    """The points that were not heard in a text answer, together: they are one thing to read. What was near, and is for
    the candidate to judge, is none of them."""
    told = {point for each in row.challenged if not each.is_taken_back for point in each.contradicts}
    said = (point for point in row.rubric if point.id not in told)
    lacking = {point: point.weight * (1 - point.counts) for point in said if point.counts < 1}
    missed = sorted((point for point in lacking if not point.is_open), key=lambda point: -lacking[point])
    named = missed[: _named(missed)]
    if named:
        weights = sum(point.weight for point in row.rubric)
        lost = row.points * sum(lacking[point] for point in named) / weights
        full = Link(f"#part-{row.id}", "Read a full answer")
        yield Fix(_cover(row, named), _says(row, missed, len(named)), lost, (*read, full), lost)


def _named(missed: Sequence[JudgedPoint]) -> int:
    """How many points a title has room for."""
    topics = [each.topic for each in missed[:MOST_TOPICS]]
    return MOST_TOPICS if all(topics) and len(" ".join(topics).split()) <= LONGEST_TITLE else 1


def _cover(row: Row, named: Sequence[JudgedPoint]) -> str:
    """What to speak of next time, as a title."""
    topics = [each.topic for each in named if each.topic]
    if not topics:  # a card of an earlier version
        return f"Say more in “{row.title}”"
    return f"Cover {listed(topics)}{' in full at once' if all(each.pushed for each in named) else ''}"


def _says(row: Row, missed: Sequence[JudgedPoint], named: int) -> str:
    others = len(missed) - named
    were = "point was" if others == 1 else "points were"
    more = f" {capital(number_in_words(others))} more {were} not heard there." if others else ""
    return f"Not heard in “{row.title}”: {missed[0].point}{more}"


def _to_learn(content: Catalogue, asked: dict[str, Question], lesson: Lesson) -> Fix:
    """A lesson with where it went wrong, what is so, and where to read and practise it."""
    first = lesson.rows[0]
    question = asked.get(first.question)
    cure = lesson.cure or _near(question, is_follow_up=first.is_follow_up)
    title = lesson.learn or f"See how “{first.title}” is computed, and do it once more"
    where = listed([f"“{row.title}”" for row in lesson.rows])
    again = ", again after you had put it right" if lesson.came_again else ""
    why = _why(first) or "No known slip leads to your answer."
    links = (*_to_read(content, question, cure, practise=True), _see(first))
    return Fix(title, f"In {where}{again}. {why}", lesson.lost, links, lesson.weight)


def _near(question: Question | None, *, is_follow_up: bool) -> str | None:
    """The card nearest to a question whose answer has no cure of its own: its own, or the first of its slips'. A
    follow-up with slips is about what they are, and no longer about its question."""
    if question is None:
        return None
    after = question.follow_up.slips if is_follow_up and question.follow_up else ()
    asked_then = next((each.cure for each in after if each.cure), None)
    return asked_then or question.cure or next((each.cure for each in question.slips if each.cure), None)


def _see(row: Row) -> Link:
    return Link(f"#part-{row.id}", "See how it is computed" if row.kind == "number" else "See it below")


def _why(row: Row) -> str:
    """A row's message, without the name of the slip where it begins with that: the title says more."""
    named = f"{row.slip}. "
    return row.message[len(named) :] if row.slip and row.message.startswith(named) else row.message


def _to_read(
    content: Catalogue, question: Question | None, card_id: str | None, *, practise: bool = False
) -> tuple[Link, ...]:
    """A card, and a problem that practises it. A card that is about nothing that the question is about is no help; then
    the first one that is."""
    about = concepts_of(question) if question else ()
    card = content.cards.get(card_id) if card_id else None
    if card is None:
        return ()
    if about and not practise and not set(about) & set(card.head.concepts):
        card = next((each for each in content.cards.values() if about[0] in each.head.concepts), card)
    problems = (
        Link(f"/practice/{problem.slug}", f"{problem.id} with fresh numbers")
        for problem in content.problems.values()
        if practise and card.id in problem.related.cards
    )
    return (Link(f"/study/cards/{card.id}", f"{card.id}, {card.head.title}"), *islice(problems, 1))
