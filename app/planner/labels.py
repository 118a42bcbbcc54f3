"""What the planner's fields are called on its page, in its form and in whatever is said of them."""

from __future__ import annotations

import re
from collections.abc import Mapping

LABELS: Mapping[str, str] = {
    "model": "Model",
    "parameters": "Parameters",
    "architecture": "As in",
    "layers": "Layers",
    "hidden": "Hidden",
    "heads": "Heads",
    "kv_heads": "KV heads",
    "ffn_hidden": "MLP width",
    "vocab": "Vocabulary",
    "sequence": "Sequence",
    "global_batch": "Global batch",
    "recompute": "Recompute",
    "attention": "Attention",
    "precision": "Precision",
    "recompute_modules": "Modules to repeat",
    "profile": "Implementation",
    "attention_kernel": "Attention kernel",
    "layout": "State layout",
    "ranks": "GPUs",
    "zero": "ZeRO stage",
    "tensor": "Tensor",
    "pipeline": "Pipeline",
    "micro_batch": "Micro-batch",
    "schedule": "Schedule",
    "virtual_stages": "Virtual stages",
    "sequence_parallel": "Sequence parallel",
    "context": "Context",
    "expert": "Expert",
    "expert_tensor": "Cut over",
    "expert_nodes": "Nodes a token",
    "shard": "Shard over",
    "reshard": "After forward",
    "gpu": "GPU",
    "memory": "Its memory",
    "gpus_per_node": "GPUs per node",
    "inter_node": "Between nodes, per GPU",
    "measured": "Measured here",
    "budget": "Budget",
    "mfu": "MFU",
    "price": "A GPU-hour",
    "served": "Served",
    "checkpoint": "A checkpoint takes",
    "failures": "Failures as in",
    "failure_rate": "Or one failure in",
    "deadline": "To be done in",
    "search_memory": "Memory at most",
    "search_recompute": "Recompute to try",
    "schedules": "Schedules",
    "search_software": "Software",
    "search_zero": "ZeRO to try",
    "search_tensor": "Tensor to try",
    "search_pipeline": "Pipeline to try",
    "search_context": "Context to try",
    "search_micro_batch": "Micro-batch to try",
}
# What a plan is told elsewhere in other words: names of other programs and of clusters, and the field that means it.
MEANT: Mapping[str, str] = {
    **dict.fromkeys(("gpus", "nodes", "world_size", "devices", "num_gpus", "n_gpus", "workers"), "ranks"),
    **dict.fromkeys(("tp", "tensor_parallel", "tensor_model_parallel_size"), "tensor"),
    **dict.fromkeys(("pp", "stages", "pipeline_parallel", "pipeline_model_parallel_size"), "pipeline"),
    **dict.fromkeys(("cp", "context_parallel_size"), "context"),
    **dict.fromkeys(("ep", "experts", "expert_model_parallel_size"), "expert"),
    **dict.fromkeys(("batch", "gbs", "batch_size", "global_batch_size"), "global_batch"),
    **dict.fromkeys(("mbs", "microbatch", "micro_batch_size"), "micro_batch"),
    **dict.fromkeys(("seq", "seq_len", "seq_length", "sequence_length"), "sequence"),
    **dict.fromkeys(("size", "params"), "parameters"),
    **dict.fromkeys(("zero_stage", "stage"), "zero"),
    **dict.fromkeys(("software", "framework"), "profile"),
}
# Names that are words as they stand are left as they are.
_WRITTEN = {name: LABELS[name].lower() for name in LABELS if "_" in name} | {
    "kv_heads": "KV heads",
    "ffn_hidden": "MLP width",
    "expert_ffn_hidden": "width of an expert",
    "gpus_per_node": "GPUs per node",
    "expert_tensor": "“Cut over”",
    "recompute_modules": "“Modules to repeat”",
}
_NAMES = re.compile(r"\b(?:(?:parallel|training|model|cluster)\.)?([a-z]+(?:_[a-z]+)*)\b")


def schedule_name(schedule: str) -> str:
    """A pipeline's schedule as it is written: 1F1B."""
    return schedule.upper() if schedule == "1f1b" else schedule


def worded(text: str) -> str:
    """A message with the names that programs know fields by replaced by what they are called on the page."""
    return _NAMES.sub(_word, text)


def _word(match: re.Match[str]) -> str:
    name = match[1]
    if name in _WRITTEN:
        return _WRITTEN[name]
    # a path names a field, a word alone need not
    return LABELS[name].lower() if match[0] != name and name in LABELS else match[0]
