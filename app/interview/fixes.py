"""What to do next: what would have been worth most, with where to learn it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from app.content.catalogue import Catalogue
from app.content.interview_schemas import Interview
from app.grading.hints import share_left
from app.interview.advice import as_advice, is_done, lowered
from app.interview.parts import parts_of
from app.interview.rows import NO_ANSWER, NOT_ASKED, JudgedPoint, Row
from app.interview.scorecards import Scorecard
from app.words import counted, listed

MOST_FIXES = 3
LEAST_LOST = 0.05  # of points that are worth a word
LONGEST_TITLE = 14  # words


@dataclass(frozen=True)
class Link:
    """Where a fix is made."""

    href: str
    text: str


@dataclass(frozen=True)
class Fix:
    """One thing to do, and the points it would have been worth; its title `is_advice` where it says what to do in words
    that go on in a sentence."""

    title: str
    says: str
    points: float
    links: tuple[Link, ...]
    is_advice: bool = False


def fixes(content: Catalogue, interview: Interview, card: Scorecard) -> list[Fix]:
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
            title = _slip_title(row)
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
    full = Link(f"#part-{row.id}", "Read a full answer")
    links = (*_to_read(content, _near(interview, row)), full)
    title, says = _as_a_fix(row, heaviest)
    others = f"{counted(len(missed) - 1, 'more point')} of it went unsaid." if missed[1:] else ""
    is_advice = is_done(heaviest.point) and not title.startswith("Say more in")
    return [Fix(title, " ".join(filter(None, (says, others))), lost, links, is_advice)]


def _as_a_fix(row: Row, point: JudgedPoint) -> tuple[str, str]:
    """What to do next time, as a title and the rest of it."""
    told = as_advice(point.point).rstrip(".") if is_done(point.point) else ""
    cut = min((at for at in map(told.find, ":,") if at > 0), default=len(told))
    if not told or len(told[:cut].split()) > LONGEST_TITLE:
        return f"Say more in “{row.title}”", f"Above all: {point.point}"
    rest = told[cut + 1 :].strip()
    where = f"In “{row.title}”{', before you are asked' if point.pushed else ''}"
    return told[:cut], f"{where}: {rest}." if rest else f"{where}."


def _cure(content: Catalogue, card_id: str, rows: Sequence[Row]) -> Fix:
    first = rows[0]
    lost = sum(row.lost for row in rows)
    where = f"In {listed([f'“{row.title}”' for row in rows])}. " if len(rows) > 1 else ""
    return Fix(_slip_title(first), where + _why(first), lost, _to_read(content, card_id))


def _slip_title(row: Row) -> str:
    """What was to be mended in a row: its slip is a label, and says little without the question."""
    return f"{row.title}: {lowered(row.slip)}" if row.slip else f"Get “{row.title}” right"


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
