"""What the study page says of the last thing that was done, and what helps with a card that is forgotten too often."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.content.cards import Card
from app.content.catalogue import Catalogue
from app.study import library
from app.study.fsrs import scheduling
from app.study.log.recording import Recorded


@dataclass(frozen=True)
class Link:
    """Where a card leads that repeating does not fix."""

    href: str
    text: str
    note: str


@dataclass(frozen=True)
class Notice:
    """What the page says of the last thing that was done: an answer, a mark, a card that was forgotten too often."""

    text: str = ""
    card_id: str = ""
    action: str = ""
    links: tuple[Link, ...] = ()

    @property
    def back(self) -> str:
        """What takes the mark away that was just hung on a card, where something does."""
        return _BACK.get(self.action, "")


_BACK = {"bury": "Bring it back", "suspend": "Bring it back", "flag": "Take the flag away"}
SILENCE = Notice()


def warn_of_leech(session: Session, catalogue: Catalogue, made: Recorded) -> Notice:
    """What to say when a review was one lapse too many."""
    if not scheduling.is_lapse(made.memory_before, made.rating) or not scheduling.is_leech(made.lapses):
        return SILENCE
    card = library.find_card(session, made.learner_id, catalogue, made.card_id)
    text = f"{card.id}, {card.head.title}, was forgotten {made.lapses} times. Repeating it more will not help."
    return Notice(text, card.id, "hard", suggestions(catalogue, card))


def suggestions(catalogue: Catalogue, card: Card) -> tuple[Link, ...]:
    """The page that explains the card and the experiment that shows it: the card's own, else its concepts'."""
    concepts, related = set(card.head.concepts), card.head.related
    pages = [catalogue.pages[slug] for slug in related.pages if slug in catalogue.pages]
    pages = pages or [page for page in catalogue.pages.values() if concepts & set(page.head.concepts)]
    experiments = [catalogue.experiments[id_] for id_ in related.experiments if id_ in catalogue.experiments]
    experiments = experiments or [each for each in catalogue.experiments.values() if concepts & set(each.concepts)]
    return (
        *(Link(f"/reference/{page.slug}", page.head.title, "read") for page in pages[:1]),
        *(
            Link(f"/lab/experiments/{each.slug}", f"{each.id}, {each.title}", f"run, {each.minutes} min")
            for each in experiments[:1]
        ),
    )
