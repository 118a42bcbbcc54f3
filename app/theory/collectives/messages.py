"""What collectives are played from: messages between ranks over a network.

A rank sends one message at a time on a network; receiving costs it nothing. A message takes its bytes over the
sender's bandwidth and then the latency, during which the sender may go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.theory.simulator.checks import at_least, check, counted_as, not_negative, positive
from app.theory.simulator.events import Span, Task, finish_seconds, simulate
from labs.spec import Violation

MAX_MESSAGES = 150_000  # more would hold the process that asks for seconds
Bandwidth = float | Sequence[float]  # of every rank's sending side, or one for each rank


@dataclass(frozen=True)
class Network:
    """What ranks send on: the bandwidth of every rank's sending side, one direction, and the latency per message."""

    name: str
    bytes_per_second: tuple[float, ...]
    latency_seconds: float


@dataclass(frozen=True, slots=True)
class Message:
    """What one rank sends another once the messages named in `after` have arrived. `pieces` are parts of the tensor."""

    name: str
    source: int
    target: int
    pieces: range
    size_bytes: float
    network: Network
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class CollectiveRun:
    """A collective as it was played: `spans[i]` is when `messages[i]` was under way; bytes are per rank."""

    seconds: float
    sent_bytes: tuple[float, ...]
    received_bytes: tuple[float, ...]
    messages: tuple[Message, ...]
    spans: tuple[Span, ...]


def checked_network(
    name: str, ranks: int, bytes_per_second: Bandwidth, latency_seconds: float, field: str = "link_bytes_per_second"
) -> Network:
    """A network for `ranks`. Raises SpecError, naming `field` for the bandwidth, for values out of range."""
    check(at_least("ranks", ranks, 1), not_negative("latency_seconds", latency_seconds))
    each = tuple(bytes_per_second) if isinstance(bytes_per_second, Sequence) else (bytes_per_second,) * ranks
    check(counted_as(field, each, ranks, "ranks"), *(positive(field, value) for value in each))
    return Network(name, each, latency_seconds)


def check_amount(size_bytes: float, field: str, value: int, messages: int) -> None:
    """Raises SpecError for a size out of range, and about `field` where it makes more than `MAX_MESSAGES` messages."""
    message = f"This makes {messages:,} messages, more than a page can wait for."
    too_many = Violation(field, value, message, f"so few that there are at most {MAX_MESSAGES:,} messages")
    check(not_negative("size_bytes", size_bytes), too_many if messages > MAX_MESSAGES else None)


def last_received(messages: Iterable[Message]) -> dict[int, str]:
    """For every rank that receives one of `messages`, the name of its last."""
    return {message.target: message.name for message in messages}


def play(ranks: int, messages: Sequence[Message]) -> CollectiveRun:
    """Send `messages`; those of one rank on one network in the order given."""
    sent, received = [0.0] * ranks, [0.0] * ranks
    for message in messages:
        sent[message.source] += message.size_bytes
        received[message.target] += message.size_bytes
    spans = simulate([_task(message) for message in messages], "size_bytes")
    return CollectiveRun(finish_seconds(spans), tuple(sent), tuple(received), tuple(messages), spans)


def _task(message: Message) -> Task:
    network = message.network
    seconds = message.size_bytes / network.bytes_per_second[message.source]
    return Task(message.name, (network.name, message.source), seconds, message.after, network.latency_seconds)
