"""What the interviewer says: each part in words, at the candidate's own numbers. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from app.content.coding import TaskQuestion
from app.content.interview_schemas import ArrangedItem, ProbedPoint
from app.content.live import ExpressionError, Expressions
from app.content.markdown import render, render_inline
from app.content.schemas import Doubt, Figure, QuestionedSlip
from app.grading.numbers import UNIT
from app.interview.challenging import asked_of
from app.interview.parts import Answers, Part, Reaction, Values, known_to, unlinked
from app.interview.questions import asked_about, leads_somewhere

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
    "slower": "What keeps its GPUs from computing faster, and which of your numbers does that?",
}

# The same, of who has just worked a number about it out, `{said}`; by what is wrong, that number's id in content.
WORKED_OUT: Mapping[str, str] = {"crossing": "crossing", "memory": "state", "bubble": "bubble"}
AFTER_THE_NUMBER: Mapping[str, str] = {
    "crossing": "You have {said} for one layer. What would it be inside a node, and do you keep it?",
    "memory": "You have {said} of state on one GPU. What has the card, and what would you cut?",
    "bubble": "You have {said} of bubble. What would make it smaller, and what does that cost?",
}

# About a plan, behind what it comes to.
PLAN_DOUBTS: Mapping[str, str] = {
    **LAYOUT_DOUBTS,
    "gpus": "How many are there?",
    "divides": "What has it to divide, and does it come out even?",
    "memory": "What is the most of it, and what in your plan would make that less?",
}

_BY_MISTAKE: Mapping[str, Mapping[str, str]] = {"layout": LAYOUT_DOUBTS, "configuration": PLAN_DOUBTS}

# What is asked about a number whose digits are right.
IN_WHICH_UNIT = "Your digits are those that I have. In which unit is that?"
# About one that leads nowhere, as nothing is divided by 0.
CAN_IT_BE = "Can it be that? Go through it once more, from what is given."

# What is asked about the mistake of an earlier question, made again.
SAME_PUT_RIGHT = "Is that not the same thing as in {title}? You put it right there: what did you change?"
SAME_ASKED = "That is the same thing as in {title}, which I asked you about."
WHO_IS_RIGHT = "What would tell who is right?"

# What is asked who goes by a number that was changed since.
WHICH_HOLDS = "Which of the two do you go by here?"

# Who came near a point: it may have been said in words that were not heard.
SAY_IT_OUTRIGHT = "Let me be sure that I have you right."

# Who said what may be the opposite: in general, and of what is the answer to the question that follows.
STAY_THERE, IS_IT_ALL = "Let me stay there.", "Is that so, and is it all?"

MISSING = "Something is missing in what you ticked."


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
    if isinstance(part.question, TaskQuestion) and part.role == "asked" and part.question.shown is not None:
        return part.question.shown
    if part.role == "again" and part.reaction is not None:
        return _questioned(part, part.reaction, expressions)
    if part.challenge is not None and part.reaction is not None:
        ask = asked_of(part.challenge, expressions.values)
        before = f"{part.reaction.remark} " if part.reaction.remark else ""
        return Markup("<p>“{}You said: {} {}”</p>").format(before, _in_quotes(part.reaction.quote), ask)
    if part.point is not None and part.reaction is not None:
        return _probed(part.reaction, probe_question(part.point, expressions))
    asked = render(part.source.prompt, expressions)
    if part.question.exhibit is None or part.is_follow_up or part.role != "asked":
        return asked
    log = expressions.value(part.question.exhibit)
    return asked + Markup('<pre tabindex="0"><code class="language-text">{}</code></pre>').format(log)


def _questioned(part: Part, reaction: Reaction, expressions: Expressions) -> Markup:
    """What is said about a wrong answer: the answer back, what is doubted of it, and what may be done."""
    said, doubt = reaction.said, doubted(part, reaction, expressions)
    if reaction.remark:
        doubt = f"It follows from a number that you have changed: {reaction.remark} {WHICH_HOLDS}"
    if reaction.same_as:
        doubt = _same_again(part, reaction, expressions)
    lead, then = _LEADS[part.kind if said else "missing"]
    return Markup("<p>“{} {}”</p><p>{}</p>").format(
        lead.format(said=said), " ".join(filter(None, (reaction.comes_to, doubt))), then
    )


def _same_again(part: Part, reaction: Reaction, expressions: Expressions) -> str:
    """What is said about the mistake of an earlier question. Of a number, what theory makes of this one follows: words
    are no answer to it."""
    if reaction.was_put_right:
        return SAME_PUT_RIGHT.format(title=reaction.same_as)
    is_number = part.kind == "number" and reaction.yours is not None
    then = _by_theory(part.source.doubt, reaction, expressions) if is_number else WHO_IS_RIGHT
    return f"{SAME_ASKED.format(title=reaction.same_as)} {then}"


# How an answer is said back, and what may be done then, by its kind.
_LEADS: Mapping[str, tuple[str, str]] = {
    "number": ("You said {said}.", "Say your number again: put it right, or stay with it."),
    "order": ("Let me stop at ‘{said}’, where you put it.", "Put it right, or stay with your order."),
    "layout": ("Let me stop at your layout, {said}.", "Change it, or stay with it."),
    "configuration": ("Let me stop at your plan, {said}.", "Change it, or stay with it."),
    "choice": ("You chose ‘{said}’.", "Choose again, or stay with it."),
    "set": ("You ticked ‘{said}’.", "Tick again, or stay with it."),
    "missing": (MISSING, "Tick again, or stay with it."),
}


def doubted(part: Part, reaction: Reaction, expressions: Expressions) -> str:
    """What `reaction` doubts of the answer to `part`, in the words that content or theory has for it."""
    if part.kind == "layout" and reaction.picked:
        return AFTER_THE_NUMBER[reaction.slip or ""].format(said=reaction.picked)
    if part.kind in _BY_MISTAKE:
        return _BY_MISTAKE[part.kind][reaction.slip or ""]
    if ask := _own_words(part, reaction):
        return str(render_inline(ask, expressions).striptags())
    if part.kind != "number":
        return MISPLACED if part.kind == "order" else ""
    if reaction.slip == UNIT:
        return IN_WHICH_UNIT
    before = f"That was your number for {reaction.picked}. " if reaction.picked else ""
    return before + _by_theory(part.source.doubt, reaction, expressions)


def _by_theory(doubt: Doubt | None, reaction: Reaction, expressions: Expressions) -> str:
    """What a wrong number comes to, and the question about it."""
    if doubt is None or reaction.yours is None:
        return CAN_IT_BE
    try:
        with_theirs = Expressions({**expressions.values, "yours": reaction.yours})
        return str(render_inline(doubt.ask, with_theirs).striptags())
    except ExpressionError:
        return CAN_IT_BE


def asked_on_the_way(part: Part, reaction: Reaction) -> Figure | None:
    """The number that the question about a wrong one asks for, where it asks for another."""
    if reaction.remark or reaction.was_put_right or reaction.slip == UNIT:
        return None
    slip = next((each for each in part.source.slips if each.id == reaction.slip and each.ask), None)
    if slip is not None and not reaction.same_as:
        return slip.answered_by
    return part.source.doubt.answered_by if part.source.doubt and reaction.yours is not None else None


def _own_words(part: Part, reaction: Reaction) -> str | None:
    """The question that content has for a slip, an item or an option."""
    if part.kind in ("choice", "set"):
        return asked_about(part.question).get(reaction.slip or "")
    slips: Sequence[QuestionedSlip | ArrangedItem] = part.source.slips
    return next((each.ask for each in slips or part.question.items if each.id == reaction.slip), None)


def _probed(reaction: Reaction, ask: str) -> Markup:
    """A probe as it is spoken: first what was heard, then what is asked."""
    noted = "You said: {} Good. " if reaction.noted_as_said else "I note: {} "
    before = Markup(noted).format(_in_quotes(reaction.noted)) if reaction.noted else Markup("")  # noqa: S704 - our own words
    if reaction.remark:
        return Markup("<p>“{}{} {}”</p>").format(before, reaction.remark, ask)
    return Markup("<p>“{}{}{}”</p>").format(before, _gone_on_from(reaction), ask)


def _gone_on_from(reaction: Reaction) -> Markup:
    you_said = "You also said" if reaction.noted_as_said else "You said"
    if reaction.quote:
        then = IS_IT_ALL if reaction.is_answered else STAY_THERE
        return Markup("{}: {} {} ").format(you_said, _in_quotes(reaction.quote), then)
    if reaction.astray:
        spoken = Markup("I heard: {} ").format(_in_quotes(reaction.picked)) if reaction.picked else Markup("")
        return spoken + Markup("Let me bring you back to my question. ")
    if not reaction.picked:
        return Markup("")
    then = f" {SAY_IT_OUTRIGHT}" if reaction.is_near else ""
    return Markup("{}: {}{} ").format(you_said, _in_quotes(reaction.picked), then)


def _in_quotes(words: str) -> Markup:
    """What was said, as it was written, in quotation marks, with the mark that ends it behind them."""
    said = words.strip().rstrip(".;:,")
    return Markup("<q>{}</q>{}").format(said, "" if said[-1:] in "?!…" else ".")


def probe_question(point: ProbedPoint, expressions: Expressions) -> str:
    """What a probe asks for `point`."""
    return render_inline(point.ask or "", expressions).striptags()
