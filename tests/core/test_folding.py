"""Wrapping a line of a template changes nothing on the page, except where lines are meant as written."""

from __future__ import annotations

import pytest
from jinja2 import Environment

from app.core.folding import FoldWrappedLines


@pytest.mark.parametrize(
    ("wrapped", "page"),
    [
        ("<p>\n  Two\n  words\n</p>", "<p>Two words\n</p>"),
        ("<li>\n    <b>One</b>\n    two\n  </li>", "<li><b>One</b> two</li>"),
        ('<a\n  href="/">Go on\n  here</a>', '<a href="/">Go on here</a>'),
        ('<p aria-label="A step\n  of it">x</p>', '<p aria-label="A step of it">x</p>'),
        ("<p>{{ 'a' }}\n  {{ 'b' }}</p>", "<p>a b</p>"),
        ("<dd>\n  {% if 1 %}\n    yes\n  {% endif %}\n</dd>", "<dd>\n yes\n</dd>"),
        ("<pre>\n  kept\n    so</pre>\n  <b>x</b>", "<pre>\n  kept\n    so</pre> <b>x</b>"),
        ("<pre>{{ 'a' }}\n    b</pre>", "<pre>a\n    b</pre>"),
        ('<td id="{{ 1 }}" class="{{ 2 }}">\n  x</td>', '<td id="1" class="2">x</td>'),
        ("<p>one</p>\n<p>two</p>", "<p>one</p>\n<p>two</p>"),
    ],
)
def test_wrapped_lines_come_out_as_one(wrapped: str, page: str) -> None:
    made = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, extensions=[FoldWrappedLines])
    assert made.from_string(wrapped).render() == page
