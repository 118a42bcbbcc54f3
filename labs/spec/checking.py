"""Whether a run can be done here: the whole RunSpec from untrusted data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from labs.spec.families import check_support
from labs.spec.families.row import one_of
from labs.spec.hosts import check_hosts
from labs.spec.limits import ANY_SIZE, LAPTOP, RunSize, Sizes, check_size
from labs.spec.programs import Options, check_program
from labs.spec.reading import STAND_IN, parse
from labs.spec.run import LAB_MODELS, LARGE_MODELS, NO_MODEL, USUAL_PROBES, RunSpec
from labs.spec.shapes import check_model
from labs.spec.vocabulary import MAX_WORLD_SIZE
from labs.violations import Violation

MAX_DRY_WORLD_SIZE = 1024
_NAME = {"run": "run", "dry": "dry run"}


def on_a_laptop(_spec: RunSpec) -> Sequence[RunSize]:
    """How large a run may be where nothing is known of what carries it out."""
    return (LAPTOP,)


def of_any_size(_spec: RunSpec) -> Sequence[RunSize]:
    """As large as any device takes: whoever started the run, or another install, has looked at that."""
    return (ANY_SIZE,)


def parse_run_spec(data: object, dry: bool = False, sizes: Sizes = on_a_laptop) -> RunSpec:
    """A RunSpec from untrusted data (a mapping, as from JSON), for a dry run if `dry`, no larger than one of `sizes`.

    Raises SpecError naming every violated field.
    """
    if dry and isinstance(data, Mapping):
        data = {"mode": "dry", **data}
    unknown: list[Violation] = []
    if isinstance(data, Mapping) and isinstance(data.get("model"), str):
        name = data["model"]
        known = {**LAB_MODELS, **LARGE_MODELS} if dry else LAB_MODELS
        if name not in known:
            why = "can only be run dry" if name in LARGE_MODELS else "is no model of the lab"
            unknown.append(Violation("model", name, f"{name!r} {why}.", ", ".join(known) + ", or a shape"))
        # with a stand-in, so that a misspelt name does not hide what else is wrong
        data = {**data, "model": known.get(name, STAND_IN).model_dump()}
    mode = "dry" if dry else "run"
    return parse(RunSpec, data, lambda spec: [*check_run_spec(spec, sizes), *_check_mode(spec, mode)], unknown)


def check_run_spec(spec: RunSpec, sizes: Sizes = on_a_laptop) -> list[Violation]:
    """Everything that makes a well-formed spec impossible to run, by field."""
    if spec.program != "train" and spec.options is not None:
        return [*one_of("mode", spec.mode, ("run",)), *_check_program(spec, spec.options)]
    return [
        *check_model(spec.model),
        *one_of("options", spec.options, (None,), "A training run has no options."),
        *check_hosts(spec),
        *_check_world_size(spec),
        *check_support(spec),
        *check_size(spec, sizes(spec)),
        *_check_faults(spec),
        *_check_recovery(spec),
        *_check_probes(spec),
        *_check_dry(spec),
    ]


def _check_program(spec: RunSpec, options: Options) -> Iterator[Violation]:
    set_here = spec.model_dump(exclude_defaults=True)
    if spec.model == NO_MODEL:
        del set_here["model"]
    else:
        message = f"The program {spec.program!r} has no use for a model."
        yield Violation("model", spec.model.model_dump(exclude_defaults=True), message, "leave it out")
    yield from check_program(options, set_here, spec.parallel.world_size)
    yield from check_hosts(spec)


def _check_mode(spec: RunSpec, mode: str) -> Iterator[Violation]:
    instead = {"run": "`rankzero dryrun` takes dry runs.", "dry": "`rankzero run` takes runs."}
    yield from one_of("mode", spec.mode, (mode,), instead[mode])


def _check_dry(spec: RunSpec) -> Iterator[Violation]:
    """Fake tensors have no values: what depends on them, or is done by code that reads them, cannot be dry-run."""
    if spec.mode != "dry":
        return
    because = "A dry run has no values, and this depends on them."
    yield from one_of("model.experts", spec.model.experts, (1,), because)
    yield from one_of("compression.kind", spec.compression.kind, ("none",), because)
    yield from one_of("training.loss_scaling", spec.training.loss_scaling, (False,), because)
    yield from one_of("training.offload", spec.training.offload, ("none",), because)
    implementation = spec.training.zero_implementation
    yield from one_of("training.zero_implementation", implementation, ("flat-buffer",), because)


def _check_world_size(spec: RunSpec) -> Iterator[Violation]:
    ranks, data = spec.parallel.world_size, spec.parallel.data
    most_ranks = MAX_WORLD_SIZE * spec.hosts if spec.mode == "run" else MAX_DRY_WORLD_SIZE
    if ranks <= most_ranks:
        return
    here = f" on {spec.hosts} hosts" if spec.hosts > 1 else ""
    message = f"data × tensor × pipeline × context = {ranks:,} ranks; a {_NAME[spec.mode]} has at most {most_ranks:,}"
    message += f"{here}."
    others = ("parallel.tensor", "parallel.pipeline", "parallel.context")
    if most := most_ranks * data // ranks:
        yield Violation("parallel.data", data, message, f"1 to {most}", others)
    for field in others if not most else ():
        yield Violation(field, getattr(spec.parallel, field.partition(".")[2]), message, "a smaller product")


def _check_faults(spec: RunSpec) -> Iterator[Violation]:
    ranks, steps = spec.parallel.world_size, spec.training.steps
    for index, fault in enumerate(spec.faults):
        at = f"faults.{index}"
        yield from one_of(f"{at}.kind", fault.kind, ("kill", "nan"))
        if fault.rank >= ranks:
            yield Violation(f"{at}.rank", fault.rank, f"There are only {ranks} ranks.", f"0 to {ranks - 1}")
        if fault.step > steps:
            yield Violation(f"{at}.step", fault.step, f"The run has only {steps} steps.", f"1 to {steps}")


def _check_probes(spec: RunSpec) -> Iterator[Violation]:
    """A CPU's allocator records nothing, and `auto` may end on one."""
    if "allocator" not in spec.probes:
        return
    if spec.device != "cuda" or spec.mode == "dry":
        message = "Only CUDA's allocator says what it did, and only in a run that is sure to be on GPUs."
        accepted = f"{', '.join(USUAL_PROBES)}; allocator with device cuda"
        yield Violation(f"probes.{spec.probes.index('allocator')}", "allocator", message, accepted, ("device",))


def _check_recovery(spec: RunSpec) -> Iterator[Violation]:
    """Checkpoints hold the tensors of a training; what is kept elsewhere they do not."""
    training, asks = spec.training, spec.training.checkpoint_every is not None
    if training.checkpoint_mode != "sync" and not asks:
        message = "No checkpoints are asked for."
        yield Violation("training.checkpoint_mode", training.checkpoint_mode, message, "sync")
    if not asks and not spec.restarts:
        return
    yield from one_of("mode", spec.mode, ("run",), "A dry run has nothing to save or to start again.")
    if training.checkpoint_every is None:
        return
    if training.checkpoint_every >= training.steps:
        message = f"The run has {training.steps} steps, and the last writes none: there would be no checkpoint."
        accepted = f"1 to {training.steps - 1}, or none" if training.steps > 1 else "none"
        yield Violation("training.checkpoint_every", training.checkpoint_every, message, accepted)
    because = "A checkpoint would not have all of its state."
    yield from one_of("training.loss_scaling", training.loss_scaling, (False,), because)
    yield from one_of("compression.kind", spec.compression.kind, ("none",), because)
    if training.optimizer == "lamb":
        yield Violation("training.optimizer", "lamb", because, "adamw, sgd, lars")
    if training.offload == "file":
        yield Violation("training.offload", "file", because, "none, optimizer, all")
