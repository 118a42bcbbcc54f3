"""What every request must pass and every response carries. Local mode is for one person: no login, loopback only.

A page of another site could make this browser post here, or rebind its own name to 127.0.0.1 and read: so the Host
must be one of ours, and a request that changes something must come from our own pages or from no page at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

# Inline style attributes carry bar widths (--w:38%); inline style elements and any inline script are refused.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "style-src-attr 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)

RESPONSE_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def host_name(header: str) -> str:
    """The name in a Host header, without port and in lower case: "[::1]:8000" is "::1"."""
    return (urlsplit(f"//{header}").hostname or "").lower()


def _foreign_read(headers: Headers) -> str | None:
    """Another page may lead here, but not read, frame or load anything: a browser says which of these it does."""
    if headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
        return None
    leads = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest", "document") == "document"
    return None if leads else "A page of another site may lead here, but not load anything from here.\n"


def _same_site(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:  # such as "http://[": no page of ours
        return False


class Guard:
    """Refuses requests that name another host or come from another site; adds the security headers."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self.app = app
        self.hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope["method"], Headers(scope=scope))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in RESPONSE_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = PlainTextResponse(refusal, status_code=403) if refusal else self.app
        await answer(scope, receive, send_with_headers)

    def _refusal(self, method: str, headers: Headers) -> str | None:
        host = headers.get("host", "")
        try:
            known = host_name(host) in self.hosts
        except ValueError:
            known = False
        if not known:
            return (
                f"Host {host!r} is not served here. Accepted: {', '.join(sorted(self.hosts))} "
                "(RANKZERO_ALLOWED_HOSTS adds names).\n"
            )
        if method in SAFE_METHODS:
            return _foreign_read(headers)
        origin = headers.get("origin")
        if origin is not None and not _same_site(origin, host):
            return f"A page of {origin} may not change anything here.\n"
        if origin is None and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "A page of another site may not change anything here.\n"
        return None
