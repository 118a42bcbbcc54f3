"""Code labs: `cards/labs/<ID>/`, a folder each.

    lab.yaml       what the lab says of itself (`CodeLabHead`)
    statement.md   what is asked, Markdown with live numbers
    starter.py     what the editor opens with
    reference.py   one good solution, shown after passing
    right/*.py     solutions in other styles; the first line of each says what the style is: `# in place, odd and even`
    wrong/*.py     solutions that must be caught; the first line names the mistake, and those that it shows besides:
                   `# mistake: chunk-index, also lost-tail`
    puzzle.*       where it has a short form to be put together on a phone (`code_puzzles`)

What goes in and what is checked stands in `labs/code/graders/`; a check or mistake that it names has its words here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeVar

from markupsafe import Markup
from pydantic import Field, StringConstraints, model_validator

from app.content.code_puzzles import Puzzle, load_puzzle
from app.content.files import ContentError, Source, read_yaml, validated
from app.content.interview_schemas import FollowUp
from app.content.live import ExpressionError, Expressions
from app.content.markdown import render, render_plain
from app.content.schemas import CardId, Item, Related, Slug, Strict, Text, all_different
from app.core.errors import ContentProblem

T = TypeVar("T")
CodeLabId = Annotated[str, StringConstraints(pattern=r"^CL\d{2}$")]
HEAD = "lab.yaml"
FINISHES = "finishes"  # the check every lab has: each rank returned
_MISTAKE = re.compile(r"^# mistake: ([a-z0-9-]+)(?:, also ([a-z0-9-]+(?:, [a-z0-9-]+)*))?\s*$")
_STYLE = re.compile(r"^# (.+?)\s*$")


class LabCheck(Strict):
    """A check by the name that the grader gives it."""

    id: Slug
    says: Text


class LabMistake(Strict):
    """A mistake by the name that the grader gives it: what a learner is told, and the card that cures it."""

    title: Text
    says: Text
    cure: CardId | None = None


class AskedAfterwards(FollowUp):
    """What an interviewer asks about a program that was written: a number at sizes that it was not run at, of
    `parameters` that are drawn."""

    parameters: dict[str, Annotated[tuple[int | float, ...], Field(min_length=1)]]

    @model_validator(mode="after")
    def _is_questioned(self) -> AskedAfterwards:
        if unasked := [slip.id for slip in self.slips if not slip.ask]:
            raise ValueError(f"{', '.join(unasked)}: a slip of a question needs ask, what its maker is asked")
        return self


class CodeLabHead(Item):
    """The file lab.yaml. `signature` is what the starter defines; `hints` are three, each telling more; `afterwards` is
    asked in an interview about what was written."""

    id: CodeLabId
    signature: Text
    checks: Annotated[tuple[LabCheck, ...], Field(min_length=1)]
    mistakes: dict[Slug, LabMistake]
    hints: Annotated[tuple[Text, ...], Field(min_length=3, max_length=3)]
    interview_line: Text
    afterwards: AskedAfterwards | None = None
    related: Related = Related()

    @model_validator(mode="after")
    def _checks_are_named_once(self) -> CodeLabHead:
        all_different([check.id for check in self.checks], "id")
        return self


@dataclass(frozen=True)
class Solution:
    """A program of a lab: of a style, or with a mistake. `also` are mistakes that it shows besides."""

    name: str
    says: str  # the style, or the mistake's name
    code: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class CodeLab:
    """A lab as it is shown."""

    head: CodeLabHead
    statement: Markup
    statement_text: str  # as plain Markdown, for a folder of one's own
    hints: tuple[Markup, ...]
    starter: str
    reference: str
    right: tuple[Solution, ...] = ()
    wrong: tuple[Solution, ...] = ()
    puzzle: Puzzle | None = None
    source: Source = field(default_factory=lambda: Source("", {}))

    @property
    def id(self) -> str:
        return self.head.id

    @property
    def slug(self) -> str:
        return self.head.slug

    @property
    def title(self) -> str:
        return self.head.title

    @property
    def concepts(self) -> tuple[str, ...]:
        return self.head.concepts

    @property
    def related(self) -> Related:
        return self.head.related


def load_code_lab(folder: Path, shown: str) -> CodeLab:
    """The lab of a folder. Raises ContentError with all that is wrong in it."""
    source = read_yaml(folder / HEAD, f"{shown}/{HEAD}")
    head = validated(CodeLabHead, source)
    if head.id != folder.name:
        raise ContentError([source.problem(("id",), f"the folder is called {folder.name}")])
    starter, reference = (_program(folder / name, f"{shown}/{name}") for name in ("starter.py", "reference.py"))
    statement = _text(folder / "statement.md", f"{shown}/statement.md")
    lab = CodeLab(
        head,
        _rendered(statement, f"{shown}/statement.md", render),
        _rendered(statement, f"{shown}/statement.md", _plain),
        tuple(_rendered(hint, f"{shown}/{HEAD}", render) for hint in head.hints),
        starter,
        reference,
        tuple(_solutions(folder / "right", f"{shown}/right", _STYLE, "# and the style in words")),
        tuple(_solutions(folder / "wrong", f"{shown}/wrong", _MISTAKE, "# mistake: and its name")),
        load_puzzle(folder, shown),
        source,
    )
    problems = list(_problems(lab, shown))
    if problems:
        raise ContentError(problems)
    return lab


def _problems(lab: CodeLab, shown: str) -> Iterator[ContentProblem]:
    programs = {"starter.py": lab.starter, "reference.py": lab.reference}
    if lab.puzzle is not None:
        programs["puzzle.py"] = lab.puzzle.program(lab.puzzle.head.right)
    for wanted in re.findall(r"^(?:class|def)?\s*([A-Za-z_]\w*)\s*\(", lab.head.signature, re.MULTILINE):
        for file, code in programs.items():
            if wanted not in set(_defined(code)):
                yield ContentProblem(f"{shown}/{file}", 1, "signature", f"it defines no {wanted}")


def _defined(code: str) -> Iterator[str]:
    for node in ast.parse(code).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def _plain(text: str) -> str:
    return render_plain(text, Expressions())


def _rendered(text: str, shown: str, way: Callable[[str], T]) -> T:
    try:
        return way(text)
    except ExpressionError as error:
        raise ContentError([ContentProblem(shown, 1, "text", str(error))]) from None


def _text(path: Path, shown: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ContentError([ContentProblem(shown, 1, "file", f"it cannot be read: {error}")]) from None


def _program(path: Path, shown: str) -> str:
    code = _text(path, shown)
    try:
        ast.parse(code)
    except SyntaxError as error:
        raise ContentError([ContentProblem(shown, error.lineno or 1, "file", f"not Python: {error.msg}")]) from None
    return code


def _solutions(folder: Path, shown: str, first: re.Pattern[str], wanted: str) -> Iterator[Solution]:
    for path in sorted(folder.glob("*.py")):
        at = f"{shown}/{path.name}"
        head, _, code = _program(path, at).partition("\n")
        found = first.match(head)
        if found is None:
            raise ContentError([ContentProblem(at, 1, "first line", f"it must be {wanted}")])
        also = (found[2] or "").split(", ") if found.re is _MISTAKE and found[2] else ()
        yield Solution(path.stem, found[1], code.lstrip("\n"), tuple(also))


def check_code_labs(
    labs: Mapping[str, CodeLab], cards: Mapping[str, object]
) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Cures are cards; wrong solutions are of mistakes that have words, and every mistake has one that shows it."""
    for lab in labs.values():
        for name, mistake in lab.head.mistakes.items():
            if mistake.cure is not None and mistake.cure not in cards:
                yield lab.id, ("mistakes", name, "cure"), f"there is no card {mistake.cure}"
            if not any(each.says == name for each in lab.wrong):
                yield lab.id, ("mistakes", name), "no solution in wrong/ makes it"
        for each in lab.wrong:
            if strange := sorted(set(each.also) - set(lab.head.mistakes)):
                yield lab.id, ("wrong", each.name), f"it also shows {', '.join(strange)}: no mistakes of the lab"
            if each.says in each.also:
                yield lab.id, ("wrong", each.name), f"{each.says} is its mistake, and not one besides"
        if any(check.id == FINISHES for check in lab.head.checks):
            yield lab.id, ("checks",), f"{FINISHES} is a check of every lab and not to be named"
