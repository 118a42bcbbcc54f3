"""Splitting a layer's own work: tensor, sequence, context and expert parallelism, and the shapes the lab's GPT has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import gcd, lcm
from typing import Any

from labs.spec.families.row import WHOLE_BACKWARD, Row, one_of
from labs.spec.limits import MAX_RUN_SEQUENCE
from labs.spec.run import RunSpec
from labs.spec.shapes import nearest_divisors
from labs.spec.vocabulary import Model
from labs.violations import Violation

# Every shape that is cut differently: grouped queries, a gated MLP, a head of its own.
OTHER_SHAPE: Mapping[str, Any] = {"kv_heads": 4, "gated_mlp": True, "tied_embeddings": False, "ffn_hidden": 48}
_LLAMA: Mapping[str, Any] = {**OTHER_SHAPE, "positions": "rotary", "norm": "rms"}
EXPERTS: Mapping[str, Any] = {"experts": 4, "active_experts": 2}
_OTHER_EXPERTS: Mapping[str, Any] = {
    "experts": 8,
    "active_experts": 3,
    "shared_experts": 1,
    "expert_ffn_hidden": 16,
    "dense_layers": 1,
    "gated_mlp": True,
}
_SP: Mapping[str, Any] = {"sequence_parallel": True}
_MOST_EXPERTS = 64

ROWS: tuple[Row, ...] = (
    Row("tp", "Tensor parallelism", "tensor", ({"tensor": 2}, {"tensor": 4})),
    Row("tp-shapes", "Tensor parallelism, other shapes", "tensor", ({"tensor": 2},), model=OTHER_SHAPE),
    Row("tp-sp", "Tensor and sequence parallelism", "tensor", ({"tensor": 2, **_SP}, {"tensor": 4, **_SP})),
    Row(
        "tp-sp-shapes",
        "Tensor and sequence parallelism, other shapes",
        "tensor",
        ({"tensor": 4, **_SP},),
        model=OTHER_SHAPE,
    ),
    Row("llama-fsdp", "Rotary positions and RMS norms under ZeRO-3", "tensor", ({"data": 2, "zero": 3},), model=_LLAMA),
    Row(
        "llama-tp-sp",
        "Tensor and sequence parallelism, rotary positions and RMS norms",
        "tensor",
        ({"tensor": 4, **_SP},),
        model=_LLAMA,
    ),
    Row("full-attention", "Attention with all scores in memory", "tensor", ({"tensor": 2},), {"attention": "full"}),
    Row("cp", "Context parallelism (ring attention)", "context", ({"context": 2}, {"context": 4})),
    Row("cp-shapes", "Context parallelism, other shapes", "context", ({"context": 4},), model=OTHER_SHAPE),
    Row(
        "llama-cp",
        "Context parallelism, rotary positions and RMS norms",
        "context",
        ({"context": 2},),
        model=_LLAMA,
    ),
    Row("moe", "A mixture of experts under DDP", "expert", ({"data": 2},), model=EXPERTS),
    Row("moe-fsdp", "A mixture of experts under ZeRO-3 (FSDP2)", "expert", ({"data": 2, "zero": 3},), model=EXPERTS),
    Row(
        "ep",
        "Expert parallelism",
        "expert",
        ({"data": 2, "expert": 2}, {"data": 4, "expert": 4}),
        model=EXPERTS,
    ),
    Row("ep-replicas", "Expert parallelism, experts repeated", "expert", ({"data": 4, "expert": 2},), model=EXPERTS),
    Row("ep-shapes", "Expert parallelism, other mixtures", "expert", ({"data": 2, "expert": 2},), model=_OTHER_EXPERTS),
    Row(
        "ep-fsdp",
        "Expert parallelism and ZeRO-3",
        "combined",
        ({"data": 2, "expert": 2, "zero": 3}, {"data": 4, "expert": 2, "zero": 3}),
        model=EXPERTS,
    ),
    Row("tp-ddp", "Tensor parallelism and DDP", "combined", ({"data": 2, "tensor": 2},)),
    Row("tp-fsdp", "Tensor parallelism and ZeRO-3", "combined", ({"data": 2, "tensor": 2, "zero": 3},)),
    Row("tp-sp-ddp", "Tensor and sequence parallelism and DDP", "combined", ({"data": 2, "tensor": 2, **_SP},)),
    Row(
        "tp-sp-fsdp",
        "Tensor and sequence parallelism and ZeRO-3",
        "combined",
        ({"data": 2, "tensor": 2, "zero": 3, **_SP}, {"data": 2, "tensor": 4, "zero": 3, **_SP}),
    ),
    Row("cp-ddp", "Context parallelism and DDP", "combined", ({"data": 2, "context": 2},)),
    Row("cp-fsdp", "Context parallelism and ZeRO-3", "combined", ({"data": 2, "context": 2, "zero": 3},)),
    Row("tp-cp", "Tensor and context parallelism", "combined", ({"tensor": 2, "context": 2},)),
    Row("tp-cp-ddp", "Tensor and context parallelism and DDP", "combined", ({"data": 2, "tensor": 2, "context": 2},)),
    Row(
        "tp-sp-cp-fsdp",
        "Tensor, sequence and context parallelism and ZeRO-3",
        "combined",
        ({"data": 2, "tensor": 2, "context": 2, "zero": 3, **_SP},),
        model=OTHER_SHAPE,
    ),
    Row(
        "pipeline-tp",
        "Pipeline and tensor parallelism",
        "combined",
        ({"pipeline": 2, "tensor": 2},),
        {"micro_batches": 4},
    ),
    Row(
        "pipeline-cp",
        "Interleaved pipeline and context parallelism",
        "combined",
        ({"pipeline": 2, "context": 2, "virtual_stages": 2, "schedule": "interleaved"},),
        {"micro_batches": 4},
    ),
    Row(
        "pipeline-tp-sp-fsdp",
        "Pipeline, tensor and sequence parallelism and FSDP2",
        "combined",
        ({"pipeline": 2, "data": 2, "tensor": 2, "zero": 3, **_SP},),
        {"micro_batches": 4, "reshard_after_forward": False},
        OTHER_SHAPE,
    ),
    Row(
        "llama-pipeline-tp-sp",
        "Pipeline, tensor and sequence parallelism, rotary positions and RMS norms",
        "combined",
        ({"pipeline": 2, "tensor": 2, **_SP},),
        {"micro_batches": 4},
        _LLAMA,
    ),
    Row(
        "ep-cp",
        "Expert and context parallelism",
        "combined",
        ({"data": 2, "expert": 2, "context": 2},),
        model=EXPERTS,
    ),
)


def check_tensor(spec: RunSpec) -> Iterator[Violation]:
    """What cannot be done inside a layer."""
    yield from _check_cut(spec)
    yield from _check_positions(spec)
    yield from _check_experts(spec)
    yield from _check_ring(spec)
    yield from _check_split_backward(spec)
    if spec.parallel.tensor == 1 and spec.parallel.sequence_parallel:
        message = "It cuts what tensor parallelism leaves whole, over the same ranks."
        yield Violation(
            "parallel.sequence_parallel", True, message, "False, or parallel.tensor of 2 or more", ("parallel.tensor",)
        )


def _check_ring(spec: RunSpec) -> Iterator[Violation]:
    """Ring attention is another way to compute it block by block; its ranks are data ranks to the parameters."""
    parallel = spec.parallel
    if parallel.context > 1:
        because = "Context ranks share one copy of what is sharded with all data ranks."
        yield from one_of("parallel.shard", parallel.shard, (None, parallel.data), because)
        because = "Context parallelism brings an attention of its own, which never has all scores in one place."
        yield from one_of("training.attention", spec.training.attention, ("flash",), because)


def _check_split_backward(spec: RunSpec) -> Iterator[Violation]:
    """A cut layer sends in backward, for its input's gradient and in between its weights'. Taken apart, it would send
    twice."""
    parallel = spec.parallel
    if parallel.pipeline > 1 and parallel.tensor * parallel.context > 1:
        because = "This schedule runs backward in two passes, and a layer cut over ranks would send in both."
        yield from one_of("parallel.schedule", parallel.schedule, WHOLE_BACKWARD, because)


def _check_cut(spec: RunSpec) -> Iterator[Violation]:
    """Every rank has equally many heads, key/value heads, inner values and words: two ways out of each that does not
    divide, another number of ranks and another size."""
    ranks, model = spec.parallel.tensor, spec.model
    sizes = {name: getattr(model, name) for name in ("heads", "kv_heads", "ffn_hidden", "vocab")}
    wrong = [name for name, size in sizes.items() if size % ranks]
    if not wrong:
        return
    common = gcd(*sizes.values())
    message = f"{ranks} ranks cannot share {' and '.join(f'{sizes[name]:,} {name}' for name in wrong)} equally."
    involved = tuple(f"model.{name}" for name in sizes)
    yield Violation("parallel.tensor", ranks, message, nearest_divisors(common, ranks), involved)
    wholes = {"heads": model.hidden, "kv_heads": model.heads}
    for name in wrong:
        fits = (lambda size, whole=wholes[name]: whole % size == 0) if name in wholes else (lambda size: True)
        near = _nearest_multiples(ranks, sizes[name], fits)
        if near:
            message = f"parallel.tensor = {ranks} does not divide {sizes[name]:,}."
            yield Violation(f"model.{name}", sizes[name], message, near, ("parallel.tensor", *involved))


def _check_positions(spec: RunSpec) -> Iterator[Violation]:
    """A context rank has two chunks of the sequence, and a sequence-parallel one a shard of those."""
    parallel, sequence = spec.parallel, spec.training.sequence
    shards = parallel.tensor if parallel.sequence_parallel else 1
    chunks = 1 if parallel.context == 1 else 2
    needed = parallel.context * lcm(chunks, shards)
    if sequence % needed == 0:
        return
    why = [f"2 chunks for each of {parallel.context} context ranks"] if parallel.context > 1 else []
    why += [f"a shard for each of {shards} sequence-parallel ranks"] if shards > 1 else []
    message = f"{sequence:,} positions cannot be cut into {' and '.join(why)}."
    fields = [("parallel.context", parallel.context)] if parallel.context > 1 else []
    fields += [("parallel.tensor", parallel.tensor)] if shards > 1 else []
    involved = tuple(name for name, _ in fields)
    near = _nearest_multiples(needed, sequence, lambda size: size <= MAX_RUN_SEQUENCE or spec.mode == "dry")
    yield Violation("training.sequence", sequence, message, near or "fewer ranks", involved)


def _nearest_multiples(of: int, wanted: int, fits: Callable[[int], bool]) -> str:
    """Up to four multiples of `of` that are nearest to `wanted`, as text."""
    every = (of * times for times in range(1, 2 * wanted // of + 3))
    near = sorted(sorted(filter(fits, every), key=lambda size: abs(size - wanted))[:4])
    return ", ".join(f"{size:,}" for size in near)


def _check_experts(spec: RunSpec) -> Iterator[Violation]:
    """Experts are shared out among data ranks, whole."""
    parallel, experts = spec.parallel, spec.model.experts
    if experts > 1:
        if spec.mode == "dry":
            message = "How many tokens an expert gets is the router's to decide, and a dry run has none to ask."
            yield Violation("model.experts", experts, message, "1")
        because = "A mixture's experts are not cut over tensor ranks here; parallel.expert shares them out whole."
        yield from one_of("parallel.tensor", parallel.tensor, (1,), because)
    if parallel.expert == 1:
        return
    if experts == 1:
        message = "A model without experts has none to share out."
        yield Violation("parallel.expert", parallel.expert, message, "1", ("model.experts",))
        return
    for name, whole in (("model.experts", experts), ("parallel.data", parallel.data)):
        if whole % parallel.expert:
            message = f"{parallel.expert} does not divide {name} = {whole}."
            near = nearest_divisors(gcd(experts, parallel.data), parallel.expert)
            yield Violation("parallel.expert", parallel.expert, message, near, (name,))
    because = "With expert parallelism, data parallelism here is DDP or ZeRO-3."
    yield from one_of("parallel.zero", parallel.zero, (0, 3), because)
    because = "Experts are shared out among all data ranks, not within groups that shard."
    yield from one_of("parallel.shard", parallel.shard, (None, parallel.data), because)
    because = "Expert parallelism and a pipeline do not go together here."
    yield from one_of("parallel.pipeline", parallel.pipeline, (1,), because)


def check_architecture(spec: RunSpec) -> Iterator[Violation]:
    """What the lab's GPT is not."""
    model = spec.model
    for name, least in (("experts", 1), ("shared_experts", 0)):
        value = getattr(model, name)
        if value > _MOST_EXPERTS:
            message = f"Every expert costs kernels of its own; a layer of a run has at most {_MOST_EXPERTS}."
            yield Violation(f"model.{name}", value, message, f"{least} to {_MOST_EXPERTS}")
    yield from _check_rotary(model)
    yield from one_of("model.biases", model.biases, (False,))
    yield from one_of("model.head_dim", model.head_dim, (None, *_plain_head_dim(model)))
    yield from one_of("model.qkv_biases", model.qkv_biases, (False,))
    latent = model.latent_attention and model.latent_attention.model_dump()
    yield from one_of("model.latent_attention", latent, (None,))


def _check_rotary(model: Model) -> Iterator[Violation]:
    """A head's values are turned in pairs."""
    (size,) = _plain_head_dim(model) or (0,)
    if model.positions == "rotary" and size % 2:
        message = f"Rotary positions turn a head's values in pairs, and hidden / heads = {size} is odd."
        involved = ("model.hidden", "model.positions")
        yield Violation("model.heads", model.heads, message, "heads of an even size, or learned positions", involved)


def _plain_head_dim(model: Model) -> tuple[int, ...]:
    """The one head size the lab's GPT has, where there is one."""
    return (model.hidden // model.heads,) if model.hidden % model.heads == 0 else ()
