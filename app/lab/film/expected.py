"""Theory's schedule for the step that was watched, with how long its passes and transfers took there.

A pass takes what it took on the average rank, its waiting left out, and a collective what it took on the rank that came
to it last. What is left between this and the measured step is waiting that the layout does not ask for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from app.lab.film.pieces import TONES, Piece, RankStep, Step, covered
from app.theory.lab_runs import world
from app.theory.lab_runs.step import LayerSeconds, Planned, layered_step, pipelined_step
from app.theory.pipeline import Kind
from labs.spec import RunSpec, Schedule, ScheduleOptions, SpecError


@dataclass(frozen=True)
class Expected:
    """When every rank computes what, by theory, and when the last is done; seconds."""

    ranks: tuple[tuple[Planned, ...], ...]
    seconds: float


def expected(spec: RunSpec, step: Step) -> Expected | None:
    """None where theory has no schedule for the layout, or the step lacks something of it."""
    try:
        if is_pipelined(spec):
            return _pipelined(step, *scheduled(spec, len(step.ranks)), _stage_of_ranks(spec))
        return _layered(spec, step) if spec.options is None else None
    except SpecError:
        return None


def is_pipelined(spec: RunSpec) -> bool:
    """Whether its step follows a pipeline's schedule."""
    return isinstance(spec.options, ScheduleOptions) or (spec.options is None and spec.parallel.pipeline > 1)


def scheduled(spec: RunSpec, ranks: int) -> tuple[Schedule, int, int, int]:
    """The schedule of the watched step of a pipelined run, its stages, micro-batches and the chunks of a rank."""
    if isinstance(spec.options, ScheduleOptions):  # the last number of micro-batches is the one that is drawn
        chosen = spec.options
        return chosen.schedule, ranks, chosen.micro_batches[-1], chosen.stages_a_rank(chosen.schedule)
    parallel = spec.parallel
    return parallel.schedule, parallel.pipeline, spec.training.micro_batches, parallel.virtual_stages


def _stage_of_ranks(spec: RunSpec) -> list[int] | None:
    return None if spec.options is not None else [place.pipeline for place in world(spec)]


def _pipelined(
    step: Step, schedule: Schedule, stages: int, micro_batches: int, virtual_stages: int, stage_of: Sequence[int] | None
) -> Expected:
    seconds: dict[tuple[Kind, int], list[float]] = defaultdict(list)
    updates = []
    kinds: Mapping[str, Kind] = {"forward": "F", "backward": "B", "weight": "W"}
    for rank in step.ranks:
        for piece in rank.computed:
            if piece.kind in kinds and piece.stage is not None:
                seconds[kinds[piece.kind], piece.stage].append(_computing(rank, piece))
            elif piece.kind == "optimizer":
                updates.append(_computing(rank, piece))
    means = {key: fmean(values) for key, values in seconds.items()}
    update = fmean(updates) if updates else 0.0
    planned = pipelined_step(schedule, stages, micro_batches, virtual_stages, means, update)
    each = planned if stage_of is None else tuple(planned[stage] for stage in stage_of)
    return Expected(each, _end(each))


def _computing(rank: RankStep, piece: Piece) -> float:
    """Seconds of a piece in which something was computed."""
    return covered((piece.start, piece.end), ((start, end) for _, start, end in rank.busy))


def _layered(spec: RunSpec, step: Step) -> Expected | None:
    layers = spec.model.layers
    found = {what: [_mean_of_layer(step, TONES[what], layer) for layer in range(layers)] for what in ("F", "B")}
    if any(value is None for values in found.values() for value in values):
        return None
    inside = _inside_layers(step)
    seconds = LayerSeconds(
        forward=[(value or 0.0) + inside.get(("forward", layer), 0.0) for layer, value in enumerate(found["F"])],
        backward=[(value or 0.0) + inside.get(("backward", layer), 0.0) for layer, value in enumerate(found["B"])],
        embedding=_mean_of_end(step, "F", "begin"),
        head=_mean_of_end(step, "F", "end"),
        head_backward=_mean_of_end(step, "B", "begin"),
        embedding_backward=_mean_of_end(step, "B", "end"),
        optimizer=_mean(
            _computing(rank, piece) for rank in step.ranks for piece in rank.computed if piece.kind == "optimizer"
        ),
        transfers=_transfers(step),
    )
    planned, end = layered_step(spec, seconds)
    return Expected((planned,) * len(step.ranks), end)


def _mean_of_layer(step: Step, tone: str, layer: int) -> float | None:
    """Per micro-batch; in backward what is computed again counts, for it has to be."""
    totals, passes = 0.0, 0
    for rank in step.ranks:
        mine = [piece for piece in rank.computed if piece.layer == layer]
        chosen = [piece for piece in mine if _is_pass_of(piece, tone)]
        again = [piece for piece in mine if tone == "backward" and piece.key.endswith("r")]
        totals += sum(_computing(rank, piece) for piece in (*chosen, *again))
        passes += len(chosen)
    return totals / passes if passes else None


def _is_pass_of(piece: Piece, tone: str) -> bool:
    return piece.kind == tone and not piece.key.endswith("r")


def _mean_of_end(step: Step, what: str, place: str) -> float:
    """Per micro-batch, of what lies before the first layer or behind the last."""
    found = [
        _computing(rank, piece)
        for rank in step.ranks
        for piece in rank.computed
        if piece.key[0] == what and piece.key.endswith(place)
    ]
    return _mean(found)


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return fmean(found) if found else 0.0


def _inside_layers(step: Step) -> dict[tuple[str, int], float]:
    """Seconds of the transfers a layer cannot go on without, by tone and layer: tensor ranks' sums, for one."""
    found: dict[tuple[str, int], float] = defaultdict(float)
    for piece, seconds in _fastest(step):
        home = _layer_around(step.ranks[0], piece)
        if home is not None:
            found[home] += seconds
    batches = max(1, len({p.micro_batch for p in step.ranks[0].computed if p.kind == "forward" and p.layer == 0}))
    return {home: total / batches for home, total in found.items()}


def _layer_around(rank: RankStep, piece: Piece) -> tuple[str, int] | None:
    for each in rank.computed:
        if each.layer is not None and each.start <= piece.start and piece.end <= each.end + 1e-6:
            return ("backward" if each.key[0] == "B" else "forward"), each.layer
    return None


def _fastest(step: Step) -> list[tuple[Piece, float]]:
    """Of each collective of the first rank, the seconds it took on the rank that came last."""
    found: dict[str, float] = {}
    for rank in step.ranks:
        for piece in rank.moved:
            found[piece.key] = min(found.get(piece.key, piece.seconds), piece.seconds)
    return [(piece, found[piece.key]) for piece in step.ranks[0].moved]


def _transfers(step: Step) -> dict[tuple[str, str], list[float]]:
    """By operation and phase, those in no layer in the order they are called."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for piece, seconds in _fastest(step):
        if piece.moved is not None and _layer_around(step.ranks[0], piece) is None:
            found[piece.moved.operation, piece.moved.phase].append(seconds)
    return found


def _end(ranks: Sequence[Sequence[Planned]]) -> float:
    return max((each.end_seconds for mine in ranks for each in mine), default=0.0)
