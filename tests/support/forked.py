"""`pytest --processes 3`: collects once and then forks, so that what tests import is loaded once and not by each.

A process takes whole files, in the order of the collection, for the tests of a file share fixtures; files that are
marked as `together` follow each other, and one process takes them all. Reports come back to the first process, which
counts and prints them as it does its own. One that dies fails the test it was at, and another takes what it has left.
"""

from __future__ import annotations

import atexit
import gc
import mmap
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import NoReturn
from warnings import WarningMessage

import pytest

MORE, STARTED, REPORT, WARNING, BROKEN = "more", "started", "report", "warning", "broken"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=1, help="how many processes run the tests, whole files each")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """In place of pytest's own loop where several processes are asked for."""
    options = session.config.option
    if options.processes < 2 or options.collectonly or options.usepdb or session.testsfailed:
        return None
    _Parent(session).run()
    return True


@dataclass
class _Child:
    pid: int
    connection: Connection
    left: deque[int] = field(default_factory=deque)  # places of the tests that it took and has not ended
    at: pytest.Item | None = None


def _group(item: pytest.Item) -> object:
    """What one process takes whole: a file, or the files of one mark."""
    mark = item.get_closest_marker("together")
    return item.path if mark is None else mark.args[0]


class _Parent:
    """Hands out files and hears what became of them."""

    def __init__(self, session: pytest.Session) -> None:
        self.session, self.hook = session, session.config.hook
        numbered = groupby(enumerate(session.items), lambda each: _group(each[1]))
        self.files = deque([place for place, _ in file] for _, file in numbered)
        self.children: dict[Connection, _Child] = {}
        self.stop = mmap.mmap(-1, 1)  # shared by all: no more tests, once it is not zero

    def run(self) -> None:
        config = self.session.config
        config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined] # one folder for all processes
        gc.collect()
        gc.freeze()  # what all have in common is looked through by none
        try:
            for _ in range(min(config.option.processes, len(self.files))):
                self._fork()
            while self.children:
                for ready in wait(self.children):
                    self._hear(self.children[ready])  # type: ignore[index]
        finally:
            self.stop[0] = 1
            for child in self.children.values():
                child.connection.close()
                os.waitpid(child.pid, 0)
            gc.unfreeze()
        if self.session.shouldfail:
            raise self.session.Failed(self.session.shouldfail)
        if self.session.shouldstop:
            raise self.session.Interrupted(self.session.shouldstop)

    def _fork(self) -> None:
        if threading.active_count() > 1:
            names = ", ".join(each.name for each in threading.enumerate())
            raise pytest.UsageError(f"the collection started threads, which no fork takes along: {names}")
        ours, theirs = Pipe()
        pid = os.fork()
        if pid == 0:
            for each in (ours, *self.children):
                each.close()
            _run(self.session, theirs, self.stop)
        theirs.close()
        self.children[ours] = _Child(pid, ours)

    def _hear(self, child: _Child) -> None:
        try:
            what, content = child.connection.recv()
        except (EOFError, ConnectionResetError):
            self._bury(child)
            return
        if what == MORE:
            file = self.files.popleft() if self.files and not self.stop[0] else []
            child.left.extend(file)
            child.connection.send(file)
        elif what == STARTED:
            child.at = self.session.items[content]
            self.hook.pytest_runtest_logstart(nodeid=child.at.nodeid, location=child.at.location)
        elif what == REPORT:
            report = self.hook.pytest_report_from_serializable(config=self.session.config, data=content)
            self._note(child, report)
        elif what == WARNING:
            self.hook.pytest_warning_recorded.call_historic(kwargs=content)
        elif what == BROKEN:
            raise RuntimeError(f"a process of the tests broke:\n{content}")

    def _note(self, child: _Child, report: pytest.TestReport) -> None:
        assert child.at is not None
        self.hook.pytest_runtest_logreport(report=report)
        if report.when == "teardown":
            self.hook.pytest_runtest_logfinish(nodeid=child.at.nodeid, location=child.at.location)
            child.left.popleft()
            child.at = None
        if self.session.shouldfail or self.session.shouldstop:
            self.stop[0] = 1

    def _bury(self, child: _Child) -> None:
        """It ended: as it was told, or in the middle of a test."""
        del self.children[child.connection]
        child.connection.close()
        code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
        if child.at is not None:
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            place = child.at.nodeid, child.at.location
            self._note(child, pytest.TestReport(*place, {}, "failed", f"its process ended: {how}", "call"))
            self._note(child, pytest.TestReport(*place, {}, "passed", None, "teardown"))
        if child.left and not self.stop[0]:
            self.files.appendleft(list(child.left))
            self._fork()


def _run(session: pytest.Session, connection: Connection, stop: mmap.mmap) -> NoReturn:
    """All of a forked process: what the first does at the end of the session, such as its summary, is not for it."""
    code = 1
    try:
        _separate(session.config, connection)
        for place, following in _places(connection, stop):
            connection.send((STARTED, place))
            item, after = session.items[place], None if following is None else session.items[following]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        code = 0
    except (KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
        pass  # the first process was interrupted as well, or is gone
    except BaseException:
        connection.send((BROKEN, traceback.format_exc()))
    finally:
        try:
            session._setupstate.teardown_exact(None)
            atexit._run_exitfuncs()
        finally:
            os._exit(code)


def _places(connection: Connection, stop: mmap.mmap) -> Iterator[tuple[int, int | None]]:
    """Each test with the one after it: fixtures that both have are kept between them."""
    taken: deque[int] = deque()
    while not stop[0]:
        if len(taken) < 2:
            connection.send((MORE, None))
            taken.extend(connection.recv())
        if not taken:
            return
        place = taken.popleft()
        yield place, taken[0] if taken else None


def _separate(config: pytest.Config, connection: Connection) -> None:
    """What this process must not share with the others, or repeat: files of what is captured, the terminal, exits."""
    atexit._clear()
    manager = config.pluginmanager
    capture = manager.get_plugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    manager.get_plugin("terminalreporter")._tw._file = open(os.devnull, "w")  # noqa: SIM115
    manager.register(_Reporter(config, connection))


class _Reporter:
    """Sends what a test came to."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self.config, self.connection = config, connection
        self.begun = False

    def pytest_runtest_logstart(self) -> None:
        self.begun = True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        content = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.connection.send((REPORT, content))

    def pytest_warning_recorded(
        self, warning_message: WarningMessage, when: str, nodeid: str, location: tuple[str, int, str] | None
    ) -> None:
        if not self.begun:
            return  # of the collection, which the first process has counted
        text = str(warning_message.message)  # not what it is about, which stays here
        sent = WarningMessage(text, warning_message.category, warning_message.filename, warning_message.lineno)
        content = {"warning_message": sent, "when": when, "nodeid": nodeid, "location": location}
        self.connection.send((WARNING, content))
