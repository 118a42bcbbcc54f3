"""HTTP connections as our server takes them: a head must come in time, and what is known of a connection stays with it.

uvicorn closes an idle connection, but waits for ever for the rest of a head that was begun.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from socket import socket

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0


class TimedProtocol(H11Protocol):
    """uvicorn's own protocol, which closes a connection whose head is not complete after HEAD_SECONDS."""

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.app_state: dict[str, object] = {**self.app_state, "connection": {}}  # shared by this connection's requests
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        """A timer runs from the first byte of a head (or from the connection's beginning) to its last."""
        if self.conn.their_state is not h11.IDLE or self._between_requests():
            self._stop_waiting()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _between_requests(self) -> bool:
        return self.timeout_keep_alive_task is not None

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            self.transport.close()


class Server(uvicorn.Server):
    """uvicorn's own server, which calls `once_up` when it has begun to take connections."""

    def __init__(self, config: uvicorn.Config, once_up: Callable[[], None]) -> None:
        super().__init__(config)
        self._once_up = once_up

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        gc.freeze()  # what is loaded by now, all content above all, stays: no collection looks through it again
        self._once_up()
