"""Mixtures of experts: how large they are, how many rows an expert multiplies, and what its tokens cost to send (F58).

Routing is taken as balanced: what a router does to one batch is its own; on average over the ranks of a group these
hold. Experts are gated MLPs of three matrices.
"""

from __future__ import annotations

from math import ceil, comb

from app.theory.checks import check_at_most, check_divides


def expert_parameters(hidden: int, expert_hidden: int, experts: int, layers: int = 1) -> int:
    """F58: parameters of the experts, 3·h·f for each. Source: Shazeer 2020 for the three matrices of a gated MLP."""
    return 3 * hidden * expert_hidden * experts * layers


def expert_rows(tokens: int, experts_per_token: int, ranks: int, experts: int) -> float:
    """F58: rows each expert multiplies when `ranks` bring `tokens` each and tokens spread evenly, n·T·k/E.

    Raises SpecError where a token is to visit more experts than there are. Source: Lepikhin et al. 2021 (GShard),
    section 2.2, before its capacity factor.
    """
    check_at_most("experts_per_token", experts_per_token, "experts", experts)
    return ranks * tokens * experts_per_token / experts


def expert_capacity(tokens: int, experts_per_token: int, experts: int, capacity_factor: float) -> int:
    """F58: rows an expert takes of `tokens` routed together, ⌈c·T·k/E⌉; what comes beyond is dropped.

    Raises SpecError where a token is to visit more experts than there are. Source: Fedus et al. 2022 (Switch
    Transformers), section 2.2, there with k = 1.
    """
    check_at_most("experts_per_token", experts_per_token, "experts", experts)
    return ceil(capacity_factor * expert_rows(tokens, experts_per_token, 1, experts) - 1e-9)


def expected_nodes(experts: int, experts_per_token: int, nodes: int) -> float:
    """F58: nodes on which a token finds its experts, on average, N·(1 − C(E−E/N, k)/C(E, k)).

    Any k of the E experts are as likely as any others, and every node holds E/N. Raises SpecError where nodes would
    hold unequal numbers of experts. By hand: a node is missed when all k are among the experts of the others.
    """
    check_divides("nodes", nodes, "experts", experts)
    check_at_most("experts_per_token", experts_per_token, "experts", experts)
    others = experts - experts // nodes
    return nodes * (1 - comb(others, experts_per_token) / comb(experts, experts_per_token))


def network_bytes(
    tokens: int, hidden: int, copies: float, nodes: int, transfers: int = 4, bytes_each: float = 2.0
) -> float:
    """F58: bytes each rank sends to other nodes in a layer, c·(N−1)/N·T·M·h·w, when a token goes out in M `copies`.

    M is k where each expert gets its own, and the nodes its experts are on where one copy goes to each node and NVLink
    spreads it inside; one copy in N stays at home. Source: DeepSeek-AI 2024 (DeepSeek-V3), section 3.2.2.
    """
    return transfers * (nodes - 1) / nodes * tokens * copies * hidden * bytes_each


def all_to_all_share(
    expert_hidden: int, ranks: int, achieved_flops_per_second: float, bytes_per_second: float
) -> float:
    """F58: time of a layer's all-to-alls over that of its experts, (4/9)·(n−1)/n·ηF/(f·B).

    By hand: four transfers of (n−1)/n·T·k·h·2 bytes against three passes of 6·h·f FLOPs for each of T·k rows: tokens,
    k and the hidden size cancel. Between nodes, at the speed of a rank's card, n counts the nodes: what stays in one
    does not pass its cards.
    """
    return 4 / 9 * (ranks - 1) / ranks * achieved_flops_per_second / (expert_hidden * bytes_per_second)
