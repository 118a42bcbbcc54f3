"""What the interviewer says: each part in words, at the candidate's own numbers. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from markupsafe import Markup

from app.content.coding import TaskQuestion
from app.content.interview_schemas import ProbedPoint
from app.content.live import ExpressionError, Expressions
from app.content.markdown import render, render_inline
from app.interview.parts import Answers, Part, Reaction, Values, known_to, unlinked
from app.interview.questions import leads_somewhere
from app.units import SCALES

# What is asked about an item that was put too early, where it has no question of its own.
MISPLACED = "What has to be there before it, and where is that in yours?"


# What is asked about a layout, by what is wrong with it.
LAYOUT_DOUBTS: Mapping[str, str] = {
    "gpus": "How many GPUs does that take, and how many are there?",
    "divides": "What does each degree split, and does it come out even?",
    "memory": "What does one GPU hold in it, term by term?",
    "crossing": "Which of your groups waits inside every layer, and over which link?",
    "bubble": "How many micro-batches has one pipeline to fill its stages with?",
    "communication": "What has to cross the network in it, how often, and what hides it?",
    "slower": "What do the GPUs do less well in it, and why is it split that far?",
}


# What is asked about a wrong number whose slip has no question of its own, by what it is a number of.
DOUBTS: defaultdict[str, str] = defaultdict(
    lambda: "What did you multiply there, and what did you divide by?",
    {
        "unit": "In which unit is that?",
        "bytes": "Name the largest term in it: how many bytes for what, and how many of those does one GPU have?",
        "seconds": "What is moved or computed in that time, and at which rate?",
        "tokens": "What is above the line there, and what does one token cost?",
        "flop": "What did you multiply to come to that many FLOPs?",
        "fraction": "What is above the line, and what is the whole below it?",
    },
)


def prompt(part: Part, values: Values, answers: Answers) -> Markup | None:
    """What is asked; None while what it builds on has no answer that leads anywhere."""
    known = known_to(part, values, answers)
    unasked = any(each.kind == "givens" and not answers.get(each.id, "").strip() for each in part.builds_on)
    if known is None or unasked or not leads_somewhere(part, known):
        return None
    try:
        return _worded(part, Expressions(unlinked(known)))
    except ExpressionError:
        if part.goes_by_own_numbers:
            return None  # their figure has no consequence, as nothing divides by 0
        raise


def _worded(part: Part, expressions: Expressions) -> Markup:
    """A part in the interviewer's words."""
    if isinstance(part.question, TaskQuestion):
        return part.question.shown
    if part.role == "again" and part.reaction is not None:
        return _questioned(part, part.reaction, expressions)
    if part.point is not None and part.reaction is not None:
        return _probed(part.reaction, probe_question(part.point, expressions))
    asked = render(part.source.prompt, expressions)
    if part.question.exhibit is None or part.is_follow_up or part.role != "asked":
        return asked
    log = expressions.value(part.question.exhibit)
    return asked + Markup('<pre tabindex="0"><code class="language-text">{}</code></pre>').format(log)


def _questioned(part: Part, reaction: Reaction, expressions: Expressions) -> Markup:
    if part.kind == "layout":
        return Markup("<p>“Let me stop at your layout, {}. {}”</p><p>Change it, or stay with it.</p>").format(
            reaction.said, LAYOUT_DOUBTS[reaction.slip or ""]
        )
    if part.kind == "order":
        item = next((each for each in part.question.items if each.id == reaction.slip), None)
        doubt = render_inline(item.ask, expressions).striptags() if item and item.ask else MISPLACED
        return Markup(
            "<p>“Let me stop at ‘{}’, where you put it. {}”</p><p>Put it right, or stay with your order.</p>"
        ).format(reaction.said, doubt)
    slip = next((each for each in part.source.slips if each.id == reaction.slip), None)
    if slip and slip.ask:
        doubt = render_inline(slip.ask, expressions).striptags()
    elif reaction.picked:
        doubt = f"That was your number for {reaction.picked}. What is different here?"
    else:
        dimension = SCALES[part.source.unit or ""][0]
        doubt = DOUBTS["unit" if reaction.slip == "unit" else dimension]
    return Markup("<p>“You said {}. {}”</p><p>Say your number again: put it right, or stay with it.</p>").format(
        reaction.said, doubt
    )


def _probed(reaction: Reaction, ask: str) -> Markup:
    """A probe as it is spoken: first what was heard, then what is asked."""
    noted = "<q>{}</q>, good. " if reaction.noted_as_said else "I note <q>{}</q>. "
    before = Markup(noted).format(reaction.noted) if reaction.noted else Markup("")  # noqa: S704 - our own words
    return Markup("<p>“{}{}{}”</p>").format(before, _gone_on_from(reaction), ask)


def _gone_on_from(reaction: Reaction) -> Markup:
    if reaction.quote:
        return Markup("You said: <q>{}</q> Let me stay there. ").format(reaction.quote)
    if reaction.astray:
        spoken = Markup("I heard <q>{}</q>. ").format(reaction.picked) if reaction.picked else Markup("")
        return spoken + Markup("Let me bring you back to my question. ")
    if not reaction.picked:
        return Markup("")
    said = Markup("You ended with <q>{}</q>. ") if reaction.picked_last else Markup("You said <q>{}</q>. ")
    return said.format(reaction.picked)


def probe_question(point: ProbedPoint, expressions: Expressions) -> str:
    """What a probe asks for `point`."""
    return render_inline(point.ask or "", expressions).striptags()
