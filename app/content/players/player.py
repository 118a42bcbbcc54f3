"""What a figure to step through is made of. The script shows one frame after the other, and computes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from app.core.errors import DomainError, Violation

Settings = dict[str, str | int]


@dataclass(frozen=True)
class Choice:
    """One of several, by name and what is said of it."""

    name: str
    label: str
    options: tuple[tuple[str, str], ...]
    default: str


@dataclass(frozen=True)
class Range:
    """A whole number from `low` to `high`; `symbol` is how formulas write it."""

    name: str
    label: str
    low: int
    high: int
    default: int
    symbol: str = ""


Control = Choice | Range


@dataclass(frozen=True)
class Frame:
    """One state: the part of the picture that changes, one sentence, and the value of every counter.

    clip: how much of the picture has happened, in percent, where it is one that fills up.
    slots: texts of the picture that change, in order.
    moves: what travels to this state: from which column to which, in which row.
    bar: heights in the strip below, in percent by component.
    """

    html: Markup
    says: Markup
    counters: tuple[str, ...]
    clip: str = ""
    slots: tuple[str, ...] = ()
    moves: tuple[tuple[int, int, int], ...] = ()
    bar: tuple[tuple[str, str], ...] = ()

    def as_json(self) -> dict[str, Any]:
        return vars(self)


@dataclass(frozen=True)
class Player:
    """A figure with its settings. `still` is the part of its picture that does not change; `phases` divide its steps;
    `few` are the frames that stand for all where nothing may move. `note` says whose numbers these are, and `home` is
    its address where it is of a run and not of the reference."""

    figure: str
    title: str
    controls: tuple[Control, ...]
    settings: Settings
    frames: tuple[Frame, ...]
    counters: tuple[str, ...]
    phases: tuple[tuple[str, int], ...]
    key: tuple[tuple[str, str], ...]
    says: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    few: tuple[int, ...]
    at: int
    note: str = ""
    home: str = ""
    still: Markup = field(default_factory=Markup)
    columns: int = 0

    @property
    def steps(self) -> int:
        return len(self.frames) - 1

    @property
    def shown(self) -> Frame:
        return self.frames[self.at]

    @property
    def address(self) -> str:
        return self.home or f"/reference/figures/{self.figure}"

    def as_json(self, html: str) -> dict[str, Any]:
        """For its script: all states, and the figure itself as `html`."""
        frames = [each.as_json() for each in self.frames]
        return {"html": html, "frames": frames, "few": self.few, "phases": self.phases, "at": self.at}

    def query(self, at: int) -> str:
        return urlencode({**self.settings, "at": at})

    def phase_of(self, step: int) -> int:
        """Which phase a step belongs to; the state before the first belongs to the first."""
        done = 0
        for index, (_, steps) in enumerate(self.phases):
            done += steps
            if step <= done:
                return index
        return len(self.phases) - 1


def read_settings(controls: tuple[Control, ...], given: dict[str, str]) -> Settings:
    """What was asked for, defaults for the rest. Raises DomainError naming every field that cannot be had."""
    found: Settings = {}
    wrong = []
    for control in controls:
        text = given.get(control.name, str(control.default))
        if isinstance(control, Choice):
            names = [name for name, _ in control.options]
            if text not in names:
                wrong.append(Violation(control.name, text[:40], f"{text[:40]!r} is not drawn.", ", ".join(names)))
            found[control.name] = text
        else:
            number = int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else -1
            if not control.low <= number <= control.high:
                accepted = f"{control.low} to {control.high}"
                wrong.append(Violation(control.name, text[:40], f"{text[:40]!r} is not drawn.", accepted))
            found[control.name] = number
    if wrong:
        raise DomainError("This figure cannot be drawn.", wrong)
    return found


def boxes(places: list[tuple[float, float, float, float]]) -> str:
    """A path of rectangles, each x, y, width, height."""
    return "".join(f"M{x:g} {y:g}h{w:g}v{h:g}h{-w:g}z" for x, y, w, h in places)


def path(kind: str, d: str) -> Markup:
    return Markup('<path class="{}" d="{}"/>').format(kind, d) if d else Markup("")


def picture(width: float, height: float, paths: Markup, kind: str = "") -> Markup:
    """Marks stretched to the width there is and `height` pixels; text is never part of them."""
    return Markup(
        '<svg class="{}" viewBox="0 0 {} {}" style="--h:{}px" preserveAspectRatio="none" aria-hidden="true">{}</svg>'
    ).format(kind, f"{width:g}", f"{height:g}", f"{height:g}", paths)


def rank_names(ranks: int) -> Markup:
    """A name above each column."""
    names = Markup("").join(Markup("<b><span>Rank </span>{}</b>").format(rank) for rank in range(ranks))
    return Markup('<div class="ranks">{}</div>').format(names)


def share(value: float) -> str:
    """A multiple of S, with two decimals at most and a real minus."""
    return f"{value:.2f}".rstrip("0").rstrip(".").replace("-", "−")
