"""Jinja templates: one environment, filters that write numbers, and pages that also come as fragments for htmx."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app.core.charts import byte_scale
from app.core.folding import FoldWrappedLines
from app.core.web import moment_of

APP = Path(__file__).resolve().parents[1]
STATIC = APP / "static"


@cache
def _digest(name: str, modified: float) -> str:
    return hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]


def static_url(name: str) -> str:
    """The address of a static file, with its content's digest so that it may be cached for ever."""
    path = STATIC / name
    return f"/static/{name}?v={_digest(name, path.stat().st_mtime)}"


@cache
def environment() -> Environment:
    """The process's template environment."""
    made = Environment(
        loader=FileSystemLoader([APP / "templates", APP / "content"]),  # a kind of card keeps its macro with its rules
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        extensions=[FoldWrappedLines],
    )
    made.globals["static"] = static_url
    made.globals["byte_scale"] = byte_scale
    return made


def add_filters(filters: Mapping[str, Callable[..., Any]]) -> None:
    """Rooms and wiring add what their templates need; core knows no unit."""
    environment().filters.update(filters)


def wants_fragment(request: Request) -> bool:
    """Whether htmx asks for a part of a page."""
    return request.headers.get("hx-request") == "true" and request.headers.get("hx-boosted") is None


def page(
    request: Request,
    template: str,
    context: Mapping[str, object],
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> HTMLResponse:
    """Render `template` as a whole page, or as its `page` block alone when htmx asks for a fragment.

    Every template sees the `moment` of the request.
    """
    layout = "fragment.html" if wants_fragment(request) else "base.html"
    shell = getattr(request.app.state, "shell", None)
    extra = shell(request) if shell is not None and layout == "base.html" else {}
    html = environment().get_template(template).render(layout=layout, moment=moment_of(request), **extra, **context)
    return HTMLResponse(html, status, {"Cache-Control": "no-store", "Vary": "HX-Request", **(headers or {})})
