"""Asking another server, within a hard limit of time and size. Nothing is followed, nothing is retried.

http.client keeps a timeout for each read, so that a server which sends a byte now and then could hold a request for
ever; here the whole exchange has one deadline. It follows no redirect, so credentials go to the named host only, and
it reads no proxy settings.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from urllib.parse import urlsplit


class NoReply(Exception):
    """Nothing came back that can be used. `code` names why; the message never quotes what was sent or received."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(message)


@dataclass(frozen=True)
class Reply:
    """What a server answered."""

    status: int
    body: bytes


def post_json(url: str, body: object, headers: Mapping[str, str], *, seconds: float, most_bytes: int) -> Reply:
    """POST `body` as JSON to an http or https URL and read the reply.

    Raises NoReply with `time-out` after `seconds` in all, `too-large` beyond `most_bytes`, and `unreachable` when
    there is no such server or it breaks off or speaks no HTTP.
    """
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=seconds)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    sent = {"Content-Type": "application/json", "Accept": "application/json", **headers}
    payload = json.dumps(body).encode()
    given_up = threading.Event()
    found: SimpleQueue[Reply | Exception] = SimpleQueue()

    def exchange() -> None:
        try:
            connection.connect()  # looking a name up cannot be interrupted, only left behind
            if not given_up.is_set():
                connection.request("POST", target, payload, sent)
                response = connection.getresponse()
                found.put(Reply(response.status, response.read(most_bytes + 1)))
        except Exception as error:
            found.put(error)
        finally:
            connection.close()

    threading.Thread(target=exchange, daemon=True, name="outbound").start()
    try:
        reply = found.get(timeout=seconds)
    except Empty:
        given_up.set()
        _hang_up(connection)
        raise NoReply("time-out", f"It did not answer within {seconds:g} s.") from None
    if isinstance(reply, TimeoutError):
        raise NoReply("time-out", f"It did not answer within {seconds:g} s.") from None
    if isinstance(reply, Exception):  # its text may hold a header, and with it a key
        raise NoReply("unreachable", f"It could not be reached ({type(reply).__name__}).") from None
    if len(reply.body) > most_bytes:
        raise NoReply("too-large", f"It sent more than {most_bytes:,} bytes.")
    return reply


def _hang_up(connection: http.client.HTTPConnection) -> None:
    """End what the other thread waits for."""
    line: socket.socket | None = connection.sock
    if line is not None:
        with suppress(OSError, ValueError):
            line.shutdown(socket.SHUT_RDWR)
