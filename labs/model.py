"""A plain decoder-only GPT that knows nothing of parallelism.

Shapes in comments: B sequences, T positions, H the hidden size, V the vocabulary, D the size of one head.
The architecture is GPT-2's (Radford et al. 2019) without dropout and without biases in the linear layers;
grouped-query attention (Ainslie et al. 2023) and a gated MLP (Shazeer 2020) come with the shape.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from labs.spec import Model

_INITIAL_STD = 0.02  # GPT-2's


class Attention(nn.Module):
    """Causal self-attention. With fewer key/value heads than heads, each one serves a group of queries."""

    def __init__(self, shape: Model) -> None:
        super().__init__()
        self.head_size = shape.hidden // shape.heads
        kv_hidden = shape.kv_heads * self.head_size
        self.shared_kv = shape.kv_heads != shape.heads
        self.query = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.key = nn.Linear(shape.hidden, kv_hidden, bias=False)
        self.value = nn.Linear(shape.hidden, kv_hidden, bias=False)
        self.output = nn.Linear(shape.hidden, shape.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self._split(project(x)) for project in (self.query, self.key, self.value))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.shared_kv)
        mixed: Tensor = self.output(y.transpose(1, 2).flatten(2))  # (B, heads, T, D) -> (B, T, H)
        return mixed

    def _split(self, x: Tensor) -> Tensor:
        rows, places, width = x.shape  # (B, T, heads × D)
        return x.view(rows, places, width // self.head_size, self.head_size).transpose(1, 2)  # (B, heads, T, D)


class MLP(nn.Module):
    """Two matrices and a GELU; gated, three matrices and a SiLU."""

    def __init__(self, shape: Model) -> None:
        super().__init__()
        self.up = nn.Linear(shape.hidden, shape.ffn_hidden, bias=False)
        self.gate = nn.Linear(shape.hidden, shape.ffn_hidden, bias=False) if shape.gated_mlp else None
        self.down = nn.Linear(shape.ffn_hidden, shape.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        up: Tensor = self.up(x)
        wide = functional.gelu(up) if self.gate is None else functional.silu(self.gate(x)) * up
        narrow: Tensor = self.down(wide)
        return narrow


class Block(nn.Module):
    """One layer: attention, then the MLP, each normalised before and added to what came in."""

    def __init__(self, shape: Model) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(shape.hidden)
        self.attention = Attention(shape)
        self.mlp_norm = nn.LayerNorm(shape.hidden)
        self.mlp = MLP(shape)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        x = x + self.mlp(self.mlp_norm(x))
        return x


class GPT(nn.Module):
    """The whole model. Calling it gives the loss.

    That is not only convenient: DDP and FSDP act when a module is *called*. With the loss inside, one call
    of the outermost module is the whole forward pass, and nothing uses a parameter outside such a call.
    """

    def __init__(self, shape: Model, sequence: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.vocab, shape.hidden)
        self.positions = nn.Embedding(sequence, shape.hidden)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.hidden)
        # Tied embeddings: the output matrix is the token table itself.
        self.head = None if shape.tied_embeddings else nn.Linear(shape.hidden, shape.vocab, bias=False)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Mean cross entropy in nats of `targets` given `tokens`, both (B, T) of token ids."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(places)  # (B, T, H)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        logits = functional.linear(x, self.tokens.weight) if self.head is None else self.head(x)  # (B, T, V)
        # In 16 bits a loss of 5 would be known to 0.02 only, and so would what the softmax adds up.
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def build_model(shape: Model, sequence: int, seed: int) -> GPT:
    """The model with initial weights that depend on the seed alone.

    Every rank builds the same whole model before any of it is sharded or replicated: that is how all
    layouts start from the same weights. (Models too large for one rank are initialised shard by shard;
    a lab's are not.)
    """
    model = GPT(shape, sequence)
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            continue  # the norms keep their ones and zeros
        # What each layer adds to the residual stream is scaled down by depth, so that the sum stays level.
        adds_to_stream = name.endswith(("attention.output.weight", "mlp.down.weight"))
        std = _INITIAL_STD / (2 * shape.layers) ** 0.5 if adds_to_stream else _INITIAL_STD
        nn.init.normal_(parameter, std=std, generator=generator)
    return model


def count_parameters(model: nn.Module) -> int:
    """Parameters of the whole model; a tied matrix counts once. Ask before the model is sharded."""
    return sum(parameter.numel() for parameter in model.parameters())
