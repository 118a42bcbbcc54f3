"""Which layers and tables a pipeline stage holds, and how many parameters of them one rank keeps.

Layers that do not divide evenly leave the first and the last chunk lighter: embeddings and head live there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from app.theory.planner.engine.shapes import linears, per_rank
from app.theory.transformer import embedding_parameter_count, final_norm_parameter_count, tensors
from labs.spec import Model


@dataclass(frozen=True)
class Stage:
    """What one pipeline rank holds: how many dense and routed layers, and which ends of the model. `predicted` of the
    last stage's layers belong to tokens predicted besides the next."""

    index: int
    dense_layers: int
    routed_layers: int
    first: bool
    last: bool
    predicted: int = 0

    @property
    def layers(self) -> int:
        return self.dense_layers + self.routed_layers


def chunk_sizes(layers: int, chunks: int) -> tuple[int, ...]:
    """`layers` dealt in order to `chunks`, as evenly as whole layers allow: what is short is short at the ends.

    126 layers on 16 stages are 7, 8 × 14, 7, the layout published for Llama 3.1 405B.
    """
    each, over = divmod(layers, chunks)
    sizes = [each] * chunks
    start = (chunks - over + 1) // 2
    for index in range(start, start + over):
        sizes[index] += 1
    return tuple(sizes)


@lru_cache(maxsize=4096)
def stages(
    model: Model,
    pipeline: int,
    virtual_stages: int,
    v_shaped: bool = False,
    asked: tuple[int, ...] | None = None,
    predicted: int = 0,
) -> tuple[Stage, ...]:
    """The stages of `pipeline` ranks with `virtual_stages` chunks each, dealt round-robin; or down and back up in a V,
    where the first rank has both ends of the model. Chunks are as long as `asked`, or as even as they can be; the last
    stage has a layer more for each token `predicted` besides the next."""
    chunks = pipeline * virtual_stages
    sizes = asked or chunk_sizes(model.layers, chunks)
    starts = [0, *accumulate(sizes)]
    dense = model.dense_layers if model.experts > 1 else model.layers
    found = []
    for rank in range(pipeline):
        mine = (rank, chunks - 1 - rank) if v_shaped else range(rank, chunks, pipeline)
        layers = sum(sizes[chunk] for chunk in mine)
        plain = sum(max(0, min(sizes[chunk], dense - starts[chunk])) for chunk in mine)
        routed, ends = layers - plain, rank == (0 if v_shaped else pipeline - 1)
        more = predicted if ends else 0
        dense_more, routed_more = (0, more) if model.experts > 1 else (more, 0)
        found.append(Stage(rank, plain + dense_more, routed + routed_more, rank == 0, ends, more))
    return tuple(found)


@dataclass(frozen=True)
class Held:
    """Parameters on one rank before ZeRO: `dense` that every data rank repeats, `expert` that expert ranks divide."""

    dense: float
    expert: float

    @property
    def total(self) -> float:
        return self.dense + self.expert


@lru_cache(maxsize=8192)
def layer_held(model: Model, routed: bool, tensor: int, expert: int, expert_cut: int | None = None) -> Held:
    """One layer's parameters on one of `tensor` ranks that are one of `expert` × `expert_cut`, or × `tensor`. Norms and
    what follows a row-parallel product stay whole on every tensor rank."""
    cut = expert_cut or tensor
    dense = experts = 0.0
    for each in linears(model, routed):
        into, out = per_rank(each, cut if each.routed else tensor)
        if each.routed:
            experts += into * out * model.experts / expert
        else:
            dense += into * out
    whole, divided = _vectors(model, routed)
    return Held(dense + whole + divided / tensor, experts + _expert_biases(model, routed, cut) / expert)


@lru_cache(maxsize=1024)
def _vectors(model: Model, routed: bool) -> tuple[int, int]:
    """Values of a layer's one-dimensional tensors: (whole on every tensor rank, cut with their column)."""
    one = model.model_copy(update={"layers": 1, "dense_layers": 0 if routed else min(1, model.dense_layers)})
    if not routed:
        one = one.model_copy(update={"experts": 1, "active_experts": 1, "shared_experts": 0, "dense_layers": 0})
    whole = cut = 0
    for tensor in tensors(one, 0):
        if tensor.layer is None or len(tensor.shape) > 1 or tensor.expert is not None:
            continue
        if "norm" in tensor.name or tensor.name.endswith(("output bias", "down bias")):
            whole += tensor.size
        else:
            cut += tensor.size
    return whole, cut


def _expert_biases(model: Model, routed: bool, tensor: int) -> float:
    if not routed or not model.biases:
        return 0.0
    return model.experts * sum(
        each.out / (tensor if each.cut == "out" else 1) for each in linears(model, True) if each.routed
    )


def stage_held(
    model: Model, stage: Stage, sequence: int, tensor: int, expert: int, pipeline: int, expert_cut: int | None = None
) -> Held:
    """A stage's parameters on one rank. A tied head on another stage than the table is a second copy of it."""
    dense = experts = 0.0
    for routed, layers in ((False, stage.dense_layers), (True, stage.routed_layers)):
        if layers:
            each = layer_held(model, routed, tensor, expert, expert_cut)
            dense, experts = dense + layers * each.dense, experts + layers * each.expert
    return Held(dense + ends_held(model, stage, sequence, tensor, pipeline), experts)


def ends_held(model: Model, stage: Stage, sequence: int, tensor: int, pipeline: int) -> float:
    """Embeddings, final norm and head of a stage on one tensor rank."""
    table = model.vocab * model.hidden / tensor
    held = 0.0
    if stage.first:
        held += embedding_parameter_count(model, sequence) - model.vocab * model.hidden + table
    if stage.last:
        own = not model.tied_embeddings or pipeline > 1
        held += final_norm_parameter_count(model) + (table if own else 0.0)
        held += stage.predicted * 2 * model.hidden**2 / tensor
    return held
