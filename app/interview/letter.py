"""What an interviewer would write to the committee: paragraphs, from the rows of a scorecard and nothing else. Pure.

It says what a person would say who has sat there: the verdict and what it rests on, the pattern in what was wrong or
left out, how the candidate reacts, and what to do next. Parts, points and labels stand on the page beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from app.content.interview_schemas import PROBED_FROM
from app.grading import levels
from app.grading.rubrics.quotes import topic
from app.interview.challenging import LEFT_OPEN, SAID_AGAIN, STILL_WRONG, TAKEN_BACK
from app.interview.criteria import Criterion
from app.interview.deciding import unaided_share
from app.interview.lessons import Lesson, lessons
from app.interview.rows import BETTER, CORRECTED, NO_ANSWER, Challenged, JudgedPoint, Row, has_stayed
from app.interview.scorecards import Scorecard
from app.interview.verdicts import said_share
from app.words import capital, listed, lowered, number_in_words, often

FIRM = 0.8  # of a topic's points, reached without help
MOST_TOPICS = 3  # that a sentence names
MOST_WRONG = 3  # of what was done wrong that a sentence names
LONGEST_QUOTE = 40  # words
SHORTEST_QUOTE = 6  # below which words say little without their answer
MOST_FALSE = 3  # of what was said that is false, that is quoted
HALF = 0.5
MOST_WORDS_MISSING = 0.4  # of a point's words that an answer may have, for it to be surely missing
SHORTEST_ANSWER = 5  # words
_YOU = re.compile(r"\byour?\b")
_KNOWS_NOT = re.compile(r"\b(?:do not|don't|cannot|can't|not) (?:know|say|sure|remember)|\bno idea\b", re.IGNORECASE)
LEAST_SAID = 0.25  # of what there is to say in words, that is worth naming


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
    to_learn, quote = lessons(card.rows), _quote(card, asked)
    paragraphs = (
        (*_verdict(card, asked), *_shown(card, asked, topics, quote)),
        _first_named(
            (
                *_wrong(to_learn),
                *_programs(asked),
                *_false(asked, quote),
                *_left_out(asked),
                *_blanks(card.rows, pace),
            )
        ),
        (*_reactions(card.rows, asked), *_outlook(card, asked, rated, to_learn), *_pace(pace)),
    )
    return tuple(" ".join(each) for each in paragraphs if each)


def _first_named(sentences: Sequence[str]) -> Sequence[str]:
    """A paragraph that says first of whom it speaks."""
    if sentences and sentences[0].startswith("They "):
        return (f"The candidate {sentences[0].removeprefix('They ')}", *sentences[1:])
    return sentences


def _level(card: Scorecard) -> str:
    return capital(card.level or "")


def _verdict(card: Scorecard, asked: Sequence[Row]) -> Iterator[str]:
    yield f"{_level(card)}."
    plain = [row for row in asked if row.kind not in ("text", "coding")]
    right = sum(row.verdict == "right" for row in plain)
    if plain and right == len(plain):
        one = "The one thing to compute or choose was" if right == 1 else "All that was to be computed or chosen was"
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


def _shown(
    card: Scorecard, asked: Sequence[Row], topics: Mapping[str, str], quote: tuple[str, str] | None
) -> Iterator[str]:
    """What was shown, by what it is about, with the sentence that shows most."""
    if firm := _firm([row for row in asked if row.kind != "text"], topics):
        yield f"The candidate is firm on {listed(firm)}."
    further = [row for row in card.rows if row.is_harder and row.verdict == "right" and ".own." not in row.id]
    if further:
        made = "a question" if len(further) == 1 else f"{number_in_words(len(further))} questions"
        yield f"I made {made} harder, and {'that' if len(further) == 1 else 'those'} came right as well."
    said, share = _by_weight(asked, lambda point: point.credit == 1), said_share(asked)
    if said and (share or 0.0) >= LEAST_SAID:
        yield f"Without a further question, they spoke of {_named(said)}."
    elif share is not None:
        yield "Of what I listened for in words, they said hardly anything."
    if quote and quote[0]:
        yield f"On {quote[0]} they said: {_quoted(quote[1])}"


def _named(points: Sequence[JudgedPoint]) -> str:
    """What the first few points are about, in a sentence."""
    topics = [each.topic for each in points[:MOST_TOPICS]]
    return listed(topics, "as well as" if any(" and " in each for each in topics) else "and")


def _firm(rows: Sequence[Row], topics: Mapping[str, str]) -> list[str]:
    """What stood firm without help, the heaviest first."""
    by_topic = sorted(((topics.get(row.question, ""), row) for row in rows), key=lambda each: each[0])
    firm = []
    for about, group in groupby(by_topic, key=lambda each: each[0]):
        of_it = [row for _, row in group]
        if about and unaided_share(of_it) >= FIRM:
            firm.append((sum(row.points for row in of_it), lowered(about)))
    return [about for _, about in sorted(firm, key=lambda each: -each[0])[:MOST_TOPICS]]


def _quote(card: Scorecard, asked: Sequence[Row]) -> tuple[str, str] | None:
    """The one sentence that is quoted, with what it is about: of a hire the best one, else what contradicts most, which
    has no topic, where anything does."""
    best = max(_good_words(asked), key=lambda each: each[0], default=None)
    wrong = max(_wrong_words(asked), key=lambda each: each[0], default=None)
    if wrong and not levels.is_at_least(card.level or "no hire", "hire"):
        return "", wrong[1]
    return best[1:] if best else None


def _good_words(asked: Sequence[Row]) -> Iterator[tuple[float, str, str]]:
    """Sentences that say a point whole, by how much they show: with a figure or a trade-off they count double."""
    for row in asked:
        for point in row.rubric:
            words = point.evidence[0] if point.evidence else ""
            if point.heard != "met" or point.credit < 1 or not point.topic or point.criterion == "structure":
                continue
            if words in row.false_words:
                continue
            if _is_a_sentence(words):
                shows = 2 if point.criterion in ("depth", "trade-offs") and any(map(str.isdigit, words)) else 1
                yield point.weight * shows, point.topic, words


def _wrong_words(asked: Sequence[Row]) -> Iterator[tuple[float, str]]:
    for row in asked:
        for point in row.rubric:
            said = point.evidence[0] if point.heard == "contradicted" and point.evidence else ""
            if _is_a_sentence(said) and said not in row.false_words:
                yield float(point.weight), said


def _is_a_sentence(words: str) -> bool:
    return SHORTEST_QUOTE <= len(words.split()) <= LONGEST_QUOTE and words[:1] == words[:1].upper()


def _quoted(words: str) -> str:
    said = words.strip().rstrip(".;:,").strip("“”\"'")
    return f"“{said}.”" if said[-1:] not in "?!" else f"“{said}”"


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
    untold = sum(not each.did for each in to_learn)
    if untold and not told:
        yield "I could not trace where the wrong answers came from." if untold > 1 else "One answer was wrong."


def _deeds(of: Sequence[Lesson]) -> str:
    """What was done, in one sentence."""
    did = list(dict.fromkeys(each.did for each in of))[:MOST_WRONG]
    if any("," in each for each in did):
        return "; ".join((*did[:-1], f"and {did[-1]}")) if did[1:] else did[0]
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


# What became of something false when it was asked about, as a sentence goes on with it.
_WHEN_ASKED = {
    SAID_AGAIN: ", and said it again when I asked about it",
    STILL_WRONG: ", and said something else that is wrong when I asked about it",
    TAKEN_BACK: ", and took it back when I asked about it",
    LEFT_OPEN: "; I asked about it, and could not tell from the reply whether they still hold it",
    NO_ANSWER: "; they gave no reply when I asked about it",
}


def _false(asked: Sequence[Row], quote: tuple[str, str] | None) -> Iterator[str]:
    """What was said that is false, in its own words: what was said again first, then what stands against a point."""
    found = sorted((each for row in asked for each in row.challenged), key=lambda each: not each.is_said_again)
    found = found[:MOST_FALSE]
    yield from _challenged(found)
    yield from _opposite(asked, quote, MOST_FALSE - len(found))


def _challenged(falsehoods: Sequence[Challenged]) -> Iterator[str]:
    for number, each in enumerate(falsehoods):
        words = each.quote.strip().rstrip(".;:,").strip("“”\"'")
        said = f"“{words}”" if len(words.split()) <= LONGEST_QUOTE else f"something false about {each.topic}"
        not_so = f", which is wrong on {each.topic}" if said.startswith("“") else ""
        also = "also " if number else ""
        yield f"They {also}said {said}{not_so}{_WHEN_ASKED.get(each.outcome, '')}."


def _opposite(asked: Sequence[Row], quote: tuple[str, str] | None, most: int) -> Iterator[str]:
    """The heaviest of what is held against what is so, in its own words, `most` of it, beside what is quoted above."""
    told = {each.quote for row in asked for each in row.challenged}
    held = [
        each
        for each in _by_weight(asked, lambda point: point.heard == "contradicted" and point.pushed == 0)
        if told.isdisjoint(each.evidence)
    ]
    if quote and not quote[0]:
        point = next((each for each in held if quote[1] in each.evidence), None)
        about = f" on {point.topic}" if point and point.topic else ""
        yield f"What worries me most was said{about}: {_quoted(quote[1])}"
    stood_by = {each.point for row in asked for each in row.pushed if each.verdict == "contradicted"}
    told = {quote[1]} if quote and not quote[0] else set[str]()  # of a hire the quote is the best, and stands above
    for each in held:
        words = next((words for words in each.evidence if _is_a_sentence(words) and words not in told), "")
        if words and most > 0:
            also = "also " if told else ""
            stood = " They stood by it when I asked." if each.id in stood_by else ""
            yield f"On {each.topic} they {also}said {_quoted(words)} I take that to be wrong.{stood}"
            told.add(words)
            most -= 1


def _left_out(asked: Sequence[Row]) -> Iterator[str]:
    """What surely was not said, with what was asked for in vain."""
    said = {each.topic for row in asked for each in row.rubric if each.counts}  # of another question, too
    missing = [each for each in _surely_missing(asked) if each.topic not in said][:MOST_TOPICS]
    if not missing:
        return
    in_vain = {each.point for row in asked for each in row.pushed if each.said}
    asked_for = [each for each in missing if each.id in in_vain]
    though = ""
    if asked_for and len(asked_for) == len(missing):
        though = ", even when I asked"
    elif asked_for:
        though = f"; I asked about {_named(asked_for)}, in vain"
    yield f"I did not hear {_named(missing)}{though}."


def _surely_missing(asked: Sequence[Row]) -> list[JudgedPoint]:
    """The points of some weight that were not said, the heaviest first. What was asked for and got an answer of some
    length may have been said in words that were not heard; so may what has most of its words in the answer."""
    unsure = set[tuple[str, str]]()
    for row in asked:
        words = topic(row.said)
        replies = {each.point: each.said for each in row.pushed if each.point}
        for point in row.rubric:
            about = topic(point.point)
            has_words = len(about & words) > MOST_WORDS_MISSING * len(about)
            if has_words or is_an_answer(replies.get(point.id, "")):
                unsure.add((row.id, point.id))
    found = []
    for row in asked:
        rest = replace(row, rubric=tuple(each for each in row.rubric if (row.id, each.id) not in unsure))
        weights = sum(each.weight for each in row.rubric)
        found += [(row.points * each.weight / weights, each) for each in rest.rubric if _is_missing(each)]
    return [point for _, point in sorted(found, key=lambda each: -each[0])]


def _is_missing(point: JudgedPoint) -> bool:
    is_unsaid = not point.counts and not point.is_open and point.heard == "missed"
    return is_unsaid and bool(point.topic) and point.weight >= PROBED_FROM


def is_an_answer(reply: str) -> bool:
    """Whether a reply says something: who does not know says so in few words."""
    return len(reply.split()) >= SHORTEST_ANSWER and not _KNOWS_NOT.search(reply)


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


def _reactions(rows: Sequence[Row], asked: Sequence[Row]) -> Iterator[str]:
    """How the candidate reacts to being asked."""
    questioned = [row for row in asked if row.kind != "text" and any(each.said for each in row.pushed)]
    right, of = sum(row.verdict == CORRECTED for row in questioned), len(questioned)
    if of:
        what = "an answer" if of == 1 else f"{number_in_words(of)} answers"
        yield f"I questioned {what}: they {_became(questioned)}."
    at_once = {each.topic for row in asked for each in row.rubric if each.credit == 1}  # of another question, too
    late = _by_weight(asked, lambda point: point.pushed > point.credit and point.topic not in at_once)
    back = [each for each in late if each.heard == "contradicted"]
    late = [each for each in late if each not in back]
    challenged = {point for row in asked for each in row.challenged for point in each.contradicts}
    if back := [each for each in back if each.id not in challenged]:
        yield f"When I asked, they took back what they had said on {_named(back)}."
    if late:
        yield f"When I asked further, they said more on {_named(late)}."
    if of > 1 and right > HALF * of and _unaided_answers(asked) < HALF:
        yield "Much of this they know when pointed at it, and did not use unasked."
    own = [row for row in rows if row.is_harder and ".own." in row.id and row.said]
    if own and all(row.verdict == "right" for row in own):
        programs = {row.question for row in asked if row.kind == "coding"}
        whose = "program" if own[0].question in programs else "layout"
        yield f"What their own {whose} comes to they could say."


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


def _outlook(
    card: Scorecard, asked: Sequence[Row], rated: Sequence[Criterion], to_learn: Sequence[Lesson]
) -> Iterator[str]:
    """What to do with the candidate, and what to look at next."""
    found = [each for each in rated if each.level is not None]
    weakest = min(found, key=lambda each: each.score or 0.0, default=None)
    unrated = [each.title.lower() for each in rated if each.level is None]
    if card.level and levels.is_at_least(card.level, "hire"):
        weak = weakest.title.lower() if weakest and weakest.level != "strong hire" else ""
        hardly = f"{listed(unrated)}, for which hardly anything was asked here" if unrated else ""
        look = " and at ".join(filter(None, (weak, hardly)))
        yield f"I would take them on; the next round should look at {look}." if look else "I would take them on."
        return
    false = [each.learn for row in asked for each in row.challenged if each.is_said_again]
    learn = [_first_clause(each) for each in (*false, *(each.learn for each in to_learn)) if each][:2]
    if not learn:
        learn = [f"to speak of {each.topic} unasked" for each in _surely_missing(asked)[:2]]
    if learn:
        yield f"I would see them again once they have learnt {listed(learn)}."
    else:
        yield "I would not go on."


def _first_clause(learn: str) -> str:
    """The beginning of what to learn, as a sentence goes on after “learnt”."""
    clause = lowered(learn).partition(":")[0].partition(",")[0]
    clause = _YOU.sub(lambda found: "their" if found[0] == "your" else "they", clause)
    return clause.removeprefix("know ") if clause.startswith("know ") else f"to {clause}"


def _pace(pace: Pace) -> Iterator[str]:
    if pace.by_candidate and 2 * pace.used < pace.given:
        yield f"They used {max(1, round(pace.used))} of {pace.given:.0f} minutes, so there was time for more."
