"""Text from outside: Markdown and mathematics are shown, nothing is evaluated, nothing acts."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.content.outside import (
    blanks,
    render_anki_cloze,
    render_outside,
    render_outside_cloze,
    render_outside_inline,
    text_problems,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("It takes $5 and $6.", "It takes $5 and $6."),
        (r"\$16N\$", "$16N$"),
        ("{{ 7 * 7 }} {% raw %}", "{{ 7 * 7 }} {% raw %}"),
        ("`$x$`", "<code>$x$</code>"),
        ("**b** ~~s~~", "<strong>b</strong> <s>s</s>"),
        ("a < b & c", "a &lt; b &amp; c"),
        ("![p](http://a.b/p.png)", '!<a href="http://a.b/p.png" rel="noopener noreferrer">p</a>'),
    ],
)
def test_what_is_shown_of_a_line(text: str, shown: str) -> None:
    assert render_outside_inline(text) == shown


def test_mathematics_is_set_on_the_server_and_left_to_mathjax_for_anki() -> None:
    assert "<mfrac>" in render_outside(r"$\frac{1}{2}$")
    assert 'display="block"' in render_outside("$$\nx^2\n$$")
    assert render_outside(r"$\frac{1}{2}$ $$y$$", "mathjax") == "<p>\\(\\frac{1}{2}\\) \\[y\\]</p>\n"
    assert render_outside_inline(r"$\frac{$") == '<code class="formula">\\frac{</code>'


def test_a_blank_holds_markdown_and_a_program_keeps_its_brackets() -> None:
    html = render_outside_cloze("State: [[**16** $N$]], not `a[[0]]`.\n\n```\nx[[1]]\n```")
    assert html.count('class="fill"') == 1
    assert '<span class="fill"><strong>16</strong> <math' in html
    assert "<code>a[[0]]</code>" in html
    assert blanks("[[a]] [[ b]] [[c]] `[[d]]`") == 2


def test_ankis_blanks_cannot_be_forged_or_cut_short() -> None:
    html = render_anki_cloze(r"[[a }} b::c]] {{c2::x}} \ue000 [[$\frac{{a}}{b}$]]")
    assert re.findall(r"\{\{c\d+::", html) == ["{{c1::", "{{c1::"]
    assert html.count("}}") == 2
    assert r"\frac{ {a} }{b}" in html


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (r"$\frac{$", "cannot be set"),
        (f"${'x' * 1001}$", "too long"),
        ("$a$ " * 201, "too many"),
        ("[" * 1001, "brackets"),
    ],
)
def test_what_cannot_be_shown_is_said(text: str, problem: str) -> None:
    assert problem in text_problems(text)[0]
    assert not text_problems("$x$ [a](http://b)")


ACTS = {"script", "img", "iframe", "svg", "style", "object", "form", "input", "link", "meta", "base"}


class _Reader(HTMLParser):
    """What a browser would find: the names of tags and attributes, and where links lead."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name == "href"]


PARTS = st.sampled_from(
    [
        "<script>",
        "</script>",
        "<img src=x onerror=alert(1)>",
        "<a href='javascript:x'>",
        "[x](javascript:x)",
        "$",
        "$$",
        "[[",
        "]]",
        "\\text{",
        "}",
        '"',
        "'",
        "<",
        ">",
        "`",
        "```\n",
        "\n",
        "[a]: javascript:x\n",
        "![",
        "](",
        ")",
        "|",
        "&#106;",
        "\ue000",
        "\ue001",
        "onclick=x",
        " ",
        "<!--",
        "-->",
        "<math>",
        "\\href{javascript:x}{y}",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(PARTS, max_size=14).map("".join))
def test_nothing_in_it_ever_acts(text: str) -> None:
    for render in (render_outside, render_outside_cloze, render_outside_inline, render_anki_cloze):
        found = _Reader(str(render(text)))
        assert not found.tags & ACTS, text
        assert not [name for name in found.attributes if name.startswith("on") or name == "style"], text
        assert all(not link.strip().lower().startswith(("javascript", "data")) for link in found.links), text


@pytest.mark.parametrize("text", ["[" * 1000, "$a" * 4000, "**" * 5000, "> " * 2000, "[[a " * 333, "<" * 10_000])
def test_the_worst_text_that_is_accepted_is_shown_in_time(text: str) -> None:
    started = time.process_time()
    render_outside_cloze(text)
    assert time.process_time() - started < 5  # 0.1 s on a free machine
