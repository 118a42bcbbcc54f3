"""The shared vocabulary: what a model, a training step and a parallel layout are.

Sizes are counts unless the name carries a unit (`_bytes`, `_seconds`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from labs.spec.schedules import Schedule

Count = Annotated[int, Field(ge=1)]
MAX_HEADS = 10_000
MAX_HIDDEN = 1_000_000
MAX_LAYERS = 10_000
MAX_WORLD_SIZE = 8  # of a run on one host: its ranks share the machine. Over hosts, of each
BUCKET_BYTES = 25 * 2**20  # of gradients that PyTorch's DDP reduces at once, where nothing else is asked for

Precision = Literal["fp32", "bf16-mixed", "fp16-mixed", "bf16", "fp8-mixed", "mxfp8-mixed", "nvfp4-mixed"]
Optimizer = Literal["adamw", "sgd", "adafactor", "adamw-8bit", "lars", "lamb"]
Recompute = Literal["none", "selective", "full"]
Attention = Literal["flash", "full"]
Offload = Literal["none", "optimizer", "all", "file"]
StateLayout = Literal["zero-16", "megatron-18", "mixed-20", "torch-amp", "fp32", "bf16"]
Program = Literal[
    "train", "collectives", "autograd", "formats", "gemm", "schedule", "failures", "scaling", "ddp", "speed"
]


class Strict(BaseModel):
    """A frozen record that refuses unknown keys: a misspelt field must never be silently ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LatentAttention(Strict):
    """Multi-head latent attention (DeepSeek-AI 2024, DeepSeek-V2, section 2.1), in sizes of one head unless said.

    Keys and values of all heads are projected up from one latent of `key_value_rank` a token; queries from one of
    `query_rank`, or straight from the hidden state where that is null. A key is `nope_dim` values of its head beside
    `rope_dim` rotated ones that all heads share; a value has `value_dim`.
    """

    key_value_rank: Annotated[int, Field(ge=1, le=MAX_HIDDEN)]
    rope_dim: Annotated[int, Field(ge=1, le=MAX_HIDDEN)]
    nope_dim: Annotated[int, Field(ge=1, le=MAX_HIDDEN)]
    value_dim: Annotated[int, Field(ge=1, le=MAX_HIDDEN)]
    query_rank: Annotated[int, Field(ge=1, le=MAX_HIDDEN)] | None = None


class Model(Strict):
    """A decoder-only transformer by its shape. `kv_heads` and `ffn_hidden` default to `heads` and 4 × `hidden`.

    `head_dim` null is hidden / heads; `expert_ffn_hidden` null is `ffn_hidden`. With more than one expert, every layer
    after the first `dense_layers` routes each token to `active_experts` of `experts` and passes it through all of the
    `shared_experts` besides. `biases` gives every linear layer one, `qkv_biases` only queries, keys and values.
    """

    layers: Annotated[int, Field(ge=1, le=MAX_LAYERS)]
    hidden: Annotated[int, Field(ge=1, le=MAX_HIDDEN)]
    heads: Annotated[int, Field(ge=1, le=MAX_HEADS)]
    kv_heads: Annotated[int, Field(ge=1, le=MAX_HEADS)]
    ffn_hidden: Annotated[int, Field(ge=1, le=10_000_000)]
    vocab: Annotated[int, Field(ge=1, le=10_000_000)]
    gated_mlp: bool = False
    tied_embeddings: bool = True
    experts: Annotated[int, Field(ge=1, le=10_000)] = 1
    active_experts: Annotated[int, Field(ge=1, le=10_000)] = 1
    positions: Literal["learned", "rotary"] = "learned"
    norm: Literal["layer", "rms"] = "layer"
    biases: bool = False
    head_dim: Annotated[int, Field(ge=1, le=MAX_HIDDEN)] | None = None
    qkv_biases: bool = False
    shared_experts: Annotated[int, Field(ge=0, le=10_000)] = 0
    expert_ffn_hidden: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    dense_layers: Annotated[int, Field(ge=0, le=10_000)] = 0
    latent_attention: LatentAttention | None = None

    @model_validator(mode="before")
    @classmethod
    def _fill_sizes_that_follow(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        heads, hidden = _whole(data.get("heads"), MAX_HEADS), _whole(data.get("hidden"), MAX_HIDDEN)
        # where the size they follow from is itself wrong, that is the one mistake to report
        return {"kv_heads": heads or 1, "ffn_hidden": 4 * hidden if hidden else 1, **data}


def _whole(value: object, most: int) -> int | None:
    """`value` as the fields above read it (4096, 4096.0, "4096"), or None when they refuse it."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most else None


class Training(Strict):
    """One optimizer step, whatever the layout: lengths in tokens, batches in sequences."""

    sequence: Annotated[int, Field(ge=1, le=100_000_000)] = 2048
    micro_batch: Annotated[int, Field(ge=1, le=100_000)] = 1
    precision: Precision = "bf16-mixed"
    optimizer: Optimizer = "adamw"
    recompute: Recompute = "none"
    attention: Attention = "flash"
    offload: Offload = "none"
    state_layout: StateLayout = "zero-16"


class Parallel(Strict):
    """How the ranks divide the work. data × tensor × pipeline × context = world size."""

    data: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    tensor: Annotated[int, Field(ge=1, le=100_000)] = 1
    pipeline: Annotated[int, Field(ge=1, le=100_000)] = 1
    virtual_stages: Annotated[int, Field(ge=1, le=10_000)] = 1
    context: Annotated[int, Field(ge=1, le=100_000)] = 1
    expert: Annotated[int, Field(ge=1, le=100_000)] = 1
    shard: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    sequence_parallel: bool = False
    zero: Annotated[int, Field(ge=0, le=3)] = 0
    schedule: Schedule = "1f1b"

    @property
    def world_size(self) -> int:
        return self.data * self.tensor * self.pipeline * self.context
