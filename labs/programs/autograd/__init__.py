"""What backward computes, where it leaves it, and what accumulating adds up.

One network of three layers is put under hooks: its gradients are outer products of what forward saved and what backward
passes on. `.grad` is added to, which is all that gradient accumulation needs; then a batch in pieces is held against
the whole batch, with everything that can go wrong.
"""

from __future__ import annotations

import torch

from labs.programs.autograd.accumulation import compare_with_one_batch, count_tokens, train_undivided
from labs.programs.autograd.microscope import bytes_freed, check_formulas, keep_adding, tied_contributions
from labs.programs.autograd.network import difference, new_network, new_task
from labs.programs.running import Bench
from labs.spec import AutogradOptions


def measure(options: AutogradOptions, bench: Bench) -> dict[str, float]:
    """Ratios between gradients, and bytes that are freed."""
    network = new_network(options.width, bench.seed, bench.device, torch.float64)
    task = new_task(options.batch, options.width, bench.seed, bench.device, torch.float64)
    check_formulas(network, task, bench)
    kept_ratio = keep_adding(network, task, options.passes, bench)

    came, table_gradient = tied_contributions(options.width, bench.device)
    apart = difference([torch.stack(came).sum(dim=0)], [table_gradient])
    bench.say(f"A tied table: {len(came)} gradients came back; their sum differs from its .grad by {apart:.2g}.")

    undivided_ratio = compare_with_one_batch(options, bench)
    train_undivided(options, bench)
    return {
        "undivided_ratio": undivided_ratio,
        "kept_ratio": kept_ratio,
        "freed_bytes": _bytes_freed(options, bench),
        "tied_contributions": len(came),
        "token_ratio": count_tokens(options, bench),
    }


def _bytes_freed(options: AutogradOptions, bench: Bench) -> int:
    """By setting gradients to None. Setting them to zero frees nothing, which is said."""
    network = new_network(options.width, bench.seed, bench.device)
    task = new_task(options.batch, options.width, bench.seed, bench.device)
    kept = bytes_freed(network, task, set_to_none=False)
    freed = bytes_freed(network, task, set_to_none=True)
    bench.say(f"zero_grad frees {freed:,} bytes with set_to_none, {kept:,} without.")
    return freed
