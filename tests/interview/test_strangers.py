"""What is heard of strangers' words: answers by a hand that saw neither evidence nor claims."""

from __future__ import annotations

from app.content.catalogue import Catalogue
from tests.support.heard import agreement, confusion, heard_of

# Of 256 frozen points, measured when they came: said and heard 110 of 133, denied and seen 25 of 53, denied and
# heard as said 10, said and heard as denied none, kappa 0.50. The bounds leave room for what other changes move.
LEAST_HEARD, LEAST_SEEN, MOST_TAKEN_IN, MOST_TURNED_ROUND, LEAST_KAPPA = 100, 20, 13, 3, 0.42


def test_strangers_are_heard_as_well_as_was_measured(content: Catalogue) -> None:
    heard = heard_of("frozen", content)
    table = confusion(heard)
    said = {verdict: table["met", verdict] for verdict in ("met", "half", "contradicted")}
    assert said["met"] + said["half"] >= LEAST_HEARD
    assert said["contradicted"] <= MOST_TURNED_ROUND
    assert table["contradicted", "contradicted"] >= LEAST_SEEN
    assert table["contradicted", "met"] + table["contradicted", "half"] <= MOST_TAKEN_IN
    assert agreement(heard) >= LEAST_KAPPA
