"""Pipeline schedules as the simulator plays them, for any number of stages, micro-batches and chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from app.content.players.player import Choice, Control, Frame, Player, Range, Settings, boxes, path, picture
from app.theory.pipeline import ChunkSeconds, Order, Pass, PipelineRun, chunk_of, order, simulate_pipeline
from app.theory.simulator import Span
from app.units import digits
from app.words import capital
from labs.spec import SCHEDULE_RULES, schedule_violations

_NAMES = {
    "gpipe": "GPipe",
    "1f1b": "1F1B",
    "interleaved": "Interleaved",
    "zero-bubble": "Zero-bubble",
    "looped-bfs": "Looped BFS",
    "zbv": "ZB-V",
    "dualpipev": "DualPipe-V",
}
_TONES = {"F": "forward", "B": "backward", "W": "weight"}
_WIDTH, _HEIGHT = 1000.0, 24.0
_LEAST_LABEL = 0.9  # percent of the step: a narrower pass has no room for a number
CONTROLS: tuple[Control, ...] = (
    Choice("schedule", "Schedule", tuple(_NAMES.items()), "1f1b"),
    Range("stages", "Stages", 2, 8, 4, "p"),
    Range("micro_batches", "Micro-batches", 1, 16, 8, "m"),
    Range("virtual_stages", "Chunks a rank", 1, 4, 1, "v"),
)


def make(settings: Settings, at: int | None) -> Player:
    schedule, stages = str(settings["schedule"]), int(settings["stages"])
    asked = int(settings["micro_batches"]), int(settings["virtual_stages"])
    micro_batches, chunks = _taken(schedule, stages, *asked)
    note = _note(schedule, stages, asked, (micro_batches, chunks))
    passes = order(schedule, stages, micro_batches, chunks)
    each = 1 / chunks
    run = simulate_pipeline(passes, [ChunkSeconds(each, each, each)] * (stages * chunks))
    times = sorted({0.0, *(round(span.end_seconds, 9) for rank in run.spans for span in rank)})
    frames = tuple(_frame(time, passes, run, chunks, note) for time in times)
    idle = f"{digits(100 * run.idle_fraction, 3)} %"
    name = _NAMES[schedule]
    shown_at = len(times) - 1 if at is None else min(len(times) - 1, at)
    shown = {**settings, "micro_batches": micro_batches, "virtual_stages": chunks}
    return Player(
        figure="pipeline",
        title=f"{name}: {stages} stages, {micro_batches} micro-batches"
        + (f", {chunks} chunks each" if chunks > 1 else ""),
        controls=CONTROLS,
        settings=shown,
        frames=frames,
        counters=("Bubble", "Micro-batches kept, most", "Time, in forwards of a stage"),
        phases=((f"time, {digits(run.step_seconds)} forwards of one stage in all", len(times) - 1),),
        key=tuple(_key(passes, chunks)),
        says=(
            f"{note}{name} on {stages} stages with {micro_batches} micro-batches: ranks idle {idle} of "
            f"{digits(run.step_seconds)} forwards, and keep at most {digits(max(run.peak_in_flight) / chunks, 3)} "
            "micro-batches."
        ),
        head=("Rank", "Busy", "Idle", "Keeps at most", "Passes in order"),
        rows=tuple(_rows(passes, run, chunks)),
        few=tuple(sorted({round(share * (len(times) - 1)) for share in (0.2, 0.5, 1)})),
        at=shown_at,
        still=_still(schedule, passes, run, chunks, frames[shown_at].slots),
    )


def _taken(schedule: str, stages: int, micro_batches: int, chunks: int) -> tuple[int, int]:
    """The nearest numbers of micro-batches and chunks that the schedule takes."""
    rule = SCHEDULE_RULES[schedule]
    chunks = max(rule.least_virtual_stages, min(chunks, rule.most_virtual_stages or chunks))
    unit = rule.micro_batches_come_in(stages, chunks)
    return -(-max(micro_batches, rule.least_micro_batches(stages)) // unit) * unit, chunks


def _note(schedule: str, stages: int, asked: tuple[int, int], taken: tuple[int, int]) -> str:
    """What was asked for and is not shown, and why."""
    if asked == taken:
        return ""
    wrong = schedule_violations(schedule, stages, *asked) or schedule_violations(schedule, stages, asked[0], taken[1])
    why = " ".join(each.message for each in wrong)
    chunks = f" in {taken[1]} chunk{'s' if taken[1] > 1 else ''} a rank" if asked[1] != taken[1] else ""
    return f"{why} Shown: {taken[0]} micro-batches{chunks}. "


def _x(seconds: float, run: PipelineRun) -> float:
    return _WIDTH * seconds / run.step_seconds


def _still(schedule: str, passes: Order, run: PipelineRun, chunks: int, kept: Sequence[str]) -> Markup:
    """Every lane twice: in outline what will be, filled what has been, which the frame uncovers. `kept` is what the
    first frame says at the right."""
    rows = Markup('<span></span><span></span><span class="hd">kept</span>')
    for rank, spans in enumerate(run.spans):
        held = chunk_of(schedule, rank, len(run.spans), chunks)
        by_tone: dict[str, list[tuple[float, float, float, float]]] = {}
        feet, labels = [], Markup("")
        for each, span in zip(passes[rank], spans, strict=True):
            x, width = _x(span.start_seconds, run), _x(span.end_seconds - span.start_seconds, run)
            by_tone.setdefault(_TONES[each.kind], []).append((x, 0.0, width, _HEIGHT))
            if held.index(each.chunk):
                feet.append((x, _HEIGHT - 4, width, 4.0))
            if width / 10 >= _LEAST_LABEL and each.kind != "W":
                labels += Markup('<b class="on-{}" style="--x:{}%;--w:{}%">{}</b>').format(
                    _TONES[each.kind], f"{x / 10:.4g}", f"{width / 10:.4g}", each.micro_batch
                )
        every = [box for found in by_tone.values() for box in found]
        filled = Markup("").join(path(tone, boxes(found)) for tone, found in by_tone.items())
        cuts = path("cuts", "".join(f"M{x:g} 0v{_HEIGHT:g}" for x, _, _, _ in every))
        rows += Markup(
            '<span><span class="sg">Rank </span>{}</span>'
            '<div class="row">{}<div class="done"><div>{}{}</div></div></div>'
            '<span class="num" data-slot>{}</span>'
        ).format(
            rank,
            picture(_WIDTH, _HEIGHT, path("later", boxes(every))),
            picture(_WIDTH, _HEIGHT, filled + path("feet", boxes(feet)) + cuts),
            labels,
            kept[rank],
        )
    return Markup('<div class="pipe">{}</div>').format(rows)


def _frame(time: float, passes: Order, run: PipelineRun, chunks: int, note: str) -> Frame:
    kept = [_kept(time, mine, spans) / chunks for mine, spans in zip(passes, run.spans, strict=True)]
    done = sum(min(span.end_seconds, time) - min(span.start_seconds, time) for rank in run.spans for span in rank)
    so_far = 1 - done / (time * len(run.spans)) if time else 0.0
    bubble = f"{digits(100 * max(0.0, so_far), 3)} % so far, {digits(100 * run.idle_fraction, 3)} % at the end"
    most = [peak / chunks for peak in run.peak_in_flight]
    return Frame(
        html=Markup(""),
        says=Markup("{}").format(note) + _says(time, passes, run, chunks),
        counters=(
            bubble,
            f"rank 0: {digits(most[0], 3)}, last: {digits(most[-1], 3)}",
            f"{digits(time, 3)} of {digits(run.step_seconds)}",
        ),
        clip=f"{100 * time / run.step_seconds:.4g}",
        slots=tuple(digits(each, 3) for each in kept),
    )


def _kept(time: float, passes: Sequence[Pass], spans: Sequence[Span]) -> int:
    """Chunks of a micro-batch whose activations are there: from the forward until the whole backward has run."""
    split = {(each.chunk, each.micro_batch) for each in passes if each.kind == "W"}
    begun = ended = 0
    for each, span in zip(passes, spans, strict=True):
        if each.kind == "F":
            begun += span.start_seconds < time + 1e-9
        elif each.kind == "W" or (each.chunk, each.micro_batch) not in split:
            ended += span.end_seconds <= time + 1e-9
    return begun - ended


def _says(time: float, passes: Order, run: PipelineRun, chunks: int) -> Markup:
    if time >= run.step_seconds - 1e-9:
        idle = digits(100 * run.idle_fraction, 3)
        kept = digits(run.peak_in_flight[0] / chunks, 3)
        return Markup("Done: ranks were idle <b>{} %</b> of the step, and rank 0 kept up to {} micro-batches.").format(
            idle, kept
        )
    words = []
    for mine, spans in zip(passes, run.spans, strict=True):
        now = next(
            (e for e, s in zip(mine, spans, strict=True) if s.start_seconds <= time + 1e-9 < s.end_seconds), None
        )
        names = {"F": "forward", "B": "backward", "W": "weight gradient"}
        words.append(f"{names[now.kind]} {now.micro_batch}" if now else "<b>waits</b>")
    if len(words) <= 4:
        says = ", ".join(f"rank {rank} {word}" for rank, word in enumerate(words))
        return Markup(f"{capital(says)}.")  # noqa: S704 - made of numbers and the words above
    waiting = words.count("<b>waits</b>")
    says = f"{len(words) - waiting} of {len(words)} ranks compute. Rank 0: {words[0]}; the last: {words[-1]}."
    return Markup(says)  # noqa: S704 - made of numbers and the words above


def _rows(passes: Order, run: PipelineRun, chunks: int) -> Iterator[tuple[str, ...]]:
    for rank, busy in enumerate(run.busy_seconds):
        names = " ".join(str(each) if chunks > 1 else f"{each.kind}{each.micro_batch}" for each in passes[rank])
        kept = digits(run.peak_in_flight[rank] / chunks, 3)
        yield str(rank), digits(busy, 3), digits(run.step_seconds - busy, 3), kept, names


def _key(passes: Order, chunks: int) -> Iterator[tuple[str, str]]:
    yield "forward", "Forward"
    yield "backward", "Backward"
    if any(each.kind == "W" for each in passes[0]):
        yield "weight", "Weight gradient"
    yield "idle", "Idle"
    if chunks > 1:
        yield "feet", "light foot: a later chunk of the rank"
