"""What replies to the interviewer's questions say of an answer's points. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from app.content.live import Expressions
from app.grading.rubrics.comparing import IN_A_REPLY
from app.grading.rubrics.grader import Rubric, grade
from app.grading.rubrics.likeness import NO_CLAIMS
from app.grading.rubrics.nearness import nearnesses
from app.grading.rubrics.points import PointGrade, Verdict
from app.grading.rubrics.reading import read as read_words
from app.interview.at_levels import says
from app.interview.challenging import TAKEN_BACK, heard_reply, held_in
from app.interview.keeping import goes_on, keeps, nearest_in, turns
from app.interview.parts import Answers, Part, Values, contradicted_by
from app.interview.prompts import probe_question
from app.interview.replying import SHORT, is_an_answer, is_short_stand, says_nothing, stands_by
from app.interview.weighing import ABOUT, ASKED_FOR, OWN, weighed
from app.reveal.words import sentences

SAID_TWICE = 0.03  # how much the second of two statements near a point must lean to what is right of it
NOTHING_DENIED: Mapping[str, str] = {}


@dataclass(frozen=True)
class Reply:
    """What was heard in the reply to a probe: `credit` is the share of the point that it says, 0 to 1. `parts` are
    those whose words say it: that of the reply, and of the answer where it only goes on with it."""

    verdict: Verdict
    credit: float
    evidence: tuple[str, ...]
    parts: tuple[str, ...] = ()


def denied_in(heard: Iterable[PointGrade]) -> Mapping[str, str]:
    """What an answer says against its points, by point."""
    return {each.id: " ".join(each.evidence) for each in heard if each.verdict == "contradicted"}


def heard_in_replies(
    rubric: Rubric, probes: Sequence[Part], known: Values, answers: Answers, denied: Mapping[str, str] = NOTHING_DENIED
) -> Mapping[str, Reply]:
    """What the replies to `probes` and challenges say, by point: each its own, and whatever else of the answer's points
    is in it. Who does not take back what is false says nothing of what that contradicts, and who says something false
    in a reply does not. A point that the answer has `denied` is said by a reply that turns from that."""
    found: dict[str, Reply] = {}
    for probe in probes:
        text = answers.get(probe.id, "").strip()
        if not text or says_nothing(text):
            if text and probe.point:
                found.setdefault(probe.point.id, Reply("missed", 0.0, (), (probe.id,)))
            continue
        said = _about_their_points(grade(rubric, text).points, rubric, text)
        heard = {each.id: Reply(each.verdict, each.credit, each.evidence, (probe.id,)) for each in said}
        if probe.challenge is not None and not is_taken_back(probe, answers, known):
            heard = {
                point: each for point, each in heard.items() if point not in contradicted_by(probe.challenge, probe)
            }
        own = probe.point.id if probe.point else ""  # what a reply says of what it was asked for comes before another's
        if probe.point is not None:
            ask = probe_question(probe.point, Expressions(known))
            reply = hear_reply(rubric, own, ask, text)
            if probe.reaction and probe.reaction.quote:
                reply = after_questioning(reply, rubric, own, probe.reaction.quote, text, is_clear=own in denied)
            if probe.reaction and probe.reaction.is_near and not reply.credit and says_twice(rubric, own, text):
                reply = Reply("met", 1.0, (text,))
            heard[own] = replace(reply, parts=(probe.id,))
        for false in held_in(probe, text, known) if probe.challenge is None else ():
            against = contradicted_by(false.challenge, probe) & heard.keys()
            heard |= {point: Reply("contradicted", 0.0, (false.said,), (probe.id,)) for point in against}
        for point, reply in heard.items():
            if reply.credit and point != own and point in denied and not turns(denied[point], text, rubric, point):
                continue
            if point not in found or (reply.credit, point == own) > (found[point].credit, False):
                found[point] = reply
    together = _heard_together(rubric, probes, answers, found)
    return {**found, **{point: reply for point, reply in together.items() if point not in denied}}


def after_questioning(
    reply: Reply, rubric: Rubric, point: str, quote: str, text: str, *, is_clear: bool = True
) -> Reply:
    """The reply to who was asked about a sentence that says the opposite of a point: said only by who turns from it,
    and the opposite still only where that is kept. Where it was not `is_clear` that it says the opposite, to hold on
    to it makes it no clearer: only to go the same way does."""
    if (keeps if is_clear else goes_on)(quote, text, rubric, point):
        return Reply("contradicted", 0.0, (text,))
    if is_clear and reply.verdict == "contradicted":
        return reply  # the opposite, in the answer and when asked
    has_turned = not is_clear or turns(quote, text, rubric, point)
    if reply.verdict == "contradicted" or (reply.credit and not has_turned):
        return Reply("unsure", 0.0, reply.evidence)
    return reply


def says_twice(rubric: Rubric, point: str, text: str) -> bool:
    """Whether a reply to who may have heard a point comes near it again, and leans to what is right of it: who says so
    twice, in whatever words, has said it."""
    is_told = is_an_answer(text) and len(text.split()) > SHORT  # what is short is near to anything
    near = nearest_in(rubric, point, text)
    return is_told and near.share > ABOUT and near.lean > SAID_TWICE


def is_taken_back(probe: Part, answers: Answers, known: Values) -> bool:
    """Whether the reply to a challenge takes back what was said."""
    assert probe.challenge is not None, "asked of challenges alone"
    said = probe.reaction.quote if probe.reaction else ""
    return heard_reply(probe.challenge, said, answers.get(probe.id, ""), probe, known) == TAKEN_BACK


def _about_their_points(said: Iterable[PointGrade], rubric: Rubric, text: str) -> Iterator[PointGrade]:
    """What a reply says beside what it was asked for: a point is said there only by what is about it and no other."""
    near = nearnesses(rubric.near_claims, read_words(text, rubric.wordings))
    for each in said:
        is_about_it = any(one.share > ABOUT and one.of_most > OWN for one in near.get(each.id, ()))
        yield each if is_about_it or not each.credit or each.id not in near else PointGrade(each.id, "missed", 0.0, ())


def _heard_together(
    rubric: Rubric, probes: Sequence[Part], answers: Answers, apart: Mapping[str, Reply]
) -> Mapping[str, Reply]:
    """The points that the answer says one half of and a reply the other, neither by itself."""
    texts = {each.id: answers.get(each.id, "").strip() for each in probes}
    replies = {part: text for part, text in texts.items() if text and not says_nothing(text)}
    if not replies:
        return {}
    asked = probes[0].question.id
    answer = answers.get(asked, "")
    alone = {each.id: each.credit for each in grade(rubric, answer).points}
    whole = grade(rubric, "\n".join((answer, *replies.values()))).points
    best = {each.id: max(alone[each.id], apart[each.id].credit if each.id in apart else 0.0) for each in whole}
    return {each.id: _said_across(each, {asked: answer, **replies}) for each in whole if each.credit > best[each.id]}


def _said_across(point: PointGrade, texts: Mapping[str, str]) -> Reply:
    """A point that an answer and replies say together, with the sentences of each."""
    said = {part: sentences(text) for part, text in texts.items()}
    evidence = {part: tuple(each for each in told if says(each, point.evidence)) for part, told in said.items()}
    parts = tuple(part for part, found in evidence.items() if found)
    return Reply(point.verdict, point.credit, tuple(each for found in evidence.values() for each in found), parts)


def hear_reply(rubric: Rubric, point: str, ask: str, text: str) -> Reply:
    """What a reply to `ask` says of a point. Who is asked about a thing does not say its name again: a reply that is
    not heard by itself is heard as the end of the question."""
    asked_for = tuple(each for each in rubric.points if each.id == point)
    rubric = replace(rubric, points=asked_for, bounds=IN_A_REPLY)
    reading = read_words(text, rubric.wordings)
    (alone,) = grade(rubric, text).points
    is_denied = alone.verdict == "contradicted"
    if not stands_by(text):  # what it stays with is not said in it
        (alone,) = weighed((alone,), rubric, reading, ASKED_FOR)
    if is_short_stand(text):
        return Reply("missed", 0.0, ())
    # what is short leans to either side: whether it only seems to deny, the question that it ends may tell
    if alone.credit or (alone.verdict == "contradicted" and (is_denied or len(text.split()) > SHORT)):
        return Reply(alone.verdict, alone.credit, alone.evidence)
    lead = ask.rstrip("?. ") + ": "
    asked = grade(replace(rubric, claims=NO_CLAIMS), lead + text).points[0]  # the question is like what is right of it
    found = asked if asked.credit else alone
    said = (each.removeprefix(lead).strip() for each in found.evidence)
    return Reply(found.verdict, found.credit, tuple(each for each in said if each))
