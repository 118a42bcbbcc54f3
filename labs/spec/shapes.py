"""What a model's sizes must keep to between them."""

from __future__ import annotations

from labs.spec.vocabulary import Model
from labs.violations import Violation


def check_model(model: Model, at: str = "model") -> list[Violation]:
    """What a model's sizes must keep to between them: heads that divide, experts and layers there are."""
    return _check_heads(model, at) + _check_latent_attention(model, at) + _check_experts(model, at)


def _check_heads(model: Model, at: str) -> list[Violation]:
    """Heads share out the hidden size, unless their own size is given; key/value heads share out the heads."""
    pairs: list[tuple[str, str, tuple[str, ...]]] = [("kv_heads", "heads", ())]
    if model.head_dim is None and model.latent_attention is None:
        pairs.insert(0, ("heads", "hidden", ("head_dim", "latent_attention")))
    found: list[Violation] = []
    for name, of, unless in pairs:
        value, whole = getattr(model, name), getattr(model, of)
        if whole % value:
            near = nearest_divisors(whole, value)
            message = f"{value:,} does not divide {of} = {whole:,}."
            involves = tuple(f"{at}.{other}" for other in (of, *unless))
            found.append(Violation(f"{at}.{name}", value, message, near, involves))
    return found


def _check_latent_attention(model: Model, at: str) -> list[Violation]:
    """What latent attention replaces cannot be set beside it."""
    if model.latent_attention is None:
        return []
    message = "Latent attention has sizes of its own and keys and values for every head."
    alone = (("head_dim", None), ("kv_heads", model.heads), ("qkv_biases", False))
    return [
        Violation(
            f"{at}.{name}",
            getattr(model, name),
            message,
            "null" if only is None else str(only).lower(),
            (f"{at}.heads", f"{at}.latent_attention"),
        )
        for name, only in alone
        if getattr(model, name) != only
    ]


def _check_experts(model: Model, at: str) -> list[Violation]:
    """Experts and layers cannot be more than there are; what only a mixture has needs one."""
    found: list[Violation] = []
    for name, of in (("active_experts", "experts"), ("dense_layers", "layers")):
        value, most = getattr(model, name), getattr(model, of)
        if value > most:
            least = 1 if name == "active_experts" else 0
            message = f"More than the {most:,} {of} there are."
            found.append(Violation(f"{at}.{name}", value, message, f"{least} to {most:,}", (f"{at}.{of}",)))
    if model.experts == 1:
        message = "Only a model with more than one expert has this."
        only = (("shared_experts", 0), ("expert_ffn_hidden", None), ("dense_layers", 0))
        found += [
            Violation(
                f"{at}.{name}",
                getattr(model, name),
                message,
                "null" if plain is None else str(plain),
                (f"{at}.experts",),
            )
            for name, plain in only
            if getattr(model, name) != plain
        ]
    return found


def nearest_divisors(number: int, wanted: int, how_many: int = 5) -> str:
    """The divisors of `number` nearest to `wanted`, as text."""
    divisors = {d for i in range(1, int(number**0.5) + 1) if number % i == 0 for d in (i, number // i)}
    near = sorted(sorted(divisors, key=lambda d: abs(d - wanted))[:how_many])
    return ", ".join(f"{d:,}" for d in near)
