"""A checked card as it is shown: the seed of this showing, and what the machine makes of an answer. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from app.content.asked import Asked, Verdict, ask
from app.content.cards import Card
from app.core.errors import DomainError, Violation
from app.study.fsrs import scheduling

LARGEST_SEED = 2**63 - 1
LONGEST_ANSWER = 10_000


@dataclass(frozen=True)
class Checked:
    """An answer to a showing and the machine's verdict on it."""

    asked: Asked
    answer: str
    verdict: Verdict
    elapsed_milliseconds: int | None = None

    @property
    def counts(self) -> bool:
        """Whether it could be read: what cannot be read is asked again."""
        return self.verdict.status != "invalid"

    @property
    def is_slow(self) -> bool:
        """Whether a right answer came too late to have been easy."""
        late = (self.elapsed_milliseconds or 0) > self.asked.card.slow_milliseconds
        return self.verdict.status == "correct" and late

    @property
    def best_level(self) -> int:
        """The best rating that counts."""
        return scheduling.best_level([self.verdict.status, "slow" if self.is_slow else ""])


def seed_of(learner_id: int, card: Card, version: int) -> int:
    """The seed of the showing of a card's `version`: the same until it is rated, on every page and in every tab."""
    name = f"{learner_id}:{card.id}:{card.head.revision}:{version}"
    return int.from_bytes(sha256(name.encode()).digest()[:4]) % 1_000_000


def check(card: Card, seed: int, answer: str, elapsed_milliseconds: int | None = None) -> Checked:
    """The verdict on `answer` to `card` at `seed`. Raises DomainError for a seed or an answer out of bounds."""
    if not 0 <= seed <= LARGEST_SEED:
        raise DomainError("There is no such showing.", [Violation("seed", seed, "It is out of range.", "as shown")])
    if len(answer) > LONGEST_ANSWER:
        accepted = f"up to {LONGEST_ANSWER:,} characters"
        raise DomainError("The answer was not checked.", [Violation("answer", "…", "It is too long.", accepted)])
    asked = ask(card, seed)
    return Checked(asked, answer, asked.check(answer), elapsed_milliseconds)
