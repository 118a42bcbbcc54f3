"""What a result offers next: what is about the points that were lost, those that lost most first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log1p

from app.grading.rubrics.quotes import topic
from app.rubrics.pages import ResultView
from app.rubrics.rows import PointView

# Of a point's words, rare ones counting more, those that stand in a card that answers it …
SAYS_A_POINT = 0.5
TOUCHES_A_POINT = 0.35  # … or that is at least about it, as one of the question's own may be
MOST_OFFERED = 2  # beside answering again

Link = Mapping[str, str]  # address, text and note


@dataclass(frozen=True)
class Offer:
    """A link, and the lost point that it answers, if it is about one."""

    link: Link
    point: PointView | None = None


def offers(
    result: ResultView, related: Sequence[Link], cards: Mapping[str, str], besides: Sequence[Link] = ()
) -> tuple[list[Offer], list[Link]]:
    """What is offered, and the `related` links that are left. `cards` are the texts of cards by address; of them one is
    offered that is about a lost point, one of the related ones before one of those `besides`. No card is offered that
    is about nothing that was lost, where anything was."""
    own = [each for each in related if each["href"] in cards]
    others = [each for each in related if each["href"] not in cards]
    shelf = _Shelf(cards)
    answers: list[Offer] = []
    for row in result.lost:
        about = topic(row.point.text.striptags())
        link = shelf.answer(own, about) or shelf.answer(besides, about) or shelf.answer(own, about, TOUCHES_A_POINT)
        if link is not None and all(each.link["href"] != link["href"] for each in answers):
            answers.append(Offer(link, row.point))
    first = answers if result.lost else [Offer(each) for each in own[:1]]
    chosen = [*first[:1], *map(Offer, _one_of_each_kind(others)), *first[1:]][:MOST_OFFERED]
    shown = {each.link["href"] for each in chosen}
    return chosen, [each for each in related if each["href"] not in shown]


class _Shelf:
    """Cards by what they say: a word that many have tells less about one."""

    def __init__(self, cards: Mapping[str, str]) -> None:
        self.topics = {href: topic(text) for href, text in cards.items()}
        self.having = Counter(word for said in self.topics.values() for word in said)

    def answer(self, links: Sequence[Link], about: frozenset[str], enough: float = SAYS_A_POINT) -> Link | None:
        """The link whose card says most about something; None where none says enough of it."""
        best = max(links, key=lambda each: self._share(each, about), default=None)
        return best if best is not None and self._share(best, about) >= enough else None

    def _share(self, link: Link, about: frozenset[str]) -> float:
        """How much of what something is about a card says, 0 to 1."""
        worth = {word: log1p(len(self.topics) / max(1, self.having[word])) for word in about}
        return sum(worth[word] for word in about & self.topics[link["href"]]) / max(sum(worth.values()), 1e-9)


def _one_of_each_kind(links: Sequence[Link]) -> list[Link]:
    """A reason that stands twice is none."""
    return list({each["note"]: each for each in reversed(links)}.values())[::-1]
