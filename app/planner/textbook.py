"""A plan as textbooks count it, beside the engine: each number by a registered formula, and a sentence on why the
engine says otherwise. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from math import inf

from app.core.errors import SpecError
from app.planner.counted import Asked, Line, Section, by_formula, ideal_bubble
from app.planner.made import Plan, StageBar
from app.theory.formulas import FORMULAS
from app.theory.formulas.registry import evaluate
from app.theory.hardware import GPUS
from app.theory.planner import fewest_ranks, outcome, parse_estimate_request
from app.theory.planner.engine.constants import FITTED
from app.theory.planner.engine.profiles import PROFILES
from app.theory.planner.engine.resolve import profile_of
from app.theory.planner.results import CollectiveEstimate, MemoryBytes
from app.theory.state import LAYOUTS
from app.units import bytes_text, count_text, digits, scaled, seconds_text
from app.words import counted

MOST_MICRO_BATCH = 4096  # sequences, of which the largest that fits is looked for
BACKWARD = 2 / 3  # of a step's compute: two of three products, under which gradients can go
ATTENTION = {"flash": "with FlashAttention", "full": "with every score kept"}


def textbook(made: Plan) -> tuple[Section, ...]:
    """What textbooks count of a plan with a shape. None of experts or latent attention, of which the formulas for dense
    layers say nothing."""
    shape = made.form.shape
    if shape is None or shape.experts > 1 or shape.latent_attention is not None:
        return ()
    plan = Asked(made, shape)
    sections = (
        Section("What a GPU holds", tuple(_held(plan))),
        Section("What it sends", tuple(_sent(plan))),
        Section("What a step takes", tuple(_taken(plan))),
    )
    return tuple(section for section in sections if section.lines)


def _held(plan: Asked) -> Iterator[Line]:
    made, counts = plan.made, plan.made.estimate.parameters
    yield by_formula(
        "Parameters, 12Lh² of the layers",
        "transformer_parameters",
        "The engine adds up every tensor of the shape: the table of tokens and the head, norms, and an MLP or keys of "
        f"another width than 4h. The formulas below count with {_called(plan)}.",
        counts.total,
        layers=plan.shape.layers,
        hidden=plan.shape.hidden,
    )
    layout, tensor, stages = plan.layout, plan.axis("tensor"), plan.axis("pipeline")
    yield by_formula(
        "Model state, unsharded and undivided",
        "training_state",
        "No GPU of the engine's holds all of it; this is what ZeRO, tensor ranks and stages divide.",
        parameters=made.size,
        layout=layout,
    )
    yield by_formula(
        "Weights of a GPU",
        "zero_state",
        _why_state(plan),
        made.estimate.memory.per_rank_bytes.parameters,
        parameters=plan.stage_parameters,
        ranks=plan.replicas,
        stage=plan.axis("zero"),
        layout=layout,
        part="parameters",
    )
    held = plan.held_activations()
    for stage in made.stages:
        line = by_formula(
            f"Model state of a GPU, {stage.label if stage.zero else 'no sharding'}",
            "parallel_state",
            _why_state(plan),
            _state(stage),
            parameters=made.size,
            tensor=tensor,
            stages=stages,
            ranks=plan.replicas,
            stage=stage.zero,
            layout=layout,
        )
        yield _with_activations(plan, line, held)
    yield from _activations(plan)
    yield from _largest(plan)


def _with_activations(plan: Asked, line: Line, held_bytes: float) -> Line:
    """State and what the plan's micro-batches in flight keep on top, and whether that fits."""
    whole, usable = line.value + held_bytes, plan.made.usable_bytes
    verdict = "fits in" if whole <= usable else "more than"
    besides = f"with activations {bytes_text(whole)}, {verdict} {bytes_text(usable)}"
    return Line(line.name, line.value, line.dimension, line.why, line.engine, line.evaluation, besides)


def _activations(plan: Asked) -> Iterator[Line]:
    micro_batch = plan.axis("micro_batch")
    of_whom = "its layers" if plan.axis("pipeline") == 1 else f"the {plan.stage_layers} layers of a stage"
    for attention, said in ATTENTION.items():
        found = plan.activations(attention, micro_batch)
        engine = _engine_activations(plan, attention)
        name = f"Activations of one micro-batch, {of_whom}, {said}"
        yield Line(name, found.value, "bytes", _why_activations(plan), engine, found)


def _largest(plan: Asked) -> Iterator[Line]:
    """What fits in the memory that a plan may take."""
    made, usable = plan.made, plan.made.usable_bytes
    fewest = fewest_ranks(made.size, 3, plan.layout, usable)
    if fewest:
        name = f"GPUs on which the fully sharded state fits, {bytes_text(usable)} of each for it"
        yield Line(name, fewest, "count", "State alone: the engine's plans need room for activations as well.")
    if plan.axis("pipeline") > 1:
        return
    state = next(_state_by_formula(plan, stage.zero) for stage in made.stages if stage.zero == plan.axis("zero"))
    each = plan.activations(plan.values["attention"], 1).value
    why = f"State and activations in {bytes_text(usable)}; the engine counts the head and the buffers besides."
    engine = _bisect(lambda size: _engine_held(plan, size) > usable)
    label = plan.made.stage.label if plan.axis("zero") else "no sharding"
    yield Line(
        f"Largest micro-batch that fits with {label}, in sequences",
        max(0, (usable - state) // each),
        "count",
        why,
        engine,
    )


def _state_by_formula(plan: Asked, zero: int) -> float:
    inputs = {"parameters": plan.stage_parameters, "ranks": plan.replicas, "stage": zero, "layout": plan.layout}
    return evaluate(FORMULAS.by_name["zero_state"], inputs).value


def _bisect(is_too_much: Callable[[int], bool]) -> float:
    return bisect_left(range(1, MOST_MICRO_BATCH + 1), True, key=is_too_much)


def _engine_held(plan: Asked, micro_batch: int) -> float:
    """Bytes of the fullest GPU with micro-batches of so many sequences, in the engine."""
    held = _changed(plan, micro_batch=micro_batch)
    return inf if held is None else held.total


def _engine_activations(plan: Asked, attention: str) -> float | None:
    """What the engine's fullest GPU keeps of one micro-batch. None where what is held is not so many times the same."""
    if plan.in_flight != 1 and plan.values["recompute"] == "full":
        return None
    memory = plan.made.estimate.memory
    held = memory.per_rank_bytes if attention == plan.values["attention"] else _changed(plan, attention=attention)
    if held is None or held.activations is None:
        return None
    fullest = max(memory.by_stage, key=lambda stage: stage.bytes.total)
    return held.activations / fullest.in_flight_micro_batches


def _changed(plan: Asked, **training: object) -> MemoryBytes | None:
    """What the fullest GPU holds with something of the training changed; None where that does not go."""
    request = plan.made.form.request()
    kept = {name: value for name, value in request["training"].items() if name != "global_batch"}
    if training.get("attention") == "full":
        kept.pop("attention_kernel", None)
    try:
        return outcome(parse_estimate_request({**request, "training": kept | training})).per_rank_bytes
    except SpecError:
        return None


def _sent(plan: Asked) -> Iterator[Line]:
    made, inside = plan.made, plan.made.link_rates[0]
    rows = [row for row in made.estimate.communication if row.group in ("data", "shard", "replicate")]
    if plan.replicas > 1:
        reduced = [row for row in rows if row.operation in ("all_reduce", "reduce_scatter")]
        yield by_formula(
            "Gradients of a GPU",
            "training_state",
            "The engine has them in the type and as often as its implementation sends them. "
            f"{made.reduced_otherwise}".strip(),
            sum(row.payload_bytes_per_rank_per_step for row in reduced),
            parameters=plan.stage_parameters,
            layout=plan.layout,
            part="gradients",
        )
        yield from _data_parallel(plan, rows)
    tensor = [row for row in made.estimate.communication if row.group == "tensor"]
    if tensor:
        yield by_formula(
            f"Tensor-parallel all-reduces of one micro-batch, {counted(plan.stage_layers, 'layer')}",
            "tensor_parallel_time",
            f"The textbook takes the whole {scaled(inside, 'GB/s', 3)}. {_reached(made)} It counts every message's "
            "latency besides, and the collectives of the table of tokens and the head.",
            sum(row.seconds or 0.0 for row in tensor) / plan.micro_batches,
            sequence=plan.sequence,
            micro_batch=plan.axis("micro_batch"),
            hidden=plan.shape.hidden,
            tensor=plan.axis("tensor"),
            bytes_per_second=inside,
            layers=plan.stage_layers,
        )


def _data_parallel(plan: Asked, rows: list[CollectiveEstimate]) -> Iterator[Line]:
    made, sent, rate = plan.made, plan.data_parallel(), plan.ring_rate()
    engine = sum(row.wire_bytes_per_rank_per_step for row in rows)
    why = "The engine's bytes are those of its implementation, which may gather less often, or send another type."
    yield Line("Each GPU sends, in a step", sent.value, "bytes", why, engine, sent)
    if rate is None:
        return
    yield by_formula(
        f"The same as a time, at the whole {scaled(rate, 'GB/s', 3)} that a ring finds",
        "transfer",
        f"{_reached(made)} It counts every message's latency besides.",
        sum(row.seconds or 0.0 for row in rows),
        size_bytes=sent.value,
        bytes_per_second=rate,
    )
    levels = made.in_two_levels
    if levels is not None:
        sizes = {"size_bytes": 2 * made.size, "nodes": levels.nodes}
        node = evaluate(FORMULAS.by_name["hierarchical_node_bytes"], sizes)
        egress = made.link_rates[1] * made.form.gpus_per_node
        yield by_formula(
            f"Reduced inside nodes first: {bytes_text(node.value)} leave each node at {scaled(egress, 'GB/s', 3)}",
            "transfer",
            "The engine sends one ring over all ranks, as its implementations do, and not in two levels.",
            size_bytes=node.value,
            bytes_per_second=egress,
        )


def _taken(plan: Asked) -> Iterator[Line]:
    made, time, mfu = plan.made, plan.made.estimate.time, plan.values["mfu"]
    at = f"at {100 * mfu:.3g} % of the peak" if mfu else "at the whole peak"
    rest = "compute, bubble and what is not hidden" if mfu else "nothing but the products; type the MFU you expect"
    compute = by_formula(
        f"A step's {count_text(made.batch_tokens)} tokens, 6ND {at}",
        "training_time",
        f"The engine works out how fast the products run, counts attention, and adds what else a step takes; 6ND {at} "
        f"is {rest}.",
        time.step_seconds,
        parameters=made.size,
        tokens=made.batch_tokens,
        gpus=made.ranks,
        peak_flops_per_second=GPUS[plan.values["gpu"]].peak(plan.values["precision"]),
        mfu=mfu or 1.0,
    )
    yield compute
    yield from _bubbles(plan)
    if plan.axis("tensor") == plan.axis("pipeline") == plan.axis("context") == 1 and plan.axis("zero") < 3:
        yield from _overlapped(plan, compute.value)


def _overlapped(plan: Asked, compute_seconds: float) -> Iterator[Line]:
    """What replicas alone wait for, with nothing hidden and with what backward can hide."""
    made, time, rate = plan.made.estimate, plan.made.estimate.time, plan.ring_rate()
    if plan.replicas == 1 or rate is None:
        return
    both = {"compute_seconds": compute_seconds, "communication_seconds": plan.data_parallel().value / rate}
    talked = sum(row.seconds or 0.0 for row in made.communication)
    worked = (time.compute_seconds or 0.0) + (time.recompute_seconds or 0.0)
    yield by_formula(
        "Communication's share, nothing hidden",
        "communication_share",
        "Of the two times above, one after the other, and of the engine's own.",
        talked / (talked + worked),
        **both,
    )
    waited = seconds_text(time.exposed_communication_seconds or 0.0)
    yield by_formula(
        "A step whose gradients go under backward",
        "step_time",
        f"The textbook hides them under two thirds of the compute. As {plan.made.stage.profile} does it, the engine "
        f"leaves {waited} to wait for, and adds the optimizer.",
        time.step_seconds,
        **both,
        overlappable_seconds=BACKWARD * compute_seconds,
    )


def _bubbles(plan: Asked) -> Iterator[Line]:
    """The ideal bubble by both of its definitions, and the engine's idle time by the same."""
    made = plan.made.estimate
    idle = made.time.bubble_seconds or 0.0
    worked = (made.time.compute_seconds or 0.0) + (made.time.recompute_seconds or 0.0)
    wholes = {"fraction": ("of compute and idle time", worked + idle), "overhead": ("over compute", worked)}
    why = (
        "The ideal bubble has equal stages. The engine's last stage has the head, and idle waits for the slowest. The"
        " bubble at the top of the page is the same idle time, as a share of the whole step: a step has communication"
        " and the optimizer in it besides."
    )
    for asked, (said, whole) in wholes.items():
        found = ideal_bubble(plan.made, asked)
        if found is not None:
            name = f"Ideal bubble, {said}"
            yield Line(name, found.value, found.formula.dimension, why, idle / whole if whole else None, found)


def _called(plan: Asked) -> str:
    return f"{count_text(plan.made.size)}, the size in its name" if plan.made.is_called else "the engine's count"


def _reached(made: Plan) -> str:
    if made.form.values["measured"]:
        return "The engine takes what was measured."
    return f"The engine takes {100 * FITTED.network_efficiency:.0f} % of a link's rate, what collectives usually reach."


def _why_state(plan: Asked) -> str:
    said = "The engine counts every tensor of the shape, and shards them as its implementation does."
    if plan.axis("pipeline") > 1:
        said = (
            "The textbook shares the parameters out evenly. The engine's fullest GPU has the layers of one stage and,"
            " at an end of the pipeline, the table of tokens or the head."
        )
    if plan.made.layout == plan.layout:
        return said
    kept, counted_with = LAYOUTS[plan.made.layout], LAYOUTS[plan.layout]
    return (
        f"{said} It keeps {kept.bytes_each} bytes a parameter, as its software does; the textbook counts"
        f" {counted_with.bytes_each}."
    )


def _why_activations(plan: Asked) -> str:
    shape, tokens = plan.shape, {"sequence": plan.sequence, "micro_batch": plan.axis("micro_batch")}
    said = []
    if plan.axis("pipeline") == 1:
        whole = evaluate(FORMULAS.by_name["logits"], {**tokens, "vocab": shape.vocab}).value
        logits = bytes_text(whole / plan.axis("tensor"))
        said.append(
            f"The textbook counts the layers alone. The engine counts the head too: {logits} of logits in fp32, and"
            " what the loss makes of them."
        )
    else:
        said.append(f"The engine's is of the fullest stage, which holds {digits(plan.in_flight)} of them at once.")
    if shape.norm == "rms" or not PROFILES[profile_of(plan.made.request)].dropout:
        said.append(
            "Of the textbook's 34 bytes a value and 5 a score some are masks of a dropout that is not run here."
        )
    if shape.gated_mlp:
        said.append("The 34 are of GPT's layer as well: a gated MLP keeps more, fewer keys keep less.")
    return " ".join(said)


def _state(stage: StageBar) -> float:
    return sum(stage.bytes[part] for part in ("parameters", "gradients", "optimizer"))
