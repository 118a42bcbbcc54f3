"""Splitting a layer's own work: tensor, sequence, context and expert parallelism, and the shapes the lab's GPT has."""

from __future__ import annotations

from collections.abc import Iterator

from labs.spec.families.row import Row, one_of
from labs.spec.run import RunSpec
from labs.spec.violations import Violation
from labs.spec.vocabulary import Model

ROWS: tuple[Row, ...] = ()


def check_tensor(spec: RunSpec) -> Iterator[Violation]:
    """What cannot be done inside a layer."""
    parallel = spec.parallel
    yield from one_of("parallel.tensor", parallel.tensor, (1,))
    yield from one_of("parallel.sequence_parallel", parallel.sequence_parallel, (False,))
    yield from one_of("parallel.context", parallel.context, (1,))
    yield from one_of("parallel.expert", parallel.expert, (1,))


def check_architecture(spec: RunSpec) -> Iterator[Violation]:
    """What the lab's GPT is not."""
    model = spec.model
    yield from one_of("model.experts", model.experts, (1,))
    yield from one_of("model.positions", model.positions, ("learned",))
    yield from one_of("model.norm", model.norm, ("layer",))
    yield from one_of("model.biases", model.biases, (False,))
    yield from one_of("model.head_dim", model.head_dim, (None, *_plain_head_dim(model)))
    yield from one_of("model.qkv_biases", model.qkv_biases, (False,))
    yield from one_of("model.shared_experts", model.shared_experts, (0,))
    yield from one_of("model.expert_ffn_hidden", model.expert_ffn_hidden, (None,))
    yield from one_of("model.dense_layers", model.dense_layers, (0,))
    latent = model.latent_attention and model.latent_attention.model_dump()
    yield from one_of("model.latent_attention", latent, (None,))


def _plain_head_dim(model: Model) -> tuple[int, ...]:
    """The one head size the lab's GPT has, where there is one."""
    return (model.hidden // model.heads,) if model.hidden % model.heads == 0 else ()
