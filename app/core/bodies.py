"""How much a request may send, and for how long it may take its time: counted as it arrives, whatever it announced."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MB = 10**6
BODY_BYTES = 2 * MB
FIRST_SECONDS = 20.0
SLOWEST_BYTES_PER_SECOND = 20_000.0  # after the first seconds: an upload may take hours, a drip may not


class BodyLimit:
    """Refuses bodies that are too large (413) or come too slowly (408). `larger` names paths that take more bytes."""

    def __init__(self, app: ASGIApp, larger: Mapping[str, int]) -> None:
        self.app = app
        self.larger = larger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        most = self.larger.get(scope["path"].rstrip("/"), BODY_BYTES) if scope["method"] == "POST" else BODY_BYTES
        announced = Headers(scope=scope).get("content-length", "0")
        if not announced.isdecimal() or len(announced) > 18:
            await _problem(400, f"Content-Length {announced[:40]!r} is no number of bytes.")(scope, receive, send)
        elif int(announced) > most:
            await _too_large(most)(scope, receive, send)
        else:
            await _Watched(self.app, receive, send, most).run(scope)


class _Watched:
    """One request whose body is counted and timed."""

    def __init__(self, app: ASGIApp, receive: Receive, send: Send, most: int) -> None:
        self.app, self._receive, self._send, self.most = app, receive, send, most
        self.bytes = 0
        self.began = time.monotonic()
        self.is_complete = self.has_begun = False
        self.refusal: Response | None = None

    async def run(self, scope: Scope) -> None:
        try:
            await self.app(scope, self.receive, self.send)
        except ClientDisconnect:
            if self.refusal is None:
                raise
        if self.refusal is not None and not self.has_begun:
            await self.refusal(scope, self._receive, self._send)

    async def receive(self) -> Message:
        if self.is_complete:  # what may follow is that the client left, and it need not
            return await self._receive()
        if self.refusal is not None:
            raise ClientDisconnect
        left = FIRST_SECONDS + self.bytes / SLOWEST_BYTES_PER_SECOND - (time.monotonic() - self.began)
        try:
            message = await asyncio.wait_for(self._receive(), max(left, 0.001))
        except TimeoutError:
            self.refusal = _problem(408, f"The request's body came too slowly; {FIRST_SECONDS:g} s are waited for it.")
            raise ClientDisconnect from None
        if message["type"] == "http.request":
            self.bytes += len(message.get("body", b""))
            self.is_complete = not message.get("more_body", False)
            if self.bytes > self.most:
                self.refusal = _too_large(self.most)
                raise ClientDisconnect
        return message

    async def send(self, message: Message) -> None:
        if self.refusal is None or self.has_begun:  # else: what the application makes of a body that was cut off
            self.has_begun = True
            await self._send(message)


def _too_large(most: int) -> Response:
    return _problem(413, f"The request is too large: up to {most / MB:g} MB are taken here.")


def _problem(status: int, detail: str) -> Response:
    titles = {400: "bad request", 408: "too slow", 413: "too large"}
    details: dict[str, Any] = {"type": "urn:rankzero:body", "title": titles[status], "status": status, "detail": detail}
    return Response(json.dumps(details), status, {"Connection": "close"}, "application/problem+json")
