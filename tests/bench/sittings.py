"""A sitting over HTTP: saving a draft beside a no-op route in turns, how soon a probe is there, and long debriefs."""

from __future__ import annotations

import http.client
import json
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from app.content.catalogue import catalogue
from app.interview.drawing import draw, values_of
from app.interview.parts import parts_of
from app.interview.questions import right_answer
from tests.support.product import running_product

ROUNDS, WARM_UP = 150, 20
SITTINGS = 12  # of M5, each with a probe to its first answer and a number that is questioned
SAVED, PROBE_SECONDS, DEBRIEF_SECONDS = 4.0, 0.400, 1.0
DEBRIEFS = 12
BEFORE = 3  # earlier sittings beside which a debrief is laid
WORDS = 250
FORM = {"Content-Type": "application/x-www-form-urlencoded"}

Connection = http.client.HTTPConnection


def measure(data: Path) -> dict[str, Any]:
    """The median of an autosave over that of GET /healthz; p95 from an answer to the page with the probe; the median
    debrief of the hour of T2, of M5's half hour in words and of M4's board and layout, each beside three earlier
    sittings."""
    with running_product(data) as product:
        connection = Connection(urlsplit(product.url).netloc)
        saves = {kind: _autosaves(connection, *given) for kind, given in _drafts().items()}
        probes = sorted(each for _ in range(SITTINGS) for each in _probes(connection))
        debriefs = {interview: _debrief(connection, interview) for interview in ("T2", "M5", "M4")}
    probe = probes[int(0.95 * (len(probes) - 1))]
    saved, noop = max(saves.values(), key=lambda each: each[0] / each[1])
    return {
        "noop_median_seconds": noop,
        "autosave_median_seconds": saved,
        "autosave_ratio": saved / noop,
        "probe_p95_seconds": probe,
        "debrief_median_seconds": debriefs,
        "targets": {"autosave": SAVED, "probe_p95": PROBE_SECONDS, "debrief": DEBRIEF_SECONDS},
        "lines": [
            *(
                f"no-op {idle * 1e3:.2f} ms, a draft saved of {kind}: {took * 1e3:.2f} ms, medians: "
                f"{took / idle:.2f} × (target ≤ {SAVED:g} ×)"
                for kind, (took, idle) in saves.items()
            ),
            f"from an answer to its probe: p95 {probe * 1e3:.0f} ms (target ≤ {PROBE_SECONDS * 1e3:g} ms)",
            *(
                f"debrief of {interview}, beside {BEFORE} earlier ones: {took * 1e3:.0f} ms "
                f"(target ≤ {DEBRIEF_SECONDS:g} s)"
                for interview, took in debriefs.items()
            ),
        ],
    }


def _drafts() -> dict[str, tuple[str, Callable[[int], dict[str, str]]]]:
    """What is saved again and again, by its kind: the interview, and the fields of the draft of that number."""
    words = " ".join(["gradients are reduced while backward computes"] * (WORDS // 6))
    items = [{"id": f"b{each}", "x": 3 * (each % 4), "y": 2 * (each // 4), "label": "Stage"} for each in range(24)]
    arrows = [{"start": f"b{each}", "end": f"b{each + 1}", "label": "activations"} for each in range(23)]
    board = json.dumps({"items": items, "arrows": arrows})
    return {
        f"{WORDS} words": ("M5", lambda number: {"part": "open", "answer": f"{words} {number}"}),
        "a full board beside words": ("M4", lambda number: {"part": "mlp", "answer": f"By {number}.", "board": board}),
        "a layout": ("M4", lambda number: {"part": "layout", "answer": f"tensor {1 + number % 8}, data 8"}),
    }


def _autosaves(connection: Connection, interview: str, draft: Callable[[int], dict[str, str]]) -> tuple[float, float]:
    sitting = _start(connection, interview)
    rows = []
    for index in range(ROUNDS + WARM_UP):
        noop = _timed(lambda: _get(connection, "/healthz"))
        rows.append((_timed(lambda: _save(connection, sitting, draft(index))), noop))  # noqa: B023
    _end(connection, sitting)
    saved, idle = (statistics.median(column) for column in zip(*rows[WARM_UP:], strict=True))
    return saved, idle


def _probes(connection: Connection) -> list[float]:
    """Seconds from a weak answer, and from a wrong layout, until the page with what is asked about it is there."""
    weak = " ".join((catalogue().interviews["M5"].questions[0].weak or "").split())
    answers = {"M5": ("open", weak), "M4": ("layout", "tensor 1, pipeline 1, data 2"), "T2": ("sp2-i", "1, 1, 8, 1, 1")}
    times = []
    for interview, (part, answer) in answers.items():
        sitting, pages = _start(connection, interview), list[str]()
        times.append(_timed(lambda: pages.append(_get(connection, _give(connection, sitting, part, answer)))))  # noqa: B023
        assert "half of what was lost" in pages[0], pages[0][:500]
        _end(connection, sitting)
    return times


def _debrief(connection: Connection, key: str) -> float:
    for _ in range(BEFORE + 1):
        sitting = _sit(connection, key)
    times = [_timed(lambda: _get(connection, sitting)) for _ in range(DEBRIEFS)]
    page = _get(connection, sitting)
    assert "Beside your earlier sittings" in page, page[:500]
    return statistics.median(times)


def _sit(connection: Connection, key: str) -> str:
    """A whole sitting, all of it answered: numbers as another draw has them, words in full."""
    sitting, interview = _start(connection, key), catalogue().interviews[key]
    values, answers = values_of(interview, draw(interview, 7)), {}
    for part in parts_of(interview):
        text = part.question.exemplar if part.kind == "text" else right_answer(part, values, answers)
        answers[part.id] = " ".join((text or "").split())
        _give(connection, sitting, part.id, answers[part.id])
    _end(connection, sitting)
    return sitting


def _start(connection: Connection, key: str) -> str:
    return _post(connection, f"/interview/{key}", {})


def _give(connection: Connection, sitting: str, part: str, answer: str) -> str:
    return _post(connection, f"{sitting}/answers", {"part": part, "answer": answer, "final": "true"})


def _end(connection: Connection, sitting: str) -> None:
    _post(connection, f"{sitting}/finish", {})
    _post(connection, f"{sitting}/expectation", {"level": "hire"})


def _save(connection: Connection, sitting: str, draft: dict[str, str]) -> None:
    body = urlencode(draft)
    connection.request("POST", f"{sitting}/answers", body, {**FORM, "Accept": "application/json"})
    reply = connection.getresponse()
    text = reply.read()
    assert reply.status == 200, text[:300]


def _post(connection: Connection, path: str, fields: dict[str, str]) -> str:
    """Where the answer leads; where it was refused, the sitting."""
    connection.request("POST", path, urlencode(fields), FORM)
    reply = connection.getresponse()
    reply.read()
    assert reply.status in (303, 404, 409, 422), (path, reply.status)
    return re.sub(r"^https?://[^/]+", "", reply.headers.get("Location") or path.rpartition("/")[0])


def _get(connection: Connection, path: str) -> str:
    connection.request("GET", path)
    reply = connection.getresponse()
    text = reply.read().decode()
    assert reply.status == 200, (path, reply.status, text[:300])
    return text


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
