"""HTML as Markdown: what a reader saw is what a reader sees."""

from __future__ import annotations

import html
import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.content.outside import render_outside
from app.exchange.anki.templates import cloze, render_sides
from app.exchange.anki.wire import number_field, text_field
from app.exchange.html import BLANK_CLOSE, BLANK_OPEN, to_markdown


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<div>a</div><div>b<br>c</div>", "a\n\nb\\\nc"),
        ("<b> x </b>y<i></i> <code>a`b</code>", "**x** y ``a`b``"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul>", "- a\n- b\n  - c"),
        ("<ol start=3><li>q<li>r</ol>", "3. q\n4. r"),
        ("<pre>def f():\n  return '*'</pre>", "```\ndef f():\n  return '*'\n```"),
        ("<table><tr><th>A<th>B</tr><tr><td>1|2<td>z</tr></table>", "| A | B |\n| --- | --- |\n| 1\\|2 | z |"),
        ("<blockquote>q</blockquote><h1>H</h1>", "> q\n\n## H"),
        ("<a href='http://x/(y)'>l</a> <a href='javascript:x'>m</a>", "[l](http://x/%28y%29) m"),
        (r"\(x_1\) [$]y[/$] \[z\] [latex]$w$[/latex]", "$x_1$ $y$ $$z$$ $w$"),
        ('<anki-mathjax block="true">a &lt; b</anki-mathjax>', "$$a < b$$"),
        (r"\(\foo{\)", r"`\foo{`"),
        (r"\(open", r"\\(open"),
        ("1. x<br># y<br>- z", "1\\. x\\\n\\# y\\\n\\- z"),
    ],
)
def test_what_becomes_of_html(source: str, text: str) -> None:
    assert to_markdown(source).text == text


def test_what_is_left_out_is_counted() -> None:
    found = to_markdown('<img src="a.png"><img>[sound:b.mp3] \\(\\foo{\\) <script>x</script>text')
    assert (found.text, found.pictures, found.sounds, found.formulas) == (r"`\foo{` text", ["a.png", "?"], 1, 1)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_categories=("C",)), max_size=40))
@example("a_b_c *d* `e` ~f~ #g $h$ $5 &amp; <i> \\ | [l](m) [[n]] {{c1::o}}")
@example("- a")
@example("1) a")
@example("=== ")
@example("+ a + b")
def test_plain_text_is_shown_as_it_was(text: str) -> None:
    found = to_markdown(html.escape(text))
    shown = html.unescape(re.sub(r"<[^>]*>", "", render_outside(found.text)))
    wanted = re.sub(r"\[(sound:[^\]]{1,300}|anki:play:[^\]]{1,50})\]", "", text)
    if not re.search(r"\\[(\[]|\[(\$|latex)", text):
        assert " ".join(shown.split()) == " ".join(wanted.split())


def test_clozes_of_another_number_are_text_and_hints_are_kept() -> None:
    text = "{{c1::A {{c2::B}}::hint}} and {{c1,2::C}} }} {{c3::open"
    assert cloze(text, 1) == f"{BLANK_OPEN}A B{BLANK_CLOSE} (hint) and {BLANK_OPEN}C{BLANK_CLOSE} }}}} open"
    assert cloze(text, 2).count(BLANK_OPEN) == 2
    assert cloze(text, 9) == "A B and C }} open"


def test_templates_show_sections_for_filled_fields_alone() -> None:
    front = "{{#A}}has {{A}}{{/A}}{{^A}}none{{/A}}{{#B}}never{{/B}} {{type:C}}{{missing}}"
    back = "{{FrontSide}}<hr id=answer>{{hint:C}}{{type:C}}{{text:A}}"
    sides = render_sides(front, back, {"A": "x", "B": "<br> &nbsp;", "C": "c"}, None)
    assert (sides.front, sides.back, sides.has_blank) == ("has x ", "ccx", False)
    assert render_sides("{{cloze:A}}", "{{cloze:A}}more", {"A": "{{c2::x}}"}, 2).back == "more"


def test_protocol_buffers_that_are_none_are_refused() -> None:
    message = b"\x08\x01\x12\x03abc\x1d\x00\x00\x00\x00"
    assert (number_field(message, 1), text_field(message, 2), text_field(message, 9)) == (1, "abc", "")
    for broken in (b"\x12\x7fabc", b"\xff" * 20, b"\x0f", b"\x08"):
        with pytest.raises(ValueError, match=r"field|number"):
            text_field(broken, 2)


@pytest.mark.parametrize(
    "piece",
    ["<b>", "\\(", "<!--", "<table>", "[sound:", "&", "<a href=x>", "`", "{{c1::", "<b> </b>", "<anki-mathjax>"],
)
def test_hostile_repetition_takes_no_more_than_it_should(piece: str) -> None:
    started = time.thread_time()
    to_markdown(cloze(piece * (20_000 // len(piece)), 1))
    assert time.thread_time() - started < 5
