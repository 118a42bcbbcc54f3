"""What of a learner's cards changes rarely: which were never met, which belong together, which left the library.

One scan of everything makes it; after that it follows the log. It is kept in this process until the library, the study
day or what a plan chose changes, or until the newest review it knows no longer stands (an undo, a restored
backup). No card is shown by it alone: what it names is looked up again.
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
from app.study import library, queries
from app.study.days import day_number, day_start
from app.study.policy import Policy
from app.study.queue import queues
from app.study.queue.queues import Scanned

MOST_KEPT = 256


@dataclass
class Roster:
    """A learner's library as one scan found it.

    `fresh` are the cards not met, in the order of introduction. `gone` were met, but left the library or mean something
    else now. Cards of one cluster test the same thing. `due_near` (by cluster) and `due_gone` are known and come back
    today: such cards do so when the day starts, so that none joins them before the next scan. Those `answered` since
    are neither fresh nor due any more. `load` says how many cards come back on each later day, counted from `day`;
    `newest` is the last review that is in all this, and the card it was of.
    """

    key: Hashable
    day: int
    fresh: tuple[str, ...]
    revisions: Mapping[str, int]
    gone: frozenset[str]
    due_gone: frozenset[str]
    due_near: Mapping[str, tuple[str, ...]]
    cluster_of: Mapping[str, str]
    load: dict[int, int]
    newest: tuple[int, str]
    answered: set[str] = field(default_factory=set)

    def count_hidden(self, clusters: Iterable[str]) -> int:
        """Known cards due today that are not shown: near to a card of these clusters, or gone."""
        near = (self.due_near.get(name, ()) for name in clusters)
        return len(self.due_gone.union(*near) - self.answered)

    def is_current(self, card_id: str, revision: int) -> bool:
        """Whether what was learned of a card is what the card still says."""
        return self.revisions.get(card_id) == revision


_kept: WeakKeyDictionary[Any, OrderedDict[int, Roster]] = WeakKeyDictionary()
_lock = threading.Lock()
_SEEN = "newest review"  # of a session: what it followed the log to, so that it need not look again
_NONE = (0, "")


def roster(session: Session, learner_id: int, catalogue: Catalogue, policy: Policy, now: datetime) -> Roster:
    """The learner's roster on the study day of `now`, made if there is none that still holds."""
    zone = learner_zone()
    day = day_number(now, zone)
    key = (library.edition(session, learner_id, catalogue), day, zone, policy.order, policy.planned_day)
    found = _find(session, learner_id)
    if found is None or found.key != key or not _follow(session, learner_id, found):
        newest = queries.find_newest(session, learner_id) or _NONE
        cards = library.all_cards(session, learner_id, catalogue)
        scanned = queues.scan(session, learner_id, now, day_start(day + 1, zone))
        found = _roster(cards, policy, key, day, _load(session, learner_id, day), newest, scanned)
        with _lock:
            rosters = _of(session)
            rosters[learner_id] = found
            rosters.move_to_end(learner_id)
            if len(rosters) > MOST_KEPT:
                rosters.popitem(last=False)
    session.info[_SEEN, learner_id] = found.newest
    return found


def note_review(
    session: Session, learner_id: int, review_id: int, card_id: str, due_before: datetime | None, due_at: datetime
) -> None:
    """A card was answered in this session. Should its transaction fail, the log will not hold the newest review."""
    found = _find(session, learner_id)
    if found is None or session.info.get((_SEEN, learner_id)) != found.newest:
        return  # what it lacks besides, the next look takes from the log
    zone = learner_zone()
    for at, change in ((due_before, -1), (due_at, 1)):
        if at is not None:
            days = day_number(at, zone) - found.day
            found.load[days] = found.load.get(days, 0) + change
    found.answered.add(card_id)
    found.newest = review_id, card_id
    session.info[_SEEN, learner_id] = found.newest


def _follow(session: Session, learner_id: int, known: Roster) -> bool:
    """Take in what was answered since, in another process say. False where the newest review was taken back."""
    if session.info.get((_SEEN, learner_id)) == known.newest:
        return True
    since = queries.list_answered_since(session, learner_id, known.newest[0])
    if known.newest != _NONE and (not since or since[0] != known.newest):
        return False
    if since and since[-1] != known.newest:
        known.answered.update(card_id for _, card_id in since)
        known.load = _load(session, learner_id, known.day)
        known.newest = since[-1]
    return True


def _load(session: Session, learner_id: int, day: int) -> dict[int, int]:
    """How many cards come back on each day after `day`, counted from it."""
    zone = learner_zone()
    load: dict[int, int] = {}
    for due_at, count in queries.count_due_at(session, learner_id, day_start(day + 1, zone)):
        days = day_number(due_at, zone) - day
        load[days] = load.get(days, 0) + count
    return load


def forget(session: Session, learner_id: int) -> None:
    """Scan again at the next look: something was taken back, suspended, buried, placed or imported."""
    session.info.pop((_SEEN, learner_id), None)
    with _lock:
        _of(session).pop(learner_id, None)


def _find(session: Session, learner_id: int) -> Roster | None:
    with _lock:
        return _of(session).get(learner_id)


def _of(session: Session) -> OrderedDict[int, Roster]:
    pool = session.get_bind().engine.pool  # reading and writing engines share it, and it ends with the database
    return _kept.setdefault(pool, OrderedDict())


def _roster(
    cards: Mapping[str, Card],
    policy: Policy,
    key: Hashable,
    day: int,
    load: dict[int, int],
    newest: tuple[int, str],
    scanned: Iterable[Scanned],
) -> Roster:
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
        day,
        tuple(card_id for card_id in _ordered(cards, policy) if card_id not in known and card_id not in away),
        revisions,
        frozenset(gone),
        frozenset(gone & due),
        {name: tuple(due.intersection(members)) for name, members in near.items()},
        {card_id: name for name, members in near.items() for card_id in members},
        load,
        newest,
    )


def _ordered(cards: Mapping[str, Card], policy: Policy) -> list[str]:
    first = [card_id for card_id in policy.order or () if card_id in cards]
    ahead = set(first)
    return first + [card_id for card_id in cards if card_id not in ahead]
