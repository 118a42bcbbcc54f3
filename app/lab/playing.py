"""The figure to step through that shows what a run did, at the run's own sizes where there is such a figure. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from app.content.players import collective, zero
from app.content.players.catalogue import FIGURES, frame_number, player
from app.content.players.player import Player, Settings, read_settings
from app.core.errors import DomainError
from app.theory.lab_runs import Place, run_theory
from app.theory.lab_runs.held import held_tensors, padded_values
from app.theory.optimizers import optimizer_bytes_per_parameter
from app.theory.state import LAYOUTS
from app.theory.transformer import parameter_count
from app.theory.zero_step import Unit, zero_step
from app.units import bytes_text, count_text
from labs.spec import RunSpec

_MOST_UNITS = 13  # a cell of more cannot be told from its neighbours
_SAME = 1e-3  # flat buffers are padded, and a flag of a few bytes may go out besides


def figure_of(spec: RunSpec, home: str = "", turned: Mapping[str, str] | None = None) -> Player | None:
    """The first axis of the run that there is a figure of; None where there is none, or none of that size.

    home: the figure's address. turned: the controls as the learner has them now, and the frame to begin with. Raises
    DomainError for what the figure cannot be drawn with.
    """
    for name, own in _wanted(spec):
        settings = {key: str(value) for key, value in own.items()}
        try:
            read_settings(FIGURES[name].controls, settings)
        except DomainError:  # more ranks or micro-batches than one can look at
            continue
        return replace(_made(spec, name, settings | dict(turned or {})), home=home)
    return None


def figure_name(spec: RunSpec) -> str:
    """Which figure shows the mechanism, for who has yet to predict: at its own numbers it gives none of the run's away.
    Empty where there is none."""
    return next((name for name, _ in _wanted(spec)), "")


def _made(spec: RunSpec, name: str, given: dict[str, str]) -> Player:
    settings, at = read_settings(FIGURES[name].controls, given), frame_number(given)
    if name == "zero":
        return _zero(spec, settings, at)
    if name == "collective":
        return _collective(spec, settings, at)
    if name == "pipeline":
        note = "this run’s schedule, a backward twice a forward; not its times"
        return replace(player(name, given), note=note)
    return replace(player(name, given), note="how it works, on two tokens; not this run’s numbers")


def _zero(spec: RunSpec, settings: Settings, at: int | None) -> Player:
    if not _sends_by_units(spec):
        note = f"how it works, on {zero.SEVEN_BILLION.says}; not this run’s numbers"
        return replace(zero.make(settings, at), note=note)
    model = trained(spec, int(settings["stage"]), int(settings["ranks"]))
    return replace(zero.make(settings, at, model), note="as theory has it, at this run’s size")


def trained(spec: RunSpec, stage: int, ranks: int) -> zero.Trained:
    """The run's model for the figure: its root unit (embeddings, final norm, head), then its layers, padded as FSDP2
    pads them."""
    held = held_tensors(spec, Place())
    units = []
    for layer in (None, *range(spec.model.layers)):
        own = [tensor for tensor in held if tensor.layer == layer]
        values = padded_values(own, ranks) if stage == 3 else sum(tensor.size for tensor in own)
        name = "embedding and head" if layer is None else f"layer {layer}"
        units.append(Unit(name, values, layer is None or not spec.training.reshard_after_forward))
    layout = LAYOUTS[spec.training.state_layout]
    parameters = parameter_count(spec.model, spec.training.sequence)
    return zero.Trained(
        f"{count_text(parameters)} parameters in {spec.model.layers} layers and the unit around them",
        tuple(units),
        replace(layout, optimizer=optimizer_bytes_per_parameter(layout, spec.training.optimizer)),
        spec.training.micro_batches,
        has_payload=True,
    )


def _sends_by_units(spec: RunSpec) -> bool:
    """Whether gathering and reducing its units is all that the run sends: what the figure comes to is its theory."""
    if spec.model.layers + 1 > _MOST_UNITS:
        return False
    stage, ranks = spec.parallel.zero, spec.parallel.data
    model, theory = trained(spec, stage, ranks), run_theory(spec)
    end = zero_step(model.units, ranks, stage, model.layout, model.micro_batches)[-1]
    return (
        abs(end.payload_bytes - theory.payload_bytes_per_step) <= _SAME * theory.payload_bytes_per_step
        and abs(end.sent_bytes - theory.wire_bytes_per_step) <= _SAME * theory.wire_bytes_per_step
    )


def _collective(spec: RunSpec, settings: Settings, at: int | None) -> Player:
    size, whose = _reduced_bytes(spec)
    if not size:
        return replace(collective.make(settings, at), note="how it works, for any size S; not this run’s numbers")
    return replace(collective.make(settings, at, size), note=f"S is {bytes_text(size)} here: {whose}")


def _reduced_bytes(spec: RunSpec) -> tuple[float, str]:
    """What the run's data ranks all-reduce in a step, and what that is."""
    if spec.options is not None and spec.options.program == "collectives":
        return spec.options.sizes_bytes[-1], "this run’s last tensor"
    reduced = [
        each.payload_bytes
        for each in run_theory(spec).transfers
        if (each.operation, each.phase, each.group_size) == ("all_reduce", "backward", spec.parallel.data)
        and each.group == "data"
    ]
    return sum(reduced), "this run’s gradients, as theory has them"


def _wanted(spec: RunSpec) -> list[tuple[str, dict[str, object]]]:
    """Figures by name with their settings, the one that says most of the run first."""
    parallel, options = spec.parallel, spec.options
    if options is not None:
        if options.program == "schedule":
            asked = {"schedule": options.schedule, "stages": parallel.pipeline}
            chunks = options.virtual_stages if options.schedule == "interleaved" else 1
            return [("pipeline", {**asked, "micro_batches": options.micro_batches[-1], "virtual_stages": chunks})]
        if options.program == "collectives":
            return [("collective", {"algorithm": "ring", "ranks": parallel.data})]
        return []
    found: list[tuple[str, dict[str, object]]] = []
    if parallel.pipeline > 1:
        asked = {"schedule": parallel.schedule, "stages": parallel.pipeline}
        more = {"micro_batches": spec.training.micro_batches, "virtual_stages": parallel.virtual_stages}
        found.append(("pipeline", {**asked, **more}))
    if parallel.tensor > 1:
        found.append(("tensor", {"ranks": parallel.tensor}))
    if parallel.data > 1 and parallel.zero:
        found.append(("zero", {"stage": parallel.zero, "ranks": parallel.data}))
    elif parallel.data > 1:
        found.append(("collective", {"algorithm": "ring", "ranks": parallel.data}))
    return found
