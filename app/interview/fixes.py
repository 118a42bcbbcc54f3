"""What to do next: what would have been worth most, with where to learn it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from app.content.catalogue import Catalogue
from app.content.composed import concepts_of
from app.content.interview_schemas import Interview, Question
from app.grading.hints import share_left
from app.interview.challenging import SAID_AGAIN, STOOD_BY, TAKEN_BACK, WITHDRAWN
from app.interview.falsehoods import is_quotable, quoted
from app.interview.lessons import LEAST_LOST, Lesson, lessons
from app.interview.rows import NO_ANSWER, NOT_ASKED, JudgedPoint, Row
from app.interview.scorecards import Scorecard
from app.words import capital, listed, lowered, number_in_words

MOST_FIXES = 3
KEPT_IS = "That was heard as the opposite of this:"
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
    """What would have gained most, at most three, the most first; one of them is about something false, where there
    is."""
    ranked = all_fixes(content, interview, card)
    shown, later = ranked[:MOST_FIXES], ranked[MOST_FIXES:]
    false = next((each for each in later if each.is_false), None)
    return [*shown[:-1], false] if false and not any(each.is_false for each in shown) else shown


def all_fixes(content: Catalogue, interview: Interview, card: Scorecard) -> list[Fix]:
    """What to do about everything that was lost or is false: lessons, points missed in words, blanks; by the points
    that it cost."""
    asked = {each.id: each for each in interview.questions}
    found = [_to_learn(content, asked, lesson) for lesson in lessons(card.rows)]
    for row in card.rows:
        found += _to_unlearn(content, asked.get(row.question), row)
        if row.lost >= LEAST_LOST:
            found += _of_row(content, interview, asked.get(row.question), row)
    return sorted(found, key=lambda each: (-each.points, -each.weight))


def _of_row(content: Catalogue, interview: Interview, question: Question | None, row: Row) -> Iterator[Fix]:
    """What to do about a row that is no lesson of a wrong answer."""
    read = _read_of(content, question)
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


def _to_unlearn(content: Catalogue, question: Question | None, row: Row) -> Iterator[Fix]:
    """What was said that is false and was not taken back."""
    for each in row.challenged:
        if each.outcome == TAKEN_BACK:
            continue
        lost = _lost(row, [point for point in row.rubric if point.id in each.contradicts])
        again = " and said it again when you were asked" if each.outcome == SAID_AGAIN else ""
        again = " and stood by it when you were asked" if each.outcome == STOOD_BY else again
        again = ", and took it back without what is so" if each.outcome == WITHDRAWN else again
        so = f"{each.ask} {each.so}" if each.outcome == NOT_ASKED and each.ask else each.so  # an answer to nothing else
        says = f"In “{row.title}” you said {quoted(each.quote)}{again}. {so}"
        read = _to_read(content, None, each.cure, practise=True) if each.cure else _read_of(content, question)
        links = (*read, Link(f"#part-{row.id}", "See it below"))
        title = each.learn or f"Correct your view of {each.topic}"
        yield Fix(title, says, lost, links, lost, is_false=True)


def _words_to_say(row: Row, read: tuple[Link, ...]) -> Iterator[Fix]:
    """What was not heard in full in a text answer: the points that something is near, which the candidate is to judge,
    those that were heard as the opposite or explained in another way, those that nothing said is near; what is left is
    to be held beside a full answer."""
    told = {point for each in row.challenged if each.outcome != TAKEN_BACK for point in each.contradicts}
    for point, _ in row.kept:
        if point.id not in told and row.told_by(point) and point.topic:
            told.add(point.id)
            lost = _lost(row, [point])
            said = f"In “{row.title}” you said {quoted(row.told_by(point))} and kept to it when you were asked."
            says = f"{said} {KEPT_IS} {point.point}"
            full = Link(f"#part-{row.id}", "See it below")
            yield Fix(f"Correct your view of {point.topic}", says, lost, (*read, full), lost, is_false=True)
    lacking = [each for each in row.rubric if each.counts < 1 and each.id not in told]
    lacking.sort(key=lambda each: -each.weight)
    links = (*read, Link(f"#part-{row.id}", "Read a full answer"))

    near = _named([each for each in lacking if each.is_open and each.topic])
    if near:
        says = (
            f"Something near it was heard in “{row.title}”, and counts once you judge that you said it: {near[0].point}"
        )
        yield Fix(f"Say {_topics(near)} outright", says, _lost(row, near), links, _lost(row, near))
    wrong = [each for each in lacking if (each.is_denied or each.otherwise) and each.topic]
    wrong = [each for each in wrong if (words := row.told_by(each)) and is_quotable(words)]
    for each in wrong:
        worth = _lost(row, [each])
        yield Fix(f"Check your view of {each.topic}", _other_than(row, each), worth, links, worth)
    lacking = [each for each in lacking if each not in wrong]
    missing = [each for each in lacking if each.is_absent and each.topic]
    while missing:
        named = _named(missing)
        says = f"Nothing near it was heard in “{row.title}”: {named[0].point}"
        yield Fix(f"Cover {_topics(named)}", says, _lost(row, named), links, _lost(row, named))
        lacking = [each for each in lacking if each not in named]
        missing = missing[len(named) :]
    rest = [each for each in lacking if each not in near]
    while named := _named([each for each in rest if each.topic]):
        says = f"Not heard in full in “{row.title}”: {named[0].point}"
        yield Fix(f"Say {_topics(named)} in full", says, _lost(row, named), links, _lost(row, named))
        rest = [each for each in rest if each not in named]
    if rest:
        title = f"Hold “{row.title}” beside a full answer"
        yield Fix(title, _heard_of(row), _lost(row, rest), links, _lost(row, rest))


def _other_than(row: Row, point: JudgedPoint) -> str:
    """What was said of a point, that is its opposite or another answer, with what is so."""
    said = f"In “{row.title}” you said {quoted(row.told_by(point))}"
    if point.otherwise:
        return f"{said}, and kept to it when you were asked. What is so is another thing: {point.point}"
    return f"{said}. {KEPT_IS} {point.point}"


def _lost(row: Row, of: Sequence[JudgedPoint]) -> float:
    """What some points of a row are worth and were not given."""
    return (
        row.points
        * sum(each.weight * (1 - each.counts) for each in of)
        / (sum(each.weight for each in row.rubric) or 1)
    )


def _named(points: Sequence[JudgedPoint]) -> Sequence[JudgedPoint]:
    """The first of some points, as many as a title has room for."""
    first = points[:MOST_TOPICS]
    return first if len(" ".join(each.topic for each in first).split()) <= LONGEST_TITLE else first[:1]


def _topics(points: Sequence[JudgedPoint]) -> str:
    return listed([each.topic for each in points])


def _heard_of(row: Row) -> str:
    """How much of an answer was heard, and what to do about the rest."""
    of, heard = len(row.rubric), sum(each.counts == 1 for each in row.rubric)
    were = "point was" if of == 1 else "points was" if heard < 2 else "points were"
    said = f"{capital(number_in_words(heard) if heard else 'none')} of its {number_in_words(of)} {were} heard in full."
    others = ("them" if of > 1 else "it") if not heard else "the other" if of - heard == 1 else "the others"
    if row.is_doubtful:
        return f"{said} Read what a full answer says of {others}."
    them = "it" if of - heard == 1 else "each"
    return f"{said} If you did say {others}, say {them} in one plain sentence next time."


def _to_learn(content: Catalogue, asked: dict[str, Question], lesson: Lesson) -> Fix:
    """A lesson with where it went wrong, what is so, and where to read and practise it."""
    first = lesson.rows[0]
    question = asked.get(first.question)
    cure = lesson.cure or _near(question, is_follow_up=first.is_follow_up)
    title = lesson.learn or f"Do {_called(first)} once more"
    again = ", again after you had put it right" if lesson.came_again else ""
    where = f"In {listed([f'“{row.title}”' for row in lesson.rows])}{again}" if lesson.learn else _right(first)
    why = _why(first)
    says = f"{where}: {why}" if lesson.learn and why else f"{where.rstrip('.')}. {why}".strip()
    links = (*_to_read(content, question, cure, practise=True), _see(first))
    return Fix(title, says, lesson.lost, links, lesson.weight)


def _called(row: Row) -> str:
    """A number, by its question."""
    question = f"“{row.title.removesuffix(', follow-up')}”"
    return f"the follow-up to {question}" if row.is_follow_up else question


def _right(row: Row) -> str:
    """What was given and what is right, of a number."""
    return f"You had {row.said_text or row.said}; {row.right_text}." if row.kind == "number" and row.key else ""


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


def _read_of(content: Catalogue, question: Question | None) -> tuple[Link, ...]:
    """The card of a question."""
    return _to_read(content, question, question.cure if question else None)


def _to_read(
    content: Catalogue, question: Question | None, card_id: str | None, *, practise: bool = False
) -> tuple[Link, ...]:
    """A card, and a problem that practises it. One that is about nothing that the question is about is no help for what
    was said in words."""
    about = concepts_of(question) if question else ()
    card = content.cards.get(card_id) if card_id else None
    if card is None or (about and not practise and set(about).isdisjoint(card.head.concepts)):
        return ()
    problems = (
        Link(f"/practice/{problem.slug}", f"{problem.id} with fresh numbers")
        for problem in content.problems.values()
        if practise and card.id in problem.related.cards
    )
    return (Link(f"/study/cards/{card.id}", f"{card.id}, {card.head.title}"), *islice(problems, 1))
