"""A second grader for tests: a real HTTP server that speaks the chat-completions protocol and does as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Handler"], None]


@dataclass
class GradingServer:
    """A running server: `answer` says what it does with a request, `requests` what it was sent."""

    url: str = ""
    answer: Answer = field(default=lambda handler: handler.complete({"points": []}))
    requests: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    let_go: threading.Event = field(default_factory=threading.Event)

    @property
    def asked(self) -> dict[str, Any]:
        """What the last request gave to judge."""
        found: dict[str, Any] = json.loads(self.requests[-1][2]["messages"][1]["content"])
        return found

    def says(self, judge: Callable[[dict[str, Any]], Any]) -> None:
        """Reply with what `judge` makes of the question, points and answer it was sent."""
        self.answer = lambda handler: handler.complete(judge(self.asked))


class Handler(BaseHTTPRequestHandler):
    """One request."""

    owner: GradingServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.owner.requests.append((self.path, dict(self.headers), body))
        self.owner.answer(self)

    def do_GET(self) -> None:  # what a client that follows redirects would send
        self.owner.requests.append((self.path, dict(self.headers), None))
        self.reply(200, b"{}")

    def reply(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def message(self, **message: Any) -> None:
        """A chat completion with this message."""
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
        self.reply(200, json.dumps({"object": "chat.completion", "choices": [choice]}).encode())

    def complete(self, content: Any) -> None:
        self.message(content=json.dumps(content), refusal=None)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@contextmanager
def grading_server() -> Iterator[GradingServer]:
    """A server on a free port; what still hangs in it when the block ends is let go."""
    owner = GradingServer()
    handler = type("Handler", (Handler,), {"owner": owner})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    owner.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield owner
    finally:
        owner.let_go.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
