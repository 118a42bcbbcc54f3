"""The training data: a small text, read byte by byte, and the rows of it that each rank takes.

Parallelism must not change what is learned. So the batch of a step is drawn for *all* ranks from
(seed, step) alone, on every rank alike, and each rank then takes its own rows of it. No rank has to
send data to another.
"""

from __future__ import annotations

import sysconfig
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from labs.spec import RunTraining

_TEXT = Path(__file__).with_name("text.txt")
_LEAST_SOURCE_BYTES = 2_500_000


@dataclass(frozen=True)
class Batches:
    """What data rank `data_rank` of `data_ranks` is trained on, step after step."""

    text: Tensor
    training: RunTraining
    data_rank: int
    data_ranks: int
    device: torch.device

    def of_step(self, step: int) -> list[tuple[Tensor, Tensor]]:
        """The rank's micro-batches, each as (tokens, targets) of (micro_batch, sequence) token ids.

        The target at each position is the byte that comes next.
        """
        training = self.training
        global_batch = self.data_ranks * training.micro_batches * training.micro_batch
        passages = draw_passages(self.text, training.sequence, global_batch, (training.seed, step))
        mine = [passages[self.rows(index)].to(self.device) for index in range(training.micro_batches)]
        return [(passage[:, :-1].contiguous(), passage[:, 1:].contiguous()) for passage in mine]

    def rows(self, micro_batch_index: int) -> slice:
        """Data rank r takes the r-th shard of rows, its micro-batch j the j-th piece of that shard."""
        size = self.training.micro_batch
        start = (self.data_rank * self.training.micro_batches + micro_batch_index) * size
        return slice(start, start + size)


def load_text() -> Tensor:
    """The whole text as token ids 0..255, one for each byte: (bytes,) uint8."""
    return torch.frombuffer(bytearray(_TEXT.read_bytes()), dtype=torch.uint8)


def draw_passages(text: Tensor, sequence: int, count: int, seed_and_step: tuple[int, int]) -> Tensor:
    """Passages from anywhere in the text: (count, sequence + 1) token ids, the same on every rank."""
    seed, step = seed_and_step
    generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
    starts = torch.randint(len(text) - sequence, (count, 1), generator=generator)
    return text[starts + torch.arange(sequence + 1)].long()


def load_source_code() -> Tensor:
    """The source of Python's own standard library as token ids: (bytes,) uint8, between 4 and 5 million of them.

    The longest real text that is there on every machine, without a download: `load_text` is soon known by heart. It
    differs a little between versions of Python, and so will what is learned from it.
    """
    folder = Path(sysconfig.get_path("stdlib"))
    text = b"\n".join(path.read_bytes() for path in sorted(folder.glob("*.py")))
    if len(text) < _LEAST_SOURCE_BYTES:
        raise FileNotFoundError(f"{folder} has {len(text):,} bytes of source; {_LEAST_SOURCE_BYTES:,} are needed")
    return torch.frombuffer(bytearray(text), dtype=torch.uint8)
