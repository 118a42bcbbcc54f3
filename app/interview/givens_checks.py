"""Whether what a candidate may ask to be told is needed where it says so, enough, and not handed over besides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from app.content.interview_schemas import Interview, Question
from app.content.live import names_in


def givens_findings(interview: Interview) -> Iterator[str]:
    """What is wrong with the givens of an interview, by the names that its expressions go by."""
    for index, question in enumerate(interview.questions):
        if question.kind != "givens":
            continue
        served = [each for each in interview.questions if question.id in each.builds_on and each.kind == "number"]
        if not served:
            yield f"nothing is computed from what is asked for in {question.id}"
            continue
        yield from _needless(interview, question, served)
        needed = _names(given.reply or "" for given in question.givens)
        for each in dict.fromkeys((*interview.questions[: index + 1], *served)):
            if handed := sorted(_names(_prompts(each)) & needed):
                yield f"the prompts of {each.id} hand over {', '.join(handed)}, to be asked for in {question.id}"
        told = _behind(interview, needed | _names(text for each in served for text in _prompts(each)))
        if untold := sorted((_needed(interview, served) & interview.parameters.keys()) - told):
            yield f"nobody who asks for everything in {question.id} is told what follows from {', '.join(untold)}"


def _needless(interview: Interview, question: Question, served: Iterable[Question]) -> Iterator[str]:
    """Replies that no key needs, and remarks on what does not matter that say what does."""
    needed = _needed(interview, served)
    for given in question.givens:
        if given.reply is None and (said := sorted(_names([given.text, given.message]) & needed)):
            yield f"what is said to {given.id} of {question.id}, which is not needed, tells {', '.join(said)}"
        if given.reply is not None and not _names([given.reply]) & needed:
            yield f"no key behind {question.id} is computed from the reply to {given.id}"


def _needed(interview: Interview, served: Iterable[Question]) -> set[str]:
    """Every name that a key of these questions is computed from."""
    sources = [source for each in served for source in (each, each.follow_up, each.harder) if source]
    return _behind(interview, _names(f"{{{{ {source.key} }}}}" for source in sources))


def _behind(interview: Interview, names: set[str]) -> set[str]:
    """These names and those they are computed from."""
    found, ahead = set[str](), set(names)
    while ahead:
        name = ahead.pop()
        found.add(name)
        ahead |= _names([f"{{{{ {interview.let[name]} }}}}"] if name in interview.let else ()) - found
    return found


def _prompts(question: Question) -> list[str]:
    return [source.prompt for source in (question, question.follow_up, question.harder) if source]


def _names(texts: Iterable[str]) -> set[str]:
    return {name for text in texts for name in names_in(text)}
