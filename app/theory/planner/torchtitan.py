"""A plan as a configuration of torchtitan, with what it leaves open.

Names are those of torchtitan's main branch at `VERSION`: `torchtitan/config/configs.py`, `trainer.py`,
`distributed/activation_checkpoint.py` and `pipeline_parallel.py`. A configuration is a Python function there, which
starts from another one and changes it; the options of the command line go on working and are to be deleted
(`torchtitan/config/README.md`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.theory.planner.engine.casting import CASTS
from app.theory.planner.engine.placement import chunk_sizes
from app.theory.planner.fields import PlanParallel
from app.theory.planner.model_flags import Flags, TorchtitanModel, torchtitan_model
from app.theory.planner.requests import EstimateRequest
from app.theory.planner.software import layout_of
from app.theory.state import LAYOUTS
from labs.spec import Model

VERSION = "b5bcd76c6 of 21 August 2026, after 0.2.2"

SCHEDULES = {
    "gpipe": "GPipe",
    "1f1b": "1F1B",
    "interleaved": "Interleaved1F1B",
    "looped-bfs": "LoopedBFS",
    "zero-bubble": "InterleavedZeroBubble",
    "zbv": "ZBVZeroBubble",
    "dualpipev": "DualPipeV",
}
RECOMPUTATION = {"none": "None", "selective": "SelectiveAC.Config()", "full": "FullAC.Config()"}
CONVERTERS = {
    "fp8-mixed": "Float8LinearConverter",
    "mxfp8-mixed": "MXFP8LinearConverter",
    "nvfp4-mixed": "NVFP4LinearConverter",
}


@dataclass(frozen=True)
class Configuration(Flags):
    """Settings of a function that returns a configuration: each of `flags` is a line of it. `base` is what it starts
    from; without it the model is the learner's own."""

    base: TorchtitanModel | None

    @property
    def title(self) -> str:
        return f"Configuration of torchtitan ({VERSION})"

    @property
    def text(self) -> str:
        """A module for `--module`, whose function is named by `--config plan`."""
        start = self.base.function if self.base else "own_model"
        recomputed = [name for name in ("FullAC", "SelectiveAC") if any(f"{name}." in line for line in self.flags)]
        imports = [
            "from torchtitan.config import CompileConfig",
            *(f"from torchtitan.distributed.activation_checkpoint import {name}" for name in recomputed),
            *((f"from torchtitan.models.{self.base.name} import model_registry",) if self.base else ()),
            f"from {self.base.module if self.base else 'own_models'} import {start}",
            "from torchtitan.trainer import Trainer",
        ]
        body = [f"config = {start}()", *self.flags, "return config"]
        return "\n".join([*imports, "", "", "def plan() -> Trainer.Config:", *(f"    {line}" for line in body)])


def chunks_of(model: Model, parallel: PlanParallel) -> tuple[int, ...]:
    """Layers of every chunk in order."""
    return parallel.stages or chunk_sizes(model.layers, parallel.pipeline * parallel.virtual_stages)


def configuration_of(request: EstimateRequest) -> Configuration:
    """Of a plan whose model has a shape."""
    model = request.model
    assert isinstance(model, Model), "a size alone has no plan"
    base = torchtitan_model(model)
    lines = (*_model(base), *_data(request), *_stages_and_batch(request, model), *_memory(request))
    return Configuration("torchtitan", lines, tuple(_left_open(request, model, base)), base)


def _model(base: TorchtitanModel | None) -> Iterator[str]:
    """The flavor anew: some configurations start with it cast to 8 bits."""
    if base is not None:
        yield f'config.model_spec = model_registry("{base.flavor}")'


def _data(request: EstimateRequest) -> Iterator[str]:
    parallel = request.parallel
    inside = _shards(parallel)
    again = False if parallel.zero in (1, 2) else parallel.reshard_after_forward
    mode = {None: "default", True: "always", False: "never"}[again]
    at = "config.parallelism."
    yield f"{at}data_parallel_replicate_degree = {parallel.data // inside}"
    yield f"{at}data_parallel_shard_degree = {inside}"
    yield f'{at}fsdp_reshard_after_forward = "{mode}"'
    yield f"{at}tensor_parallel_degree = {parallel.tensor}"
    if parallel.tensor > 1:
        yield f"{at}enable_sequence_parallel = {parallel.sequence_parallel}"
    yield f"{at}context_parallel_degree = {parallel.context}"
    yield f"{at}expert_parallel_degree = {parallel.expert}"


def _shards(parallel: PlanParallel) -> int:
    """Data ranks that shard together; context ranks always join them."""
    return max(1, (parallel.shard or parallel.data * parallel.context) // parallel.context) if parallel.zero else 1


def _stages_and_batch(request: EstimateRequest, model: Model) -> Iterator[str]:
    parallel, training = request.parallel, request.training
    at = "config.parallelism.pipeline_parallel_"
    yield f"{at}degree = {parallel.pipeline}"
    if parallel.pipeline > 1:
        yield f'{at}schedule = "{SCHEDULES[parallel.schedule]}"'
        yield from (f"{at}{name} = {value}" for name, value in _stages(chunks_of(model, parallel)))
        yield f"config.parallelism.num_pp_microbatches = {_micro_batches(request)}"
    if parallel.pipeline > 1 or parallel.expert > 1:
        yield "config.training.disable_cuda_graphs = True"
    yield f"config.training.max_context_length = {training.sequence}"
    yield f"config.training.num_tokens_per_microbatch_per_dp_rank = {training.micro_batch * training.sequence}"
    if training.global_batch:
        yield f"config.training.num_tokens_per_train_step = {training.global_batch * training.sequence}"


def _micro_batches(request: EstimateRequest) -> int:
    """Of a data rank in a step, all in one pass of the pipeline."""
    training = request.training
    return (training.global_batch or 0) // (request.parallel.data * training.micro_batch) or 1


def _stages(sizes: tuple[int, ...]) -> Iterator[tuple[str, int]]:
    """Layers of a chunk, and how many fewer the first and the last one hold, where all between are alike: torchtitan
    counts the ends as so many layers, of which it takes one each unless told otherwise."""
    most = max(sizes)
    if all(size == most for size in sizes[1:-1]):
        yield "layers_per_stage", most
        yield "first_stage_less_layers", most - sizes[0]
        yield "last_stage_less_layers", most - sizes[-1]


def _memory(request: EstimateRequest) -> Iterator[str]:
    training = request.training
    beside = ", enable_async_tensor_parallel=True" if _is_async(request) else ""
    yield f"config.activation_checkpoint = {RECOMPUTATION[training.recompute]}"
    yield f"config.compile = CompileConfig(enable={bool(training.compile)}{beside})"


def _is_async(request: EstimateRequest) -> bool:
    return bool(request.parallel.overlap.tensor and request.parallel.tensor > 1 and request.training.compile)


def _left_open(request: EstimateRequest, model: Model, base: TorchtitanModel | None) -> Iterator[str]:
    parallel, training = request.parallel, request.training
    yield "data order, learning rate and checkpoints"
    if base is None:
        sizes = f"n_layers={model.layers}, dim={model.hidden}, n_heads={model.heads}, n_kv_heads={model.kv_heads}"
        rest = f"an MLP of {model.ffn_hidden}, vocab_size={model.vocab}"
        yield f"the model: own_model() is a configuration that trains one with {sizes}, {rest}"
    if parallel.zero in (1, 2):
        yield f"ZeRO-{parallel.zero}: FSDP2 shards weights too; kept gathered after forward it is about ZeRO-2"
    if not parallel.zero and parallel.context > 1:
        yield "whole weights beside context parallelism: it shards them over context ranks"
    sizes_of_chunks = chunks_of(model, parallel)
    if parallel.pipeline > 1 and not tuple(_stages(sizes_of_chunks)):
        layers = ", ".join(map(str, sizes_of_chunks))
        yield f"chunks of {layers} layers: parallelism.module_fqns_per_model_part lists the modules of each"
    if parallel.context > 1 and parallel.context_exchange != "all-gather":
        yield f"keys by {parallel.context_exchange}: it gathers them, and has no setting for it"
    yield from _experts_open(parallel, model)
    if parallel.overlap.tensor and parallel.tensor > 1 and not training.compile:
        yield "async tensor parallelism: it wants compile.enable"
    if training.precision in CASTS:
        converter = f"converters=[{CONVERTERS[training.precision]}.Config(…)]"
        yield f"{training.precision.removesuffix('-mixed')}: model_registry(…, {converter}) and its recipe"
    if training.recompute_modules:
        yield "recomputation by module: its selective mode goes by operation"
    own = layout_of("torchtitan", training.precision)
    if training.state_layout != own:
        yield f"state as {training.state_layout}: it keeps {LAYOUTS[own].bytes_each} bytes a parameter"
    if training.predicted_tokens:
        yield f"tokens predicted ahead: model_registry(…, num_mtp_layers={training.predicted_tokens}) and MTPLoss"


def _experts_open(parallel: PlanParallel, model: Model) -> Iterator[str]:
    """What is asked of experts and has no setting; a degree of tensor ranks of their own went in April 2026."""
    if model.experts > 1 and parallel.expert > 1:
        if parallel.expert_cut > 1:
            yield f"experts cut over {parallel.expert_cut} ranks: with expert parallelism it keeps each whole"
        if _shards(parallel) * parallel.context * parallel.tensor % parallel.expert:
            yield "expert_parallel_degree: it must divide data shard × context × tensor degree"
    if parallel.expert_nodes:
        yield "how many nodes a token may reach"
