"""How words are put into sentences, wherever a page makes one."""

from __future__ import annotations

from collections.abc import Sequence


def capital(text: str) -> str:
    """`text` as the beginning of a sentence; the rest of it as it is."""
    return text[:1].upper() + text[1:]


def lowered(text: str) -> str:
    """`text` as a sentence goes on with it: a name keeps its capitals."""
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    is_name = any(map(str.isupper, first[1:])) or (len(first) == 1 and first != "A")
    return text if is_name else text[:1].lower() + text[1:]


def listed(names: Sequence[str], last: str = "and") -> str:
    """Names in a sentence: "a, b and c"; empty where there are none. `last` stands before the last of several."""
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def article(word: str) -> str:
    """The article before a word: a planner, an engineer."""
    return "an" if word[:1].lower() in "aeiou" else "a"


_SMALL = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def number_in_words(number: int) -> str:
    """A number as it stands in a sentence: none to twelve in words, larger ones in digits."""
    return _SMALL[number] if 0 <= number < len(_SMALL) else f"{number:,}"


def often(times: int) -> str:
    """How often something was: once, twice, three times."""
    return {1: "once", 2: "twice"}.get(times, f"{number_in_words(times)} times")


def counted(number: int, one: str, many: str | None = None) -> str:
    """1 layer, 4 layers; with `many` where that is not `one` and an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
