"""Who may use an install: whoever has its token, and the user it runs as. Another user of this machine gets nothing.

The token lies in the data folder, readable by its owner alone, and is part of the address that `start` prints. A
browser that opens it gets a cookie in exchange, and the token leaves the address bar; programs send
`Authorization: Bearer TOKEN`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import timedelta
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.core.peer import is_same_user
from app.core.templating import environment

PARTLY_OPEN = "/readyz"  # whether, without what
COOKIE_SECONDS = int(timedelta(days=365).total_seconds())
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


class Access:
    """Lets in who has the token or the cookie it was exchanged for, or is our own user; 401 for everybody else."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self.app = app
        self.token = token
        self.cookie = hmac.new((token or "").encode(), b"rankzero cookie", hashlib.sha256).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self.token is None:
            await self.app(scope, receive, send)
            return
        if _is_open(scope["path"]):
            scope.setdefault("state", {})["stranger"] = True  # whoever asks; a page of errors must not tell counts
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        query = scope["query_string"]
        if b"token=" in query and scope["method"] in ("GET", "HEAD"):
            given = dict(parse_qsl(query.decode("latin-1"))).get("token", "")
            if self._is_token(given):
                await self._exchange(scope, headers)(scope, receive, send)
                return
        if self._has_cookie(headers) or self._has_bearer(headers):
            await self.app(scope, receive, send)
        elif _is_own_user(scope, headers):
            await self.app(scope, receive, self._giving_cookie(headers, send))
        elif scope["path"] == PARTLY_OPEN:
            scope.setdefault("state", {})["stranger"] = True
            await self.app(scope, receive, send)
        else:
            await _refusal(scope, headers)(scope, receive, send)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), (self.token or "").encode())

    def _has_bearer(self, headers: Headers) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self._is_token(given.strip())

    def _has_cookie(self, headers: Headers) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(_cookie_name(headers))
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(errors="replace"), self.cookie.encode())

    def _exchange(self, scope: Scope, headers: Headers) -> Response:
        """To the same page without the token, with the cookie."""
        rest = [(key, value) for key, value in parse_qsl(scope["query_string"].decode("latin-1")) if key != "token"]
        path = "/" + quote(scope["path"].lstrip("/\\"))  # never "//host": that would lead to another server
        reply = RedirectResponse(path + (f"?{urlencode(rest)}" if rest else ""), 303)
        reply.headers["Cache-Control"] = "no-store"
        reply.headers["Referrer-Policy"] = "no-referrer"
        self._set_cookie(reply.headers, headers)
        return reply

    def _giving_cookie(self, headers: Headers, send: Send) -> Send:
        """Our own user's browser gets the cookie with the first page, and the kernel is not asked again."""
        if headers.get("sec-fetch-mode") != "navigate":
            return send

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._set_cookie(MutableHeaders(scope=message), headers)
            await send(message)

        return send_with_cookie

    def _set_cookie(self, reply: MutableHeaders, asked: Headers) -> None:
        says = f"Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Strict"
        reply.append("set-cookie", f"{_cookie_name(asked)}={self.cookie}; {says}")


def _is_open(path: str) -> bool:
    """That we live, and the files that every copy of the product holds."""
    return path == "/healthz" or path.startswith("/static/")


def _cookie_name(headers: Headers) -> str:
    """Cookies know no ports: each install of a machine needs a name of its own. By the port that was asked for, not by
    ours: behind a proxy several servers answer for one install."""
    try:
        port = urlsplit(f"//{headers.get('host', '')}").port
    except ValueError:  # such as 127.0.0.1:99999
        port = None
    return f"rankzero-{port or 80}"


def _is_own_user(scope: Scope, headers: Headers) -> bool:
    """Asked once a connection. What a proxy passed on came from somebody else, whoever runs the proxy."""
    if any(name in headers for name in _FORWARDED):
        return False
    client, server = scope.get("client"), scope.get("server")
    if not client or not server or server[1] is None:
        return False
    kept: dict[str, bool] = scope.get("state", {}).get("connection", {})
    if "own_user" not in kept:
        kept["own_user"] = is_same_user((client[0], client[1]), (server[0], server[1]))
    return kept["own_user"]


def _refusal(scope: Scope, headers: Headers) -> Response:
    """What is missing and where it is, as a page for people and as problem details for programs."""
    detail = (
        "This install answers only to its owner. `rankzero address` prints the address with its token; the token lies "
        "in the file `token` of the data folder. Programs send it as `Authorization: Bearer TOKEN`."
    )
    says = {"WWW-Authenticate": 'Bearer realm="RankZero"', "Cache-Control": "no-store"}
    if scope["path"].startswith("/api/") or "text/html" not in headers.get("accept", "*/*, text/html"):
        details: dict[str, object] = {"type": "urn:rankzero:token", "title": "token needed", "status": 401}
        return Response(json.dumps({**details, "detail": detail}), 401, says, "application/problem+json")
    return HTMLResponse(environment().get_template("locked.html").render(), 401, says)
