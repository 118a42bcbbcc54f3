"""What is installed is locked: every dependency at a version that fits, with digests, from nowhere in particular."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from app.core.settings import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BASE = PROJECT["dependencies"]
LOCKS = ROOT / ".ci" / "locks"


def locked(name: str) -> dict[str, str]:
    """Version by package."""
    pins = re.findall(r"^([\w.-]+)==(\S+)", (LOCKS / name).read_text(), re.MULTILINE)
    return {canonicalize_name(package): version for package, version in pins}


@pytest.mark.parametrize(
    ("lock", "wanted"), [("base.txt", BASE), ("dev.txt", [*BASE, *PROJECT["optional-dependencies"]["dev"]])]
)
def test_every_dependency_is_locked_at_a_version_that_fits(lock: str, wanted: list[str]) -> None:
    """`make lock` writes the locks anew."""
    versions = locked(lock)
    for requirement in map(Requirement, wanted):
        if requirement.name != "torch":
            assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)]), requirement


@pytest.mark.parametrize("lock", ["base.txt", "dev.txt"])
def test_every_line_is_a_version_with_digests(lock: str) -> None:
    text = (LOCKS / lock).read_text()
    assert "://" not in text
    entries = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert entries
    for entry in entries:
        assert "--hash=sha256:" in entry, entry.splitlines()[0]


def test_torch_is_pinned_and_nothing_of_cuda_is_locked() -> None:
    """Its file depends on the machine; a lock of it would fetch gigabytes where there is no GPU."""
    assert [each for each in BASE if each.startswith("torch==")]
    assert not [name for name in locked("dev.txt") if name.startswith(("torch", "nvidia", "triton"))]


def test_working_on_it_has_what_the_product_has() -> None:
    assert locked("base.txt").items() <= locked("dev.txt").items()
