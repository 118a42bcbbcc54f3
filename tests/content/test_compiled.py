"""Compiled expressions are kept from one start to the next, and only while they hold."""

from __future__ import annotations

from pathlib import Path
from types import CodeType

import pytest

from app.content.compiled import CompiledTexts


def _compile(text: str) -> CodeType:
    return compile(text, "<test>", "eval")


def _never() -> CodeType:
    raise AssertionError("it was kept")


def test_what_was_compiled_is_there_at_the_next_start(tmp_path: Path) -> None:
    first = CompiledTexts(tmp_path, b"filters")
    with first.keeping():
        first.code("1 + 1", lambda: _compile("1 + 1"))
    assert eval(CompiledTexts(tmp_path, b"filters").code("1 + 1", _never)) == 2  # noqa: S307 - of this test


def test_what_another_set_up_compiled_is_not_used_and_gives_way(tmp_path: Path) -> None:
    for environment, result in ((b"filters", "1"), (b"other filters", "2")):
        texts = CompiledTexts(tmp_path, environment)
        with texts.keeping():
            assert eval(texts.code("x", lambda result=result: _compile(result))) == int(result)  # noqa: S307
    assert len(list(tmp_path.iterdir())) == 1


def test_texts_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    for expressions in (("1", "2"), ("2", "3")):
        texts = CompiledTexts(tmp_path, b"")
        with texts.keeping():
            for each in expressions:
                texts.code(each, lambda each=each: _compile(each))
    last = CompiledTexts(tmp_path, b"")
    assert eval(last.code("3", _never)) == 3  # noqa: S307
    with pytest.raises(AssertionError, match="it was kept"):
        last.code("1", _never)


@pytest.mark.parametrize("damage", [b"", b"\x00", b"not marshalled", b"\xe9\x01\x00\x00\x00"])
def test_a_damaged_file_is_as_none(tmp_path: Path, damage: bytes) -> None:
    texts = CompiledTexts(tmp_path, b"")
    with texts.keeping():
        texts.code("1", lambda: _compile("1"))
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage)
    again = CompiledTexts(tmp_path, b"")
    with again.keeping():
        assert eval(again.code("1", lambda: _compile("1"))) == 1  # noqa: S307
    assert path.read_bytes() != damage


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    texts = CompiledTexts(tmp_path / "file", b"")
    with texts.keeping():
        assert eval(texts.code("1", lambda: _compile("1"))) == 1  # noqa: S307
