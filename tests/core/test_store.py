"""Files are kept in folders and in stores, and what is no place is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.core.settings import Settings
from app.core.store import Store, check_place


@pytest.fixture(params=["folder", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "kept") if request.param == "folder" else f"memory://kept/{tmp_path.name}"


def test_what_is_written_is_read_and_removed_by_its_folder_alone(place: str) -> None:
    store = Store(place)
    for folder in ("1-a", "1-ab"):
        store.write(f"{folder}/file.bin", [b"some ", b"bytes"])
    assert store.size("1-a/file.bin") == 10
    assert b"".join(Store(place).read("1-a/file.bin")) == b"some bytes"
    with store.writing("1-a/file.bin") as file:
        file.write(b"others")
    assert b"".join(store.read("1-a/file.bin")) == b"others"
    store.remove("1-a")
    store.remove("1-a")
    with pytest.raises(FileNotFoundError):
        store.read("1-a/file.bin")
    assert store.size("1-ab/file.bin") == 10


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("kept/here", "a folder from the root, or such as s3://bucket/folder"),
        ("file://kept", "a folder from the root"),
        ("cupboard://kept", "cupboard:// is nothing that fsspec knows"),
        ("dropbox://kept", "dropbox:// needs the package dropboxdrivefs, which is not installed here"),
    ],
)
def test_what_is_no_place_is_refused_with_what_would_be_one(place: str, said: str) -> None:
    with pytest.raises(ValueError, match="artifacts") as refused:
        Settings(artifacts=place)
    assert said in str(refused.value)


def test_places_are_checked_without_being_asked_for() -> None:
    for place in ("/anywhere/at/all", "file:///anywhere", "memory://kept"):
        check_place(place)
