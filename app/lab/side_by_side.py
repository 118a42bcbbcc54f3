"""Up to four runs beside each other: charts on one axis, what differs in their specs and in what they came to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.diagrams.drawing import Drawing
from app.content.diagrams.svg import nice_ticks, number_text
from app.core.errors import DomainError, Violation
from app.lab import findings, queries
from app.lab.beyond import said_of_fault
from app.lab.film import Strip
from app.lab.folds import Folds
from app.lab.forms import called, choice_called
from app.lab.listing import MOST_COMPARED, RunRow, row_of
from app.lab.models import ENDED, Run
from app.lab.quantities import quantities_of
from app.lab.reading import find_run
from app.lab.side_charts import charts_of
from app.lab.side_times import (
    Term,
    said_of_same_work,
    said_of_update,
    slower_by,
    strips_of,
    terms_of,
    watched_beside_plain,
)
from app.lab.view import RunView
from app.units import value_text
from labs.spec import Fault, Quantity, RunSpec

_OFFERED = 40  # newest finished runs that may be put beside those shown
_ALIKE = 5e-4  # apart by less, two measurements are the same
_NEAR = 0.05  # a ratio within that of theory's is theory's
_PER_TOKEN = {
    "payload_bytes_per_step": "Payload per rank and token",
    "wire_bytes_per_step": "Sent per rank and token, around rings",
    "step_seconds": "Time of a token, all ranks together",
}


@dataclass(frozen=True)
class Cell:
    """What one run has in a row: measured, theory's, and how it stands to the first run; `part` and `tick` are where
    the two end on the row's axis, in percent."""

    text: str
    theory: str = ""
    ratio: str = ""
    part: float | None = None
    tick: float | None = None


@dataclass(frozen=True)
class Row:
    """A quantity or a field of the spec, with a cell for each run. `path` is where the field stands in the spec."""

    title: str
    cells: tuple[Cell, ...]
    path: str = ""


@dataclass(frozen=True)
class SidePage:
    """Everything a comparison shows. `finding` is the largest difference in what was measured, or how one of them
    failed, empty where there is neither; `watched` says what the steps of the strips are beside plain ones,
    `same_work` which of the same passes took longer, `update` why that of shards did, `ended_before` which runs have
    no totals; `same` counts the fields that all specs have alike; `others` may be put beside them."""

    finding: str
    runs: tuple[RunRow, ...]
    others: tuple[RunRow, ...]
    quantities: tuple[Row, ...]
    spec: tuple[Row, ...]
    same: int
    charts: tuple[Drawing, ...]
    strips: tuple[tuple[int, Strip], ...]
    terms: tuple[Term, ...]
    slower: str
    watched: str
    same_work: str
    update: str
    ended_before: str
    ticks: tuple[tuple[float, str], ...]


def side_by_side(
    session: Session, learner_id: int, content: Catalogue, folds: Folds, run_ids: Sequence[int]
) -> SidePage:
    """Raises NotFound, and DomainError for more than may be compared."""
    asked = tuple(sorted(set(run_ids)))
    if len(asked) > MOST_COMPARED:
        message = f"{len(asked)} runs do not fit beside each other."
        raise DomainError("Not compared.", [Violation("run", len(asked), message, f"1 to {MOST_COMPARED} runs")])
    runs = [find_run(session, learner_id, each) for each in asked]
    specs = [RunSpec.model_validate(run.spec) for run in runs]
    views = [_shown(run, folds.view(session, run)) for run in runs]
    differing, same = _spec_rows([spec.model_dump(mode="json") for spec in specs])
    strips = strips_of(specs, views)
    longest = max((strip.seconds for _, strip in strips), default=0.0)
    return SidePage(
        finding=_finding(runs, specs),
        runs=tuple(row_of(run, content) for run in runs),
        others=_others(session, learner_id, content, asked),
        quantities=tuple(_quantity_rows(runs, specs)),
        spec=tuple(differing),
        same=same,
        charts=tuple(charts_of(session, runs, specs, views)),
        strips=strips,
        terms=tuple(terms_of(strips, longest)),
        slower=slower_by(specs, asked, strips),
        watched=watched_beside_plain(asked, [(run.result or {}).get("step_seconds") for run in runs], strips),
        same_work=said_of_same_work(specs, asked, strips),
        update=said_of_update(specs, asked, strips),
        ended_before=_ended_before(runs),
        ticks=tuple(
            (100 * tick / (1000 * longest), number_text(tick))
            for tick in (nice_ticks(0, 1000 * longest, 6) if strips else ())
            if tick <= 1000 * longest
        ),
    )


def _others(session: Session, learner_id: int, content: Catalogue, asked: Sequence[int]) -> tuple[RunRow, ...]:
    """Runs to choose one more from; none where there is no room for it."""
    if len(asked) >= MOST_COMPARED:
        return ()
    newest = queries.list_runs(session, learner_id, _OFFERED, ("finished",))
    return tuple(row_of(run, content) for run in newest if run.id not in asked)


def _shown(run: Run, view: RunView) -> RunView:
    """What may be seen of it: nothing that was predicted, before the end."""
    return findings.without_numbers(view) if findings.is_hidden(run) else view


# --- tables


def _quantity_rows(runs: Sequence[Run], specs: Sequence[RunSpec]) -> Iterator[Row]:
    """What any of them measured or theory knows, in the order of the first that has it."""
    for quantity, measured, theory in _values(runs, specs):
        most = max(value for value in (*measured, *theory) if value is not None) or 1.0
        cells = (
            Cell(
                _text(value, quantity),
                _text(expected, quantity),
                _ratio(value, measured[0]) if index else "",
                None if value is None else 100 * value / most,
                None if expected is None else 100 * expected / most,
            )
            for index, (value, expected) in enumerate(zip(measured, theory, strict=True))
        )
        yield Row(quantity.title, tuple(cells))


_Values = tuple[Quantity, list[float | None], list[float | None]]


def _values(runs: Sequence[Run], specs: Sequence[RunSpec]) -> Iterator[_Values]:
    """Each quantity measured and in theory. Steps of different numbers of tokens are no measure of each other: what
    a step takes is there per token as well then."""
    tokens = [spec.tokens_per_step if spec.options is None else None for spec in specs]
    is_uneven = None not in tokens and len(set(tokens)) > 1
    for name, quantity in _known(specs).items():
        measured: list[float | None] = [(run.result or {}).get(name) for run in runs]
        theory: list[float | None] = [None if findings.is_hidden(run) else run.theory.get(name) for run in runs]
        if not any(value is not None for value in (*measured, *theory)):
            continue
        yield quantity, measured, theory
        if is_uneven and name in _PER_TOKEN:
            each = Quantity(_PER_TOKEN[name], quantity.dimension)
            yield each, _per(measured, tokens), _per(theory, tokens)


def _per(values: Sequence[float | None], tokens: Sequence[int | None]) -> list[float | None]:
    return [value / count if value is not None and count else None for value, count in zip(values, tokens, strict=True)]


def _known(specs: Sequence[RunSpec]) -> dict[str, Quantity]:
    """The quantities that any of them has, in the order of the first that has it."""
    known: dict[str, Quantity] = {}
    for spec in specs:
        known |= {name: each for name, each in quantities_of(spec).items() if name not in known}
    return known


def _finding(runs: Sequence[Run], specs: Sequence[RunSpec]) -> str:
    """The quantity in which those that measured it are furthest apart, the first of those alike, and how far: of those
    that theory has apart as well, where there are any, for that is what the specs' difference makes. Where steps are of
    different numbers of tokens, what a step takes counts per token. Where nothing is apart, how one of them failed."""
    every = list(_values(runs, specs))
    by_token = {title for title in _PER_TOKEN.values() if any(each[0].title == title for each in every)}
    by_step = {quantity.title for name, quantity in _known(specs).items() if _PER_TOKEN.get(name) in by_token}
    apart = [
        found
        for quantity, measured, theory in every
        if quantity.title not in by_step and (found := _apart(runs, quantity, measured, theory)) is not None
    ]
    apart.sort(key=lambda each: each.title in by_token)  # of those alike, what was measured before what follows from it
    of_theory = [each for each in apart if each.theory_ratio is not None and each.theory_ratio > 1 + _ALIKE]
    if not apart:
        return next((_failed(run) for run in runs if findings.failure_of(run)), "")
    first, *rest = of_theory or apart
    most = first
    for each in rest:
        if each.ratio > most.ratio * (1 + _ALIKE):
            most = each
    said = f"{most.title}: run {most.most} has {most.ratio:.3g} times that of run {most.least}"
    if most.theory_ratio is None or not of_theory:
        steps = {run.id: (run.result or {}).get("steps") for run in runs}
        counts = steps[most.most], steps[most.least]
        return f"{said}, in runs of {counts[0]} and {counts[1]} steps" if most.is_time and all(counts) else said
    is_as_expected = abs(most.ratio / most.theory_ratio - 1) < _NEAR
    return f"{said}, {'as theory has it' if is_as_expected else f'{most.theory_ratio:.3g} by theory'}"


@dataclass(frozen=True)
class _Apart:
    """How far runs are apart in a quantity: the ids of those that measured most and least, and their ratio, also in
    theory where it has a figure for both."""

    title: str
    most: int
    least: int
    ratio: float
    theory_ratio: float | None
    is_time: bool


def _apart(
    runs: Sequence[Run], quantity: Quantity, measured: Sequence[float | None], theory: Sequence[float | None]
) -> _Apart | None:
    """None where fewer than two measured it, or all the same."""
    known = [at for at, value in enumerate(measured) if value]
    if len(known) < 2:
        return None
    most, least = (pick(known, key=lambda at: measured[at] or 0.0) for pick in (max, min))
    ratio = (measured[most] or 0.0) / (measured[least] or 1.0)
    if ratio <= 1 + _ALIKE:
        return None
    high, low = theory[most], theory[least]
    by_theory = high / low if high and low else None
    return _Apart(quantity.title, runs[most].id, runs[least].id, ratio, by_theory, quantity.dimension == "seconds")


def _failed(run: Run) -> str:
    title = findings.headings(run, ())[0]
    return f"Run {run.id}: {title[:1].lower()}{title[1:]}"


def _ended_before(runs: Sequence[Run]) -> str:
    """Which of those that ended have nothing in what all came to, and where what they measured is."""
    ended = [str(run.id) for run in runs if run.status in ENDED and not run.result]
    if not ended:
        return ""
    who = f"{'Run' if len(ended) == 1 else 'Runs'} {' and '.join(ended)}"
    return f"{who} ended before totals were taken: what was measured until then stands on the page of the run."


def _text(value: float | None, quantity: Quantity) -> str:
    return "–" if value is None else value_text(value, quantity.dimension)


def _ratio(value: float | None, first: float | None) -> str:
    """Times the first run's; empty where either is nothing."""
    if not value or not first:
        return ""
    ratio = value / first
    return "the same" if abs(ratio - 1) < _ALIKE else f"× {ratio:.3g}"


def _spec_rows(specs: Sequence[Mapping[str, Any]]) -> tuple[list[Row], int]:
    """Fields that not all have alike, and how many all do."""
    flat = [dict(_leaves(spec)) for spec in specs]
    fields = dict.fromkeys(field for each in flat for field in each)
    rows = [
        Row(
            called(field),
            tuple(Cell(_written(each[field], field) if field in each else "–") for each in flat),
            field,
        )
        for field in fields
        if any(each.get(field) != flat[0].get(field) or field not in each for each in flat)
    ]
    return rows, len(fields) - len(rows)


def _leaves(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _written(value: object, field: str = "") -> str:
    """A value as the form of own runs calls it; what the form does not ask for, as it stands."""
    if (choice := choice_called(field, value)) is not None:
        return choice.split(",")[0]
    if isinstance(value, list | tuple):
        return ", ".join(map(_written, value)) or "none"
    if isinstance(value, Mapping):
        return said_of_fault(Fault.model_validate(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
