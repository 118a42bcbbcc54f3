"""What becomes of each point in the end, by how likely each verdict on it is. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from app.grading.rubrics.likeness import Likeness
from app.grading.rubrics.nearness import nearest_sentence
from app.grading.rubrics.points import Point, PointGrade, may_be_met, rests_on
from app.grading.rubrics.weighing import Chances, Looks, Statements, Weights, chances

SURE_OF_THE_FIRST = 0.85  # the chance from which on what would be the only thing in an answer that is wrong is it
DOUBTFUL = 0.2  # the chance from which on a point that is not met may yet be: a person decides
WELL_MET = 0.4  # … although it seems to be contradicted
LEANS = 0.25  # from this chance of being contradicted on a point is not met that is no likelier met than not
SURELY = 0.75  # what is met by a smaller chance is doubted: a person is asked
WHOLE = 0.05  # how much more a statement is like what is right than like what is half of it, to be all of it


@dataclass(frozen=True)
class Looked:
    """What the `looks` at the points say, what is `said`, which of its sentences are known to be `false`, and what all
    that is worth; without `weights` nothing is weighed."""

    looks: Looks
    said: Statements
    false: frozenset[int]
    weights: Weights | None = None

    @cached_property
    def likely(self) -> Mapping[str, Chances]:
        """How likely each verdict on each point is; empty where nothing is weighed."""
        return {} if self.weights is None else chances(self.looks, self.said, self.weights)

    @property
    def believed(self) -> Sequence[PointGrade]:
        """The points before they are weighed."""
        return tuple(self.looks.believed.values())

    def sentences_of(self, points: Iterable[PointGrade]) -> frozenset[int]:
        """Which sentences the evidence of points is made of."""
        return frozenset[int]().union(*(rests_on(each.evidence, self.said.reading) for each in points))


def decided(looked: Looked, points: Sequence[Point]) -> Sequence[PointGrade]:
    """The points as graded in the end. What stands against a point in so many words is not called met, nor is what is
    made of false words. A sentence that stands against one point in so many words is held to be against another only
    if it speaks of its subject."""
    likely = looked.likely
    against = {each.id for each in looked.believed if each.verdict == "contradicted"}
    graded = []
    for point in points:
        grade, evidence = looked.looks.believed[point.id], looked.looks.evidence[point.id]
        if (evidence.verdict == "contradicted" and not evidence.surmised) or _is_false(evidence, looked):
            graded.append(_opposed(grade, evidence, point, likely[point.id], looked.said))
        else:
            is_wrong_elsewhere = bool(against - {point.id})
            graded.append(_weighed(grade, evidence, point, likely[point.id], looked.said, is_wrong_elsewhere))
    plainly = looked.sentences_of(each for each in graded if each.verdict == "contradicted" and not each.surmised)
    kept = (_missed(each.id) if _says_nothing(each, plainly, looked) else each for each in graded)
    wrong = plainly | looked.false
    return [_without(wrong, _shown(each, likely[each.id], looked), looked) for each in kept]


def _without(wrong: frozenset[int], grade: PointGrade, looked: Looked) -> PointGrade:
    """What is met, by none of the `wrong` sentences where others say it as well."""
    places = looked.sentences_of((grade,))
    if grade.verdict != "met" or places.isdisjoint(wrong) or places <= wrong:
        return grade
    sentences = looked.said.reading.sentences
    return replace(grade, evidence=tuple(sentences[at].text for at in sorted(places - wrong)))


def _shown(grade: PointGrade, chance: Chances, looked: Looked) -> PointGrade:
    """A grade as it is shown: what is met, or may be, by the sentence that says it, and doubted where that is not sure,
    or where the sentence that comes nearest to it is known to be false; what is only surmised to be its opposite, and
    not known to be false, is doubted as well."""
    if grade.verdict not in ("met", "unsure"):
        is_guess = grade.verdict == "contradicted" and grade.surmised and not _is_false(grade, looked)
        return replace(grade, doubted=is_guess)
    said = looked.said
    sentence = nearest_sentence(said.nearnesses.get(grade.id, ()), grade.evidence, said.reading)
    nearest = replace(grade, evidence=(sentence,)) if sentence else grade
    if grade.verdict == "unsure":
        return replace(grade if _is_false(nearest, looked) else nearest, doubted=False)
    is_false = nearest is not grade and _is_false(nearest, looked)
    evidence = looked.looks.evidence[grade.id]
    is_doubted = is_false or evidence.doubted or evidence.verdict == "contradicted" or chance.met < SURELY
    return replace(grade if is_false else nearest, doubted=is_doubted)


def _says_nothing(grade: PointGrade, plainly: frozenset[int], looked: Looked) -> bool:
    """Whether what is surmised of a point is of another, or what may be it is known to be false: nobody is asked."""
    return _is_of_another(grade, plainly, looked) or (grade.verdict == "unsure" and _is_false(grade, looked))


def _is_of_another(grade: PointGrade, plainly: frozenset[int], looked: Looked) -> bool:
    """Whether what is surmised to be against a point is `plainly` against another, or known to be false, and not about
    this one."""
    if not grade.surmised:
        return False
    places = looked.sentences_of((grade,))
    sentences = (looked.said.reading.sentences[at] for at in places)
    return places <= plainly | looked.false and not any(
        looked.said.claims.speaks_of(grade.id, each) for each in sentences
    )


def _is_false(evidence: PointGrade, looked: Looked) -> bool:
    """Whether what is known to be false is all that a point has for it."""
    rests = looked.sentences_of((evidence,))
    return bool(rests) and rests <= looked.false


def _missed(point: str) -> PointGrade:
    return PointGrade(point, "missed", 0.0, ())


def _weighed(
    grade: PointGrade, evidence: PointGrade, point: Point, chance: Chances, said: Statements, is_wrong_elsewhere: bool
) -> PointGrade:
    """A grade after all was weighed."""
    likely, statement = chance.likely, said.against_it(grade.id)
    if likely == "met":
        return grade if grade.verdict == "met" else _met_after_all(grade, evidence, point, said)
    if grade.verdict == "contradicted" and chance.met > WELL_MET:
        return replace(grade, verdict="unsure")
    if likely == "contradicted" and evidence.verdict == "met" and _is_apart(evidence, grade, statement, said):
        return evidence  # one sentence says it, another denies it: met, and doubted
    if likely == "contradicted" and grade.verdict != "contradicted":
        is_sure = is_wrong_elsewhere or chance.contradicted > SURE_OF_THE_FIRST
        return _denied(grade, statement if is_sure else None, said)
    if likely == "missed" or grade.verdict == "unsure" or (grade.verdict == "met" and chance.contradicted > LEANS):
        is_open = chance.met > DOUBTFUL and grade.evidence and grade.verdict in ("met", "unsure")
        return replace(grade, verdict="unsure", credit=0.0) if is_open else _missed(grade.id)
    return grade


def _denied(grade: PointGrade, statement: Likeness | None, said: Statements) -> PointGrade:
    """A point that is likelier denied: by a `statement` where that is sure, else whoever said it decides."""
    if statement is not None:
        words = tuple(each.text for each in said.said_in(statement))
        return PointGrade(grade.id, "contradicted", 0.0, words, surmised=True)
    return replace(grade, verdict="unsure", credit=0.0) if grade.credit == 1.0 else grade


def _is_apart(evidence: PointGrade, grade: PointGrade, statement: Likeness | None, said: Statements) -> bool:
    """Whether what speaks against a point stands in other sentences than its evidence."""
    against = rests_on(grade.evidence, said.reading) if grade.verdict == "contradicted" else frozenset[int]()
    against |= frozenset(statement.sentences if statement and not against else ())
    return bool(against) and against.isdisjoint(rests_on(evidence.evidence, said.reading))


def _opposed(grade: PointGrade, evidence: PointGrade, point: Point, chance: Chances, said: Statements) -> PointGrade:
    """What stands against a point in so many words: a person decides where all else says that it is met. Where that is
    sure, the words are of something else."""
    if grade.verdict != "contradicted" or chance.likely != "met":
        return grade
    met = _met_after_all(grade, evidence, point, said) if chance.met >= SURELY else grade
    return met if met.verdict == "met" else replace(grade, verdict="unsure")


def _met_after_all(grade: PointGrade, evidence: PointGrade, point: Point, said: Statements) -> PointGrade:
    """A point that is likelier met than not: by its evidence if it has some, else by what is most for it."""
    if evidence.verdict == "met":
        return evidence
    statement = said.for_it(grade.id)
    if statement is None or not may_be_met(point, said.said_in(statement)):
        return grade
    words = said.said_in(statement)
    if evidence.doubted and all(each.text in evidence.evidence for each in words):
        return evidence  # what is most for it denies it
    is_half = statement.half + WHOLE >= statement.right or any(each.is_vague for each in words)
    return PointGrade(grade.id, "met", 0.5 if is_half else 1.0, tuple(each.text for each in words))
