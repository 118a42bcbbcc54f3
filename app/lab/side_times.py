"""Where the time of the watched steps of several runs goes, term by term, and which term makes the difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.lab.film import TERMS, Strip, step_of, strip_beside
from app.lab.view import RunView
from app.units import Step, digits, step_for, value_text
from labs.spec import RunSpec

_ALIKE = 5e-4  # of the longest step: a term that is shorter in all is left out
_UNEVEN = 1.3  # times as long for the same work: more than steps scatter on a machine that is equally free
_FSDP = 3  # ZeRO's stage
_SAME_WORK = ("forward", "backward")  # terms of the layers' own arithmetic


@dataclass(frozen=True)
class Term:
    """One part of the watched steps' time: its share of the longest step and its text, a run each, and how much longer
    than the first run's."""

    name: str
    title: str
    parts: tuple[float, ...]
    texts: tuple[str, ...]
    apart: tuple[str, ...]


def strips_of(specs: Sequence[RunSpec], views: Sequence[RunView]) -> tuple[tuple[int, Strip], ...]:
    """The watched steps of those that have one, by where the run stands among those shown."""
    steps = [step_of(spec, view.spans, view.details) for spec, view in zip(specs, views, strict=True)]
    longest = max((step.seconds for step in steps if step), default=0.0)
    return tuple(
        (at, strip_beside(spec, step, longest))
        for at, (spec, step) in enumerate(zip(specs, steps, strict=True))
        if step is not None
    )


def terms_of(strips: Sequence[tuple[int, Strip]], longest: float) -> Iterator[Term]:
    """Parts of the steps that any of them has."""
    step = step_for(longest, "seconds")  # one unit for all, or lengths cannot be read down a column
    for name, title in TERMS.items():
        seconds = [strip.terms[name] for _, strip in strips]
        if not any(each > _ALIKE * longest for each in seconds):
            continue
        yield Term(
            name,
            title,
            tuple(100 * each / longest for each in seconds),
            tuple(f"{_in(step, each)} {step.unit}" for each in seconds),
            tuple(_signed(each - seconds[0], step) for each in seconds),
        )


def _in(step: Step, seconds: float) -> str:
    size = abs(seconds) / step.size
    return digits(size, 3) if size >= 1 else f"{size:.2f}"


def _signed(seconds: float, step: Step) -> str:
    return f"{'+' if seconds >= 0 else '−'}{_in(step, seconds)} {step.unit}"


def watched_beside_plain(
    run_ids: Sequence[int], plain_seconds: Sequence[float | None], strips: Sequence[tuple[int, Strip]]
) -> str:
    """How much longer the watched step took than the plain ones, which all other times here are of: empty where
    nothing says how long those take."""
    said = [
        f"run {run_ids[at]} {value_text(strip.seconds, 'seconds')} against {value_text(plain, 'seconds')}"
        for at, strip in strips
        if (plain := plain_seconds[at])
    ]
    if not said:
        return ""
    return f"A watched step takes longer than a plain one: {', '.join(said)}. This says where time goes, not how much."


def slower_by(specs: Sequence[RunSpec], run_ids: Sequence[int], strips: Sequence[tuple[int, Strip]]) -> str:
    """The term that makes the longest of the watched steps longer than the shortest; nothing where the steps are of
    different numbers of tokens, for all of them grow then."""
    if len(strips) < 2 or len({specs[at].tokens_per_step for at, _ in strips}) > 1:
        return ""
    (at, long), (_, short) = (pick(strips, key=lambda each: each[1].seconds) for pick in (max, min))
    apart = {name: long.terms[name] - short.terms[name] for name in TERMS}
    most, whole = max(apart, key=apart.__getitem__), long.seconds - short.seconds
    if whole <= _ALIKE * long.seconds or apart[most] <= 0:
        return ""
    longer = value_text(whole, "seconds")
    more = _signed(apart[most], step_for(apart[most], "seconds"))
    return f"{TERMS[most]}: {more} in run {run_ids[at]}, whose watched step is {longer} longer"


def said_of_same_work(specs: Sequence[RunSpec], run_ids: Sequence[int], strips: Sequence[tuple[int, Strip]]) -> str:
    """Of passes that are the same arithmetic, in all runs or on all ranks of one, which took longer and by how much:
    the machine did that, and not what differs between the specs. Nothing where their arithmetic differs."""
    if len(strips) < 2 or not _is_same_work(specs, strips):
        return ""
    said = []
    for name in _SAME_WORK:
        (slow, long), (_, short) = (pick(strips, key=lambda each: each[1].terms[name]) for pick in (max, min))
        if times := _uneven(long.terms[name], short.terms[name]):
            said.append(f"{TERMS[name].lower()} took {times} times as long in run {run_ids[slow]}")
    runs = [" and ".join(said)] if said else []
    runs += [
        f"in run {run_ids[at]} {lagging}"
        for at, strip in strips
        if _is_alike_on_ranks(specs[at]) and (lagging := _said_of_ranks(strip))
    ]
    if not runs:
        return ""
    return (
        f"The same arithmetic, and {'; '.join(runs)}: the machine was not equally free, or ranks got in each other's "
        f"way. Run {'both' if len(strips) == 2 else 'them'} again before you believe the times."
    )


def _said_of_ranks(strip: Strip) -> str:
    """The pass in which the ranks are furthest apart, and how far; nothing where they are alike."""
    every = {name: [terms[name] for terms in strip.by_rank] for name in _SAME_WORK if strip.by_rank}
    apart = {name: times for name, took in every.items() if (times := _uneven(max(took), min(took)))}
    if not apart:
        return ""
    name = max(apart, key=lambda each: max(every[each]) / min(every[each]))
    slow, fast = (every[name].index(pick(every[name])) for pick in (max, min))
    return f"{TERMS[name].lower()} took {apart[name]} times as long on rank {slow} as on rank {fast}"


def said_of_update(specs: Sequence[RunSpec], run_ids: Sequence[int], strips: Sequence[tuple[int, Strip]]) -> str:
    """Why FSDP's update takes longer on a share of the state than that of whole tensors, where it does.

    On a CPU, AdamW updates a tensor at a time in some ten operations, each of which goes through DTensor's dispatch
    first. Timed here, that is 0.15 to 0.2 ms for a tensor of any size, beside 0.03 ms for all of a plain one of 4
    numbers and 0.12 ms for one of 65,536. On two ranks shards were updated faster from some 200,000 numbers on."""
    if len(strips) < 2 or not _is_same_work(specs, strips):
        return ""
    sharded = [each for each in strips if specs[each[0]].parallel.zero == _FSDP]
    whole = [each for each in strips if specs[each[0]].parallel.zero == 0]
    if not sharded or not whole:
        return ""
    (at, shards), (other, plain) = (min(each, key=_update) for each in (sharded, whole))  # the least disturbed
    times = _uneven(shards.terms["optimizer"], plain.terms["optimizer"])
    if not times:
        return ""
    return (
        f"The update took {times} times as long in run {run_ids[at]} as in run {run_ids[other]}, though a rank updates "
        f"1/{specs[at].parallel.data} of the numbers: each of its operations, about ten a tensor, first goes through "
        "the dispatch of FSDP's sharded tensors (DTensor), in Python. On a CPU that costs a tensor of any size about "
        "as much as the arithmetic of a hundred thousand numbers: only larger tensors gain."
    )


def _update(strip: tuple[int, Strip]) -> float:
    return strip[1].terms["optimizer"]


def _uneven(long: float, short: float) -> str:
    """How many times as long, where that is more than steps scatter."""
    return digits(long / short, 2) if 0 < short * _UNEVEN < long else ""


def _is_same_work(specs: Sequence[RunSpec], strips: Sequence[tuple[int, Strip]]) -> bool:
    return len({_arithmetic(specs[at]) for at, _ in strips}) == 1


def _is_alike_on_ranks(spec: RunSpec) -> bool:
    """Whether all its ranks compute the same: stages, pieces of a sequence and experts differ."""
    parallel = spec.parallel
    return parallel.pipeline == parallel.context == parallel.expert == 1


def _arithmetic(spec: RunSpec) -> str:
    """What a rank computes in a step: all of a spec but how much its ranks hold and send."""
    training, parallel = spec.training, spec.parallel
    alike = (training.sequence, training.micro_batch, training.micro_batches, training.precision, training.recompute)
    degrees = (parallel.data, parallel.tensor, parallel.pipeline, parallel.context, parallel.expert)
    return repr((spec.program, spec.model, alike, training.attention, degrees))
