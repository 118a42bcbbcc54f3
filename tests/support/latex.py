"""The value of a formula as it is displayed: an evaluator of the LaTeX our registered formulas are written in.

Sums, products (also by standing side by side), fractions, powers, roots, logarithms to base 2, binomial coefficients,
floors, ceilings, minima, maxima, remainders, and functions by name. A symbol is whatever text stands for a value,
such as `B_{\\mathrm{NIC}}`. Computed in 60 digits, so that a difference of what is nearly equal is no noise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext

_SPACE = re.compile(r"(?:\\[,;! ]|\\quad|\s|~)+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NAMED = re.compile(r"\\(?:text|mathrm)\{(\w+)\}")
_FENCES = {"(": ")", "[": "]", r"\lceil": r"\rceil", r"\lfloor": r"\rfloor"}
_ROUNDED = {"(": lambda value: value, "[": lambda value: value, r"\lceil": math.ceil, r"\lfloor": math.floor}
_COMMANDS = re.compile(r"\\[a-zA-Z]+|\\\||.", re.DOTALL)
_ENDS = ("", "+", "-", ")", "]", "}", ",", "/", r"\rceil", r"\rfloor", r"\right", r"\bmod", r"\times", r"\cdot")


class UnreadableLatexError(ValueError):
    """The text is none of ours, or has a symbol without a value."""


def evaluate_latex(
    latex: str, symbols: Mapping[str, float], functions: Mapping[str, Callable[[float], float]] | None = None
) -> float:
    """The value of `latex` with a value for each of its symbols. Raises UnreadableLatexError, ArithmeticError."""
    reader = _Reader(latex, symbols, functions or {})
    with localcontext(prec=60):
        value = reader.sum()
    if reader.peek():
        raise UnreadableLatexError(f"{latex}: nothing is known of {reader.rest!r}")
    return float(value)


class _Reader:
    """Reads from left to right; every method takes what it names and answers with its value."""

    def __init__(
        self, latex: str, symbols: Mapping[str, float], functions: Mapping[str, Callable[[float], float]]
    ) -> None:
        self.latex, self.rest = latex, latex
        self.symbols = {name: Decimal(symbols[name]) for name in sorted(symbols, key=len, reverse=True)}
        self.functions = functions

    def peek(self) -> str:
        """The next command or character; empty at the end."""
        self.rest = _SPACE.sub("", self.rest, count=1) if _SPACE.match(self.rest) else self.rest
        found = _COMMANDS.match(self.rest)
        return found.group() if found else ""

    def take(self, wanted: str) -> bool:
        if self.peek() != wanted:
            return False
        self.rest = self.rest[len(wanted) :]
        return True

    def expect(self, wanted: str) -> None:
        if not self.take(wanted):
            raise UnreadableLatexError(f"{self.latex}: {wanted!r} is missing before {self.rest!r}")

    def sum(self) -> Decimal:
        value = -self.product() if self.take("-") else self.product()
        while self.peek() in ("+", "-"):
            value = value + self.product() if self.take("+") else value - self._after("-")
        return value

    def _after(self, sign: str) -> Decimal:
        self.expect(sign)
        return self.product()

    def product(self) -> Decimal:
        value, divided = self.power(), False
        while True:
            self.take(r"\middle")
            if self.take("/"):
                value, divided = value / self.power(), True
            elif self.take(r"\times") or self.take(r"\cdot"):
                value *= self.power()
            elif self.take(r"\bmod"):
                value %= self.power()
            elif self.peek() in _ENDS:
                return value
            elif divided:
                raise UnreadableLatexError(f"{self.latex}: is {self.rest!r} above the line or below?")
            else:
                value *= self.power()

    def power(self) -> Decimal:
        base = self.factor()
        return base ** self.argument() if self.take("^") else base

    def argument(self) -> Decimal:
        """What a command or a power applies to: a group in braces, a digit or a symbol."""
        if self.take("{"):
            value = self.sum()
            self.expect("}")
            return value
        if self.peek().isdigit():
            digit = self.peek()
            self.expect(digit)
            return Decimal(digit)
        return self.factor()

    def factor(self) -> Decimal:
        self.peek()
        for symbol, value in self.symbols.items():
            if self.rest.startswith(symbol) and not self._goes_on(symbol):
                self.rest = self.rest[len(symbol) :]
                return value
        if number := _NUMBER.match(self.rest):
            self.rest = self.rest[number.end() :]
            return Decimal(number.group())
        return self._command()

    def _goes_on(self, symbol: str) -> bool:
        """Whether what stands there is a longer name: N of N_0, \\eta of \\eta_0, B of B'."""
        after = self.rest[len(symbol) :]
        return after.startswith(("_", "'")) or bool(re.search(r"\\[a-zA-Z]+$", symbol) and re.match("[a-zA-Z]", after))

    def _command(self) -> Decimal:
        if named := _NAMED.match(self.rest):
            self.rest = self.rest[named.end() :]
            if named.group(1) not in self.functions:
                raise UnreadableLatexError(f"{self.latex}: no function {named.group(1)}")
            return Decimal(self.functions[named.group(1)](float(self.fenced())))
        command = self.peek()
        if command in (*_FENCES, r"\left"):
            return self.fenced()
        read = {
            r"\frac": lambda: self.argument() / self.argument(),
            r"\binom": lambda: Decimal(math.comb(int(self.argument()), int(self.argument()))),
            r"\sqrt": lambda: self.argument().sqrt(),
            r"\log": self._logarithm,
            r"\min": lambda: min(self.several()),
            r"\max": lambda: max(self.several()),
            "e": lambda: Decimal(1).exp(),
        }.get(command)
        if read is None:
            raise UnreadableLatexError(f"{self.latex}: nothing is known of {self.rest!r}")
        self.expect(command)
        return read()

    def _logarithm(self) -> Decimal:
        """Exact for powers of two, which a ceiling would see."""
        self.expect("_")
        self.expect("2")
        return Decimal(math.log2(self.power()))

    def fenced(self) -> Decimal:
        sized = self.take(r"\left")
        opening = self.peek()
        if opening not in _FENCES:
            raise UnreadableLatexError(f"{self.latex}: no fence before {self.rest!r}")
        self.expect(opening)
        value = self.sum()
        if sized:
            self.expect(r"\right")
        self.expect(_FENCES[opening])
        return Decimal(_ROUNDED[opening](value))

    def several(self) -> list[Decimal]:
        self.expect("(")
        values = [self.sum()]
        while self.take(","):
            values.append(self.sum())
        self.expect(")")
        return values
