"""The application as the review benchmark runs it: many learners, and a catalogue of as many cards as wanted.

Local mode knows one learner; here a header says who asks. It takes the place of the product's dependency before the
rooms are loaded: with an override FastAPI would take every dependency's signature apart again in each request
(measured: a sixth of a review), which the product does not do. Further cards are copies of the shipped ones under new
ids, at the revision that the long log was learned at.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Annotated

from fastapi import Depends, FastAPI, Header

from app.content.cards import Card
from app.content.catalogue import Catalogue
from app.core import web

CARDS = "RANKZERO_BENCH_CARDS"


def make() -> FastAPI:
    """What uvicorn runs."""
    web.LearnerId = Annotated[int, Depends(_who)]
    from app.main import create_app

    app = create_app()
    app.state.catalogue = grown(app.state.catalogue, int(os.environ.get(CARDS, "0")))
    return app


async def _who(x_learner: Annotated[int, Header()] = 1) -> int:
    return x_learner


def grown(catalogue: Catalogue, count: int) -> Catalogue:
    """The catalogue with copies of its cards until there are `count`."""
    shipped, cards = list(catalogue.cards.values()), dict(catalogue.cards)
    for index in range(count - len(shipped)):
        card = _copy(shipped[index % len(shipped)], index)
        cards[card.id] = card
    return dataclasses.replace(catalogue, cards=cards)


def _copy(card: Card, index: int) -> Card:
    round_ = index // 1000
    cluster = card.head.cluster and f"{card.head.cluster}-{round_}"
    return dataclasses.replace(
        card, head=card.head.model_copy(update={"id": f"B{index + 1}", "cluster": cluster, "revision": 1})
    )
