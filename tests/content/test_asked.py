"""What a checked card asks at a seed, and what becomes of an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.content.asked import Asked, ask
from app.content.catalogue import Catalogue, load
from tests.support.kinds import write_kinds


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return load(write_kinds(Path(tmp_path_factory.mktemp("content")) / "cards"))


def asked(kinds: Catalogue, card: str, seed: int = 1) -> Asked:
    return ask(kinds.cards[card], seed)


def numbers(kinds: Catalogue, seed: int) -> tuple[float, float]:
    """Billions and ranks of the numeric card at `seed`, read from what it shows."""
    billions, _, rest = asked(kinds, "C11", seed).prompt.striptags().partition("B over ")
    return float(billions), float(rest.split()[0])


def test_a_numeric_card_asks_other_numbers_at_other_seeds_and_the_same_at_the_same(kinds: Catalogue) -> None:
    assert len({numbers(kinds, seed) for seed in range(60)}) == 11, (
        "4 × 3 combinations but 1 over 2, which where excludes"
    )
    assert numbers(kinds, 7) == numbers(kinds, 7)


@pytest.mark.parametrize("seed", range(5))
def test_the_key_follows_the_drawn_numbers(kinds: Catalogue, seed: int) -> None:
    billions, ranks = numbers(kinds, seed)
    showing = asked(kinds, "C11", seed)
    assert showing.number is not None
    assert showing.number.key == pytest.approx(16 * billions * 1e9 / ranks)  # ZeRO-3 divides all sixteen bytes
    assert showing.check(f"{16 * billions / ranks} GB").status == "correct"
    assert showing.check(f"{16 * billions / ranks * 1.015} GB").status == "correct", "within 2 %"
    assert showing.check(f"{16 * billions / ranks * 1.03} GB").status == "wrong"


def test_a_known_slip_is_told_with_its_message_and_cure(kinds: Catalogue) -> None:
    billions, _ = numbers(kinds, 3)
    found = asked(kinds, "C11", 3).check(f"{16 * billions} GB")
    assert (found.status, found.title, found.cure) == ("wrong", "not divided", "C01")
    assert found.message == f"All {16 * billions:g} GB of it."


@pytest.mark.parametrize("text", ["", "many", "12 s", "12", "<b>12</b>"])
def test_what_cannot_be_read_is_invalid_and_escaped(kinds: Catalogue, text: str) -> None:
    found = asked(kinds, "C11").check(text)
    assert found.status == "invalid"
    assert found.message
    assert "<b>" not in found.message


@pytest.mark.parametrize(
    ("answer", "status", "says"),
    [
        ("ring", "correct", "All links carry the same."),
        (" ring ", "correct", "All links carry the same."),
        ("star", "wrong", "One link carries everything."),
        ("", "invalid", "Choose one of"),
        ("moon", "invalid", "Choose one of"),
        ("ring,star", "invalid", "Choose one of"),
    ],
)
def test_one_option_is_chosen(kinds: Catalogue, answer: str, status: str, says: str) -> None:
    found = asked(kinds, "C12").check(answer)
    assert found.status == status
    assert says in found.message


@pytest.mark.parametrize(
    ("answer", "status", "says"),
    [
        ("weights,moments", "correct", "Adam keeps two."),
        ("moments, weights", "correct", "Adam keeps two."),
        ("weights", "wrong", "You left out 1 that is right."),
        ("logits", "wrong", "You chose 1 that is wrong and left out 2 that are right."),
        ("weights,moments,logits", "wrong", "You chose 1 that is wrong."),
        ("", "invalid", "Choose one or more of"),
    ],
)
def test_all_right_options_are_chosen(kinds: Catalogue, answer: str, status: str, says: str) -> None:
    showing = asked(kinds, "C13")
    assert showing.several
    found = showing.check(answer)
    assert (found.status, found.message) == (status, says) or (status == "invalid" and says in found.message)


def test_options_change_places_unless_the_question_names_them(kinds: Catalogue) -> None:
    orders = {tuple(choice.key for choice in asked(kinds, "C12", seed).choices) for seed in range(30)}
    assert len(orders) == 6, "three options have six orders"
    assert {tuple(choice.key for choice in asked(kinds, "C13", seed).choices) for seed in range(30)} == {
        ("weights", "moments", "logits")
    }


def right_letters(showing: Asked) -> list[str]:
    """The letters of a match card's right sides, in the order of the left ones."""
    by_text = {choice.text: choice.key for choice in showing.choices}
    return [by_text[pair.right] for pair in showing.card.asks]  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(8))
def test_pairs_are_matched_by_letter_and_never_lie_in_order(kinds: Catalogue, seed: int) -> None:
    showing = asked(kinds, "C14", seed)
    right = right_letters(showing)
    assert right != ["a", "b", "c"]
    assert showing.check(",".join(right)).status == "correct"
    turned = [right[1], right[0], right[2]]
    found = showing.check(",".join(turned))
    assert (found.status, found.message) == ("wrong", "2 of 3 belong elsewhere.")
    assert [about for about, _ in found.remarks] == ["ZeRO-1", "ZeRO-2"]
    assert found.remarks[0][1] == "goes with optimizer."
    assert found.given[0] == "optimizer, gradients"


@pytest.mark.parametrize(
    ("answer", "says"),
    [("a,b", "2 of 3 have one"), ("a,a,b", "a is chosen twice"), ("a,b,z", "'z' is not offered"), ("", "0 of 3")],
)
def test_an_incomplete_match_is_invalid(kinds: Catalogue, answer: str, says: str) -> None:
    found = asked(kinds, "C14").check(answer)
    assert found.status == "invalid"
    assert says in found.message.unescape()


@pytest.mark.parametrize("seed", range(8))
def test_steps_are_put_in_order_and_equal_ones_may_change_places(kinds: Catalogue, seed: int) -> None:
    showing = asked(kinds, "C15", seed)
    letters: dict[str, list[str]] = {}
    for choice in showing.choices:
        letters.setdefault(str(choice.text), []).append(choice.key)
    first, second = letters["gather"]
    (compute,), (scatter,) = letters["compute"], letters["scatter"]
    assert [choice.text for choice in showing.choices] != ["gather", "compute", "gather", "scatter"]
    assert showing.check(f"{first},{compute},{second},{scatter}").status == "correct"
    assert showing.check(f"{second},{compute},{first},{scatter}").status == "correct"
    found = showing.check(f"{compute},{first},{second},{scatter}")
    assert (found.status, found.message) == ("wrong", "2 of 4 places hold another step.")
    assert "<li>gather</li><li>compute</li><li>gather</li><li>scatter</li>" in found.right
