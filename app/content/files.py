"""Reading content files: YAML, and Markdown with YAML front matter, with the line of every field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from app.content.outside_yaml import HostileYaml, SafeLoader, check_outside_yaml
from app.core.errors import ContentProblem

S = TypeVar("S", bound=BaseModel)

_HEADING = re.compile(r"^# +(.+?)\s*$")


class ContentError(Exception):
    """Mistakes in content files, all that were found."""

    def __init__(self, problems: list[ContentProblem]) -> None:
        self.problems = problems
        super().__init__("\n".join(map(str, problems)))


@dataclass(frozen=True)
class Source:
    """A content file's data and where each field stands in it: `text` is the YAML that the data was read from, `within`
    the field that holds all of it."""

    path: str
    data: Mapping[str, object]
    text: str = ""
    offset: int = 0
    sections: Mapping[str, str] = field(default_factory=dict)
    section_lines: Mapping[str, int] = field(default_factory=dict)
    within: tuple[object, ...] = ()

    @cached_property
    def _node(self) -> yaml.Node:
        """Made again where a line is asked for: most files have no mistake, and nodes take more room than all else."""
        node: yaml.Node | None = SafeLoader(self.text).get_single_node()
        return node or yaml.ScalarNode("", "", yaml.Mark(self.path, 0, 0, 0, "", 0))

    def line(self, location: tuple[object, ...]) -> int:
        """The line of the field at `location`, or of the nearest field around it."""
        node, found = self._node, self._node.start_mark.line
        for step in (*self.within, *location):
            child = _child(node, step)
            if child is None:
                break
            node, found = child
        return found + 1 + self.offset

    def problem(self, location: tuple[Any, ...], reason: str) -> ContentProblem:
        field = ".".join(map(str, location)) or "file"
        return ContentProblem(self.path, self.line(location), field, reason)

    def section_problem(self, name: str, reason: str) -> ContentProblem:
        return ContentProblem(self.path, self.section_lines[name], f"# {name}", reason)


def _child(node: yaml.Node, step: object) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return value, key.start_mark.line
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step].start_mark.line
    return None


def read_yaml(path: Path, shown: str) -> Source:
    """A YAML file that holds one mapping. Raises ContentError."""
    return _parse(_text(path, shown), shown)


def read_page(path: Path, shown: str) -> Source:
    """A Markdown file: front matter, then free text as the section "body". Raises ContentError."""
    head, lines, first = _front_matter(_text(path, shown), shown)
    return replace(head, sections={"body": "\n".join(lines)}, section_lines={"body": first})


def _front_matter(text: str, shown: str, *, from_outside: bool = False) -> tuple[Source, list[str], int]:
    """The head between two `---` lines, the lines after it and the number of the first of them."""
    lines = text.split("\n")
    if not lines or lines[0].strip() != "---" or "---" not in [line.strip() for line in lines[1:]]:
        raise ContentError([ContentProblem(shown, 1, "file", "the front matter must stand between two lines of ---")])
    end = [line.strip() for line in lines[1:]].index("---") + 1
    head = _parse("\n".join(lines[1:end]), shown, offset=1, from_outside=from_outside)
    return head, lines[end + 1 :], end + 2


def read_card(path: Path, shown: str) -> Source:
    """A Markdown file: front matter between two `---` lines, then `# Section` headings. Raises ContentError."""
    return parse_card(_text(path, shown), shown)


def parse_card(text: str, shown: str, *, from_outside: bool = False) -> Source:
    """The same from a text; one `from_outside` is looked through before it is read. Raises ContentError."""
    head, lines, first = _front_matter(text, shown, from_outside=from_outside)
    sections: dict[str, list[str]] = {}
    starts: dict[str, int] = {}
    current: list[str] | None = None
    in_code = False
    for number, line in enumerate(lines, first):
        in_code ^= line.startswith("```")  # a comment in a program is no heading
        heading = None if in_code else _HEADING.match(line)
        if heading:
            if heading.group(1) in sections:
                raise ContentError([ContentProblem(shown, number, line, "there are two sections of this name")])
            current = sections[heading.group(1)] = []
            starts[heading.group(1)] = number
        elif current is not None:
            current.append(line)
        elif line.strip():
            raise ContentError([ContentProblem(shown, number, "file", "text before the first # heading")])
    texts = {name: "\n".join(body).strip() for name, body in sections.items()}
    return replace(head, sections=texts, section_lines=starts)


def _text(path: Path, shown: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ContentError([ContentProblem(shown, 1, "file", str(error.strerror))]) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ContentError([ContentProblem(shown, line, "file", f"not UTF-8: {error.reason}")]) from None


def parse_outside_yaml(text: str, shown: str) -> Source:
    """One mapping in YAML that somebody else wrote. Raises ContentError."""
    return _parse(text, shown, from_outside=True)


def _parse(text: str, shown: str, offset: int = 0, *, from_outside: bool = False) -> Source:
    try:
        if from_outside:
            check_outside_yaml(text)
        loader = SafeLoader(text)
        node = loader.get_single_node()
        twice = _key_given_twice(node)
        data = None if node is None else loader.construct_document(node)
    except HostileYaml as error:
        raise ContentError([ContentProblem(shown, error.line + 1 + offset, "file", error.reason)]) from None
    except (yaml.YAMLError, ValueError, ArithmeticError) as error:  # a date that is none, a number too large
        mark = getattr(error, "problem_mark", None)
        line = (mark.line if mark else 0) + 1 + offset
        reason = str(getattr(error, "problem", None) or error)
        raise ContentError([ContentProblem(shown, line, "file", f"not valid YAML: {reason}")]) from None
    if twice is not None:
        line, key = twice.start_mark.line + 1 + offset, str(twice.value)
        raise ContentError([ContentProblem(shown, line, key, "this field is given twice; YAML would keep the last")])
    if node is None or not isinstance(data, Mapping):
        raise ContentError([ContentProblem(shown, 1, "file", "the file must hold a mapping of fields")])
    return Source(shown, data, text, offset)


def _key_given_twice(root: yaml.Node | None) -> yaml.Node | None:
    """The second of two equal keys of one mapping, which PyYAML takes without a word."""
    waiting, met = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if node is None or id(node) in met:  # an alias may lead back to where it stands
            continue
        met.add(id(node))
        if isinstance(node, yaml.MappingNode):
            seen = set[str]()
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                    if key.value in seen:
                        return key
                    seen.add(key.value)
                waiting.append(value)
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value
    return None


def validated(kind: type[S], source: Source) -> S:
    """The file's data as `kind`. Raises ContentError naming file, line, field and reason."""
    try:
        return kind.model_validate(source.data)
    except ValidationError as error:
        raise ContentError([source.problem(detail["loc"], detail["msg"]) for detail in error.errors()]) from None
