"""What an interviewer would write to the committee: paragraphs, from the rows of a scorecard and nothing else. Pure.

It says what a person would say who has sat there: the verdict and what it rests on, the pattern in what was wrong or
left out, how the candidate reacts, and what to do next. Parts, points and labels stand on the page beside it. What is
not sure by the sitting's own log is left out: of words it tells what was heard, never what was not said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from app.content.interview_schemas import PROBED_FROM
from app.grading import levels
from app.interview.criteria import Criterion
from app.interview.deciding import unaided_share
from app.interview.falsehoods import (
    MOST_FALSE,
    asked_in_vain,
    false_words,
    held_and_taken_back,
    is_a_sentence,
    kept_when_asked,
    quoted,
    to_go_back_to,
)
from app.interview.lessons import Lesson, lessons
from app.interview.questioned import what_became
from app.interview.rows import NO_ANSWER, JudgedPoint, Row
from app.interview.scorecards import Scorecard
from app.interview.wrong_numbers import say_one, wrong_numbers
from app.reveal.number import SaidNumber
from app.words import capital, listed, lowered, number_in_words, often

FIRM = 0.8  # of a topic's points, or of an answer in words, reached without help
LEAST_FIRM = 2  # answers on a topic, for it to be firm
MOST_TOPICS = 3  # that a sentence names
MOST_WRONG = 3  # of what was done wrong that a sentence names
_YOU = re.compile(r"\byour?\b")
_WHO = re.compile(r"“[^”]*”|\b[Tt]hey(?: are)?\b|\bcandidate\b")


@dataclass(frozen=True)
class Pace:
    """How long a sitting took, of how long it could, in minutes, and whether its candidate ended it."""

    used: float
    given: float
    by_candidate: bool


def letter(card: Scorecard, rated: Sequence[Criterion], topics: Mapping[str, str], pace: Pace) -> tuple[str, ...]:
    """The paragraphs. `topics` says of each question what it is about, by its id."""
    asked = [row for row in card.rows if row.is_evidence]
    if not asked:
        return (f"{_level(card)}. Nothing was answered, so there is nothing to go by.",)
    to_learn = lessons(card.rows)
    paragraphs = (
        (*_verdict(card, asked), *_shown(card, asked, topics)),
        (
            *_wrong(to_learn),
            *_programs(asked),
            *_said_wrongly(card, asked),
            *_left_out(asked),
            *_blanks(card.rows, pace),
        ),
        (
            *what_became(card.rows),
            *held_and_taken_back(asked),
            *_only_when_asked(asked),
            *_outlook(card, asked, rated, to_learn),
            *_pace(pace),
        ),
    )
    return tuple(_first_named(" ".join(each)) for each in paragraphs if each)


def _first_named(paragraph: str) -> str:
    """A paragraph that says first of whom it speaks, outside of what it quotes."""
    first = next((each for each in _WHO.finditer(paragraph) if not each[0].startswith("“")), None)
    if first is None or first[0] == "candidate":
        return paragraph
    name = "The candidate" if first[0].startswith("T") else "the candidate"
    name += " is" if first[0].endswith(" are") else ""
    return paragraph[: first.start()] + name + paragraph[first.end() :]


def _level(card: Scorecard) -> str:
    return capital(card.level or "")


def _verdict(card: Scorecard, asked: Sequence[Row]) -> Iterator[str]:
    yield f"{_level(card)}."
    plain = [row for row in asked if row.kind not in ("text", "coding")]
    right = sum(row.verdict == "right" for row in plain)
    if plain and right == len(plain):
        one = "The one answer to compute or choose was" if right == 1 else "All that they computed or chose was"
        yield f"{one} right at the first attempt{_with_hints(plain)}."
    elif plain:
        were = "was" if right < 2 else "were"
        of = f"Of {number_in_words(len(plain))} answers to compute or choose" if len(plain) > 1 else "Of the one answer"
        said = number_in_words(right) if right else "none"
        yield f"{of}, {said} {were} right at the first attempt{_with_hints(plain)}."
    if card.decision.held:
        by_points, held = card.decision.by_points, listed(card.decision.held)
        yield f"The points alone would say {by_points}; I stay at {card.level}, because {held}."


def _with_hints(rows: Sequence[Row]) -> str:
    hinted = [bool(row.hints) for row in rows if row.verdict == "right"]
    if not any(hinted):
        return ""
    return f", {number_in_words(sum(hinted))} of them with a hint" if hinted[1:] else ", with a hint"


def _shown(card: Scorecard, asked: Sequence[Row], topics: Mapping[str, str]) -> Iterator[str]:
    """What was shown, by what it is about, with the sentence that shows most."""
    if firm := _firm([row for row in asked if row.kind != "text"], topics):
        yield f"They are firm on {listed(firm)}."
    yield from _harder([row for row in card.rows if row.is_harder and row.said and ".own." not in row.id])
    points = [point for row in asked for point in row.rubric]
    if points:
        yield _heard_of(points)
    clear = [row for row in asked if _is_clear(row)]
    lacking = {point.topic for point in points if point.credit < 1}  # in another question
    if said := _by_weight(clear, lambda point: point.credit == 1 and point.topic not in lacking):
        yield f"In full I heard {_named(said)}."
    best = max(_good_words(clear, wrong_numbers(card.rows)), key=lambda each: each[0], default=None)
    if best:
        yield f"In “{best[1]}” they said: {quoted(best[2], ends=True)}"


def _harder(further: Sequence[Row]) -> Iterator[str]:
    """What became of questions that were made harder."""
    right, of = sum(row.verdict == "right" for row in further), len(further)
    if right == of > 0:
        made = "a question" if of == 1 else f"{number_in_words(of)} questions"
        yield f"I made {made} harder, and {'that' if of == 1 else 'those'} came right as well."
    elif of == 1:
        yield "I made a question harder, and that did not come right."
    elif of:
        were = f"{number_in_words(right)} came" if right else "none came"
        yield f"Of {number_in_words(of)} questions that I made harder, {were} right."


def _heard_of(points: Sequence[JudgedPoint]) -> str:
    """How much was heard of what there was to say in words."""
    heard = [each.credit for each in points if each.credit and each.heard == "met"]
    of, half = len(points), sum(each < 1 for each in heard)
    late = sum(each.counts > each.credit for each in points)
    judged = sum(each.credit > 0 and each.heard != "met" for each in points)
    if of == 1:
        made = "made the one point there was" if heard or late else "did not make the one point there was"
        return f"In words they {made}{' when I asked' if late and not heard else ''}."
    some = f"all {number_in_words(of)}" if len(heard) == of else _some(len(heard), of)
    in_part = f", {'that' if len(heard) == 1 else number_in_words(half)} in part" if half else ""
    when_asked = f", and {number_in_words(late)}{' more' if heard else ''} when I asked" if late else ""
    themselves = f" By their own account they made {number_in_words(judged)} more." if judged else ""
    return f"In words they made {some} points unprompted{in_part}{when_asked}.{themselves}"


def _some(heard: int, of: int) -> str:
    return f"{number_in_words(heard) if heard else 'none'} of the {number_in_words(of)}"


def _is_clear(row: Row) -> bool:
    """Whether what was heard in an answer in words can be relied on: most of it was, and nothing against it."""
    weights = sum(point.weight for point in row.rubric)
    heard = levels.share(sum(point.weight * point.credit for point in row.rubric), weights)
    against = row.challenged or any(point.heard == "contradicted" for point in row.rubric)
    return heard >= FIRM and not against


def _named(points: Sequence[JudgedPoint]) -> str:
    """What the first few points are about, in a sentence, each once."""
    topics = list(dict.fromkeys(each.topic for each in points))[:MOST_TOPICS]
    return listed(topics, "as well as" if any(" and " in each for each in topics) else "and")


def _firm(rows: Sequence[Row], topics: Mapping[str, str]) -> list[str]:
    """What stood firm without help, the heaviest first."""
    by_topic = sorted(((topics.get(row.question, ""), row) for row in rows), key=lambda each: each[0])
    firm = []
    for about, group in groupby(by_topic, key=lambda each: each[0]):
        of_it = [row for _, row in group]
        if about and len(of_it) >= LEAST_FIRM and unaided_share(of_it) >= FIRM:
            firm.append((sum(row.points for row in of_it), lowered(about)))
    return [about for _, about in sorted(firm, key=lambda each: -each[0])[:MOST_TOPICS]]


def _good_words(clear: Sequence[Row], wrong: Sequence[SaidNumber]) -> Iterator[tuple[float, str, str]]:
    """Sentences that say a point whole and none of the `wrong` numbers, each with the title of its question, by how
    much they show: with a figure or a trade-off they count double."""
    for row in clear:
        for point in row.rubric:
            words = point.evidence[0] if point.evidence else ""
            is_good = point.credit == 1 and point.criterion != "structure" and not say_one(words, wrong)
            if is_good and is_a_sentence(words):
                shows = 2 if point.criterion in ("depth", "trade-offs") and any(map(str.isdigit, words)) else 1
                yield point.weight * shows, row.title, words


def _wrong(to_learn: Sequence[Lesson]) -> Iterator[str]:
    """The pattern in what was wrong: what came more than once, then what stayed, then what was put right."""
    told = [each for each in to_learn if each.did]
    repeated = [each for each in told if each.times > 1]
    for lesson in repeated[:2]:
        again = ", although it had been put right in between" if lesson.came_again else ""
        yield f"{capital(often(lesson.times))} they {lesson.did}{again}."
    if stayed := [each for each in told if each not in repeated and not each.was_put_right]:
        yield f"They {'also ' if repeated else ''}{_deeds(stayed)}."
    late = [each for each in told if each not in repeated and each.was_put_right]
    if late and len(stayed) < MOST_WRONG:
        yield f"At first they {'also ' if repeated or stayed else ''}{_deeds(late)}."


def _deeds(of: Sequence[Lesson]) -> str:
    """What was done and where, in one sentence."""
    where = {each.did: each.rows[0].title.partition(", follow-up")[0] for each in reversed(of)}
    did = [f"{each.did} (“{where[each.did]}”)" for each in of[:MOST_WRONG]]
    if any("," in each for each in did):
        return ("; " if did[2:] else ", ").join((*did[:-1], f"and {did[-1]}")) if did[1:] else did[0]
    return listed(did)


def _programs(asked: Sequence[Row]) -> Iterator[str]:
    for row in asked:
        if row.kind != "coding" or not row.checks:
            continue
        if row.verdict == "right":
            yield "The program they wrote passes on 2, 3 and 4 real ranks."
        else:
            why = f": {lowered(row.slip)}" if row.slip else ""
            yield f"The program they wrote does not pass on real ranks{why}."


def _said_wrongly(card: Scorecard, asked: Sequence[Row]) -> Iterator[str]:
    """What was said that is false, and what was kept that was heard as the opposite of a point or is another answer;
    of no hire also what may be meant otherwise."""
    false = [*false_words(asked), *kept_when_asked(asked)]
    yield from false
    if len(false) < MOST_FALSE:
        yield from to_go_back_to(asked, also_denied=not levels.is_at_least(card.level or "no hire", "hire"))


def _left_out(asked: Sequence[Row]) -> Iterator[str]:
    """What surely was not said, with what was asked for in vain."""
    missing = list({each.topic: each for each in reversed(_surely_missing(asked))}.values())[::-1][:MOST_TOPICS]
    if not missing:
        return
    in_vain = [each for each in missing if any(asked_in_vain(row, each.id) for row in asked)]
    though = ""
    if len(in_vain) == len(missing):
        though = ", even when I asked"
    elif in_vain:
        though = f"; I asked about {_named(in_vain)}, in vain"
    yield f"I did not hear {_named(missing)}{though}."


def _surely_missing(asked: Sequence[Row]) -> list[JudgedPoint]:
    """The points of some weight that nothing said is near, the heaviest first; none that another question has heard."""
    said = {each.topic for row in asked for each in row.rubric if each.counts}
    missing = _by_weight(asked, lambda point: point.is_absent and point.weight >= PROBED_FROM)
    return [each for each in missing if each.topic not in said]


def _only_when_asked(asked: Sequence[Row]) -> Iterator[str]:
    """What replies say that the answer before has nothing near."""
    at_once = {each.topic for row in asked for each in row.rubric if each.credit}  # of another question, too
    late = set[str]()
    for row in asked:
        for point in row.rubric:
            is_new = point.pushed > point.credit and row.id not in (*point.said_in, *(point.near_in or (row.id,)))
            if is_new and any(each in (point.near_in or ()) for each in point.said_in):
                late.add(point.topic)
    told = _by_weight(asked, lambda point: point.topic in late - at_once and point.pushed > point.credit)
    if told:
        yield f"Only when I asked did I hear {_named(told)}."


def _by_weight(asked: Sequence[Row], holds: Callable[[JudgedPoint], bool]) -> list[JudgedPoint]:
    """The points of which something holds, by what they were worth."""
    found = []
    for row in asked:
        weights = sum(each.weight for each in row.rubric)
        found += [(row.points * each.weight / weights, each) for each in row.rubric if each.topic and holds(each)]
    return [point for _, point in sorted(found, key=lambda each: -each[0])]


def _blanks(rows: Sequence[Row], pace: Pace) -> Iterator[str]:
    blank = sum(row.verdict == NO_ANSWER and bool(row.points) for row in rows)
    if blank:
        left = f"{number_in_words(blank)} {'answer' if blank == 1 else 'answers'}"
        yield f"They left {left} blank." if pace.by_candidate else f"Time was up with {left} still to give."


def _outlook(
    card: Scorecard, asked: Sequence[Row], rated: Sequence[Criterion], to_learn: Sequence[Lesson]
) -> Iterator[str]:
    """What to do with the candidate, and what to look at next."""
    found = [each for each in rated if each.level is not None]
    lowest = min((each.score or 0.0 for each in found), default=1.0)
    weakest = [each.title.lower() for each in found if each.score == lowest and each.level != "strong hire"]
    unrated = [each.title.lower() for each in rated if each.level is None]
    if card.level and levels.is_at_least(card.level, "hire"):
        said_again = (each.topic for row in asked for each in row.challenged if each.is_held_on)
        kept = (each.topic for each in _to_return_to(asked))
        held = list(dict.fromkeys((*said_again, *kept)))[:MOST_TOPICS]
        look = listed(list(dict.fromkeys((*held, *weakest))))
        yield f"I would take them on; the next round should cover {look}." if look else "I would take them on."
        if unrated:
            were, them = ("were", "them") if unrated[1:] else ("was", "it")
            yield f"{capital(listed(unrated))} {were} hardly asked for here: cover {them} next."
        return
    false = [each.learn for row in asked for each in row.challenged if each.is_held_on]
    learn = [_as_learnt(each) for each in (*false, *(each.learn for each in to_learn)) if each][:2]
    if not learn:
        learn = [f"to speak of {each.topic} unasked" for each in _surely_missing(asked)[:2]]
    if learn:
        both = ", and " if any("," in each for each in learn) else " and "
        yield f"I would see them again once they have learnt {both.join(learn)}."
    else:
        yield "I would not go on."


def _to_return_to(asked: Sequence[Row]) -> list[JudgedPoint]:
    """The points whose opposite was kept, the heaviest first."""
    kept = [point for row in asked for point, _ in row.kept]
    return _by_weight(asked, lambda point: any(each is point for each in kept))


def _as_learnt(learn: str) -> str:
    """What to learn up to its colon, as a sentence goes on after “learnt”."""
    clause = _YOU.sub(lambda found: "their" if found[0] == "your" else "they", lowered(learn).partition(":")[0])
    return clause.removeprefix("know ") if clause.startswith("know ") else f"to {clause}"


def _pace(pace: Pace) -> Iterator[str]:
    if pace.by_candidate and 2 * pace.used < pace.given:
        used = f"{round(pace.used)}" if pace.used >= 1 else "less than one"
        yield f"They used {used} of {pace.given:.0f} minutes, so there was time for more."
