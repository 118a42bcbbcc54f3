"""Grading an answer against a rubric: each point met, missed, contradicted or unsure, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from app.grading.levels import CAP, UNDECIDED_CAP, Level, is_at_least, level_of, rounded
from app.grading.rubrics.arithmetic import wrong_sums
from app.grading.rubrics.believing import believed
from app.grading.rubrics.comparing import IN_AN_ANSWER, Bounds, Opinion, Standing, compare
from app.grading.rubrics.deciding import Looked, decided
from app.grading.rubrics.floor import definitions_in
from app.grading.rubrics.lexicon import SUBJECTS
from app.grading.rubrics.likeness import NO_CLAIMS, Claims, Likeness
from app.grading.rubrics.looking import Look, claimed, look, texts_of
from app.grading.rubrics.matching import Passage, find, nearly, other_number
from app.grading.rubrics.patterns import Pattern, Value
from app.grading.rubrics.points import (
    Judgement,
    Part,
    Point,
    PointGrade,
    as_judged,
    may_be_met,
    rests_on,
    taken_back,
    values_of,
)
from app.grading.rubrics.reading import NO_WORDINGS, Reading, read
from app.grading.rubrics.weighing import Looks, Statements, Weights
from app.grading.rubrics.wordings import Wordings

# An answer that gets this share of a rubric's weight wrong is not held to be good by the rest.
MUCH_CONTRADICTED = 0.25

MOST_SUMS = 3  # that a grade points out

# How notes on what caps the level begin.
TERMS_IN_A_ROW = "These are terms in a row, not statements"
MUCH_IS_WRONG = "Much of it was read as the opposite of what is so"

# Where this share is wrong, half a statement is not taken for the right one.
DOUBT_FROM = 0.15


@dataclass(frozen=True)
class Critical:
    """A mistake that caps the level, whatever else is said."""

    id: str
    patterns: tuple[Pattern, ...]


@dataclass(frozen=True)
class Misconception:
    """Something false that people say whatever the question: what is so instead, and the points it contradicts here."""

    id: str
    patterns: tuple[Pattern, ...]
    so: str
    points: frozenset[str]
    critical: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Stance:
    """What a question wants decided, as it goes on after “You were asked”, and what shows that somebody did."""

    asked: str
    patterns: tuple[Pattern, ...]


@dataclass(frozen=True)
class Rubric:
    """What an answer is graded against. The floor is reached with `floor_needs` of the floor's parts; `bounds` say from
    where on a statement is a known claim, and `weights` what all that is found is worth in the end, where that is
    weighed."""

    points: tuple[Point, ...]
    critical: tuple[Critical, ...]
    floor: tuple[Part, ...] = ()
    floor_needs: int = 0
    wordings: Wordings = NO_WORDINGS
    misconceptions: tuple[Misconception, ...] = ()
    stance: Stance | None = None
    claims: Claims = NO_CLAIMS
    bounds: Bounds = IN_AN_ANSWER
    near_claims: Claims = NO_CLAIMS
    weights: Weights | None = None

    @cached_property
    def numbers(self) -> tuple[Value, ...]:
        """Every number that is evidence for some point."""
        return tuple(value for point in self.points for value in values_of(point.evidence))


@dataclass(frozen=True)
class Correction:
    """A sentence of an answer that is false whatever the question, and what is so instead."""

    sentence: str
    so: str


@dataclass(frozen=True)
class RubricGrade:
    """A graded answer. `critical` maps each critical mistake made to its sentence; `notes` say what held the level;
    `lifted_by` are the sentences whose definitions lifted it to the floor; none where the score gives the level."""

    points: tuple[PointGrade, ...]
    critical: Mapping[str, str]
    score: float
    level: Level
    notes: tuple[str, ...]
    corrections: tuple[Correction, ...] = ()
    lifted_by: tuple[str, ...] = ()


def grade(rubric: Rubric, text: str, judged: Mapping[str, Judgement] | None = None) -> RubricGrade:
    """Grade `text`. `judged` are a person's decisions on its points; without one what is unsure counts as missed."""
    reading = read(text, rubric.wordings)
    held = _held(rubric.misconceptions, reading)
    critical = _critical(rubric, reading)
    looked = _looked(rubric, reading, held, critical)
    graded = looked.believed if rubric.weights is None else decided(looked, rubric.points)
    critical |= {identity: found.text for each, found in held for identity in each.critical if identity not in critical}
    false = {*critical.values(), *(found.text for _, found in held)}
    points = tuple(as_judged(each, judged or {}, false) for each in graded)
    heard = [(each.id, each.verdict, each.evidence) for each in graded]
    critical = {mistake: said for mistake, said in critical.items() if not taken_back(said, heard, judged or {})}
    weights = {point.id: point.weight for point in rubric.points}
    total = sum(weights.values())
    score = sum(weights[each.id] * each.credit for each in points) / total
    denied = [each for each in points if each.verdict == "contradicted"]
    contradicted = sum(weights[each.id] for each in denied if not each.doubted)
    wrong = contradicted >= MUCH_CONTRADICTED * total
    notes, capped = [], bool(critical)
    if reading.is_stuffed:
        capped = True
        notes.append(f"{TERMS_IN_A_ROW}; they can be no more than {CAP}.")
    if wrong and not is_at_least(CAP, level_of(score)):
        capped = True
        notes.append(f"{MUCH_IS_WRONG}; the rest cannot lift it over {CAP}.")
    undecided = not capped and is_at_least(level_of(score), UNDECIDED_CAP) and not _takes_stance(rubric, reading)
    if undecided and rubric.stance:
        notes.append(
            f"You were asked {rubric.stance.asked}, and do not say; without that it is {UNDECIDED_CAP} at most."
        )
    sums = [each.says for each in islice(wrong_sums(text), MOST_SUMS)]
    is_wrong = bool(critical or denied or held or sums or reading.is_stuffed)
    lifted_by = () if is_wrong or is_at_least(level_of(score), CAP) else _definitions(rubric, looked)
    corrected = {found.text: each.so for each, found in reversed(held)}  # by one that is about this question, if any
    return RubricGrade(
        points,
        critical,
        rounded(score),
        level_of(score, capped, bool(lifted_by), undecided),
        (*notes, *sums),
        tuple(Correction(sentence, so) for sentence, so in corrected.items()),
        lifted_by,
    )


def look_at(rubric: Rubric, text: str) -> Looked:
    """What each look at an answer says of the points of a rubric."""
    reading = read(text, rubric.wordings)
    return _looked(rubric, reading, _held(rubric.misconceptions, reading), _critical(rubric, reading))


def _looked(
    rubric: Rubric, reading: Reading, held: Sequence[tuple[Misconception, Passage]], critical: Mapping[str, str]
) -> Looked:
    against = {point: found for each, found in held for point in each.points}
    likenesses = rubric.claims.like(reading)
    said = Statements(reading, rubric.claims, likenesses)
    evidence = _doubted(rubric, [_grade_point(point, said, against, rubric.numbers) for point in rubric.points])
    compared = _compared(rubric, evidence, reading, likenesses)
    false = [*critical.values(), *(found.text for _, found in held)]
    looks = (evidence, compared, believed(compared, false, reading, rubric.claims))
    return Looked(
        Looks(*({each.id: each for each in look} for look in looks)), said, rests_on(false, reading), rubric.weights
    )


def _critical(rubric: Rubric, reading: Reading) -> dict[str, str]:
    """The critical mistakes made, each with its sentence."""
    return {each.id: found.text for each in rubric.critical if (found := claimed(each.patterns, reading)) is not None}


def _doubted(rubric: Rubric, points: list[PointGrade]) -> list[PointGrade]:
    """Where an answer gets much wrong, what it only half shows is not believed: those points become unsure."""
    weights = {point.id: point.weight for point in rubric.points}
    wrong = sum(weights[each.id] for each in points if each.verdict == "contradicted")
    if wrong < DOUBT_FROM * sum(weights.values()):
        return points
    return [
        PointGrade(each.id, "unsure", 0.0, each.evidence) if each.verdict == "met" and each.credit < 1 else each
        for each in points
    ]


def _compared(
    rubric: Rubric, points: list[PointGrade], reading: Reading, likenesses: Mapping[str, Sequence[Likeness]]
) -> list[PointGrade]:
    """The grades, after what is said was compared with claims that are known to be right or wrong."""
    standings = {
        each.id: Standing(each.verdict, rests_on(each.evidence, reading))
        if each.verdict in ("met", "contradicted")
        else Standing("open")
        for each in points
    }
    opinions = compare(standings, likenesses, reading.sentences, rubric.bounds)
    return [
        _revised(each, point, opinions[each.id], reading) if each.id in opinions else each
        for each, point in zip(points, rubric.points, strict=True)
    ]


def _revised(grade: PointGrade, point: Point, opinion: Opinion, reading: Reading) -> PointGrade:
    """A grade after what comparing says of it."""
    said = [reading.sentences[at] for at in opinion.sentences]
    if opinion.verdict == "met" and grade.verdict != "met" and not may_be_met(point, said):
        return grade
    is_against = opinion.verdict == "contradicted"
    evidence = grade.evidence if grade.verdict == "met" and not is_against else tuple(each.text for each in said)
    return PointGrade(grade.id, opinion.verdict, opinion.credit, evidence, is_against)


def false_claims(
    misconceptions: Iterable[Misconception], text: str, wordings: Wordings = NO_WORDINGS
) -> list[tuple[Misconception, str]]:
    """Which of `misconceptions` a `text` says, each with its sentence."""
    return [(each, found.text) for each, found in _held(misconceptions, read(text, wordings))]


def _held(misconceptions: Iterable[Misconception], reading: Reading) -> list[tuple[Misconception, Passage]]:
    """What the answer says that is false whatever the question, each with its sentence."""
    claims = ((each, claimed(each.patterns, reading, SUBJECTS)) for each in misconceptions)
    return [(each, found) for each, found in claims if found is not None]


def _grade_point(
    point: Point, said: Statements, contradicted: Mapping[str, Passage], numbers: Sequence[Value] = ()
) -> PointGrade:
    reading = said.reading
    whole, half = look(point.met, reading, point.course), look(point.half, reading, point.course)
    own = claimed(point.against, reading)
    if (opposite := own or contradicted.get(point.id)) is not None:
        return _opposed(point, whole.shown, opposite, own is not None, said)
    parts = [look(part.patterns, reading, point.course) for part in point.parts]
    shown = [each.shown for each in parts if each.shown is not None]
    if whole.shown is not None:
        return PointGrade(point.id, "met", 1.0, (whole.shown.text,))
    if point.parts and len(shown) >= point.needs:
        return PointGrade(point.id, "met", 1.0, texts_of(shown))
    turned = next(filter(None, (each.turned for each in (whole, half, *parts))), None)
    wrong = turned or next(filter(None, (other_number(each, numbers, reading) for each in point.evidence)), None)
    if wrong is not None:
        return PointGrade(point.id, "contradicted", 0.0, (wrong.text,), surmised=turned is None)
    partly = half.shown or whole.vague
    if partly is not None or (point.half_at and len(shown) >= point.half_at):
        evidence = texts_of([*shown, *([partly] if partly else [])])
        return PointGrade(point.id, "met", 0.5, evidence, doubted=whole.denied is not None)
    return _not_met(point, [whole, half, *parts], reading)


def _opposed(point: Point, shown: Passage | None, opposite: Passage, is_own: bool, said: Statements) -> PointGrade:
    """Contradicted by its own opposite, or by something false about its subject. Where that is nearer to another point,
    and another sentence says this one outright, it is met; where this one says its own opposite first, half. Both are
    doubted."""
    places = rests_on((opposite.text,), said.reading)
    if shown is not None and shown.sentence not in places and not said.is_about(point.id, places):
        return PointGrade(point.id, "met", 1.0, (shown.text,), doubted=True)
    if shown is not None and is_own and shown.sentence > min(places, default=shown.sentence):
        return PointGrade(point.id, "met", 0.5, (shown.text,), doubted=True)
    return PointGrade(point.id, "contradicted", 0.0, (opposite.text,))


def _not_met(point: Point, looks: list[Look], reading: Reading) -> PointGrade:
    """Contradicted where something is said against it, unsure where something is near it, missed otherwise."""
    whole, half, *parts = looks
    doubted = half.against if half.against is not None and half.against.dismissed else None
    against = next(filter(None, (whole.against, doubted, *(each.against for each in parts))), None)
    if against is not None:
        return PointGrade(point.id, "contradicted", 0.0, (against.text,), surmised=not against.dismissed)
    denied = next(filter(None, (each.denied for each in looks)), None)
    if denied is not None:
        return PointGrade(point.id, "unsure", 0.0, (denied.text,), doubted=True)
    doubtful = whole.listed or half.vague or next(filter(None, (nearly(each, reading) for each in point.met)), None)
    if doubtful is not None:
        return PointGrade(point.id, "unsure", 0.0, (doubtful.text,))
    return PointGrade(point.id, "missed", 0.0, ())


def _definitions(rubric: Rubric, looked: Looked) -> tuple[str, ...]:
    """The sentences that lift an answer to the floor; none where so much of it may well be wrong that it is doubted."""
    shown = definitions_in(looked.said.reading, rubric.floor, rubric.floor_needs)
    if not shown or rubric.weights is None:
        return shown
    wrong = sum(each.weight * looked.likely[each.id].contradicted for each in rubric.points)
    return () if wrong >= DOUBT_FROM * sum(each.weight for each in rubric.points) else shown


def _takes_stance(rubric: Rubric, reading: Reading) -> bool:
    """Whether the answer decides what the question wants decided; most want nothing decided."""
    return rubric.stance is None or any(find(each, reading) is not None for each in rubric.stance.patterns)
