"""A Llama's size against published models, and its head and stages against figures worked out by hand."""

from __future__ import annotations

import pytest

from app.theory import llama
from app.theory.presets import PRESETS
from app.theory.transformer import parameter_count
from labs.spec import SpecError
from tests.theory.worked import OPENING, Example, worked

EXAMPLES: list[Example] = [
    # Llama 3 70B: 80 × (2.25 × 8,192² + 3 × 8,192 × 28,672 + 16,384) + 2 × 128,256 × 8,192 + 8,192
    ("llama_parameters", OPENING, 1e9, "70.5537"),
    # 128,256 / (2.5 × 4,096 + 3 × 14,336)
    ("head_in_layers", OPENING, 1, "2.4087"),
    # seven layers where the mean is 6.67
    ("stage_excess", OPENING, 1, "1.05"),
    ("stage_excess", {"layers": 80, "stages": 16}, 1, "1"),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example[0]}-{example[3]}")
def test_a_formula_of_llamas_gives_its_worked_example(example: Example) -> None:
    found, shown = worked(example)
    assert found == shown


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("llama-3")])
def test_the_formula_is_the_count_of_every_tensor(name: str) -> None:
    model = PRESETS[name].model
    tied = "yes" if model.tied_embeddings else "no"
    shape = (model.layers, model.hidden, model.ffn_hidden, model.heads, model.kv_heads, model.vocab)
    assert llama.llama_parameters(*shape, tied) == parameter_count(model)


def test_heads_of_queries_are_shared_evenly() -> None:
    with pytest.raises(SpecError, match="does not divide heads"):
        llama.llama_parameters(1, 64, 128, 8, 3, 100)
