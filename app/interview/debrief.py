"""What a scorecard says beyond its points: question by question, what was worth most to lose, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from app.content.catalogue import Catalogue
from app.content.interview_schemas import Interview
from app.grading import levels
from app.grading.hints import share_left
from app.interview.criteria import Criterion, criteria
from app.interview.hints import hints_in_words
from app.interview.models import Sitting, SittingAnswer
from app.interview.parts import Part, Reactions, parts_of
from app.interview.picking_up import few_words
from app.interview.scoring import BETTER, CORRECTED, NO_ANSWER, NOT_ASKED, JudgedPoint, Pushed, Row, Scorecard
from app.reveal.meter import Meter
from app.reveal.words import CLASSES, UNDERLINED, Finding, Marked, mark, nearest, why_less, why_missed
from app.words import listed

MOST_FIXES = 3
LEAST_LOST = 0.05  # of points that are worth a word
MOST_NAMED = 8  # right answers by their titles in the letter
MANY_CORRECTED = 4  # that the letter tells together


@dataclass(frozen=True)
class Exchange:
    """What the interviewer asked about an answer, and the reply: `marked` where it is words, `verdict` as a page says
    it and shows it."""

    pushed: Pushed
    marked: Marked | None
    verdict: str
    css: str


@dataclass(frozen=True)
class Answered:
    """One part of a question with all there is to say of it. `meter` draws a wrong number, `marked` is an answer in
    words with its evidence, `exchanges` are what was asked about it."""

    row: Row
    is_follow_up: bool
    meter: Meter | None
    marked: Marked | None
    exchanges: tuple[Exchange, ...]

    @property
    def said(self) -> frozenset[str]:
        """The points that count as said: by the candidate's judgement, else by what was heard."""
        return frozenset(each.id for each in self.row.rubric if (each.heard == "met" if each.met is None else each.met))


@dataclass(frozen=True)
class Asked:
    """A question with all that followed on it, and the time it took: from the answer before to its own last one."""

    title: str
    number: int
    parts: tuple[Answered, ...]
    budget_minutes: int
    used_minutes: float | None

    @property
    def points(self) -> float:
        return sum(part.row.points for part in self.parts)

    @property
    def left_out(self) -> str:
        """Why nothing of it was answered: left blank, not asked; empty where something was."""
        verdicts = {part.row.verdict for part in self.parts}
        if verdicts <= {NOT_ASKED}:
            return "not asked"
        return "left blank" if verdicts <= {NO_ANSWER, NOT_ASKED} else ""


@dataclass(frozen=True)
class Link:
    """Where a fix is made."""

    href: str
    text: str


@dataclass(frozen=True)
class Fix:
    """One thing to do, and the points it would have been worth."""

    title: str
    says: str
    points: float
    links: tuple[Link, ...]


@dataclass(frozen=True)
class Debrief:
    """A scorecard told. `longest_minutes` is the end of the scale of times; `letter` follows from the points alone."""

    questions: tuple[Asked, ...]
    criteria: tuple[Criterion, ...]
    longest_minutes: float
    fixes: tuple[Fix, ...]
    letter: tuple[str, ...]
    next_level: levels.Threshold | None
    points_to_next: float
    strength: str = ""

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
        what was worth most."""
        blank, every = sum(each.left_out == "left blank" for each in self.questions), len(self.questions)
        if self.strength and blank:
            return f"{self.strength}, {blank} of {every} questions left blank"
        if 2 * blank >= every and blank:
            return f"{'every question' if blank == every else f'{blank} of {every} questions'} left blank"
        return self.strength or (_lower(self.fixes[0].title) if self.fixes else "nothing missed")


def debrief(
    content: Catalogue,
    interview: Interview,
    sitting: Sitting,
    card: Scorecard,
    saved: Mapping[str, SittingAnswer],
    reactions: Reactions,
) -> Debrief:
    """Everything the page of a closed sitting says."""
    questions = _questions(interview, card, _minutes(sitting.started_at, saved), reactions)
    rated = criteria(card.rows, _overlong(questions))
    following = levels.following(card.score)
    return Debrief(
        questions,
        rated,
        max((max(float(each.budget_minutes), each.used_minutes or 0.0) for each in questions), default=0.0),
        tuple(_fixes(content, interview, card)),
        tuple(_letter(sitting, card, rated)) if card.level else (),
        following,
        following.least * card.points - card.reached if following else 0.0,
        _strength(card) if card.level and levels.is_at_least(card.level, "hire") else "",
    )


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


def _questions(
    interview: Interview, card: Scorecard, minutes: Mapping[str, float], reactions: Reactions
) -> tuple[Asked, ...]:
    rows = {row.id: row for row in card.rows}
    scored = [part for part in parts_of(interview, reactions) if part.id in rows]
    found: list[Asked] = []
    for number, question in enumerate(interview.questions, 1):
        parts = [part for part in scored if part.question is question]
        if not parts:
            continue
        took = [spent for part, spent in minutes.items() if part.partition(".")[0] == question.id]
        answered = tuple(_answered(part, rows[part.id]) for part in parts)
        found.append(Asked(question.title, number, answered, question.minutes, sum(took) if took else None))
    return tuple(found)


def _overlong(questions: Sequence[Asked]) -> dict[str, bool]:
    """Of each part, whether its question took longer than its time."""
    return {
        part.row.id: asked.used_minutes is not None and asked.used_minutes > asked.budget_minutes
        for asked in questions
        for part in asked.parts
    }


def _answered(part: Part, row: Row) -> Answered:
    findings = [_finding(row, point) for point in row.rubric]
    return Answered(
        row,
        part.is_follow_up,
        row.number.meter(row.title) if row.number else None,
        mark(row.said, findings) if row.kind == "text" and row.said else None,
        tuple(_exchange(row, each) for each in row.pushed),
    )


# How a reply is shown: what its verdict is called, and how the word is drawn.
_REPLIES = {
    "right": ("Put right", "met"),
    "wrong": ("Stayed wrong", "contra"),
    "better": ("Better, not right yet", "unsure"),
    "met": ("Said when asked", "met"),
    "missed": ("Not said when asked either", "missed"),
    "contradicted": ("Held the opposite", "contra"),
    "unsure": ("Near it, not said outright", "unsure"),
    NO_ANSWER: ("No reply", "missed"),
}


def _exchange(row: Row, pushed: Pushed) -> Exchange:
    verdict, css = _REPLIES.get(pushed.verdict, (pushed.verdict.capitalize(), "missed"))
    if pushed.verdict == "wrong" and not _has_stayed(row, pushed):
        verdict = "Changed, and still wrong"
    marked = None
    if row.kind == "text" and pushed.said:
        point = next(each for each in row.rubric if each.id == pushed.point)
        kind = UNDERLINED.get(pushed.verdict)
        finding = Finding(point.id, point.point, verdict, css, 0.0, 0.0, kind, pushed.evidence)
        marked = mark(pushed.said, [finding])
    return Exchange(pushed, marked, verdict, css)


def _finding(row: Row, point: JudgedPoint) -> Finding:
    """A point as it was heard, with the candidate's own judgement where that differs or decides."""
    worth = row.points * point.weight / sum(each.weight for each in row.rubric)
    if point.heard is None:
        return _judged_alone(row, point, worth)
    verdict, css, kind = point.heard, CLASSES[point.heard], UNDERLINED[point.heard]
    why = why_less(verdict, point.credit, point.point, point.half, row.said)
    word = "Half met" if verdict == "met" and point.credit < 1 else verdict.capitalize()
    if verdict == "unsure" and point.met is not None:
        word, css = ("Met, you judged", "met") if point.met else ("Missed, you judged", "missed")
        kind, why = ("ok", "") if point.met else ("un", why)
    elif point.pushed > point.credit:
        word, css, why = "Said when asked", "met", "It counts half."
    elif point.differs:
        own = "you said it" if point.met else "you did not say it"
        why = f"{why} By your own judgement {own}; that is kept and does not count.".strip()
    return Finding(point.id, point.point, word, css, worth * point.counts, worth, kind, point.evidence, why)


def _judged_alone(row: Row, point: JudgedPoint, worth: float) -> Finding:
    """A point of an earlier version's card: judged by the candidate, beside the sentence nearest to it."""
    near = nearest(point.point, row.said)
    evidence = (near,) if near else ()
    if point.met:
        return Finding(point.id, point.point, "Met", "met", worth, worth, "ok", evidence)
    if point.met is None:
        why = "" if near else why_missed(point.point, row.said)
        return Finding(point.id, point.point, "To judge", "unsure", 0.0, worth, "un", evidence, why)
    why = "The nearest you came is underlined." if near else why_missed(point.point, row.said)
    return Finding(point.id, point.point, "Missed", "missed", 0.0, worth, "un", evidence, why)


def _minutes(started_at: datetime, saved: Mapping[str, SittingAnswer]) -> dict[str, float]:
    """Minutes of each part, by when its answer was last saved: since the one before, or the start."""
    found, before = {}, started_at
    for answer in sorted(saved.values(), key=lambda each: each.saved_at):
        found[answer.part_id] = max(0.0, (answer.saved_at - before).total_seconds() / 60)  # a clock may be set back
        before = answer.saved_at
    return found


def _fixes(content: Catalogue, interview: Interview, card: Scorecard) -> list[Fix]:
    """What would have been worth most, at most three: slips with one cure together, points missed in words, blanks."""
    by_cure: dict[str, list[Row]] = {}
    found: list[Fix] = []
    for row in card.rows:
        if row.lost < LEAST_LOST or row.verdict == NOT_ASKED:
            continue
        if row.cure and row.cure in content.cards:
            by_cure.setdefault(row.cure, []).append(row)
        elif row.verdict == NO_ANSWER:
            again = Link(f"/interview/{interview.slug}", "Sit it again")
            links = (*_to_read(content, _near(interview, row)), again)
            found.append(Fix(f"Answer “{row.title}”", "It was left blank.", row.lost, links))
        elif row.kind == "givens":
            why = Link(f"#part-{row.id}", "See what was needed")
            links = (*_to_read(content, _near(interview, row)), why)
            found.append(Fix(f"Ask for what you need in “{row.title}”", row.message, row.lost, links))
        elif row.verdict == "right" and row.hints:
            says = f"It was right; what was open left {100 * share_left(len(row.hints)):.0f} % of its points."
            why = Link(f"#part-{row.id}", "See how it is computed")
            links = (*_to_read(content, _near(interview, row)), why)
            found.append(Fix(f"Do “{row.title}” without a hint", says, row.lost, links))
        elif row.kind == "text":
            found += _words_to_say(content, interview, row)
        else:
            why = Link(f"#part-{row.id}", "See how it is computed")
            says = _why(row) or "No known slip leads to your number."
            title = row.slip or f"Get “{row.title}” right"
            found.append(Fix(title, says, row.lost, (*_to_read(content, _near(interview, row)), why)))
    found += [_cure(content, cure, rows) for cure, rows in by_cure.items()]
    return sorted(found, key=lambda each: -each.points)[:MOST_FIXES]


def _near(interview: Interview, row: Row) -> str | None:
    """The card nearest to a part whose answer has no cure of its own: its question's, or the first of its slips'."""
    part = next((each for each in parts_of(interview) if each.id == row.id), None)
    if part is None:
        return None
    return part.question.cure or next((each.cure for each in part.source.slips if each.cure), None)


def _words_to_say(content: Catalogue, interview: Interview, row: Row) -> list[Fix]:
    """The points that were not heard in a text answer, together: they are one thing to read. What was near, and is for
    the candidate to judge, is none of them."""
    lacking = {point: point.weight * (1 - point.counts) for point in row.rubric if point.counts < 1}
    missed = [point for point in lacking if not point.is_open]
    if not missed:
        return []
    lost = row.lost * sum(lacking[point] for point in missed) / sum(lacking.values())
    heaviest = max(missed, key=lambda point: lacking[point])
    unasked = " unasked" if any(point.pushed for point in missed) else ""
    title = f"Say {len(missed)} more {'thing' if len(missed) == 1 else 'things'}{unasked} in “{row.title}”"
    full = Link(f"#part-{row.id}", "Read a full answer")
    links = (*_to_read(content, _near(interview, row)), full)
    return [Fix(title, f"Above all: {heaviest.point}", lost, links)]


def _cure(content: Catalogue, card_id: str, rows: Sequence[Row]) -> Fix:
    first = rows[0]
    lost = sum(row.lost for row in rows)
    where = f"In {listed([row.title for row in rows])}. " if len(rows) > 1 else ""
    return Fix(first.slip or f"Get “{first.title}” right", where + _why(first), lost, _to_read(content, card_id))


def _why(row: Row) -> str:
    """A row's message, without the name of the slip where it begins with that: it stands above as a title."""
    named = f"{row.slip}. "
    return row.message[len(named) :] if row.slip and row.message.startswith(named) else row.message


def _to_read(content: Catalogue, card_id: str | None) -> tuple[Link, ...]:
    """A card, and a problem that practises it; nothing where there is no such card."""
    card = content.cards.get(card_id) if card_id else None
    if card is None:
        return ()
    problems = (
        Link(f"/practice/{problem.slug}", f"{problem.id} with fresh numbers")
        for problem in content.problems.values()
        if card_id in problem.related.cards
    )
    return (Link(f"/study/cards/{card_id}", f"{card_id}, {card.head.title}"), *islice(problems, 1))


def _letter(sitting: Sitting, card: Scorecard, rated: Sequence[Criterion]) -> list[str]:
    """What could be written to a committee, a sentence each, from the rows and nothing else."""
    said = [f"{card.level.capitalize()}, {card.reached:.3g} of {card.points:.4g} points."] if card.level else []
    said += _letter_on_right(card.rows)
    at_first = [row for row in card.rows if row.verdict == CORRECTED]
    if is_long := len(at_first) >= MANY_CORRECTED:
        titles = listed([f"{row.title}{hints_in_words(row.hints)}" for row in at_first])
        said.append(f"Wrong at first and put right when questioned: {titles}.")
    for row in card.rows:
        if row.verdict == CORRECTED and is_long:
            continue
        if row.verdict in ("wrong", CORRECTED):
            what = _letter_on_wrong(row)
            slip = f" ({_lower(row.slip).removeprefix('you ')})" if row.slip else ""
            said.append(f"{row.title}{hints_in_words(row.hints)}: {what}{slip}.{_when_questioned(row)}")
        elif row.kind == "givens" and row.givens and row.verdict != "right":
            said.append(_letter_on_givens(row))
        elif row.kind == "coding" and row.checks and row.verdict != "right":
            why = f" ({_lower(row.slip)})" if row.slip else ""
            said.append(
                f"{row.title}{hints_in_words(row.hints)}: of the program, run on real ranks, {row.verdict}{why}."
            )
        elif row.kind == "text" and row.said:
            said.append(_letter_on_words(row))
    blank = [row.title for row in card.rows if row.verdict == NO_ANSWER and row.points]
    if blank:
        names = listed(blank)
        said.append(f"Left {names} blank." if sitting.closed_by == "candidate" else f"Time was up: {names} left blank.")
    if unrated := [each.title.lower() for each in rated if each.level is None]:
        said.append(f"Hardly asked for here: {listed(unrated)}.")
    used, given = sitting.closed_at or sitting.deadline_at, sitting.deadline_at - sitting.started_at
    if 2 * (used - sitting.started_at) < given and sitting.closed_by == "candidate":
        minutes = (used - sitting.started_at).total_seconds() / 60
        said.append(f"Was through after {max(1, round(minutes))} of {given.total_seconds() / 60:.0f} minutes.")
    return said


def _letter_on_right(rows: Sequence[Row]) -> list[str]:
    """What was right, a question and its follow-up together; what goes beyond the points by itself."""
    titles = {row.id: row.title for row in rows}
    right = {row.id: hints_in_words(row.hints) for row in rows if row.verdict == "right" and not row.is_harder}
    names = []
    for part, hints in right.items():
        question, _, is_follow_up = part.partition(".")
        if not is_follow_up:
            names.append(f"{titles[part]}{hints}{' and its follow-up' if f'{part}.follow' in right else ''}")
        elif question not in right:
            names.append(f"the follow-up to {titles.get(question, titles[part])}")
    further = [row.title for row in rows if row.verdict == "right" and row.is_harder]
    asked = sum(row.verdict != NOT_ASKED and bool(row.points) for row in rows)
    which = f"{len(right)} of {asked} parts" if len(names) > MOST_NAMED else "; ".join(names)
    said = [f"Right on {which}."] if names else []
    return said + ([f"Beyond the points: {'; '.join(further)}."] if further else [])


def _letter_on_wrong(row: Row) -> str:
    if row.kind == "number":
        return f"said {row.said}, where {row.key} is right"
    if row.kind == "order":
        return _lower(row.message).rstrip(".")
    if row.kind == "set":
        return _letter_on_set(row)
    if row.kind == "choice" and row.said_text:
        return f"chose “{row.said_text.rstrip('.')}”"
    return f"{'laid out' if row.kind == 'layout' else 'planned'} {row.said_text}"


def _letter_on_set(row: Row) -> str:
    if row.ticked is None:  # of an earlier version
        return f"ticked what earns {row.reached:.3g} of {row.points:.3g} points"
    right, of, wrong = row.ticked
    beside = f" and {wrong} that {'does' if wrong == 1 else 'do'} not" if wrong else ""
    return f"ticked {right} of the {of} that hold{beside}"


def _when_questioned(row: Row) -> str:
    if row.verdict == CORRECTED:
        return " Put it right when questioned."
    said = [each for each in row.pushed if each.said]
    if any(each.verdict == BETTER for each in said):
        return " Better when questioned, not right yet."
    if any(not _has_stayed(row, each) for each in said):
        return " Changed it when questioned, and still not right."
    return " Stayed with it when questioned." if said else ""


def _has_stayed(row: Row, pushed: Pushed) -> bool:
    return pushed.said in (row.said, row.said_text)


def _letter_on_givens(row: Row) -> str:
    beside = sum(each.standing == "wrong" for each in row.givens)
    said = f"{row.title}: {row.verdict} before computing"
    return f"{said}, and {beside} that did not matter." if beside else f"{said}."


def _letter_on_words(row: Row) -> str:
    met = [point for point in row.rubric if point.counts]
    if all(point.heard is None for point in row.rubric):
        return f"{row.title}: {len(met)} of {len(row.rubric)} points, by the candidate's own judgement."
    late = sum(point.pushed > point.credit for point in met)
    if not met and (words := few_words(row.said)):
        return f"{row.title}: none of its points; said “{words}”."
    when = f", {'' if late == len(met) else f'{late} of them '}only when asked" if late else ""
    said = f"{row.title}: said {len(met)} of {len(row.rubric)} points{when}."
    wrong = [point.evidence[0] for point in row.rubric if point.heard == "contradicted"]
    return f"{said} Held that “{wrong[0].rstrip('.')}”." if wrong else said


def _lower(text: str) -> str:
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
