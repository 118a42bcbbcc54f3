"""What of a learner's cards changes rarely: which were never met, which belong together, which left the library.

One scan of everything makes it; it is kept in this process until the library, the study day or the order of
introduction changes, or until the newest review is older than one already seen (an undo, a restored backup). Nothing
is decided by it alone: what it names is looked up again before it is shown.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy.orm import Session

from app.content.cards import Card
from app.content.catalogue import Catalogue
from app.core.zone import learner_zone
from app.study import library, queries, queues
from app.study.days import day_start
from app.study.policy import Policy
from app.study.queues import Scanned

MOST_KEPT = 256
_WRITTEN = "newest review"  # of a session: the one it wrote itself need not be asked for


@dataclass
class Roster:
    """A learner's library as one scan found it.

    `fresh` are the cards not met, in the order of introduction; of those, `met` were met since. `gone` were met, but
    left the library or mean something else now. Cards of one cluster test the same thing. `due_near` (by cluster) and
    `due_gone` come back today: known cards do so when the day starts, so that none joins them before the next scan.
    """

    key: Hashable
    fresh: tuple[str, ...]
    revisions: Mapping[str, int]
    gone: frozenset[str]
    due_gone: frozenset[str]
    due_near: Mapping[str, tuple[str, ...]]
    cluster_of: Mapping[str, str]
    newest_id: int
    met: set[str] = field(default_factory=set)

    def is_current(self, card_id: str, revision: int) -> bool:
        """Whether what was learned of a card is what the card still says."""
        return self.revisions.get(card_id) == revision


_kept: WeakKeyDictionary[Any, OrderedDict[int, Roster]] = WeakKeyDictionary()
_lock = threading.Lock()


def roster(session: Session, learner_id: int, catalogue: Catalogue, policy: Policy, now: datetime, day: int) -> Roster:
    """The learner's roster on study day `day`, made if there is none that still holds."""
    key = (library.edition(session, learner_id, catalogue), day, policy.order)
    newest_id = session.info.get((_WRITTEN, learner_id)) or queries.find_newest_id(session, learner_id) or 0
    with _lock:
        found = _of(session).get(learner_id)
    if found is None or found.key != key or newest_id < found.newest_id:
        cards = library.all_cards(session, learner_id, catalogue)
        found = _roster(cards, policy, key, queues.scan(session, learner_id, now, day_start(day + 1, learner_zone())))
        with _lock:
            rosters = _of(session)
            rosters[learner_id] = found
            rosters.move_to_end(learner_id)
            if len(rosters) > MOST_KEPT:
                rosters.popitem(last=False)
    found.newest_id = newest_id
    return found


def note_review(session: Session, learner_id: int, review_id: int, card_id: str, is_first: bool) -> None:
    """A card was answered, for the first time or not.

    Should the transaction fail, the newest review tells, and a scan puts it right.
    """
    session.info[_WRITTEN, learner_id] = review_id
    if is_first:
        with _lock:
            found = _of(session).get(learner_id)
        if found is not None:
            found.met.add(card_id)


def forget(session: Session, learner_id: int) -> None:
    """Scan again at the next look: something was taken back, suspended, buried, placed or imported."""
    session.info.pop((_WRITTEN, learner_id), None)
    with _lock:
        _of(session).pop(learner_id, None)


def _of(session: Session) -> OrderedDict[int, Roster]:
    pool = session.get_bind().engine.pool  # reading and writing engines share it, and it ends with the database
    return _kept.setdefault(pool, OrderedDict())


def _roster(cards: Mapping[str, Card], policy: Policy, key: Hashable, scanned: Iterable[Scanned]) -> Roster:
    revisions = {card_id: card.head.revision for card_id, card in cards.items()}
    known: set[str] = set()
    gone: set[str] = set()
    away: set[str] = set()
    due: set[str] = set()
    for card_id, revision, is_met, is_away, is_due in scanned:
        if is_away:
            away.add(card_id)
        if is_met:
            (known if revisions.get(card_id) == revision else gone).add(card_id)
        if is_due:
            due.add(card_id)
    clusters: dict[str, list[str]] = defaultdict(list)
    for card_id, card in cards.items():
        if card.head.cluster:
            clusters[card.head.cluster].append(card_id)
    near = {name: tuple(members) for name, members in clusters.items() if len(members) > 1}
    return Roster(
        key,
        tuple(card_id for card_id in _ordered(cards, policy) if card_id not in known and card_id not in away),
        revisions,
        frozenset(gone),
        frozenset(gone & due),
        {name: tuple(due.intersection(members)) for name, members in near.items()},
        {card_id: name for name, members in near.items() for card_id in members},
        0,
    )


def _ordered(cards: Mapping[str, Card], policy: Policy) -> list[str]:
    first = [card_id for card_id in policy.order or () if card_id in cards]
    ahead = set(first)
    return first + [card_id for card_id in cards if card_id not in ahead]
