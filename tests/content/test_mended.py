"""What was wrong and was mended does not come back into the content, and what holds does not leave it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.content.catalogue import Catalogue, load
from app.content.mended import Mended, MendedStatement
from app.content.sentence_checks import check_sentences
from app.content.sentences import Sentences
from app.core.settings import ROOT
from app.grading.rubrics.looking import claimed
from app.grading.rubrics.reading import read
from tests.support.cards import edit, write_cards
from tests.support.shipped import shipped

SHIPPED = shipped()
ENTRIES = SHIPPED.mended.mended
ENTRY = next(each for each in ENTRIES if each.id == "sixteen-bytes-of-optimizer")
Finding = tuple[str, tuple[str | int, ...], str]


def _found(catalogue: Catalogue, *entries: MendedStatement) -> list[Finding]:
    return list(check_sentences(replace(catalogue, mended=Mended(mended=entries))))


def _saying(tmp_path: Path, trap: str) -> Catalogue:
    """A few cards, one of which has this trap."""
    folder = write_cards(tmp_path / "cards")
    edit(folder, "decks/first/C01.md", "Activations come on top.", trap)
    return load(folder)


def _changed(**fields: object) -> MendedStatement:
    return MendedStatement.model_validate(ENTRY.model_dump() | fields)


def test_every_sentence_that_stood_is_refused_where_it_comes_back(tmp_path: Path) -> None:
    refused = [each.model_copy(update={"right": (), "taught_by": ()}) for each in ENTRIES if each.says]
    catalogue = _saying(tmp_path, "\n\n".join(sentence for each in refused for sentence in each.stood))
    found = _found(catalogue, *refused)
    assert {(source, location) for source, location, _ in found} == {("C01", ("# Trap",))}
    named = {reason.partition("”: ")[2].partition(" was mended")[0] for _, _, reason in found}
    assert named == {each.id for each in refused}


def test_what_is_right_in_nearly_the_same_words_passes(tmp_path: Path) -> None:
    refused = [each.model_copy(update={"right": (), "taught_by": ()}) for each in ENTRIES if each.says]
    catalogue = _saying(tmp_path, "\n\n".join(sentence for each in refused for sentence in each.passes))
    assert _found(catalogue, *refused) == []


def test_every_place_that_no_longer_says_what_holds_is_named() -> None:
    missing = [reason.partition(" says it no more")[0] for _, _, reason in _found(Catalogue(), *ENTRIES)]
    assert missing == [place for each in ENTRIES for place in sorted(each.taught_by)]
    assert len(missing) >= 60


def test_a_place_that_says_it_is_not_named(tmp_path: Path) -> None:
    entry = _changed(taught_by=("C01",))
    assert len(_found(_saying(tmp_path, "Nothing of the kind."), entry)) == 1
    sentence = "The model state stays at sixteen bytes, twelve of them the optimizer's."
    assert _found(_saying(tmp_path, sentence), entry) == []


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"stood": ("The state stays as it was.",)}, "stood and is not found by says"),
        ({"says": (*ENTRY.says, "pipeline & idle")}, "'pipeline & idle' finds none of what stood"),
        ({"passes": ENTRY.stood}, "is right, and is found by says"),
        ({"so": ENTRY.stood[0]}, "is right, and is found by says"),
        ({"so": "Sixteen."}, "does not show what right looks for"),
        ({"right": (*ENTRY.right, "pipeline & idle")}, "is shown neither by so nor by passes"),
        ({"stood": (*ENTRY.stood, ENTRY.so)}, "stood, and shows what is right"),
    ],
)
def test_an_entry_that_proves_nothing_is_refused(fields: dict[str, object], reason: str) -> None:
    assert any(reason in each for _, _, each in _found(Catalogue(), _changed(**fields)))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"says": (), "right": (), "taught_by": ()}, "give says"),
        ({"passes": ()}, "says needs passes"),
        ({"taught_by": ()}, "right and taught_by go together"),
        ({"stood": ()}, "stood"),
        ({"says": ("tensor & waits && that is it",)}, "one sentence"),
    ],
)
def test_an_entry_that_could_not_fail_is_no_entry(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        _changed(**fields)


def test_what_an_interviewer_questions_the_content_does_not_say_either(tmp_path: Path) -> None:
    questioned = [each for each in SHIPPED.challenges if not each.file.only_there]
    catalogue = _saying(tmp_path, "\n\n".join(each.file.example for each in questioned))
    reasons = [reason for _, _, reason in check_sentences(replace(catalogue, challenges=SHIPPED.challenges))]
    unseen = [each.id for each in questioned if not any(reason.endswith(f"see {each.id}") for reason in reasons)]
    assert unseen == []


def test_looking_by_words_first_loses_no_sentence() -> None:
    for challenge in SHIPPED.challenges:
        file = challenge.file
        texts = (file.example, file.stays, file.reply, *file.passes)
        sentences = Sentences([("", (number,), text) for number, text in enumerate(texts)])
        for pattern in challenge.false.patterns:
            near = [each.location for each, reading in sentences.near(pattern) if claimed((pattern,), reading)]
            whole = [(number,) for number, text in enumerate(texts) if claimed((pattern,), read(text))]
            assert list(dict.fromkeys(near)) == whole, challenge.id


def test_a_loss_that_a_formula_gives_is_not_typed() -> None:
    typed = [
        f"{path.name}: {match}"
        for path in (ROOT / "cards").rglob("*.md")
        for match in re.findall(r"\bloss=\d\.\d{3,}", path.read_text(encoding="utf-8"))
    ]
    assert typed == [], "F39 is computed at the loss that F38 gives; write parametric_loss(...)"
