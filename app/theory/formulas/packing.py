"""Documents packed into sequences: padding that is wasted, and attention that is left."""

from __future__ import annotations

from app.theory import batch
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import plain

ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F72",
        "padding_waste",
        "Padding in a batch",
        batch.padding_waste,
        (
            Input("mean_tokens", "Mean length", r"\bar{l}", "tokens", minimum=1, maximum=1e8),
            Input("sequence", "Sequence length", "s", "tokens", minimum=1, maximum=1e8, integer=True),
        ),
        "fraction",
        "%",
        plain(r"1 - \frac{\bar{l}}{s}", r"1 - \frac{{{mean_tokens}}}{{{sequence}}}"),
        "by counting tokens",
        "Every sequence padded to one length. Packing wastes none.",
        example={"mean_tokens": 1024, "sequence": 8192},
    ),
    Formula(
        "F72",
        "document_share",
        "Attention of packed documents over that of one",
        batch.document_share,
        (Input("documents", "Documents of equal length", "n", minimum=1, maximum=1e6, integer=True),),
        "fraction",
        "%",
        plain(r"\frac{1}{n}", r"\frac{{1}}{{{documents}}}"),
        "n times (s/n)² of s² pairs",
        "Masked apart, with a kernel that skips masked blocks.",
        example={"documents": 8},
    ),
)
