"""Lists that a form offers, written once: a template takes longer for two long ones than for the rest of a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from markupsafe import Markup, escape

Offered = Iterable[tuple[str, str]]  # what is sent, and what it is called


class Options:
    """The options of a select, in order, under their headings where they have one."""

    def __init__(self, groups: Mapping[str, Offered]) -> None:
        self._html = "".join(_group(heading, offered) for heading, offered in groups.items())

    def having(self, chosen: str) -> Markup:
        """With that one selected."""
        value = f'value="{escape(chosen)}"'
        return Markup(self._html.replace(value, f"{value} selected", 1))  # noqa: S704 - escaped below


def _group(heading: str, offered: Offered) -> str:
    inside = "".join(f'<option value="{escape(value)}">{escape(title)}</option>' for value, title in offered)
    return f'<optgroup label="{escape(heading)}">{inside}</optgroup>' if heading else inside
