"""The five things a debrief rates, each with the rule that gave its level and what was said. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from app.grading import levels
from app.interview.hints import hints_in_words
from app.interview.replying import is_an_answer
from app.interview.rows import CORRECTED, NO_ANSWER, NOT_ASKED, JudgedPoint, Row
from app.interview.wrong_numbers import say_one, wrong_numbers
from app.reveal.number import SaidNumber
from app.reveal.words import sentences

MOST_QUOTES = 2
LEAST_SHARE = 0.05  # of an interview's points, below which a criterion is not rated
BONUS = 2.0  # points of depth that a harder variant makes up for in its level
HELD: levels.Level = "hire"  # the level that a criterion has at most, of which something false was not taken back
COMMUNICATION = "communication"
CHECKS = 4  # of each answer in words
LEAST_SAID = 0.25  # of what an answer in words is to say, for it to communicate something
LONGEST_SENTENCE = 30  # words on average, beyond which an answer is hard to follow
_SHORT = f"took {LONGEST_SENTENCE} words a sentence at most, on average"
TITLES = {
    "correctness": "Correctness",
    "depth": "Depth",
    "trade-offs": "Trade-offs",
    "structure": "Structure",
    "communication": "Communication",
}
_ABOUT = {
    "correctness": "first numbers, choices, and what is so",
    "depth": "follow-ups, and statements with a figure or a mechanism behind them",
    "trade-offs": "what it costs, why not the neighbour, when to change",
    "structure": "asks first, decides, goes in order, separates what it knows from what it guesses",
}

_BY_KIND = {"givens": "structure", "set": "trade-offs", "configuration": "trade-offs", "layout": "trade-offs"}


@dataclass(frozen=True)
class Quote:
    """What was said, and how it counted: `kind` as evidence is underlined. `part` is where; empty for all of it. Only
    what the candidate wrote `is_words`; a number or a choice is told of. What is known to be wrong `is_false`; of
    other words against a point it is only heard."""

    text: str
    kind: str
    part: str = ""
    is_words: bool = False
    is_false: bool = False


@dataclass(frozen=True)
class Criterion:
    """One thing that is rated. `score` is None where the interview hardly asks for it; `rule` says how it came, as
    `reached` of so many `points` for what is `about` it, or as `facts`: what held in how many answers. Together the
    points are the interview's, and what was reached of them its score; communication has `facts` alone. The level goes
    by the score, with what is `made_up` beyond it by a question made harder that came right, and `is_held` by what is
    false and was not taken back."""

    id: str
    title: str
    score: float | None
    rule: str
    quotes: tuple[Quote, ...]
    reached: float = 0.0
    points: float = 0.0
    about: str = ""
    facts: tuple[tuple[str, int, int], ...] = ()
    is_held: bool = False
    made_up: float = 0.0

    @property
    def level(self) -> levels.Level | None:
        if self.score is None:
            return None
        level = levels.level_of(levels.share(self.reached + self.made_up, self.points))
        return levels.lower(level, HELD) if self.is_held else level

    @property
    def percent(self) -> int:
        """How much of its points was reached, as a bar draws it: full where all of them were."""
        share = levels.share(self.reached, self.points)
        return levels.percent(share) if share == 1 else min(99, levels.percent(share))


@dataclass(frozen=True)
class _Share:
    """Something that counts for a criterion, of so many points, with what was said. What is false and was not taken
    back has none, and is shown of the best rating, too."""

    reached: float
    points: float
    quote: Quote | None = None
    is_false: bool = False
    is_order: bool = False


def criteria(rows: Sequence[Row]) -> tuple[Criterion, ...]:
    """All five."""
    shares: dict[str, list[_Share]] = {each: [] for each in _ABOUT}
    wrong = wrong_numbers(rows)
    for row in rows:
        for name, share in _shares(row, wrong):
            quote = replace(share.quote, part=row.id) if share.quote else None
            shares[name].append(replace(share, quote=quote))
    whole = sum(row.points for row in rows)
    quoted: set[str] = set()
    rated = []
    for name, counted in shares.items():
        rated.append(_rated(name, counted, whole, quoted))
        quoted |= {each.text for each in rated[-1].quotes}
    return (*rated, _communication([row for row in rows if row.kind == "text"]))


def _shares(row: Row, wrong: Sequence[SaidNumber]) -> Iterator[tuple[str, _Share]]:
    """What a row counts for. A harder variant that was right makes up for what is lacking in depth. Words that say
    `wrong` numbers again are no evidence to show."""
    if row.kind != "text":
        quote = _number_quote(row)
        if row.is_harder:
            yield "depth", _Share(BONUS if row.verdict == "right" else 0.0, 0.0, quote)
        else:
            by_kind = row.criterion or _BY_KIND.get(row.kind, "correctness")
            share = _Share(row.reached, row.points, quote, is_order=row.kind == "order")
            yield ("depth" if row.is_follow_up else by_kind), share
        return
    against = row.false_words.union(*(point.evidence for point in row.rubric if point.heard == "contradicted"))
    weights = sum(point.weight for point in row.rubric)
    for point in row.rubric:
        worth = row.points * point.weight / weights
        quote = _point_quote(point)
        if quote and quote.kind == "no":
            quote = replace(quote, is_false=not row.false_words.isdisjoint(point.evidence))
        if quote and point.credit and not against.isdisjoint(point.evidence):
            quote = None  # a sentence that speaks against another point proves none
        if quote and point.credit and say_one(quote.text, wrong):
            quote = None
        yield point.criterion, _Share(worth * point.counts if row.said else 0.0, worth, quote)
    if not row.rubric:
        yield "correctness", _Share(0.0, row.points)
    for false in row.challenged:
        if not false.is_taken_back:
            quote = replace(_words_quote(false.quote, "no"), is_false=True)
            yield "correctness", _Share(0.0, 0.0, quote, is_false=True)
    for point, _ in row.kept:
        if point.evidence:
            yield "correctness", _Share(0.0, 0.0, _words_quote(point.evidence[0], "no"), is_false=True)


def _number_quote(row: Row) -> Quote | None:
    if row.verdict in (NO_ANSWER, NOT_ASKED):
        return None
    said = "each in its place" if row.kind == "order" else row.said_text or row.said
    if row.kind == "givens":
        is_right = row.verdict == "right"
        return Quote(f"{row.title}: {'all that was needed' if is_right else row.verdict}", "ok" if is_right else "un")
    if row.verdict == "right":
        chosen = "chose “{}”" if row.kind in ("choice", "set") else "{}"
        return Quote(f"{row.title}{hints_in_words(row.hints)}: {chosen.format(said.rstrip('.'))}", "ok")
    if row.kind == "order":
        return Quote(f"{row.title}: {row.message}", "un" if row.verdict == CORRECTED else "no")
    if row.kind in ("choice", "set"):
        said = f"chose “{said.rstrip('.')}”"
    right = f", where {row.right_text}" if row.key and row.kind == "number" else ""
    then = "; put right when questioned" if row.verdict == CORRECTED else ""
    return Quote(
        f"{row.title}{hints_in_words(row.hints)}: {said}{right}{then}", "un" if row.verdict == CORRECTED else "no"
    )


def _point_quote(point: JudgedPoint) -> Quote | None:
    """The words that a point rests on, first those that were said unasked."""
    kinds = {"met": "ok", "contradicted": "no"}
    if point.reply and point.pushed and is_an_answer(point.reply[0]):
        return _words_quote(point.reply[0], "un")
    if point.heard in kinds and point.evidence:
        half = point.heard == "met" and point.credit < 1
        return _words_quote(point.evidence[0], "un" if half else kinds[point.heard])
    return None


def _words_quote(words: str, kind: str) -> Quote:
    return Quote(words.rstrip(" ;,:"), kind, is_words=True)


def _rated(name: str, shares: Sequence[_Share], whole: float, quoted: Collection[str]) -> Criterion:
    points = sum(each.points for each in shares)
    reached = sum(each.reached for each in shares if each.points)
    if points < LEAST_SHARE * whole or not points:
        rule = f"This interview asks for too little of it: {_ABOUT[name]}."
        return Criterion(name, TITLES[name], None, rule, (), reached, points)
    about = f"orders, {_ABOUT[name]}" if any(each.is_order for each in shares) else _ABOUT[name]
    score = levels.share(reached, points)
    rule = f"{reached:.3g} of {points:.3g} points for {about}."
    quotes = _quotes(shares, levels.reaches(score, "hire"), quoted)
    made_up = min(points - reached, sum(each.reached for each in shares if not each.points))
    is_held = any(each.is_false for each in shares)
    return Criterion(name, TITLES[name], score, rule, quotes, reached, points, about, is_held=is_held, made_up=made_up)


def in_tenths(shares: Sequence[float]) -> tuple[str, ...]:
    """Shares of a sum to one place behind the point, such that they add up to the sum as that is rounded."""
    tenths = [math.floor(10 * each) for each in shares]
    missing = round(10 * sum(shares)) - sum(tenths)
    largest = sorted(range(len(shares)), key=lambda at: tenths[at] - 10 * shares[at])
    for at in largest[:missing]:
        tenths[at] += 1
    return tuple(f"{each / 10:g}" for each in tenths)


def _quotes(shares: Sequence[_Share], is_good: bool, quoted: Collection[str]) -> tuple[Quote, ...]:
    """What weighs most, each once: of a good rating what was right, else what was wrong, then what was right. Sentences
    come before what was computed or chosen, and before those that another criterion has (`quoted`)."""

    def rank(share: _Share) -> tuple[bool, bool, float]:
        assert share.quote is not None, "of those that have one"
        weight = share.reached if share.quote.kind == "ok" else share.points - share.reached
        return share.quote.text in quoted, not share.quote.is_words, -weight

    said = sorted((each for each in shares if each.quote), key=rank)
    right = [each for each in said if each.quote and each.quote.kind == "ok"]
    wrong = [each for each in said if each.quote and each.quote.kind != "ok"]
    shown = (right or wrong) if is_good else [*wrong[:1], *right[:1], *wrong[1:]]
    shown = [*(each for each in said if each.is_false), *shown]
    return tuple({each.quote.text: each.quote for each in shown if each.quote}.values())[:MOST_QUOTES]


def _communication(rows: Sequence[Row]) -> Criterion:
    """Four things of each answer in words that anybody can see. One that says hardly anything of what it was asked for
    has none of them, and is not looked at."""
    asked = [row for row in rows if row.verdict != NOT_ASKED]
    if not asked:
        return Criterion("communication", TITLES["communication"], None, "There was nothing to say in words.", ())
    telling = [row for row in asked if _said_share(row) >= LEAST_SAID]
    if not telling:
        rule = "Hardly anything of what was asked for was heard, so there was little to follow."
        return Criterion("communication", TITLES["communication"], 0.0, rule, (), 0.0, float(CHECKS * len(asked)))
    seen = {row.id: _seen(row) for row in telling}
    passed = sum(sum(checks.values()) for checks in seen.values())
    names = list(next(iter(seen.values())))
    each = ", ".join(f"{sum(checks[name] for checks in seen.values())} {name}" for name in names)
    most = CHECKS * len(asked)
    rule = f"{passed} of {most} over {len(asked)} {'answer' if len(asked) == 1 else 'answers'} in words: {each}."
    longest = max((one for row in telling for one in sentences(row.said)), key=_words, default="")
    is_long = not all(checks[_SHORT] for checks in seen.values())
    quotes = (Quote(longest, "un", is_words=True),) if is_long and _words(longest) > LONGEST_SENTENCE else ()
    score = levels.share(float(passed), float(most))
    facts = tuple((name, sum(checks[name] for checks in seen.values()), len(telling)) for name in names)
    if len(telling) < len(asked):
        of_these = "these" if telling[1:] else "this one"
        facts = (
            (f"said a quarter or more of what was asked for; of {of_these}:", len(telling), len(asked)),
            *facts,
        )
    return Criterion("communication", TITLES["communication"], score, rule, quotes, passed, most, facts=facts)


def _seen(row: Row) -> dict[str, bool]:
    said = sentences(row.said)
    short = bool(said) and sum(map(_words, said)) / len(said) <= LONGEST_SENTENCE
    return {
        "said half of it unasked": sum(point.credit > 0 for point in row.rubric) >= len(row.rubric) / 2,
        "spoke in sentences": not any("terms in a row" in note for note in row.notes),
        _SHORT: short,
        "kept to its time": not row.overlong,
    }


def _said_share(row: Row) -> float:
    """The share of what it was asked for that an answer in words says in the end."""
    weights = sum(point.weight for point in row.rubric)
    return levels.share(sum(point.weight * point.counts for point in row.rubric), weights)


def _words(text: str) -> int:
    return len(text.split())
