"""Rings: every member sends to the next, all at once, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.theory.collectives.messages import Message, Network, last_received


@dataclass(frozen=True)
class Ring:
    """Ranks in a ring, the pieces the tensor is cut into (one for each member), and the bytes of a piece."""

    members: Sequence[int]
    pieces: Sequence[range]
    piece_bytes: float
    network: Network

    def all_reduce(self, after: Mapping[int, str]) -> list[Message]:
        """A reduce-scatter, which leaves member i with piece i + 1, and an all-gather that begins with it."""
        first = self.half("reduce-scatter", after)
        return first + self.half("all-gather", {**after, **last_received(first)}, first_piece=1)

    def half(self, phase: str, after: Mapping[int, str], first_piece: int = 0) -> list[Message]:
        """n−1 steps. Member i begins with piece i + `first_piece` and then passes on what it received last.

        `after` names the message a rank waits for before it begins.
        """
        messages: list[Message] = []
        for step in range(len(self.members) - 1):
            sent = [self._message(phase, step, place, first_piece, after) for place in range(len(self.members))]
            after = last_received(sent)
            messages += sent
        return messages

    def _message(self, phase: str, step: int, place: int, first_piece: int, after: Mapping[int, str]) -> Message:
        source, target = self.members[place], self.members[(place + 1) % len(self.members)]
        return Message(
            name=f"{phase} {step + 1}: {source}→{target}",
            source=source,
            target=target,
            pieces=self.pieces[(place + first_piece - step) % len(self.pieces)],
            size_bytes=self.piece_bytes,
            network=self.network,
            after=(after[source],) if source in after else (),
        )
