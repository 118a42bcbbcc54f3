"""What the sentences of the content must not say: numbers that a formula contradicts, and what was wrong and mended.

`statements.yaml` has quantities as they are put in words, `mended.yaml` what stood and was wrong: what an entry `says`
is looked for in everything that is said, read as the grader reads answers, and `right` must be found in each source
that it is `taught_by`. What an interviewer does not let pass (`app/content/challenges.py`) the content does not say
either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from app.content.catalogue import Catalogue
from app.content.live import Expressions, at
from app.content.mended import MENDED, Mended, MendedStatement
from app.content.rubric_schemas import shared_patterns
from app.content.said import said
from app.content.sentences import Location, Sentences
from app.content.statements import contradicted, wrong_sums
from app.grading.rubrics.looking import claimed
from app.grading.rubrics.patterns import Pattern

Finding = tuple[str, Location, str]


def check_sentences(catalogue: Catalogue) -> Iterator[Finding]:
    """No sentence contradicts a formula or a typed sum, and what was mended stays so."""
    texts = list(said(catalogue))
    yield from _check_numbers(catalogue, texts)
    sentences = Sentences(texts)
    yield from _check_mended(catalogue.mended, sentences)
    for challenge in catalogue.challenges:
        if not challenge.file.only_there:
            yield from _standing(sentences, challenge.false.patterns, f"interviewers question it, see {challenge.id}")


def _check_numbers(catalogue: Catalogue, texts: Iterable[tuple[str, Location, str]]) -> Iterator[Finding]:
    """Every sentence that says a quantity of `statements.yaml`, and every typed sum."""
    for identity, location, text in texts:
        for statement in catalogue.statements.statements:
            yield from ((identity, location, reason) for reason in contradicted(text, statement))
        yield from ((identity, location, reason) for reason in wrong_sums(text))


def _check_mended(file: Mended, sentences: Sentences) -> Iterator[Finding]:
    """Each entry tells wrong from right and is said nowhere; what holds is said where it is taught."""
    for index, statement in enumerate(file.mended):
        with at("mended", index):
            false, right = shared_patterns(statement.says), shared_patterns(statement.right)
            known = Expressions({})
            so = known.text(known.fill(statement.so))
        yield from ((MENDED, ("mended", index, *where), why) for where, why in _tried(statement, so))
        yield from _standing(sentences, false, f"{statement.id} was mended: {so}")
        missing = sorted(set(statement.taught_by) - _sources(sentences, right)) if right else ()
        for place in missing:
            yield MENDED, ("mended", index, "taught_by"), f"{place} says it no more: {so}"


def _standing(sentences: Sentences, patterns: Iterable[Pattern], why: str) -> Iterator[Finding]:
    """Where any of `patterns` is claimed, each sentence once."""
    passed: set[tuple[str, str]] = set()
    for pattern in patterns:
        for sentence, reading in sentences.near(pattern):
            found = claimed((pattern,), reading)
            if found is not None and not found.text.endswith("?") and (sentence.source, found.text) not in passed:
                passed.add((sentence.source, found.text))
                yield sentence.source, sentence.location, f"“{found.text}”: {why}"


def _sources(sentences: Sentences, patterns: Iterable[Pattern]) -> set[str]:
    return {
        sentence.source
        for pattern in patterns
        for sentence, reading in sentences.near(pattern)
        if claimed((pattern,), reading)
    }


def _tried(statement: MendedStatement, so: str) -> Iterator[tuple[Location, str]]:
    """What of an entry proves nothing: its evidence finds what stood, each line of it something, and nothing right."""
    false, right = shared_patterns(statement.says), shared_patterns(statement.right)
    idle = set(range(len(false)))
    for number, stood in enumerate(statement.stood):
        sentences = Sentences([("", (), stood)])
        hit = {index for index, pattern in enumerate(false) if list(_standing(sentences, (pattern,), ""))}
        idle -= hit
        if false and not hit:
            yield ("stood", number), f"{stood!r} stood and is not found by says"
        if _sources(sentences, right):
            yield ("stood", number), f"{stood!r} stood, and shows what is right"
    for index in sorted(idle):
        yield (
            ("says", index),
            f"{statement.says[index]!r} finds none of what stood: add such a sentence, or leave it out",
        )
    for number, passes in enumerate((*statement.passes, so)):
        where: Location = ("passes", number) if number < len(statement.passes) else ("so",)
        if list(_standing(Sentences([("", (), passes)]), false, "")):
            yield where, f"{passes!r} is right, and is found by says"
    if right and not _sources(Sentences([("", (), so)]), right):
        yield ("so",), f"{so!r} does not show what right looks for"
    unseen = [
        line for line, pattern in zip(statement.right, right, strict=True) if not _shown_by(pattern, statement, so)
    ]
    for line in unseen:
        yield ("right", statement.right.index(line)), f"{line!r} is shown neither by so nor by passes"


def _shown_by(pattern: Pattern, statement: MendedStatement, so: str) -> bool:
    texts = (so, *statement.passes)
    return any(_sources(Sentences([("", (), text)]), (pattern,)) for text in texts)
