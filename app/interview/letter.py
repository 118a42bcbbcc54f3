"""What an interviewer would write to the committee: paragraphs, from the rows of a scorecard and nothing else. Pure.

It says what a person would say who has sat there: the verdict and the ground it stands on, what was strong and what
worried with one quote each, and what it would take. The counts stand on the page beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from app.grading import levels
from app.interview.advice import is_done, lowered
from app.interview.asked import has_stayed
from app.interview.criteria import Criterion
from app.interview.deciding import unaided_share
from app.interview.fixes import Fix
from app.interview.hints import hints_in_words
from app.interview.rows import BETTER, CORRECTED, NO_ANSWER, JudgedPoint, Row
from app.interview.scorecards import Scorecard
from app.reveal.words import sentences
from app.words import capital, counted, listed

FIRM, SHAKY = 0.8, 0.5  # of a topic's points: reached without help, and reached at all
MOST_TOPICS = 3  # that a sentence names
MOST_FIGURES = 2
LONGEST_QUOTE = 40  # words
OFTEN_TOLD = 0.1  # of all points, that came only when they were asked about
HARDER = ", harder"  # as a title ends
PEOPLE_READ = 3  # titles of what was left blank


@dataclass(frozen=True)
class Pace:
    """How long a sitting took, of how long it could, in minutes, and whether its candidate ended it."""

    used: float
    given: float
    by_candidate: bool


def letter(
    card: Scorecard, rated: Sequence[Criterion], topics: Mapping[str, str], fixes: Sequence[Fix], pace: Pace
) -> tuple[str, ...]:
    """The paragraphs. `topics` says of each question what it is about, by its id."""
    asked = [row for row in card.rows if row.is_evidence]
    if not asked:
        return (f"{_level(card)}. Nothing was answered, so there is nothing to go by.",)
    paragraphs = (
        _verdict(card, asked, topics),
        _strength(card.rows),
        _worry(asked),
        (*_blanks(card.rows, pace), *_outlook(card, rated, _grounds(asked, topics)[1], fixes), *_pace(pace)),
    )
    return tuple(" ".join(each) for each in map(tuple, paragraphs) if each)


def _level(card: Scorecard) -> str:
    return capital(card.level or "")


def _verdict(card: Scorecard, asked: Sequence[Row], topics: Mapping[str, str]) -> Iterator[str]:
    yield f"{_level(card)}."
    firm, shaky = _grounds(asked, topics)
    stands, falls = listed([f"on {each}" for each in firm]), listed([f"on {each}" for each in shaky], "or")
    if firm and shaky:
        yield f"The candidate is firm {stands}, and not {falls}."
    elif firm:
        yield f"The candidate is firm {stands}."
    elif shaky:
        yield f"The candidate is firm on nothing that was asked, least of all {listed(shaky)}."
    else:
        yield "Something of everything was there, and nothing was there whole."
    told = sum(row.gained for row in asked)
    if told > OFTEN_TOLD * card.points:
        yield "Much came only when I pointed at it: it is known, and would not have been used."
    if card.decision.held:
        by_points, held = card.decision.by_points, listed(card.decision.held)
        yield f"The points alone would make it a {by_points}; I stay at {card.level}, because {held}."


def _grounds(asked: Sequence[Row], topics: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The topics that stood firm and those that did not, the heaviest first."""
    by_topic = sorted(((topics.get(_question(row), row.title), row) for row in asked), key=lambda each: each[0])
    firm, shaky = [], []
    for topic, group in groupby(by_topic, key=lambda each: each[0]):
        rows = [row for _, row in group]
        points = sum(row.points for row in rows)
        if unaided_share(rows) >= FIRM:
            firm.append((points, lowered(topic)))
        elif levels.share(sum(row.reached for row in rows), points) < SHAKY:
            shaky.append((points, lowered(topic)))
    return _heaviest(firm), _heaviest(shaky)


def _heaviest(topics: list[tuple[float, str]]) -> list[str]:
    return [topic for _, topic in sorted(topics, key=lambda each: -each[0])[:MOST_TOPICS]]


def _question(row: Row) -> str:
    return row.id.partition(".")[0]


def _strength(rows: Sequence[Row]) -> Iterator[str]:
    if said := max(_good_words(rows), default=None):
        _, title, words = said
        yield f"The best of it, in “{title}”: {_quoted(words)}"
    figures = [row for row in rows if row.kind == "number" and row.verdict == "right" and not row.is_harder]
    figures.sort(key=lambda row: -row.points)
    if figures:
        told = listed([f"{row.said} for “{row.title}”{hints_in_words(row.hints)}" for row in figures[:MOST_FIGURES]])
        yield f"The figures were worked out, not recalled: {told}." if said else f"Right at once: {told}."
    elif not said and (right := [row for row in rows if row.verdict == "right"]):
        yield f"{_titles(right[:MOST_FIGURES])} came right."
    titles = [row.title for row in rows if row.verdict == "right"]
    further = [each.removesuffix(HARDER) for each in titles if each.endswith(HARDER)]
    if further:
        yield f"I made {listed([f'“{each}”' for each in further[:MOST_FIGURES]])} harder, and that was right as well."


def _good_words(asked: Sequence[Row]) -> Iterator[tuple[float, str, str]]:
    """Sentences that say a point, by how much they show: those with a figure or a trade-off in them count double."""
    for row in asked:
        for point in row.rubric:
            words = next((each for each in point.evidence if _is_a_sentence(each)), "")
            if point.heard == "met" and point.credit and words:
                shows = 2 if point.criterion in ("depth", "trade-offs") and any(map(str.isdigit, words)) else 1
                yield point.credit * point.weight * shows, row.title, words


def _is_a_sentence(words: str) -> bool:
    return 4 <= len(words.split()) <= LONGEST_QUOTE


def _quoted(words: str) -> str:
    said = words.strip().rstrip(".;, ").strip("“”\"'")
    return f"“{said}.”" if said[-1:] not in "?!" else f"“{said}”"


def _worry(asked: Sequence[Row]) -> Iterator[str]:
    worries = sorted(_worries(asked), key=lambda each: -each[0])
    if worries:
        yield worries[0][1]
    slips = Counter(row.slip for row in asked if row.slip and row.kind != "coding")
    slip, often = max(slips.items(), key=lambda each: each[1], default=("", 0))
    if often > 1:
        titles = _titles([row for row in asked if row.slip == slip])
        yield f"The same slip, {lowered(slip)}, came in {titles}."
    late = [row for row in asked if row.verdict == CORRECTED]
    if late and worries and levels.share(len(late), len(asked)) < SHAKY:
        yield f"When I asked, {_titles(late[:MOST_TOPICS])} {'was' if late[1:] == [] else 'were'} put right."


def _titles(rows: Sequence[Row]) -> str:
    return listed([f"“{row.title}”" for row in rows])


def _worries(asked: Sequence[Row]) -> Iterator[tuple[float, str]]:
    """What was wrong, with its weight; what was held against a question weighs double, for nobody asked for it."""
    for row in asked:
        for point in row.rubric:
            worth = row.points * point.weight / sum(each.weight for each in row.rubric)
            if point.heard == "contradicted" and point.evidence and not point.pushed:
                then = "" if not _was_asked(row, point) else " I came back to it, and it did not change."
                yield (
                    2 * worth,
                    f"What worries me, in “{row.title}”: {_quoted(point.evidence[0])} That is not so.{then}",
                )
            elif not point.counts and not point.is_open:
                yield worth, _missed(row, point)
        if row.verdict == "wrong" and row.lost:
            yield (
                row.lost,
                f"What worries me is “{row.title}”{hints_in_words(row.hints)}: {_wrong(row)}{_when_asked(row)}",
            )
        elif row.kind == "coding" and row.checks and row.verdict != "right":
            why = f" {capital(row.slip)}." if row.slip else ""
            yield row.lost, f"The program for “{row.title}” does not pass: {row.verdict} on real ranks.{why}"


def _missed(row: Row, point: JudgedPoint) -> str:
    asked = ", even when I asked" if _was_asked(row, point) else ""
    if is_done(point.point):
        return f"In “{row.title}” a strong candidate {lowered(point.point).rstrip('.')}; this one did not{asked}."
    return f"In “{row.title}” this was not said{asked}: {lowered(point.point).rstrip('.')}."


def _was_asked(row: Row, point: JudgedPoint) -> bool:
    return any(each.point == point.id and each.said for each in row.pushed)


def _wrong(row: Row) -> str:
    """What was wrong in a row not in words, with why where that is not told to its candidate."""
    why = next(iter(sentences(row.message)), "").strip()
    why = f" {why}" if why and not {"you", "your"} & set(why.lower().replace(",", " ").split()) else ""
    if row.kind == "number":
        return f"{row.said}, where {row.key} is right.{why}"
    if row.kind == "order":
        return f"{lowered(row.message).rstrip('.')}."
    if row.kind == "set" and row.ticked:
        right, of, wrong = row.ticked
        beside = f" and {counted(wrong, 'false one')}" if wrong else ""
        return f"{right} of the {of} that hold were ticked{beside}."
    chosen = (row.said_text or row.said).rstrip(".")
    if row.kind == "choice":
        return f"the choice was “{chosen}”.{why}"
    return f"{lowered(chosen)}.{why}"


def _when_asked(row: Row) -> str:
    said = [each for each in row.pushed if each.said]
    if any(each.verdict == BETTER for each in said):
        return " Questioned, it became better and not right."
    if any(not has_stayed(row, each) for each in said):
        return " Questioned, it changed and stayed wrong."
    return " They stayed with it when I questioned it." if said else ""


def _blanks(rows: Sequence[Row], pace: Pace) -> Iterator[str]:
    blank = [row.title for row in rows if row.verdict == NO_ANSWER and row.points]
    if not blank:
        return
    names = listed([f"“{each}”" for each in blank]) if len(blank) <= PEOPLE_READ else counted(len(blank), "part")
    were = "was" if len(blank) == 1 else "were"
    yield f"{names} {were} left blank." if pace.by_candidate else f"Time was up before {names} {were} answered."


def _what_it_takes(shaky: Sequence[str], fixes: Sequence[Fix]) -> Iterator[str]:
    advice = next((lowered(each.title) for each in fixes if each.is_advice), "")
    if shaky:
        yield f"What it would take: {listed(shaky)} right without help{f', and to {advice}' if advice else ''}."
    elif fixes:
        yield f"What it would take: to {advice or lowered(fixes[0].title)}."


def _outlook(card: Scorecard, rated: Sequence[Criterion], shaky: Sequence[str], fixes: Sequence[Fix]) -> Iterator[str]:
    """What it would take, or what the next round should look at; and what cannot be spoken to."""
    found = [each for each in rated if each.level is not None]
    weakest = min(found, key=lambda each: each.score or 0.0, default=None)
    if card.level and not levels.is_at_least(card.level, "hire"):
        yield from _what_it_takes(shaky, fixes)
    elif weakest and weakest.level != "strong hire":
        yield f"In the next round I would look at {weakest.title.lower()}, the weakest of what was rated."
    unrated = [each.title.lower() for each in rated if each.level is None]
    if unrated and not card.decision.held:
        yield f"I cannot speak to {listed(unrated, 'or')}, for which hardly anything here asks."


def _pace(pace: Pace) -> Iterator[str]:
    if pace.by_candidate and 2 * pace.used < pace.given:
        yield f"It took {max(1, round(pace.used))} of {pace.given:.0f} minutes: there was time to say more."
