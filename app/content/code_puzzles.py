"""The short form of a code lab: its program's lines to arrange, or a grid of passes to fill, beside the lab's files.

    puzzle.yaml   what is asked, what there is to arrange, the right arrangement and wrong ones (`PuzzleHead`)
    puzzle.py     the program around it: the line that ends in `# arranged` is where the arrangement goes

An arrangement becomes a program in the lab's own signature, which is judged as any other: there is no second grader.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from app.content.files import ContentError, read_yaml, validated
from app.content.schemas import Slug, Strict, Text
from app.core.errors import ContentProblem, DomainError, Violation

HEAD, AROUND = "puzzle.yaml", "puzzle.py"
PASSES = "FB"  # what a cell of a grid can hold
_MARK = re.compile(r"^(?P<indent> *)(?P<name>\w+)(?P<rest>.*)  # arranged\n", re.MULTILINE)

Letter = Annotated[str, StringConstraints(pattern=r"^[a-z]$")]
Cells = Annotated[str, StringConstraints(pattern=r"^[FB]+$")]
Arrangement = tuple[str, ...]  # letters of lines in their order, or the rows of a grid


class Wrong(Strict):
    """An arrangement that the judge must call by this name."""

    mistake: Slug
    arranged: Annotated[tuple[str, ...], Field(min_length=1)]


class ExampleRow(Strict):
    """A finished row of another schedule, to read a grid's rows by."""

    says: Text
    cells: Cells


class PuzzleHead(Strict):
    """The file puzzle.yaml: `pieces`, by letter as they are offered, or a grid's `rows`, from above, and `columns`.
    `rules` say how a grid is read, a sentence or two each, and `example` shows a row of it."""

    asks: Text
    rules: tuple[Text, ...] = ()
    example: ExampleRow | None = None
    minutes: Annotated[int, Field(ge=1, le=15)]
    pieces: dict[Letter, Text] = Field(default_factory=dict)
    rows: tuple[Text, ...] = ()
    columns: Annotated[int, Field(ge=0, le=8)] = 0
    right: Annotated[tuple[str, ...], Field(min_length=1)]
    wrong: Annotated[tuple[Wrong, ...], Field(min_length=2)]

    @property
    def kind(self) -> Literal["lines", "grid"]:
        return "lines" if self.pieces else "grid"

    @model_validator(mode="after")
    def _is_one_of_the_two(self) -> PuzzleHead:
        if bool(self.pieces) == bool(self.rows and self.columns):
            raise ValueError("it needs either pieces, or rows and columns")
        for each in (self.right, *(wrong.arranged for wrong in self.wrong)):
            if (says := self.why_not(each)) is not None:
                raise ValueError(f"{', '.join(each)}: {says}")
        if self.pieces and (self.rules or self.example):
            raise ValueError("only a grid has rules and an example")
        if self.pieces and tuple(sorted(self.right)) == self.right:
            raise ValueError("the pieces are offered in the right order already")
        return self

    def why_not(self, arranged: Sequence[str]) -> str | None:
        """Why this is no arrangement; None where it is one."""
        if self.kind == "lines":
            for each in arranged:
                if each not in self.pieces:
                    return f"there is no line {each[:20]!r}; there are {', '.join(self.pieces)}"
                if list(arranged).count(each) > 1:
                    return f"line {each} is used more than once"
            return None
        if len(arranged) != len(self.rows):
            return f"it has {len(arranged)} rows; {len(self.rows)} are wanted"
        for each in arranged:
            if len(each) != self.columns or set(each) - set(PASSES):
                return f"row {each[:20]!r} is not made of {self.columns} letters F or B"
        return None


@dataclass(frozen=True)
class Puzzle:
    """A lab's short form; `before` and `after` are the program around what is arranged."""

    head: PuzzleHead
    before: str
    after: str
    indent: str
    name: str  # what the grid is assigned to

    def program(self, arranged: Sequence[str]) -> str:
        """The program of an arrangement. Raises DomainError where it is none."""
        if (says := self.head.why_not(arranged)) is not None:
            field = "order" if self.head.kind == "lines" else "rows"
            accepted = "letters of lines, each once" if field == "order" else "a row of F and B for each stage"
            raise DomainError(f"The arrangement was not taken: {says}.", [Violation(field, None, says, accepted)])
        return f"{self.before}{self._arranged(arranged)}{self.after}"

    def _arranged(self, arranged: Sequence[str]) -> str:
        if self.head.kind == "grid":
            rows = ", ".join(f'"{row}"' for row in arranged)
            return f"{self.indent}{self.name} = ({rows},)\n"
        lines = [line for each in arranged for line in self.head.pieces[each].splitlines()] or ["pass"]
        return "".join(f"{self.indent}{line}\n" for line in lines)

    def arrangement(self, code: str) -> Arrangement | None:
        """The arrangement that a program was made of; None where it is of another release of the puzzle."""
        if not (code.startswith(self.before) and code.endswith(self.after)):
            return None
        middle = code[len(self.before) : len(code) - len(self.after)]
        if self.head.kind == "grid":
            found: Arrangement = tuple(re.findall(r'"([FB]+)"', middle))
        else:
            found = tuple(self._letters(middle))
        return found if self.head.why_not(found) is None and self._arranged(found) == middle else None

    def _letters(self, middle: str) -> Iterator[str]:
        texts = {each: self._arranged([each]) for each in self.head.pieces}
        while middle:
            fits = [each for each, text in texts.items() if middle.startswith(text)]
            if not fits:
                return
            longest = max(fits, key=lambda each: len(texts[each]))
            yield longest
            middle = middle[len(texts[longest]) :]


def load_puzzle(folder: Path, shown: str) -> Puzzle | None:
    """The puzzle of a lab's folder; None where it has none. Raises ContentError with what is wrong in it."""
    if not (folder / HEAD).exists():
        return None
    head = validated(PuzzleHead, read_yaml(folder / HEAD, f"{shown}/{HEAD}"))
    at = f"{shown}/{AROUND}"
    try:
        code = (folder / AROUND).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ContentError([ContentProblem(at, 1, "file", f"it cannot be read: {error}")]) from None
    marks = list(_MARK.finditer(code))
    if len(marks) != 1:
        raise ContentError([ContentProblem(at, 1, "file", f"it has {len(marks)} lines that end in `# arranged`")])
    mark = marks[0]
    puzzle = Puzzle(head, code[: mark.start()], code[mark.end() :], mark["indent"], mark["name"])
    for each in (head.right, *(wrong.arranged for wrong in head.wrong)):
        program = puzzle.program(each)
        try:
            ast.parse(program)
        except SyntaxError as error:
            says = f"{', '.join(each)} is not Python: {error.msg}"
            raise ContentError([ContentProblem(at, error.lineno or 1, "arranged", says)]) from None
        if puzzle.arrangement(program) != tuple(each):
            raise ContentError([ContentProblem(at, 1, "arranged", f"{', '.join(each)} cannot be read back")])
    return puzzle
