"""One rank: sealed first, then given the learner's file, which it loads and calls as the lab's task says."""

from __future__ import annotations

import faulthandler
import importlib
import linecache
import pkgutil
import random
import signal
import socket
import sys
import traceback
import warnings
from types import FrameType, ModuleType
from typing import Any

import torch

from labs.code.inside import group, seal, tasks
from labs.code.inside.channel import SOLUTION, Channel, JudgeGone
from labs.code.inside.desk import Desk, Refused

_MOST_TRACEBACK_LINES = 12
_MOST_MESSAGE = 600


def load_tasks() -> None:
    """Load every task, so that a fork has it."""
    for each in pkgutil.iter_modules(tasks.__path__):
        importlib.import_module(f"{tasks.__name__}.{each.name}")


def be_rank(connection: socket.socket) -> int:
    """Be the rank that the judge at the other end says; the exit code."""
    channel = Channel(connection)
    faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=False)  # the judge asks where we are
    seal.seal(seal.Limits())
    try:
        job: dict[str, Any] = channel.ask({"kind": "hello"})
        _run(channel, job)
        channel.tell({"kind": "done"})
    except JudgeGone:
        return 1
    except BaseException as error:  # whatever a learner's code raises, SystemExit too, is said as what it is
        _say(channel, error)
        return 1
    return 0


def _run(channel: Channel, job: dict[str, Any]) -> None:
    warnings.simplefilter("ignore", FutureWarning)  # that torch renames a function is no news about the program
    random.seed(job["seed"])
    torch.manual_seed(job["seed"])
    group.join(channel, job["rank"], job["ranks"])
    learner = _load(job["source"])
    channel.tell({"kind": "loaded"})
    task = importlib.import_module(f"{tasks.__name__}.{job['task']}")
    task.run(learner, Desk(channel, job["rank"], job["ranks"]))


def _load(source: str) -> ModuleType:
    """The learner's file as a module. Raises whatever it raises."""
    linecache.cache[SOLUTION] = (len(source), None, source.splitlines(keepends=True), SOLUTION)
    module = ModuleType("solution")
    sys.modules["solution"] = module
    exec(compile(source, SOLUTION, "exec"), module.__dict__)  # noqa: S102 - it is what this sandbox is for
    return module


def _say(channel: Channel, error: BaseException) -> None:
    """What went wrong, with the learner's own line."""
    lines = _learners_traceback(error)
    described: dict[str, Any] = {
        "kind": "error",
        "type": type(error).__name__,
        "message": str(error)[:_MOST_MESSAGE],
        "line": None,
        "text": None,
        "column": None,
        "refused": isinstance(error, Refused),
        "traceback": lines[-_MOST_TRACEBACK_LINES:],
    }
    if isinstance(error, SyntaxError) and error.filename == SOLUTION:
        described |= {"line": error.lineno, "column": error.offset, "text": (error.text or "")[:200].rstrip()}
        described |= {"message": error.msg, "refused": True}
    else:
        described["line"] = _last_line(error)
    if isinstance(error, TypeError) and _is_about_the_call(error):
        described["refused"] = True
    channel.tell(described)


def _learners_traceback(error: BaseException) -> list[str]:
    """The traceback without what is not the learner's file: of a library that was called wrongly the lines say nothing,
    and where many were shown the learner's own would be cut off."""
    described = traceback.TracebackException.from_exception(error)
    each: traceback.TracebackException | None = described
    while each is not None:
        own = [frame for frame in each.stack or () if frame.filename == SOLUTION]
        each.stack = traceback.StackSummary.from_list(own) if own else None  # type: ignore[assignment]
        each = each.__cause__ or each.__context__
    return [line[:300] for line in "".join(described.format()).rstrip().splitlines()]


def _last_line(error: BaseException) -> int | None:
    found = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if _is_learners(frame):
            found = line
    return found


def _is_learners(frame: FrameType) -> bool:
    return frame.f_code.co_filename == SOLUTION


def _is_about_the_call(error: TypeError) -> bool:
    """Whether our own call did not fit the learner's parameters: nothing of the learner's file was entered."""
    if _last_line(error) is not None:
        return False
    return "argument" in str(error)
