"""What is surely false in an answer: it is read back and asked about once, and may be taken back. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.content.challenges import Misbelief, Questioned
from app.content.live import Expressions
from app.content.markdown import render_inline
from app.grading.rubrics.grader import Rubric, false_claims, grade
from app.grading.rubrics.lexicon import SUBJECTS
from app.grading.rubrics.quotes import topic
from app.grading.rubrics.reading import read
from app.grading.rubrics.wordings import Wordings
from app.interview.keeping import goes_the_same_way
from app.interview.parts import Part, Values, contradicted_by, unlinked
from app.interview.replying import affirms, beyond_taking_back, corrects, holds_on, stands_by, takes_back
from app.interview.saying_again import agrees, answers_the_same, gives_another_number
from app.reveal.words import sentences

# Of the words of what is so that a false sentence has not, so many, and this share, stand in a reply that says it.
LEAST_OF_IT, SHARE_OF_IT = 2, 0.25

TAKEN_BACK, SAID_AGAIN, STOOD_BY = "taken back", "said again", "stood by"
STILL_WRONG, LEFT_OPEN, WITHDRAWN = "still wrong", "left open", "withdrawn"


@dataclass(frozen=True)
class Held:
    """Something false that an answer says, with its sentence."""

    challenge: Questioned
    said: str


def held_in(part: Part, text: str, known: Values) -> list[Held]:
    """What is false in an answer to `part`, each once, what stands against its points first; nothing that it says and
    corrects itself, behind it and about the same subject: who goes on with what is right beside it has said both.
    Raises ExpressionError."""
    by_id = {each.id: each for each in part.challenges}
    claims = false_claims((each.false for each in by_id.values()), text, part.wordings)
    held: list[Held] = []
    for false, said in claims:
        challenge, behind = by_id[false.id], _said_behind(text, said, part.wordings)
        if isinstance(challenge, Misbelief):  # these come last
            is_told = takes_back(behind) or any(said == each.said for each in held)
            is_told = is_told or not challenge.is_meant(said, part.wordings)
        else:
            is_told = corrects(behind) and _is_taken_back(challenge, said, behind, known, part.wordings)
        if not is_told:
            held.append(Held(challenge, said))
    return sorted(held, key=lambda each: not contradicted_by(each.challenge, part))


def heard_reply(challenge: Questioned, said: str, reply: str, part: Part, known: Values) -> str:
    """What a reply does with what was `said` and false: takes it back, takes it back without what is so, says it again
    or that it stands by it, says something else that is wrong, or nothing of it that could be heard.

    It speaks of what it was asked about unless it names something else: what it says of that takes back only where
    what is right is about that as well.
    """
    about, told = _subjects(said, part.wordings), beyond_taking_back(reply)
    heard = _about(about, told, part.wordings)
    if wrong := _wrong_in(challenge, said, reply, heard, part):
        return wrong
    ask, so = asked_of(challenge, known), what_is_so(challenge, known)
    if not takes_back(reply) and answers_the_same(challenge, ask, reply, part.wordings):
        return SAID_AGAIN
    if holds_on(reply) or agrees(said, so, reply):
        return STOOD_BY  # whatever else they say
    if _is_taken_back(challenge, said, heard, known, part.wordings) or _is_taken_back(
        challenge, said, _of_others(about, told, part.wordings), known, part.wordings, by_name=True
    ):
        return TAKEN_BACK
    return _without_what_is_so(challenge, ask, reply, part, known)


def _without_what_is_so(challenge: Questioned, ask: str, reply: str, part: Part, known: Values) -> str:
    """What a reply does that says nothing of what is so."""
    if stands_by(reply) or affirms(reply):
        return STOOD_BY
    if takes_back(reply):
        return WITHDRAWN
    return STILL_WRONG if gives_another_number(challenge.right(known), ask, reply, part.wordings) else LEFT_OPEN


def _wrong_in(challenge: Questioned, said: str, reply: str, heard: str, part: Part) -> str | None:
    """What a reply says that is wrong: the same again, or something else in what is `heard` of it; None where nothing
    is known to be."""
    if false_claims((challenge.false,), reply, part.wordings) or false_claims((challenge.false,), heard, part.wordings):
        return SAID_AGAIN
    others = [each.false for each in part.challenges if each.id != challenge.id]
    if false_claims(others, heard, part.wordings):
        return STILL_WRONG
    return SAID_AGAIN if goes_the_same_way(said, reply, part.wordings) else None


def _subjects(text: str, wordings: Wordings) -> frozenset[str]:
    """Which subjects of the field a text names."""
    return frozenset(each for sentence in read(text, wordings).sentences for each in SUBJECTS & sentence.where.keys())


def _about(subjects: frozenset[str], reply: str, wordings: Wordings) -> str:
    """The sentences of a reply that name one of `subjects` or none at all; the latter with the subject, where it is
    one."""
    if not subjects:
        return reply
    lead = f"{next(iter(subjects))}: " if len(subjects) == 1 else ""
    found = []
    for sentence in sentences(reply):
        named = _subjects(sentence, wordings)
        if not named:
            found.append(lead + sentence)
        elif named & subjects:
            found.append(sentence)
    return " ".join(found)


def _of_others(subjects: frozenset[str], reply: str, wordings: Wordings) -> str:
    """The sentences of a reply that name other subjects alone."""
    named = ((each, _subjects(each, wordings)) for each in sentences(reply) if subjects)
    return " ".join(each for each, of in named if of and not of & subjects)


def _said_behind(text: str, said: str, wordings: Wordings) -> str:
    """What an answer says behind a sentence of it about the same subject, or, right behind it, about none."""
    subjects, told = _subjects(said, wordings), sentences(text)
    at = next((number for number, each in enumerate(told) if said in each or each in said), len(told))
    behind = [each for each in told[at:] if each not in said]
    if not subjects:
        return " ".join(behind)
    found = [each for each in behind if _subjects(each, wordings) & subjects]
    for each in behind:
        if _subjects(each, wordings):
            break
        found.append(each)
    return " ".join(found)


def _is_taken_back(
    challenge: Questioned, said: str, text: str, known: Values, wordings: Wordings, *, by_name: bool = False
) -> bool:
    """Whether a text says what is right instead of what was `said`; `by_name`, of a subject that it names."""
    if not text.strip():
        return False
    right = challenge.right(known)
    if right is None:
        return not by_name and _says_what_is_so(challenge.so, said, text)
    if by_name:
        right = replace(right, met=tuple(each for each in right.met if each.stems & SUBJECTS))
    return grade(Rubric((right,), (), wordings=wordings), text).points[0].credit > 0


def _says_what_is_so(so: str, said: str, text: str) -> bool:
    """Whether a text has what is new in `so` beside what was `said`."""
    new = topic(so) - topic(said)
    shared = len(new & topic(text))
    return shared >= LEAST_OF_IT and shared >= SHARE_OF_IT * len(new)


def asked_of(challenge: Questioned, known: Values) -> str:
    """The question about it, in plain words."""
    return _filled(challenge.ask, challenge, known)


def what_is_so(challenge: Questioned, known: Values) -> str:
    """What is so instead, in plain words."""
    return _filled(challenge.so, challenge, known)


def _filled(text: str, challenge: Questioned, known: Values) -> str:
    return str(render_inline(text, Expressions(unlinked(challenge.values(known)))).striptags())
