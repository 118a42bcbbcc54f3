"""Scaling laws in small: how the loss falls with a model's parameters, with the tokens it has seen, and with compute.

Every model is trained anew for every budget of tokens. That is dear, but a loss halfway through a long training is not
what a short one reaches: the learning rate has to have come down by the end (Hoffmann et al. 2022, section 3.1). No
passage is seen twice, and the loss is that of passages which no model ever sees.

Three questions are asked of the losses L, for N parameters, D tokens and C FLOPs:

  over N, over D    which power of N (at the most tokens) and of D (for the largest model) does L follow?
  at equal C        which N is best? Small models have learned all they can, large ones have seen too little. Losses at
                    the same C, read off between the budgets that were trained, lie about on a parabola over log N
                    (Hoffmann et al. 2022, section 3.2: IsoFLOP profiles). Its lowest point gives D/N.

Chinchilla's D/N is about 20. It was found for models of 70M parameters and more that read words, not bytes; embeddings
are a third of ours; one seed and one learning rate have to do here. So a number of its own is to be expected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from labs.data import load_source_code
from labs.model import GPT, build_model, write_attention_out
from labs.programs.fits import fit_parabola, fit_power_law, interpolate
from labs.programs.running import Bench
from labs.spec import ScalingOptions

_HELD_OUT_PASSAGES = 512
_CHUNK_BYTES = 8192  # the text is held out by such chunks, one of
_CHUNKS = 16
_WARM_UP = 0.05  # of the steps, in which the learning rate rises; from there it falls along a cosine
_LAST_RATE = 0.1  # of the highest
_RATE_IS_FOR_WIDTH = 32


@dataclass(frozen=True)
class Trained:
    """One training: N, D, C (counted, attention included) and the loss on held-out text in nats per byte."""

    parameters: int
    tokens: int
    flops: float
    loss: float


def measure(options: ScalingOptions, bench: Bench) -> dict[str, float]:
    """Train all models on all budgets, and fit what came out. NaN stands for what the points do not show."""
    if bench.device.type == "cpu":
        torch.set_num_threads(1)  # these products are so small that a second thread costs more than it brings
    text = Text.cut(options, bench.seed)
    trained = []
    for budget in sorted(options.token_budgets):
        for width in sorted(options.widths):
            trained.append(_train(options, width, budget, text, bench))
            _report(bench, trained[-1])
    models = [[one for one in trained if one.parameters == n] for n in sorted({one.parameters for one in trained})]
    total = {"training_flops": sum(one.flops for one in trained)}
    return total | _power_laws(models, bench) | _isoflops(models, bench)


@dataclass(frozen=True)
class Text:
    """Passages to train on, in the order in which every model sees them, and held-out ones: (count, sequence + 1)."""

    passages: Tensor
    held_out: Tensor

    @staticmethod
    def cut(options: ScalingOptions, seed: int) -> Text:
        text = load_source_code()
        chunks = text[: len(text) // _CHUNK_BYTES * _CHUNK_BYTES].view(-1, _CHUNK_BYTES)
        held = torch.arange(len(chunks)) % _CHUNKS == 0
        generator = torch.Generator().manual_seed(seed)
        shown = _shuffled(chunks[~held].flatten(), options.sequence, generator)
        held_out = _shuffled(chunks[held].flatten(), options.sequence, generator)
        return Text(shown, held_out[:_HELD_OUT_PASSAGES])


def _shuffled(text: Tensor, sequence: int, generator: torch.Generator) -> Tensor:
    length = sequence + 1  # the last byte is only ever a target
    passages = text[: len(text) // length * length].view(-1, length)
    return passages[torch.randperm(len(passages), generator=generator)]


# --- one training


def _train(options: ScalingOptions, width: int, budget: int, text: Text, bench: Bench) -> Trained:
    model = _new_model(options, width, bench.seed).to(bench.device)
    highest = options.learning_rate * _RATE_IS_FOR_WIDTH / width
    optimizer = torch.optim.AdamW(model.parameters(), lr=highest, betas=(0.9, 0.95), weight_decay=0.01)
    steps = options.steps(budget)
    for step, passages in enumerate(torch.split(text.passages[: steps * options.batch], options.batch)):
        for group in optimizer.param_groups:
            group["lr"] = highest * _rate(step, steps)
        loss = _loss(model, passages.to(bench.device))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    flops, reached = steps * flops_of_a_step(options, width), _held_out_loss(model, text, bench.device)
    return Trained(_parameters(model), steps * options.tokens_per_step, flops, reached)


def _new_model(options: ScalingOptions, width: int, seed: int) -> GPT:
    """GPT-2's initial weights have a standard deviation of 0.02, about 1/√width for what was then wide. For a width
    of 8 that is next to nothing, and half of the budget would go by before anything is learned."""
    model = build_model(options.model(width), options.sequence, seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(width**-0.5 / 0.02)
    return model


def _rate(step: int, steps: int) -> float:
    """The learning rate of a step from 0, over the highest: it rises from nothing, and falls to a tenth."""
    rising = (step + 1) / max(1.0, _WARM_UP * steps)
    falling = _LAST_RATE + (1 - _LAST_RATE) * (1 + math.cos(math.pi * step / steps)) / 2
    return min(1.0, rising) * falling


def _loss(model: nn.Module, passages: Tensor) -> Tensor:
    loss: Tensor = model(passages[:, :-1].long(), passages[:, 1:].long())
    return loss


def _held_out_loss(model: GPT, text: Text, device: torch.device) -> float:
    with torch.no_grad():
        return mean(_loss(model, passages.to(device)).item() for passages in torch.split(text.held_out, 64))


def _parameters(model: GPT) -> int:
    """N as 6ND means it: every parameter that is multiplied by. Learned positions are only looked up."""
    looked_up = 0 if model.positions is None else model.positions.weight.numel()
    return sum(parameter.numel() for parameter in model.parameters()) - looked_up


def flops_of_a_step(options: ScalingOptions, width: int) -> float:
    """FLOPs of the matrix products of one step, counted as they are dispatched: forward, and twice that backward.

    With attention written out in full, for fused kernels say nothing of what they do.
    """
    model = build_model(options.model(width), options.sequence, seed=0)
    write_attention_out(model)
    with FlopCounterMode(display=False) as counter:
        _loss(model, torch.zeros(options.batch, options.sequence + 1, dtype=torch.uint8)).backward()  # type: ignore[no-untyped-call]
    return float(counter.get_total_flops())


# --- what the trainings show


def _report(bench: Bench, one: Trained) -> None:
    model, budget = f"{one.parameters:,} parameters", f"{one.tokens:,} tokens"
    bench.point("loss_by_compute", model, one.flops, one.loss)
    bench.point("loss_by_tokens", model, one.tokens, one.loss)
    bench.point("loss_by_parameters", budget, one.parameters, one.loss)
    bench.point("flops", model, one.tokens, one.flops)
    bench.say(f"{model}, {budget}: {one.loss:.3f} nats per byte")


def _power_laws(models: Sequence[Sequence[Trained]], bench: Bench) -> dict[str, float]:
    """The exponents, positive where the loss falls: L ∝ N^−α at the most tokens, and L ∝ D^−β for the largest model."""
    longest, largest = [runs[-1] for runs in models], models[-1]
    by_n = fit_power_law([one.parameters for one in longest], [one.loss for one in longest])
    by_d = fit_power_law([one.tokens for one in largest], [one.loss for one in largest])
    for one in longest:
        bench.point("loss_by_parameters", "power law", one.parameters, by_n(one.parameters))
    for one in largest:
        bench.point("loss_by_tokens", "power law", one.tokens, by_d(one.tokens))
    bench.say(f"over parameters L = {by_n}, over tokens L = {by_d} (± one standard error)")
    return {
        "parameter_exponent": -by_n.exponent,
        "parameter_exponent_error": by_n.error,
        "token_exponent": -by_d.exponent,
        "token_exponent_error": by_d.error,
    }


def _isoflops(models: Sequence[Sequence[Trained]], bench: Bench) -> dict[str, float]:
    """Tokens per parameter of the best model, for the largest compute at which there is a best one among ours."""
    ratios = [_isoflop(models, flops, bench) for flops in _common_flops(models)]
    found = [ratio for ratio in ratios if ratio is not None]
    if not found:
        bench.say("no compute shows a best model between larger and smaller ones: try other widths or more budgets")
    return {"tokens_per_parameter": found[-1] if found else math.nan}


def _common_flops(models: Sequence[Sequence[Trained]]) -> list[float]:
    """For every three models next to each other in size the middle of the FLOPs that all three were trained with."""
    spans = [(large[0].flops, small[-1].flops) for small, large in zip(models, models[2:], strict=False)]
    return [math.sqrt(low * high) for low, high in spans if low <= high]


def _isoflop(models: Sequence[Sequence[Trained]], flops: float, bench: Bench) -> float | None:
    """The parabola at `flops`, and D/N at its lowest point, if that lies between the models."""
    near = [runs for runs in models if runs[0].flops <= flops <= runs[-1].flops]
    sizes = [runs[0].parameters for runs in near]
    losses = [interpolate([one.flops for one in runs], [one.loss for one in runs], flops) for runs in near]
    tokens = [flops / runs[0].flops * runs[0].tokens for runs in near]
    parabola = fit_parabola(sizes, losses)
    name = f"{flops:.1e} FLOPs"
    for size, loss in zip(sizes, losses, strict=True):
        bench.point("isoflop", name, size, loss)
        bench.point("isoflop", f"parabola at {name}", size, parabola(size))
    best = parabola.lowest_within(sizes[0], sizes[-1])
    if best is None:
        bench.say(f"{name}: the best size is not between {sizes[0]:,} and {sizes[-1]:,} parameters")
        return None
    ratio = interpolate(sizes, tokens, best) / best
    bench.say(f"{name}: best with {best:,.0f} parameters and {ratio:.1f} tokens for each, by {len(sizes)} models")
    return ratio
