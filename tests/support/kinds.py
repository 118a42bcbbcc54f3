"""A deck with one card of every kind, all in order: what tests answer and break."""

from __future__ import annotations

from pathlib import Path

from app.content.asked import Asked, ask
from app.content.catalogue import Catalogue, load
from app.content.checks import check_content
from tests.support.cards import edit, write_cards

HEAD = """\
---
id: {id}
title: A card
kind: {kind}
concepts: [memory]
source: Counted by hand
"""

NUMERIC = (
    HEAD.format(id="C11", kind="numeric")
    + """\
ask:
  parameters: {billions: [1, 2, 4, 8], ranks: [2, 4, 8]}
  where: billions * ranks > 2
  let: {whole: billions * 1e9}
  prompt: "{{ billions }}B over {{ ranks }} ranks: bytes per rank?"
  key: zero_state(parameters=whole, ranks=ranks, stage=3)
  unit: GB
  slips:
    - {id: whole, value: 16 * whole, title: not divided, message: "All {{ (16 * whole) | GB }} of it.", cure: C01}
---

# Question

7B over 8 ranks: how many bytes per rank under ZeRO-3?

# Answer

{{ zero_state(parameters=7e9, ranks=8, stage=3) | GB }}.
"""
)

CHOOSE = (
    HEAD.format(id="C12", kind="choose")
    + """\
options:
  - {id: ring, text: "A *ring*", correct: true, message: All links carry the same.}
  - {id: star, text: A star, message: One link carries everything.}
  - {id: tree, text: A tree, message: Its root works twice.}
---

# Question

Which topology has no special rank?

# Answer

The ring.
"""
)

SEVERAL = (
    HEAD.format(id="C13", kind="choose")
    + """\
options:
  - {id: weights, text: weights, correct: true}
  - {id: moments, text: moments, correct: true, message: Adam keeps two.}
  - {id: logits, text: logits, message: They go with the step.}
---

# Question

Which of these stay between steps: a) weights; b) moments; c) logits?

# Answer

a and b.
"""
)

MATCH = (
    HEAD.format(id="C14", kind="match")
    + """\
pairs:
  - {left: ZeRO-1, right: optimizer}
  - {left: ZeRO-2, right: "optimizer, gradients"}
  - {left: ZeRO-3, right: everything}
---

# Question

What does each stage shard?

# Answer

One more each.
"""
)

ORDER = (
    HEAD.format(id="C15", kind="order")
    + """\
steps: [gather, compute, gather, scatter]
---

# Question

In which order?

# Answer

Gather, compute, gather, scatter.
"""
)

CLOZE = (
    HEAD.format(id="C16", kind="cloze")
    + """\
---

# Question

7B carry [[{{ training_state(parameters=7e9) | GB }}]] of state, $N$ times [[$16$]].

# Answer

Sixteen bytes each.
"""
)

CODE = (
    HEAD.format(id="C17", kind="code")
    + """\
---

# Question

What does it print?

```python run
table = {"a": {"b": 1}}
cost = "$5 and $6"
print(f"{table['a']['b']}", "{{ 7 }}", [[1]])
```

# Answer

```text output
1 {{ 7 }} [[1]]
```

Braces stay as they are.
"""
)

KINDS = {
    "C11": NUMERIC,
    "C12": CHOOSE,
    "C13": SEVERAL,
    "C14": MATCH,
    "C15": ORDER,
    "C16": CLOZE,
    "C17": CODE,
}


def write_kinds(folder: Path) -> Path:
    """The files of `write_cards` and a deck of every kind below `folder`; returns it."""
    write_cards(folder)
    deck = folder / "decks/kinds"
    deck.mkdir()
    (deck / "deck.yaml").write_text("id: DK2\ntitle: Kinds\nabout: One of each.\n")
    edit(folder, "preparation.yaml", "  - DK1\n", "  - DK1\n  - DK2\n")
    for identity, text in KINDS.items():
        (deck / f"{identity}.md").write_text(text)
    return folder


def asked(kinds: Catalogue, card: str, seed: int = 1) -> Asked:
    return ask(kinds.cards[card], seed)


def must_be_refused(cards: Path, card: str, old: str, new: str, where: str, why: str) -> None:
    """The loader names the mistake that replaces `old` in `card`, and serves every other card."""
    edit(cards, f"decks/kinds/{card}.md", old, new)
    loaded = load(cards)
    said = [str(mistake) for mistake in loaded.mistakes]
    assert any(line.startswith(f"cards/decks/kinds/{card}.md:{where}: ") and why in line for line in said), said
    assert set(KINDS) - set(loaded.cards) == {card}


def must_be_noticed(cards: Path, card: str, old: str, new: str, where: str, why: str) -> None:
    """The content check names the mistake that replaces `old` in `card`."""
    edit(cards, f"decks/kinds/{card}.md", old, new)
    _, problems = check_content(cards)
    said = [str(problem) for problem in problems]
    assert any(line.startswith(f"cards/decks/kinds/{card}.md:{where}: ") and why in line for line in said), said
