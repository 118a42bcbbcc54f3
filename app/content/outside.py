"""Text that came from outside, as Markdown: what a learner wrote or imported. Sanitised, and never evaluated.

Unlike our own content it has no live numbers: `{{ ... }}` is text like any other. Mathematics stands between dollars
where both hug it (`$x$` or `$$x$$`, not `$5 and $6`), `\\$` is a dollar, and `[[text]]` is the blank of a cloze.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markupsafe import Markup, escape

from app.content.live import ExpressionError
from app.content.markdown import mathml

Mathematics = Literal["mathml", "mathjax"]

LONGEST_FORMULA = 1000  # characters; the converter's time grows faster than a formula's length
MOST_FORMULAS = 200

MOST_BRACKETS = 1000  # Markdown's search for links takes the square of their number

_MATH = re.compile(r"(?P<marks>\$\$)\s*([^$]*[^\s$\\])\s*\$\$|(\$)(?=[^\s$])([^$]*[^\s$\\])\$(?!\d)")
_BLANK = re.compile(r"\[\[(?!\s)(.{1,1000}?)(?<!\s)\]\]", re.DOTALL)
_OPEN, _CLOSE = "\ue000", "\ue001"  # where Anki's braces of a blank will stand

_TEXT = """p br hr em strong s del ins sub sup u b i mark small code pre kbd blockquote ul ol li h2 h3 h4 h5 h6 table
    thead tbody tr th td a span"""
_MATH_ELEMENTS = """math mrow mi mn mo ms mtext mspace msup msub msubsup mfrac msqrt mroot mover munder munderover
    mtable mtr mtd mstyle mpadded mphantom menclose mmultiscripts mprescripts"""
_MATH_SAYS = """display displaystyle stretchy fence form lspace rspace linethickness mathvariant accent accentunder
    columnalign columnspacing rowspacing minsize maxsize symmetric largeop movablelimits separator width height depth
    notation scriptlevel columnlines rowlines xmlns"""
MATH_TAGS = frozenset(_MATH_ELEMENTS.split())
MATH_ATTRIBUTES = frozenset(_MATH_SAYS.split())
TAGS = frozenset(_TEXT.split())
_CLASSES = {"span": {"blank", "gap", "fill", "visually-hidden"}, "code": {"formula"}}
_ATTRIBUTES: dict[str, set[str]] = {
    "a": {"href", "title"},
    "ol": {"start"},
    "pre": {"tabindex"},
    **{tag: set(MATH_ATTRIBUTES) for tag in MATH_TAGS},
}


def render_outside(text: str, mathematics: Mathematics = "mathml") -> Markup:
    """A block of Markdown. A formula that cannot be set is shown as it was typed; see `text_problems`."""
    return _clean(_RENDERERS[mathematics].render(text))


def render_outside_inline(text: str, mathematics: Mathematics = "mathml") -> Markup:
    """The same for a single line: no paragraph around it."""
    return _clean(_RENDERERS[mathematics].renderInline(text))


def render_outside_cloze(text: str) -> Markup:
    """A block of Markdown whose `[[text]]` are blanks, each with its gap and its text."""
    return _clean(_CLOZE.render(text))


def render_anki_cloze(text: str) -> Markup:
    """The same as Anki writes it: every blank of a card is `{{c1::text}}`, and mathematics is left to MathJax."""
    html = _clean(_ANKI_CLOZE.render(text.replace(_OPEN, "").replace(_CLOSE, "")))
    return without_blank_marks(html).replace(_OPEN, Markup("{{c1::")).replace(_CLOSE, Markup("}}"))


def without_blank_marks(html: Markup) -> Markup:
    """HTML in which what Anki would read as a blank is text: a comment keeps the characters of a mark apart."""
    for pair in ("{{", "}}", "::"):
        html = html.replace(pair, Markup("{}<!-- -->{}").format(*pair))
    return html


def blanks(text: str) -> int:
    """How many blanks a cloze has. What stands in a program or in a formula is none."""
    return sum(child.type == "blank_open" for token in _CLOZE.parse(text) for child in token.children or ())


def text_problems(text: str) -> list[str]:
    """What of `text` cannot be shown as it is meant, in words."""
    if text.count("[") > MOST_BRACKETS:
        return [f"{text.count('[')} opening brackets are too many for one text; up to {MOST_BRACKETS} are read"]
    if "$" not in text:
        return []
    formulas = [
        child.content
        for token in _RENDERERS["mathml"].parse(text)
        for child in token.children or ()
        if child.type == "math"
    ]
    if len(formulas) > MOST_FORMULAS:
        return [f"{len(formulas)} formulas are too many for one text; {MOST_FORMULAS} are set"]
    return [problem for formula in formulas if (problem := formula_problem(formula))]


@lru_cache(maxsize=4096)  # a deck's cards repeat their symbols
def formula_problem(formula: str) -> str:
    """What keeps a formula from being set, or nothing."""
    if len(formula) > LONGEST_FORMULA:
        return f"a formula of {len(formula)} characters is too long; up to {LONGEST_FORMULA} are set"
    try:
        mathml(formula)
    except ExpressionError:
        return f"the formula {formula[:80]} cannot be set"
    return ""


def _clean(html: str) -> Markup:
    """Nothing in it acts, loads, or leads anywhere but to a web page."""
    cleaned = nh3.clean(
        html,
        tags=set(TAGS | MATH_TAGS),
        attributes=_ATTRIBUTES,
        allowed_classes=_CLASSES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer",
        strip_comments=True,
    )
    return Markup(cleaned)  # noqa: S704 - sanitised


def _math_rule(state: StateInline, silent: bool) -> bool:
    """`$x$` and `$$x$$`; a backslash before the first dollar is taken by Markdown's own rule."""
    if state.src[state.pos] != "$":
        return False
    found = _MATH.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        token = state.push("math", "math", 0)
        token.content, token.markup = found.group(2) or found.group(4), found.group(1) or found.group(3)
    state.pos = found.end()
    return True


def _blank_rule(state: StateInline, silent: bool) -> bool:
    """`[[text]]`, with Markdown and mathematics inside."""
    if not state.src.startswith("[[", state.pos):
        return False
    found = _BLANK.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        end, whole = found.end(), state.posMax
        state.push("blank_open", "span", 1)
        state.pos, state.posMax = found.start(1), found.end(1)
        state.md.inline.tokenize(state)
        state.push("blank_close", "span", -1)
        state.posMax = whole
        state.pos = end
        return True
    state.pos = found.end()
    return True


def _as_mathml(_renderer: RendererHTML, tokens: Any, index: int, *_: Any) -> str:
    formula, block = tokens[index].content, tokens[index].markup == "$$"
    if len(formula) <= LONGEST_FORMULA:
        try:
            return str(mathml(formula, display=block))
        except ExpressionError:
            pass
    return f'<code class="formula">{escape(formula)}</code>'


def _as_mathjax(_renderer: RendererHTML, tokens: Any, index: int, *_: Any) -> str:
    opening, closing = (r"\[", r"\]") if tokens[index].markup == "$$" else (r"\(", r"\)")
    # pairs that mark a blank; a space between them changes no formula, and MathJax does not read over a comment
    formula = re.sub(r"([{}:])(?=\1)", r"\1 ", tokens[index].content)
    return f"{opening}{escape(formula)}{closing}"


def _as_text(text: str) -> Callable[..., str]:
    return lambda _renderer, _tokens, _index, *_: text


def _scrolling_program(renderer: RendererHTML, tokens: Any, index: int, *more: Any) -> str:
    return renderer.fence(tokens, index, *more).replace("<pre>", '<pre tabindex="0">', 1)


def _renderer(formula: Callable[..., str], blank: tuple[str, str] | None = None) -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "typographer": False}).enable(["table", "strikethrough"])
    made.disable("image")  # nothing is loaded from anywhere
    made.inline.ruler.before("escape", "math", _math_rule)
    made.add_render_rule("math", formula)
    made.add_render_rule("fence", _scrolling_program)
    if blank:
        made.inline.ruler.before("link", "blank", _blank_rule)
        made.add_render_rule("blank_open", _as_text(blank[0]))
        made.add_render_rule("blank_close", _as_text(blank[1]))
    return made


_GAP = '<span class="blank"><span class="gap"><span class="visually-hidden">blank</span></span><span class="fill">'

_RENDERERS = {"mathml": _renderer(_as_mathml), "mathjax": _renderer(_as_mathjax)}
_CLOZE = _renderer(_as_mathml, (_GAP, "</span></span>"))
_ANKI_CLOZE = _renderer(_as_mathjax, (_OPEN, _CLOSE))
