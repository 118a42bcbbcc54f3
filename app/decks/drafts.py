"""An own card before it is stored: what it must have, checked field by field. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from app.content.cards import CARD_SECTIONS
from app.content.kinds import OWN_KINDS, PLAIN, WITH_BLANKS, WITH_OPTIONS
from app.content.outside import blanks, text_problems
from app.content.plain_math import plain_math
from app.core.errors import DomainError, Violation
from app.core.texts import storable
from app.words import capital

DEFAULT_DECK = "My cards"
DEFAULT_SOURCE = "Own card"

LONGEST_SECTION = 10_000  # characters; our own longest card has 1,500
LONGEST_LINE = 200
LONGEST_DECK = 200
LONGEST_TAG = 120
MOST_TAGS = 50
MOST_OPTIONS = 8
MOST_BLANKS = 10

_OPTION = re.compile(r"^\s*[-*]?\s*\[(?P<mark>[ xX]?)\]\s*(?P<text>.*)$")
_MARKS = re.compile(r"\\(?P<literal>[^\w\s]|_)|[*_`#>$\[\]]|^[-|]+")  # an escaped mark is meant as it stands
_QUOTED = re.compile(r"[\\*_`#>$\[\]]")
# A bar between spaces parts an option from its message, so one that the text itself holds is written as its character
# reference, which Markdown shows as a bar too; a reference that was meant as text gets one more `amp;`.
_BAR = re.compile(r" (?:\||&(?P<amps>(?:amp;)*)#124;)(?= |$)")
_WRITTEN_BAR = re.compile(r" &(?:amp;(?P<amps>(?:amp;)*))?#124;(?= |$)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029\ue000\ue001]")


@dataclass(frozen=True)
class DraftOption:
    """An answer to choose. `message` says why a wrong one is wrong, where the author knows."""

    text: str
    correct: bool = False
    message: str = ""

    @property
    def line(self) -> str:
        """As it is typed: one option a line. `parse_options` reads the same option from it."""
        text = _BAR.sub(_bar_written, self.text)
        return f"[{'x' if self.correct else ' '}] {text}" + (f" | {self.message}" if self.message else "")


@dataclass(frozen=True)
class Draft:
    """What an author gives of a card."""

    kind: str = PLAIN
    deck: str = DEFAULT_DECK
    title: str = ""
    tags: tuple[str, ...] = ()
    sections: Mapping[str, str] = field(default_factory=dict)
    options: tuple[DraftOption, ...] = ()
    source: str = DEFAULT_SOURCE


def tidy(draft: Draft) -> Draft:
    """The draft as it is kept: no control characters, no trailing space, a title and a deck."""
    sections = {name: text for name in CARD_SECTIONS if (text := clean_text(draft.sections.get(name, "")))}
    return replace(
        draft,
        deck=clean_line(draft.deck) or DEFAULT_DECK,
        title=clean_line(draft.title) or title_of(sections.get("Question", "")),
        tags=tuple(dict.fromkeys(filter(None, map(clean_line, draft.tags)))),
        sections={"Question": "", "Answer": "", **sections},
        options=tuple(
            replace(each, text=clean_line(each.text), message=clean_line(each.message)) for each in draft.options
        ),
        source=clean_line(draft.source) or DEFAULT_SOURCE,
    )


def checked(draft: Draft) -> Draft:
    """The tidied draft. Raises DomainError with everything that is wrong with it, by field."""
    tidied = tidy(draft)
    violations = list(problems(tidied))
    if violations:
        raise DomainError("The card was not saved.", violations)
    return tidied


def problems(draft: Draft, *, formulas_set: bool = False) -> Iterator[Violation]:
    """What keeps a tidied draft from being stored; `formulas_set` says that its formulas were tried already."""
    if draft.kind not in OWN_KINDS:
        yield Violation("kind", draft.kind, "There is no such kind of own card.", ", ".join(OWN_KINDS))
    for name, text in draft.sections.items():
        for reason, accepted in _section_problems(name, text, draft, formulas_set):
            yield Violation(name.lower(), "…", reason, accepted)
    yield from _line_problems(draft)
    if draft.kind == WITH_OPTIONS:
        yield from _option_problems(draft.options)
    elif draft.options:
        yield Violation("options", "…", f"A {draft.kind} card has no options.", f"none, or the kind {WITH_OPTIONS}")


def _section_problems(name: str, text: str, draft: Draft, formulas_set: bool) -> Iterator[tuple[str, str]]:
    if len(text) > LONGEST_SECTION:
        yield f"{len(text):,} characters are too many.", f"up to {LONGEST_SECTION:,} characters"
        return
    if not text and (name == "Question" or (name == "Answer" and draft.kind == PLAIN)):
        yield "It is empty.", "Markdown text"
    if _opens_a_section(text):
        yield "A line that begins with a single # begins a new section of the card's file.", "## for a heading"
    if _open_program(text):
        yield "A program that begins with ``` has no end.", "``` on a line of its own after the program"
    for problem in () if formulas_set else text_problems(text):
        yield f"{capital(problem)}.", r"LaTeX between dollars; \$ is a dollar"
    if name == "Question" and draft.kind == WITH_BLANKS and not 1 <= blanks(text) <= MOST_BLANKS:
        yield f"It has {blanks(text)} blanks.", f"1 to {MOST_BLANKS} blanks, each written [[text]]"


def _line_problems(draft: Draft) -> Iterator[Violation]:
    for name, text, most in (
        ("deck", draft.deck, LONGEST_DECK),
        ("title", draft.title, LONGEST_LINE),
        ("source", draft.source, LONGEST_LINE),
    ):
        if len(text) > most:
            yield Violation(name, text[:40] + "…", f"{len(text)} characters are too many.", f"up to {most} characters")
    if len(draft.tags) > MOST_TAGS:
        yield Violation("tags", len(draft.tags), "These are too many tags.", f"up to {MOST_TAGS} tags")
    for tag in draft.tags:
        if len(tag) > LONGEST_TAG or re.search(r"[\s,]", tag):
            accepted = f"words of up to {LONGEST_TAG} characters without space or comma"
            yield Violation("tags", tag[:80], "This is no tag.", accepted)


def _option_problems(options: tuple[DraftOption, ...]) -> Iterator[Violation]:
    if not 2 <= len(options) <= MOST_OPTIONS:
        yield Violation(
            "options", len(options), f"There are {len(options)} options.", f"2 to {MOST_OPTIONS}, one a line"
        )
    if options and not any(option.correct for option in options):
        yield Violation("options", "…", "None of them is right.", "[x] before what is right, [ ] before what is wrong")
    if len({option.text for option in options}) < len(options):
        yield Violation("options", "…", "Two of them are the same.", "options that differ")
    for option in options:
        for text in (option.text, option.message):
            if len(text) > LONGEST_LINE * 2:
                yield Violation("options", text[:40] + "…", "It is too long.", f"up to {LONGEST_LINE * 2} characters")
            for problem in text_problems(text):
                yield Violation("options", text[:40], problem, "LaTeX between dollars")
        if not option.text:
            yield Violation("options", option.line, "It says nothing.", "[x] followed by the option's text")


def parse_options(text: str) -> tuple[DraftOption, ...]:
    """Options as typed, one a line: `[x] right`, `[ ] wrong | why`. A line without a mark is a wrong one."""
    found = []
    for line in filter(str.strip, text.splitlines()):
        match = _OPTION.match(line)
        mark, rest = (match.group("mark"), match.group("text")) if match else (" ", line)
        said, _, message = rest.partition(" | ")
        found.append(DraftOption(_WRITTEN_BAR.sub(_bar_read, said.strip()), mark in ("x", "X"), message.strip()))
    return tuple(found)


def _bar_written(match: re.Match[str]) -> str:
    amps = match["amps"]
    return " &#124;" if amps is None else f" &amp;{amps}#124;"


def _bar_read(match: re.Match[str]) -> str:
    amps = match["amps"]
    return " |" if amps is None else f" &{amps}#124;"


def parse_tags(text: str) -> tuple[str, ...]:
    """Tags as typed: words with space or comma between them."""
    return tuple(dict.fromkeys(re.split(r"[\s,]+", text.strip()))) if text.strip() else ()


def clean_text(text: str) -> str:
    """Text of several lines as both databases and every file format can carry it."""
    unified = storable(text).replace("\r\n", "\n").replace("\r", "\n")
    lines = [line.rstrip() for line in _CONTROL.sub("", unified).split("\n")]
    return "\n".join(lines).strip()


def clean_line(text: str) -> str:
    """Text of one line, its spaces made single."""
    return " ".join(_CONTROL.sub(" ", storable(text)).split())


def title_of(question: str) -> str:
    """A question's first words: what a list shows of a card without a title."""
    written = plain_math(question, quoted=lambda formula: _QUOTED.sub(r"\\\g<0>", formula))
    plain = " ".join(_MARKS.sub(r"\g<literal>", written).split())
    if len(plain) <= 60:
        return plain or "Untitled"
    return plain[:60].rsplit(" ", 1)[0].rstrip(" ,;:.") + " …"


def mend(text: str) -> str:
    """Text from another program without what would read as the structure of a card's file."""
    lines, in_program = [], False
    for line in text.split("\n"):
        in_program ^= line.startswith("```")
        lines.append(line if in_program or not line.startswith("# ") else f"#{line}")
    return "\n".join([*lines, "```"] if in_program else lines)


def _opens_a_section(text: str) -> bool:
    return any(line.startswith("# ") for line in _outside_programs(text))


def _open_program(text: str) -> bool:
    return sum(line.startswith("```") for line in text.split("\n")) % 2 == 1


def _outside_programs(text: str) -> Iterable[str]:
    in_program = False
    for line in text.split("\n"):
        in_program ^= line.startswith("```")
        if not in_program:
            yield line


def by_field(violations: Iterable[Violation], say: Callable[[Violation], str]) -> dict[str, str]:
    """The violations of each field as one text, for a form."""
    told: dict[str, list[str]] = {}
    for violation in violations:
        told.setdefault(str(violation.field), []).append(say(violation))
    return {name: " ".join(texts) for name, texts in told.items()}
