"""Measurements that others published, as files: what was run, what came out, and where it stands.

A row is written flat, with what it shares with its neighbours in `common`; it becomes an EstimateRequest and the values
that were measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from app.content.files import ContentError, Source, read_yaml, validated
from app.content.schemas import Slug, Strict, Text
from app.core.errors import ContentProblem
from app.theory.planner import Comparison, EstimateRequest, compare, parse_estimate_request
from app.theory.planner.engine.constants import FITTED, Constants
from app.units import factor_of
from labs.spec import SpecError, Violation

FOLDER, FITS = "validation", "fits/left-out.yaml"
TRAINING = (
    "sequence",
    "micro_batch",
    "global_batch",
    "recompute",
    "attention",
    "state_layout",
    "precision",
    "attention_kernel",
    "compile",
    "recompute_modules",
    "predicted_tokens",
)
PARALLEL = (
    "data",
    "tensor",
    "pipeline",
    "virtual_stages",
    "context",
    "expert",
    "expert_nodes",
    "sequence_parallel",
    "zero",
    "schedule",
    "overlap",
    "expert_tensor",
    "stages",
    "context_exchange",
)
# As a source prints it: (what it is compared as, in SI units per printed unit).
MEASURED: Mapping[str, tuple[str, float]] = {
    "step_seconds": ("step_seconds", 1.0),
    "tokens_per_second_per_gpu": ("tokens_per_second_per_gpu", 1.0),
    "hardware_tflops_per_gpu": ("hardware_flops_per_second_per_gpu", factor_of("TFLOP/s")),
    "model_tflops_per_gpu": ("model_flops_per_second_per_gpu", factor_of("TFLOP/s")),
    "causal_model_tflops_per_gpu": ("causal_flops_per_second_per_gpu", factor_of("TFLOP/s")),
    "peak_memory_gib": ("peak_bytes", factor_of("GiB")),
}
CommonField = Literal[
    "profile",
    "model",
    "sequence",
    "micro_batch",
    "recompute",
    "attention",
    "state_layout",
    "data",
    "tensor",
    "pipeline",
    "virtual_stages",
    "sequence_parallel",
    "zero",
    "schedule",
    "context",
    "expert",
    "expert_nodes",
    "precision",
    "attention_kernel",
    "compile",
    "overlap",
    "recompute_modules",
    "predicted_tokens",
    "expert_tensor",
    "stages",
    "context_exchange",
]
Value = int | float | bool | str | dict[str, bool] | list[int] | list[str]
Positive = Annotated[float, Field(gt=0)]


class PublishedShape(Strict):
    """A GPT-style model of a table, by the columns such tables have."""

    layers: int
    hidden: int
    heads: int
    vocab: int
    biases: bool = True
    tied_embeddings: bool = True


class PublishedRow(Strict):
    """One row: where it departs from `common`, and what was measured."""

    name: Text
    profile: str | None = None
    model: Annotated[str, StringConstraints(min_length=1)] | None = None
    sequence: int | None = None
    micro_batch: int | None = None
    global_batch: int
    recompute: str | None = None
    attention: str | None = None
    state_layout: str | None = None
    data: int | None = None
    tensor: int | None = None
    pipeline: int | None = None
    virtual_stages: int | None = None
    sequence_parallel: bool | None = None
    zero: int | None = None
    schedule: str | None = None
    context: int | None = None
    expert: int | None = None
    expert_nodes: int | None = None
    precision: str | None = None
    attention_kernel: str | None = None
    compile: bool | None = None
    overlap: dict[str, bool] | None = None
    recompute_modules: list[str] | None = None
    predicted_tokens: int | None = None
    expert_tensor: int | None = None
    stages: list[int] | None = None
    context_exchange: str | None = None
    step_seconds: Positive | None = None
    tokens_per_second_per_gpu: Positive | None = None
    hardware_tflops_per_gpu: Positive | None = None
    model_tflops_per_gpu: Positive | None = None
    causal_model_tflops_per_gpu: Positive | None = None
    peak_memory_gib: Positive | None = None

    @model_validator(mode="after")
    def _measures_something(self) -> PublishedRow:
        if all(getattr(self, name) is None for name in MEASURED):
            raise ValueError(f"a row needs one of {', '.join(MEASURED)}")
        return self


class Suspect(Strict):
    """What may be the cause of an error, and what is known of that."""

    name: Text
    says: Text


class Published(Strict):
    """A table others published. `suspects` are for an error whose cause nobody has found."""

    title: Text
    source: Text
    publication: Slug
    fitted: bool = True
    about: Text
    suspects: tuple[Suspect, ...] = ()
    gpu: Text
    common: dict[CommonField, Value] = Field(default_factory=dict)
    models: dict[str, PublishedShape] = Field(default_factory=dict)
    rows: Annotated[tuple[PublishedRow, ...], Field(min_length=1)]


@dataclass(frozen=True)
class Row:
    """A row ready to compare; `measured` is in SI units."""

    name: str
    request: EstimateRequest
    measured: Mapping[str, float]


class _Numbers(Strict):
    matmul_efficiency: Positive
    joules_per_flop: Positive
    memory_efficiency: Positive
    network_efficiency: Positive
    contention: Positive


class _LeftOut(Strict):
    without: dict[Slug, _Numbers]


def left_out_constants(content: Path) -> Mapping[str, Constants]:
    """By publication, the constants fitted to all others. Raises ContentError."""
    name = f"{FOLDER}/{FITS}"
    data = validated(_LeftOut, read_yaml(content / name, f"{content.name}/{name}"))
    return {slug: Constants(**numbers.model_dump()) for slug, numbers in data.without.items()}


@dataclass(frozen=True)
class Table:
    """A published table with its rows as requests."""

    slug: str
    title: str
    source: str
    publication: str
    fitted: bool
    about: str
    gpu: str
    rows: tuple[Row, ...]
    suspects: tuple[Suspect, ...] = ()

    def comparisons(self, constants: Constants = FITTED) -> Iterator[Comparison]:
        """Every measured value beside its prediction."""
        for row in self.rows:
            yield from compare(self.slug, row.name, row.request, row.measured, constants)


@lru_cache(maxsize=4)
def published_tables(content: Path) -> tuple[Table, ...]:
    """Every table under `content`, by file name. Raises ContentError with every mistake in them."""
    problems: list[ContentProblem] = []
    tables = []
    for path in sorted((content / FOLDER).glob("*.yaml")):
        try:
            tables.append(_table(path, read_yaml(path, f"{content.name}/{FOLDER}/{path.name}")))
        except ContentError as error:
            problems += error.problems
    if problems:
        raise ContentError(problems)
    return tuple(tables)


def _table(path: Path, source: Source) -> Table:
    data = validated(Published, source)
    rows, problems = [], []
    for index, row in enumerate(data.rows):
        try:
            rows.append(Row(row.name, _request(data, row), _measured(row)))
        except SpecError as error:
            problems += [_problem(source, index, violation) for violation in error.violations]
    if problems:
        raise ContentError(problems)
    return Table(
        path.stem,
        data.title,
        data.source,
        data.publication,
        data.fitted,
        data.about,
        data.gpu,
        tuple(rows),
        data.suspects,
    )


def _problem(source: Source, index: int, violation: Violation) -> ContentProblem:
    field = violation.field.rpartition(".")[2]
    return source.problem(("rows", index, field), f"{violation.message} Accepted: {violation.accepted}.")


def _request(data: Published, row: PublishedRow) -> EstimateRequest:
    """Raises SpecError."""
    own = {name: value for name, value in row.model_dump().items() if value is not None}
    given: dict[str, object] = {**{str(name): value for name, value in data.common.items()}, **own}
    model: object = given.get("model")
    if model in data.models:
        model = {**data.models[model].model_dump(), "positions": "learned", "norm": "layer"}
    return parse_estimate_request(
        {
            "model": model,
            "training": {name: given[name] for name in TRAINING if name in given},
            "parallel": {name: given[name] for name in PARALLEL if name in given},
            "cluster": {"gpu": data.gpu},
            "profile": given.get("profile"),
        }
    )


def _measured(row: PublishedRow) -> dict[str, float]:
    return {
        quantity: value * scale
        for name, (quantity, scale) in MEASURED.items()
        if (value := getattr(row, name)) is not None
    }
