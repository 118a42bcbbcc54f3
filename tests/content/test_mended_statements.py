"""Statements that stood in the content and were wrong stay out of it, however they are put.

Where a number was the fault a check computes it; these are the ones that only words carry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CARDS = Path(__file__).parents[2] / "cards"
# What was said, and a sentence of it as it stood; a rubric's patterns and its wrong exemplars may still name it.
MENDED = [
    (
        r"[Ss]equence parallelism[^.]{0,120}(?<!forward )(?:with|sends?|moves?) the same bytes(?! forward)",
        "F20",
        "Sequence parallelism sends the same bytes as reduce-scatters and all-gathers.",
    ),
    (
        r"(?:[Tt]raffic|r\b|bytes)[^.]{0,20} does not\s+change, since an all-reduce becomes",
        "F20",
        "Traffic does not change, since an all-reduce becomes a reduce-scatter and an all-gather of the same bytes.",
    ),
    (
        r"latency shows only while they fill and drain",
        "E065",
        "so pipelines stand slow links: latency shows only while they fill and drain.",
    ),
    (
        r"shows? in HFU, not in\s+MFU|recomputation counts in HFU only",
        "F34: MFU falls, HFU stays",
        "a third more FLOPs; it shows in HFU, not in MFU.",
    ),
    (
        r"optimizer's state usually stays at sixteen",
        "12 bytes are the optimizer's, 16 the model's",
        "the optimizer's state usually stays at sixteen bytes.",
    ),
    (
        r"(?:uses one NIC each way|All eight are busy only with)",
        "F56: node egress",
        "A single ring enters and leaves a node once, so it uses one NIC each way.",
    ),
    (
        r"all axes at about a thousand GPUs or \d+B",
        "C25: the test that failed, not a size",
        "pipeline when that is not enough; all axes at about a thousand GPUs or 100B.",
    ),
    (r"blocks? a GPU of a middle stage", "two stages have no middle", "block a GPU of a middle stage, forward"),
    (
        r"that ratio, not a rule, keeps tensor\s+parallelism inside",
        "F56: the reasons are others",
        "that ratio, not a rule, keeps tensor parallelism inside the node.",
    ),
    (
        r"Does a group cross nodes\? Then that is it",
        "F56: it depends on the cards",
        "Does a group cross nodes? Then that is it.",
    ),
    (r"loss=1\.97\d*", "F39: at the loss it is computed at", "tokens_for_loss(parameters=30e9, loss=1.9739)"),
]


def _texts() -> Iterator[tuple[str, str]]:
    for path in sorted(CARDS.rglob("*")):
        if path.suffix in (".md", ".yaml"):
            text = path.read_text(encoding="utf-8")
            yield (
                str(path.relative_to(CARDS)),
                re.sub(r"kind: fluent but wrong\n    text: >-\n(?:      .*\n)+", "", text),
            )


@pytest.mark.parametrize(("pattern", "why", "stood"), MENDED, ids=range(len(MENDED)))
def test_a_mended_statement_has_not_come_back(pattern: str, why: str, stood: str) -> None:
    assert re.search(pattern, stood), "the guard does not know the sentence it guards against"
    found = [(name, match.group()) for name, text in _texts() for match in [re.search(pattern, text)] if match]
    assert not found, f"{why}: {found}"
