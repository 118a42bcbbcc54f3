"""The writer of Markdown behind `html`: it takes well-formed HTML of known tags, event by event. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

_BLOCKS = {"p", "div", "blockquote", "ul", "ol", "dl", "table", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "pre"}
_AROUND = {
    "b": "**",
    "strong": "**",
    "i": "*",
    "em": "*",
    "s": "~~",
    "strike": "~~",
    "del": "~~",
    "code": "`",
    "tt": "`",
    "kbd": "`",
    "samp": "`",
}


@dataclass
class Converted:
    """A field as Markdown, with what could not be taken over."""

    text: str = ""
    pictures: list[str] = field(default_factory=list)
    sounds: int = 0
    formulas: int = 0


def code(text: str) -> str:
    """Text as inline code, whatever backticks it has."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    marks = "`" * (longest + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{marks}{space}{text}{space}{marks}"


def escaped(text: str) -> str:
    """Plain text so that Markdown shows it as it is."""
    text = re.sub(r"([\\`*_\[\]<>$~|])", r"\\\1", text)
    return re.sub(r"&(?=#?\w{1,31};)", r"\\&", text)


def _escaped_start(line: str) -> str:
    """A line that would begin a heading, a list or a rule is text."""
    line = re.sub(r"^(\s*)([#+\-=])", r"\1\\\2", line)
    return re.sub(r"^(\s*\d{1,9})([.)])(?=\s|$)", r"\1\\\2", line)


class Writer(HTMLParser):
    """Writes Markdown from well-formed HTML."""

    def __init__(self, converted: Converted) -> None:
        super().__init__(convert_charrefs=True)
        self.converted = converted
        self.done: list[tuple[str, bool]] = []  # blocks, and whether each belongs to the one before it
        self.inline: list[str] = []
        self.lists: list[tuple[str, int]] = []
        self.marker = ""
        self.quotes = 0
        self.heading = ""
        self.program = 0
        self.table: list[list[str]] | None = None
        self.around: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.converted.pictures.append(dict(attrs).get("src") or "?")
        elif tag == "br":
            self.inline.append("\n" if self.table is None else " ")
        elif self.table is not None and tag not in ("table", "tr", "th", "td"):
            self._open_inline(tag, dict(attrs).get("href"))
        elif tag in ("tr", "th", "td", "table"):
            self._open_table(tag)
        elif tag in _BLOCKS or tag in ("li", "dt", "dd"):
            self._open_block(tag, dict(attrs))
        else:
            self._open_inline(tag, dict(attrs).get("href"))

    def _open_block(self, tag: str, attrs: dict[str, str | None]) -> None:
        self._flush()
        if tag in ("ul", "ol"):
            start = attrs.get("start") or "1"
            self.lists.append((tag, int(start) if start.isdigit() and len(start) < 6 else 1))
        elif tag == "li":
            kind, number = self.lists[-1] if self.lists else ("ul", 1)
            self.marker = "- " if kind == "ul" else f"{number}. "
            if self.lists:
                self.lists[-1] = (kind, number + 1)
        elif tag == "blockquote":
            self.quotes += 1
        elif tag == "pre":
            self.program += 1
        elif tag == "hr":
            self.done.append(("---", False))
        elif tag[0] == "h":
            self.heading = "#" * max(2, int(tag[1]))

    def _open_table(self, tag: str) -> None:
        if tag == "table" and self.table is None:
            self._flush()
            self.table = []
        elif self.table is not None and tag == "tr":
            self.table.append([])
        elif self.table is not None and tag in ("th", "td"):
            self.inline = []
        else:
            self._flush()

    def _open_inline(self, tag: str, href: str | None) -> None:
        if tag in _AROUND and not self.program:
            self.around.append(tag)
            self.inline.append(_OPEN_MARK + _AROUND[tag])
        elif tag == "a" and not self.program:
            self.links.append(re.sub(r"[\s()<>\\]", lambda m: f"%{ord(m.group()):02X}", href or ""))
            self.inline.append("[" if href else "")

    def handle_endtag(self, tag: str) -> None:
        if tag in _AROUND and not self.program:
            if tag in self.around:
                self.around.remove(tag)
                self.inline.append(_CLOSE_MARK + _AROUND[tag])
        elif tag == "a" and not self.program:
            address = self.links.pop() if self.links else ""
            self.inline.append(f"]({address})" if address else "")
        elif self.table is not None and tag in ("th", "td"):
            (self.table or [[]])[-1:] = [[*(self.table or [[]])[-1], self._inline_text().replace("\n", " ")]]
            self.inline = []
        elif tag == "table" and self.table is not None:
            self._write_table()
        elif tag in _BLOCKS or tag in ("li", "dt", "dd"):
            self._close_block(tag)

    def _close_block(self, tag: str) -> None:
        if self.table is not None:
            return
        self._flush()
        if tag in ("ul", "ol") and self.lists:
            self.lists.pop()
        elif tag == "blockquote":
            self.quotes = max(0, self.quotes - 1)
        elif tag == "pre":
            self.program = max(0, self.program - 1)
        elif tag == "li":
            self.marker = ""
        self.heading = ""

    def handle_data(self, data: str) -> None:
        if self.program:
            self.inline.append(data)
        elif any(_AROUND[each] == "`" for each in self.around):
            self.inline.append(data.replace("\n", " "))
        else:
            self.inline.append(escaped(re.sub(r"[ \t\r\n\xa0]+", " ", data)))

    def text(self) -> str:
        """Everything that was written."""
        self._flush()
        made = ""
        for block, tight in self.done:
            made += ("\n" if tight else "\n\n") + block if made else block
        return made

    def _flush(self) -> None:
        """End the paragraph under way."""
        if self.program:
            body = "".join(self.inline).strip("\n")
            self.inline = []
            if body.strip():
                fence = "```" if "```" not in body else "~~~~"
                self.done.append((f"{fence}\n{body}\n{fence}", False))
            return
        text = self._inline_text()
        self.inline = []
        if not text:
            return
        indent = "  " * max(0, len(self.lists) - 1) + ("   " if self.lists and not self.marker else "")
        lines = [line.strip() for line in text.split("\n")]
        lines = [_escaped_start(line) for line in lines if line]
        if self.heading:
            lines = [f"{self.heading} {' '.join(lines)}"]
        first = "  " * max(0, len(self.lists) - 1) + self.marker if self.marker else indent
        rest = " " * len(first)
        quote = "> " * self.quotes
        body = "\\\n".join(f"{quote}{first if index == 0 else rest}{line}" for index, line in enumerate(lines))
        self.done.append((body, bool(self.marker) and len(self.done) > 0 and self._in_list(self.done[-1][0])))
        self.marker = ""

    @staticmethod
    def _in_list(block: str) -> bool:
        return re.match(r"[> ]*(-|\d+\.) ", block) is not None

    def _inline_text(self) -> str:
        """The inline pieces with their marks set where they hold something, as Markdown wants them: close to it."""
        return _close_to_text("".join(self.inline))

    def _write_table(self) -> None:
        rows = [row for row in self.table or [] if row]
        self.table, self.inline = None, []
        if not rows:
            return
        width = max(map(len, rows))
        head, *body = [row + [""] * (width - len(row)) for row in rows]
        lines = [head, ["---"] * width, *body]
        self.done.append(("\n".join("| " + " | ".join(row) + " |" for row in lines), False))


_OPEN_MARK, _CLOSE_MARK = "\ue001", "\ue000"
_EMPTY = re.compile(f"{_OPEN_MARK}(\\*\\*|\\*|~~|`)(\\s*){_CLOSE_MARK}\\1")
_AFTER_OPEN = re.compile(f"({_OPEN_MARK}(?:\\*\\*|\\*|~~|`))(\\s+)")
_BEFORE_CLOSE = re.compile(f"(\\s+)({_CLOSE_MARK}(?:\\*\\*|\\*|~~|`))")
_CODE = re.compile(f"{_OPEN_MARK}`([^{_OPEN_MARK}{_CLOSE_MARK}]*){_CLOSE_MARK}`")


def _close_to_text(text: str) -> str:
    """`** a **` is no emphasis in Markdown: spaces move out, empty marks go, code gets enough backticks."""
    for _ in range(4):
        text = _EMPTY.sub(r"\2", text)
    text = _AFTER_OPEN.sub(r"\2\1", text)
    text = _BEFORE_CLOSE.sub(r"\2\1", text)
    text = _CODE.sub(lambda m: code(m.group(1)), text)
    return text.replace(_OPEN_MARK, "").replace(_CLOSE_MARK, "").strip()
