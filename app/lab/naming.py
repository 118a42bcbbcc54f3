"""What a run is called: its strategy on its ranks, and its sizes in a line. Pure."""

from __future__ import annotations

from collections.abc import Collection

from app.theory.transformer import parameter_count
from app.units import count_text
from app.words import capital, counted
from labs.command import plain_command
from labs.spec import RunSpec

_SHAPE = ("model", "model.layers", "model.hidden", "model.heads", "model.vocab", "model.experts")


def title(spec: RunSpec) -> str:
    """What is done on how many ranks: `FSDP on 2 ranks`, `Pipeline of 2 × DDP of 2 on 4 ranks`."""
    parallel, ranks = spec.parallel, spec.parallel.world_size
    if spec.options is not None:
        return spec.options.title + (f" on {ranks} ranks" if ranks > 1 else "")
    over_data = ("DDP", "ZeRO-1", "ZeRO-2", "FSDP")[parallel.zero]
    if parallel.shard not in (None, parallel.data):
        over_data = "HSDP"
    degrees = {
        "tensor": parallel.tensor,
        "context": parallel.context,
        "pipeline": parallel.pipeline,
        "experts": parallel.expert,
        over_data: parallel.data,
    }
    wide = {name: size for name, size in degrees.items() if size > 1}
    sizes = len(wide) > 1
    what = " × ".join(f"{name} of {size}" if sizes else name for name, size in wide.items()) or over_data
    return f"{capital(what)} on {ranks} rank{'s' if ranks > 1 else ''}"


def describe(spec: RunSpec) -> str:
    """A spec in one line."""
    return alike(spec, ())


def alike(spec: RunSpec, turned: Collection[str]) -> str:
    """A spec in one line, without what depends on the fields that are `turned`: what all runs of a sweep have alike."""
    if spec.options is not None:
        return spec.options.about
    model, training = spec.model, spec.training
    accumulate = f" in {training.micro_batches} micro-steps" if training.micro_batches > 1 else ""
    batch = f"{counted(spec.global_batch, 'sequence')} a step{accumulate}"
    parts = {
        f"{count_text(parameter_count(model, training.sequence))} parameters": (*_SHAPE, "training.sequence"),
        counted(model.layers, "layer"): ("model.layers",),
        f"of width {model.hidden}": ("model.hidden",),
        f"sequence {training.sequence}": ("training.sequence",),
        batch: ("training.micro_batch", "training.micro_batches", "parallel.data"),
        counted(training.steps, "step"): ("training.steps",),
        training.precision: ("training.precision",),
    }
    said = ", ".join(part for part, fields in parts.items() if not set(fields) & {*turned})
    return f"{said.replace(', of width', ' of width')}."


def title_alike(spec: RunSpec, turned: Collection[str]) -> str:
    """The title of all runs of a sweep: of strategies their ranks alone; nothing where other degrees are turned."""
    degrees = {field for field in turned if field.startswith("parallel.")}
    if not degrees:
        return title(spec)
    return counted(spec.parallel.world_size, "rank") if degrees == {"parallel.zero"} else ""


def command_line(spec: RunSpec, device: str | None) -> str:
    """The line that does this run without us, on the kind of device it ran on (none: where there is one)."""
    if device:
        spec = spec.model_copy(update={"device": "cpu" if device.startswith("CPU") else "cuda"})
    return plain_command(spec)
