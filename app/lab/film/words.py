"""What is said of each piece of a watched step, in one or two sentences, every number its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.lab.film.expected import is_pipelined, scheduled
from app.lab.film.pieces import Interval, Piece, RankStep, Step, covered
from app.theory.pipeline import in_flight
from app.units import bytes_text, digits
from labs.spec import RunSpec

_LEAST_SHARE = 0.004  # of the step: less waiting is not worth a word


def milliseconds(seconds: float) -> str:
    return f"{digits(1000 * seconds, 3)} ms"


class Words:
    """Knows the whole step, so that a rank can be told whom it waited for."""

    def __init__(self, spec: RunSpec, step: Step) -> None:
        self._spec, self._step = spec, step
        self._least = _LEAST_SHARE * step.seconds
        self._calls: dict[str, dict[int, Piece]] = {}
        self._fastest: dict[int, float] = {}  # message by its bytes
        for rank in step.ranks:
            for piece in rank.moved:
                self._calls.setdefault(piece.key, {})[rank.rank] = piece
                if is_message(piece):
                    size = piece.moved.payload_bytes if piece.moved else 0
                    self._fastest[size] = min(self._fastest.get(size, piece.seconds), piece.seconds)

    def of(self, rank: RankStep, piece: Piece, held: Mapping[str, tuple[int, int]]) -> str:
        """`held`: bytes of each component when the piece began and when it ended; empty where nobody looked."""
        if piece.moved is not None:
            return f"{self._moved(piece)} {self._hidden(rank, piece)}{self._late(rank, piece)}"
        return f"{self._computed(rank, piece, held)}{self._standing(rank, piece)}"

    def exposed_seconds(self, rank: RankStep, piece: Piece) -> float:
        """How long a collective was under way while the rank ran no pass. The update hides nothing: it waits for the
        gradients, and the new weights wait for it."""
        passes = [(start, end) for tone, start, end in rank.busy if tone != "optimizer"]
        return piece.seconds - covered((piece.start, piece.end), passes)

    def unwatched_seconds(self, piece: Piece) -> float:
        """How much of a message's time may be that nobody looked: gloo says that it is over only when asked, and a rank
        asks when it has waited. What the fastest message of its size took is surely enough for it."""
        if piece.moved is None or not is_message(piece):
            return 0.0
        return piece.seconds - self._fastest[piece.moved.payload_bytes]

    def _moved(self, piece: Piece) -> str:
        moved = piece.moved
        assert moved is not None
        ranks = len(moved.members)
        whole, sent = bytes_text(moved.payload_bytes), bytes_text(moved.wire_bytes)
        around = f"around a ring this rank sends {sent}"
        again = "Its weights were let go after forward: e" if " again" in piece.name else "E"
        back = "gradients go back" if moved.phase == "backward" else "activations go on"
        kept, many = (f"1/{ranks}", f"{ranks} tensors") if ranks > 1 else ("a share", "All tensors")
        updated = moved.phase == "optimizer"
        says = {
            "send": f"{whole} of {back}, which the next pass waits for.",
            "all_gather": f"Every rank has updated its share; {whole} of new weights come together, {around}."
            if updated
            else f"{again}ach rank keeps {kept} and fetches the rest: {whole} whole, {around}.",
            "reduce_scatter": f"{many} of {whole} become one sum, of which each rank keeps its part; {around}.",
            "all_reduce": f"Every rank ends with the sum of all: {whole} handed over, {around}.",
            "all_to_all": f"Each rank has a part for every other: {whole} in all, of which it sends {sent}.",
            "broadcast": f"{whole} go to every rank; this one sends {sent}.",
        }
        return says[moved.operation]

    def _hidden(self, rank: RankStep, piece: Piece) -> str:
        unwatched = self.unwatched_seconds(piece)
        if unwatched > self._least:
            fastest = milliseconds(piece.seconds - unwatched)
            return (
                f"It was over at the latest {milliseconds(piece.seconds)} later, when this rank looked next; the "
                f"fastest of its size took {fastest}."
            )
        exposed = self.exposed_seconds(rank, piece)
        if exposed < self._least or exposed < 0.05 * piece.seconds:
            return "Passes hide it."
        if exposed > 0.95 * piece.seconds:
            return f"Nothing hides its {milliseconds(piece.seconds)}."
        return f"Passes hide all but {milliseconds(exposed)} of it."

    def _late(self, rank: RankStep, piece: Piece) -> str:
        """The rank that all others waited for."""
        calls, last = self._calls[piece.key], self.last_of(piece)
        early = calls[last].start - piece.start
        if last != rank.rank and early > self._least:
            return f" This rank came {milliseconds(early)} before rank {last}, the last."
        first = min(each.start for each in calls.values())
        if last == rank.rank and len(calls) > 1 and piece.start - first > self._least:
            return f" This rank came last, {milliseconds(piece.start - first)} after the first: the others waited."
        return ""

    def last_of(self, piece: Piece) -> int:
        """The rank that came last into a collective."""
        calls = self._calls[piece.key]
        return max(calls, key=lambda each: calls[each].start)

    def waited_seconds(self, rank: RankStep, piece: Piece) -> float:
        """How long a rank did nothing in a collective until its last rank came; a message has no ranks that wait."""
        if is_message(piece):
            return 0.0
        late = (piece.start, piece.start + self.late_seconds(piece))
        return late[1] - late[0] - covered(late, [(start, end) for _, start, end in rank.busy])

    def late_seconds(self, piece: Piece) -> float:
        """How long a rank waited in the collective until the last rank came."""
        calls = self._calls[piece.key]
        return max(0.0, min(max(each.start for each in calls.values()), piece.end) - piece.start)

    def waits_and_moves(self, piece: Piece) -> tuple[Interval, Interval]:
        """When the rank was in it before the last rank came, and when it was under way from then on: of a message,
        which waits for nobody, as long as the fastest of its size took."""
        if is_message(piece):
            return (piece.start, piece.start), (piece.start, piece.end - self.unwatched_seconds(piece))
        complete = piece.start + self.late_seconds(piece)
        return (piece.start, complete), (complete, piece.end)

    def _computed(self, rank: RankStep, piece: Piece, held: Mapping[str, tuple[int, int]]) -> str:
        computing = covered((piece.start, piece.end), ((start, end) for _, start, end in rank.busy))
        took = milliseconds(computing)
        if piece.kind == "optimizer":
            state = held.get("optimizer", (0, 0))[1]
            of = f": {bytes_text(state)} of optimizer state" if state else ""
            return f"The update takes {took}. A rank updates what it keeps{of}."
        if piece.kind == "weight":
            return f"The weights' own gradients of micro-batch {piece.micro_batch}, put off until now, take {took}."
        if piece.layer is None and is_pipelined(self._spec) and piece.kind == "forward":
            return self._stage_forward(piece, took)
        before, after = held.get("activations", (0, 0))
        change = after - before
        kept = f" and {bytes_text(change)} of activations are kept for backward" if change > 0 else ""
        freed = f" and {bytes_text(-change)} of activations go" if change < 0 else ""
        again = piece.key.endswith("r")
        what = "It is computed again, for its activations were not kept: " if again else ""
        still = piece.seconds - computing
        waits = f" For {milliseconds(still)} in it the rank stood still." if still > self._least else ""
        return f"{what}{'it' if again else 'It'} takes {took}{kept}{freed}.{waits}"

    def _stage_forward(self, piece: Piece, took: str) -> str:
        schedule, stages, micro_batches, chunks = scheduled(self._spec, len(self._step.ranks))
        most = in_flight(schedule, (piece.stage or 0) % stages, stages, micro_batches, chunks)
        return (
            f"It takes {took}; its activations stay until its backward has run. By {schedule} this stage keeps at most "
            f"{digits(most)} micro-batch{'' if most == 1 else 'es'}."
        )

    def _standing(self, rank: RankStep, piece: Piece) -> str:
        """The time before it in which the rank computed nothing."""
        before = max((end for _, _, end in rank.busy if end <= piece.start + 1e-9), default=0.0)
        gap = piece.start - before
        return f" Before it the rank stood still for {milliseconds(gap)}." if gap > self._least else ""


def is_message(piece: Piece) -> bool:
    """Whether it goes from one rank to another; of a collective all its ranks know when it is over."""
    return piece.moved is not None and piece.moved.operation == "send"


def bubble_share(step: Step) -> float:
    """Of the time from the first pass to the last on all ranks, what no pass was computed in."""
    passes = [each for rank in step.ranks for each in rank.busy if each[0] in ("forward", "backward", "weight")]
    if not passes:
        return 0.0
    long = max(end for _, _, end in passes) - min(start for _, start, _ in passes)
    return 1 - sum(end - start for _, start, end in passes) / (len(step.ranks) * long) if long > 0 else 0.0


def finding(spec: RunSpec, step: Step, words: Words) -> str:
    """What cost most of the step besides computing, as a title. In a pipeline that is its bubble, whatever messages are
    under way in it."""
    if is_pipelined(spec) and (bubble := bubble_share(step)) > 0.05:
        return f"Ranks wait in the bubble for {digits(100 * bubble, 2)} % of the passes' time"
    ranks = len(step.ranks)
    still = 1 - sum(rank.busy_seconds for rank in step.ranks) / (ranks * step.seconds)
    cost: dict[str, float] = {}  # of each kind of collective, while all its ranks were in it
    waits: dict[int, float] = {}  # of a rank that the others waited for
    for rank in step.ranks:
        for piece in rank.moved:
            if piece.moved is not None:
                kind, late = f"{piece.moved.operation}.{piece.moved.phase}", words.waited_seconds(rank, piece)
                cost[kind] = cost.get(kind, 0.0) + (words.exposed_seconds(rank, piece) - late) / ranks
                if (last := words.last_of(piece)) != rank.rank:
                    waits[last] = waits.get(last, 0.0) + late / (ranks - 1)
    worst = max(cost, key=cost.__getitem__, default=None)
    slow = max(waits, key=waits.__getitem__, default=None)
    if slow is not None and waits[slow] > 0.05 * step.seconds and waits[slow] > max(cost.values()):
        others = "The others wait" if ranks > 2 else f"Rank {1 - slow} waits"
        return f"{others} for rank {slow} for {digits(100 * waits[slow] / step.seconds, 2)} % of the step"
    if worst is not None and cost[worst] > 0.05 * step.seconds:
        what = _PLURAL.get(worst.split(".")[0], "collectives")
        when = {"forward": " in forward", "backward": " in backward", "optimizer": " after the update"}
        share = digits(100 * cost[worst] / step.seconds, 2)
        return f"Ranks wait for the {what}{when.get(worst.split('.')[1], '')} for {share} % of the step"
    return f"Ranks compute {digits(100 * (1 - still), 3)} % of the step"


_PLURAL: Mapping[str, str] = {
    "all_gather": "gathers",
    "reduce_scatter": "reduce-scatters",
    "all_reduce": "all-reduces",
    "broadcast": "broadcasts",
    "all_to_all": "all-to-alls",
    "send": "messages",
}


def slowest(step: Step) -> str:
    """Whether a rank computes noticeably longer than the others."""
    busy = {rank.rank: rank.busy_seconds for rank in step.ranks}
    if len(busy) < 2:
        return ""
    worst = max(busy, key=lambda rank: busy[rank])
    others: Sequence[float] = [seconds for rank, seconds in busy.items() if rank != worst]
    mean = sum(others) / len(others)
    over = busy[worst] / mean - 1 if mean else 0.0
    return f" Rank {worst} computes {digits(100 * over, 2)} % longer than the others." if over > 0.03 else ""
