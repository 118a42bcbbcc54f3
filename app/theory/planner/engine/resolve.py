"""From a request to a plan: what was left open is chosen here, and said."""

from __future__ import annotations

from dataclasses import replace

from app.theory.hardware import GPUS, LINKS, Gpu
from app.theory.planner.attention_kernels import Kernel, kernel_of
from app.theory.planner.engine.constants import FITTED, Constants
from app.theory.planner.engine.network import Network, network_of
from app.theory.planner.engine.plan import Overlaps, Plan
from app.theory.planner.engine.profiles import PROFILES, Profile
from app.theory.planner.engine.roofline import Device, Sustained, calibrated, device_of, measured_device
from app.theory.planner.fields import PlanParallel
from app.theory.planner.requests import Cluster, EstimateRequest, ParameterCount
from app.theory.planner.software import default_of
from labs.spec import Model

ROUNDS = 4  # micro-batches per stage where a plan gives no global batch: GPipe's advice for a small bubble
UNKNOWN = float("inf")


def plan_of(request: EstimateRequest, constants: Constants = FITTED) -> Plan:
    """The plan of a request whose model has a shape."""
    assert isinstance(request.model, Model)
    cluster = request.cluster or Cluster()
    gpu = GPUS[cluster.gpu] if cluster.gpu else None
    profile = PROFILES[profile_of(request)]
    kernel = (
        None if gpu is None else kernel_of(request.training.attention_kernel, profile.attention_kernels, gpu.generation)
    )
    device = _device(request, cluster, gpu, constants, kernel)
    return Plan(
        request.model,
        request.training,
        request.parallel,
        micro_batches_of(request),
        request.compression,
        profile.name,
        overlaps_of(request.parallel, profile),
        kernel,
        device,
        _network(cluster, request.parallel.world_size, constants),
    )


def _device(
    request: EstimateRequest, cluster: Cluster, gpu: Gpu | None, constants: Constants, kernel: Kernel | None
) -> Device | None:
    """By its data sheet, by what was measured, or by both; None where neither is given."""
    precision, given = request.training.precision, cluster.measured
    found = None
    if given is not None:
        found = Sustained(
            given.matmul_flops, given.attention_flops, given.memory_bytes_per_second, given.precision or precision
        )
    if gpu is None:
        return measured_device(found) if found else None
    device = device_of(gpu, precision, cluster.peak_flops, constants, kernel)
    if found is None or found.precision is None:
        return device
    return calibrated(device, device_of(gpu, found.precision, None, constants, kernel), found)


def overlaps_of(parallel: PlanParallel, profile: Profile) -> Overlaps:
    """What is asked for, and where nothing is, what the profile does."""
    asked, sends = parallel.overlap, profile.overlaps_sends
    interleaved = parallel.virtual_stages > 1
    default = Overlaps(
        profile.overlaps_gradients,
        profile.overlaps_weights,
        profile.overlaps_tensor,
        sends == "always" or (sends == "interleaved" and interleaved),
        parallel.schedule == "dualpipev",  # two micro-batches at once are what it is for
    )
    return replace(default, **{name: value for name, value in asked.model_dump().items() if value is not None})


def micro_batches_of(request: EstimateRequest) -> int:
    """Micro-batches per step and data rank: those of the global batch, or enough for a small bubble."""
    parallel, training = request.parallel, request.training
    if training.global_batch is not None:
        return training.global_batch // (training.micro_batch * parallel.data)
    return 1 if parallel.pipeline == 1 else ROUNDS * parallel.pipeline


def profile_of(request: EstimateRequest) -> str:
    """Whose implementation: as asked, or as the ZeRO stage suggests."""
    if request.profile is not None:
        return request.profile
    if isinstance(request.model, ParameterCount):
        return "zero-paper"
    return default_of(request.parallel.zero)


def _network(cluster: Cluster, ranks: int, constants: Constants) -> Network:
    """Data-sheet links unless given. Fewer ranks than a node has GPUs lie in one together. Without a GPU the groups
    still have their places, and nothing takes time."""
    gpu = GPUS[cluster.gpu] if cluster.gpu else None
    intra = cluster.intra_node_bytes_per_second or (gpu.scale_up_bytes_per_second if gpu else UNKNOWN)
    inter = cluster.inter_node_bytes_per_second or (gpu.nic_bytes_per_second if gpu else UNKNOWN)
    if cluster.measured is not None:  # what collectives reach, of which no share is taken any more
        reached = constants.network_efficiency
        intra = (cluster.measured.intra_node_bytes_per_second or intra * reached) / reached
        inter = (cluster.measured.inter_node_bytes_per_second or inter * reached) / reached
    inside, between = _latencies(gpu)
    latencies = (
        inside if cluster.intra_node_latency_seconds is None else cluster.intra_node_latency_seconds,
        between if cluster.inter_node_latency_seconds is None else cluster.inter_node_latency_seconds,
    )
    return network_of(intra, inter, latencies, min(cluster.gpus_per_node, ranks), constants)


def _latencies(gpu: Gpu | None) -> tuple[float, float]:
    """What a message takes at least (inside the node, between nodes): typical of the GPU's own links."""
    name = (gpu.scale_up if gpu else "NVLink 4").lower().replace(" ", "-")
    inside = LINKS[name if name in LINKS else "nvlink-4"].typical_latency_seconds
    slow = gpu is not None and gpu.nic_bytes_per_second <= LINKS["ethernet-25g"].bytes_per_second
    return inside, LINKS["ethernet-25g" if slow else "infiniband-ndr"].typical_latency_seconds
