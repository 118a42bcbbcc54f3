"""Rotary positions: every query and key is turned by an angle that grows with its place in the row.

A head's values are taken in D/2 pairs, the first half with the second. Pair i of the token at place p is turned by the
angle p · θ^(−2i/D). The score of a query at place p with a key at place s then depends on p − s only. Nothing is
learned: there is no table of positions whose length would limit the row's.

Su et al. 2021, "RoFormer", section 3.2; pairs as in the released Llama weights.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

_BASE = 10_000.0  # θ


class Rotary:
    """Turns queries and keys. All layers share one: backward needs its tables, which are there only once.

    places: where the tokens at hand, numbered from 0, stand in their row. Context parallelism has an answer of its own.
    """

    def __init__(self, head_size: int) -> None:
        self.places: Callable[[Tensor], Tensor] = lambda places: places
        self._frequencies = _BASE ** (-torch.arange(0, head_size, 2, dtype=torch.float64) / head_size)
        self._tables: tuple[Tensor, Tensor] | None = None

    def __call__(self, heads: Tensor) -> Tensor:
        """(B, heads, T, D) turned, in the precision it has.

        In memory token after token, as it comes: attention's result lies as its queries do, and so the output matrix
        needs no copy of it, which backward would keep.
        """
        tokens = heads.transpose(1, 2)  # (B, T, heads, D)
        cosine, sine = self._tables_for(tokens)
        first, second = tokens.chunk(2, dim=-1)
        turned = torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)
        return turned.to(heads.dtype).transpose(1, 2)

    @torch.no_grad()
    def _tables_for(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines (T, 1, D/2) in fp32: in 16 bits the angles of far places would all be alike."""
        length, device = tokens.shape[1], tokens.device
        if self._tables is None or self._tables[0].device != device or len(self._tables[0]) != length:
            places = self.places(torch.arange(length))
            angles = torch.outer(places.double(), self._frequencies).unsqueeze(1)
            self._tables = angles.cos().to(device, torch.float32), angles.sin().to(device, torch.float32)
        return self._tables
