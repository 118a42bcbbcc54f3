"""A content folder of one file of each kind, all in order: what tests break."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "concepts.yaml": """\
concepts:
  - {id: memory, title: Memory, says: "What it takes."}
  - {id: traffic, title: Traffic, says: "What moves.", needs: [memory]}
""",
    "decks/first/deck.yaml": """\
id: DK1
title: First
about: The first deck.
""",
    "decks/first/C01.md": """\
---
id: C01
title: State of 7B
kind: basic
concepts: [memory]
source: Counted by hand
related:
  problems: [P01]
---

# Question

How much state has 7B?

# Answer

{{ training_state(parameters=7e9) | GB }}, at $16$ bytes each.

# Trap

Activations come on top.
""",
    "decks/first/C02.md": """\
---
id: C02
title: Traffic of 7B
kind: basic
concepts: [traffic]
source: Counted by hand
---

# Question

What does a ring send?

# Answer

{{ ring_all_reduce_bytes(size_bytes=14e9, ranks=8) | GB }}.
""",
    "problems/P01-state.yaml": """\
id: P01
slug: state
title: State
about: Bytes of state.
concepts: [memory]
minutes: 3
parameters:
  billions: [7, 13]
let:
  size: billions * 1e9
where: billions > 1
statement: How much state has {{ billions }}B?
given:
  - {label: N, text: "{{ billions }}B"}
parts:
  - id: a
    prompt: State
    unit: GB
    key: training_state(parameters=size)
    slips:
      - id: weights
        value: 2 * size
        title: weights only
        message: That is {{ (2 * size) | GB }} of weights.
        cure: C01
hints: [One., Two., Three.]
solution: "{{ training_state(parameters=size) | GB }}"
""",
    "interviews/short.yaml": """\
id: M1
slug: short
title: Short
about: One question.
concepts: [memory]
minutes: 3
parameters:
  billions: [7, 13]
questions:
  - id: q1
    kind: number
    title: State
    prompt: How much state has {{ billions }}B?
    minutes: 2
    points: 10
    explanation: Sixteen bytes each.
    key: training_state(parameters=billions * 1e9)
    unit: GB
    doubt: {ask: "That is {{ (yours / billions / 1e9) | number }} bytes each. How many has one?",
            answered_by: {key: "16", unit: B}}
""",
    "preparation.yaml": """\
days: 10
decks:
  - DK1
checkpoints:
  - day: 0
    title: The ground
    tasks: [State of 7B]
    met: [DK1]
    solved: [P01]
  - day: 9
    title: The rest
    tasks: [Traffic of 7B]
    firm: [DK1]
    interviews: [M1]
""",
    "experiments/small.yaml": """\
id: L01
slug: small
title: Small
about: A small run.
concepts: [memory]
minutes: 1
asks: How much?
why: Because.
measures: [Bytes]
spec:
  model: gpt-mini
  training: {steps: 2}
knobs:
  - {field: parallel.data, label: Ranks, values: [1, 2]}
quantities:
  - id: model_state_bytes
    title: State
    says: bytes on each rank
    unit: MB
    most: 30 * theory.parameters
    anchor: {says: weights, value: 4 * theory.parameters}
    cure: C01
    explanation: Sixteen bytes each.
interview_line: Sixteen bytes each.
""",
}


def write_cards(folder: Path) -> Path:
    """Write the files below `folder`; returns it."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def edit(folder: Path, name: str, old: str, new: str) -> None:
    """Change one place of a file."""
    path = folder / name
    text = path.read_text()
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
    path.write_text(text.replace(old, new))
