"""What was made of the content is kept from one start to the next, and only while it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app.content.catalogue import Catalogue, load
from app.content.kept import kept
from tests.support.cards import edit, write_cards


@pytest.fixture
def cards(tmp_path: Path) -> Path:
    """One file of each kind, and code of one module beside them."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "module.py").write_text("x = 1\n")
    return write_cards(tmp_path / "cards")


def _loaded(cards: Path, folder: Path, make: Callable[[], Catalogue] | None = None) -> Catalogue:
    made_of = (cards, cards.parent / "code")
    return kept(folder, made_of, make or (lambda: load(cards)), lambda loaded: not loaded.mistakes)


def _never() -> Catalogue:
    raise AssertionError("it was kept")


def test_what_is_kept_is_what_was_loaded(cards: Path, tmp_path: Path) -> None:
    made = _loaded(cards, tmp_path / "kept")
    again = _loaded(cards, tmp_path / "kept", _never)
    # the finder of terms has no equality of its own
    assert replace(again, handbook=replace(again.handbook, marker=made.handbook.marker)) == made
    assert again.cards["C01"].kind is made.cards["C01"].kind
    source = again.sources["C01"]
    assert source.problem(("related", "problems"), "why").line == 8, "lines are found in what was kept"


def _in_the_content(cards: Path) -> None:
    edit(cards, "decks/first/C01.md", "How much", "How very much")


def _in_the_code(cards: Path) -> None:
    (cards.parent / "code" / "module.py").write_text("x = 2\n")


def _a_new_file(cards: Path) -> None:
    (cards / "new").write_text("")


@pytest.mark.parametrize("change", [_in_the_content, _in_the_code, _a_new_file])
def test_a_change_is_loaded_anew_and_what_was_kept_gives_way(
    cards: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    _loaded(cards, tmp_path / "kept")
    change(cards)
    with pytest.raises(AssertionError, match="it was kept"):
        _loaded(cards, tmp_path / "kept", _never)
    _loaded(cards, tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 1


def test_another_release_of_what_is_installed_is_loaded_anew(
    cards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _loaded(cards, tmp_path / "kept")
    (tmp_path / "site" / "jinja2-9.9.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path / "site")
    with pytest.raises(AssertionError, match="it was kept"):
        _loaded(cards, tmp_path / "kept", _never)


def test_content_with_mistakes_is_not_kept(cards: Path, tmp_path: Path) -> None:
    edit(cards, "decks/first/C01.md", "kind: basic", "kind: nonsense")
    assert _loaded(cards, tmp_path / "kept").mistakes
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("damage", [lambda whole: b"", lambda whole: whole[:99], lambda whole: whole[:-9] + whole[-8:]])
def test_a_damaged_file_is_as_none(cards: Path, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    _loaded(cards, tmp_path / "kept")
    (path,) = (tmp_path / "kept").iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert _loaded(cards, tmp_path / "kept").cards.keys() == load(cards).cards.keys()
    assert path.read_bytes() == whole


def test_a_folder_that_cannot_be_written_keeps_nothing(cards: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert _loaded(cards, tmp_path / "file").cards
