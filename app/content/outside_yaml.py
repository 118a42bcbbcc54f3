"""YAML that somebody else wrote, looked through before anything is built from it. Pure.

A parser's events are cheap and flat; the tree made of them is neither. Fifty thousand brackets overrun libyaml's stack,
and a few dozen aliases or merge keys unfold into gigabytes. A card needs none of that, so none of it is taken.
"""

from __future__ import annotations

from typing import Any

import yaml

DEEPEST = 20
MOST_NODES = 2_000  # a card with every option and tag there may be has under 150
LONGEST_HEAD = 64_000  # characters; the longest a card can need is some 15,000
LONGEST_NUMBER = 100  # characters

# libyaml reads all content in a fifth of the time; where it is missing, PyYAML's own parser does
SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE = "<<"
_IN_NUMBERS = frozenset("0123456789+-._:xobeEabcdefABCDEF")


class HostileYaml(ValueError):
    """What a file from outside may not hold. `line` counts from 0."""

    def __init__(self, line: int, reason: str) -> None:
        self.line = line
        self.reason = reason
        super().__init__(reason)


def check_outside_yaml(text: str) -> None:
    """Raises HostileYaml at the first thing that a card's YAML may not have, and YAMLError where it is none.

    The parser is read event by event and left at once, so what comes after costs nothing.
    """
    if len(text) > LONGEST_HEAD:
        raise HostileYaml(0, f"{len(text):,} characters are too many; up to {LONGEST_HEAD:,} are taken")
    depth = nodes = 0
    for event in yaml.parse(text, Loader=SafeLoader):
        line = event.start_mark.line if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent):
            raise HostileYaml(line, f"*{event.anchor}: aliases are not taken; write the value out")
        if isinstance(event, yaml.DocumentStartEvent) and (event.tags or event.version):
            raise HostileYaml(line, "% directives are not taken; leave the line out")
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
            depth += isinstance(event, yaml.CollectionStartEvent)
            _check_node(event, line)
        if depth > DEEPEST:
            raise HostileYaml(line, f"it is nested deeper than {DEEPEST} levels")
        if nodes > MOST_NODES:
            raise HostileYaml(line, f"it holds more than {MOST_NODES:,} values")


def _check_node(event: Any, line: int) -> None:
    if event.anchor is not None:
        raise HostileYaml(line, f"&{event.anchor}: anchors are not taken; write the value out")
    if event.tag is not None:
        raise HostileYaml(line, f"{event.tag}: tags are not taken; leave it out")
    if not isinstance(event, yaml.ScalarEvent) or event.style:  # a quoted one is text, whatever it looks like
        return
    if event.value == _MERGE:
        raise HostileYaml(line, "<<: merge keys are not taken; write the fields out")
    if len(event.value) > LONGEST_NUMBER and _IN_NUMBERS.issuperset(event.value):
        raise HostileYaml(line, f"a number of {len(event.value):,} characters is not taken; text belongs in quotes")
