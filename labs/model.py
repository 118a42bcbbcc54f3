"""A plain decoder-only GPT that knows nothing of parallelism.

Shapes in comments: B sequences, T positions, H the hidden size, V the vocabulary, D the size of one head.
The architecture is GPT-2's (Radford et al. 2019) without dropout and without biases in the linear layers;
grouped-query attention (Ainslie et al. 2023), a gated MLP (Shazeer 2020), rotary positions (Su et al. 2021), RMS norms
(Zhang & Sennrich 2019) and a mixture of experts in place of the MLP (Shazeer et al. 2017) come with the shape. With the
first four it is Llama's.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from labs.norm import RMSNorm
from labs.rotary import Rotary
from labs.spec import Model

_INITIAL_STD = 0.02  # GPT-2's


class CoreAttention(nn.Module):
    """What happens between queries, keys and values, without a parameter: every position looks at those up to itself.

    With fewer key/value heads than heads, each one serves a group of queries.
    """

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """(B, heads, T, D) and twice (B, kv_heads, T, D), to (B, heads, T, D)."""
        shared = k.shape[1] != q.shape[1]
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=shared)


class FullAttention(CoreAttention):
    """The same, written out as it is defined, with all the scores in memory at once.

    Fused kernels compute the scores block by block and forget them (Dao et al. 2022, FlashAttention). Here backward
    keeps the weights, a number for every head and pair of positions: B × heads × T², which soon is more than everything
    else together (Korthikanti et al. 2022, section 4.1).
    """

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        group = q.shape[1] // k.shape[1]
        k, v = (each.repeat_interleave(group, dim=1) if group > 1 else each for each in (k, v))
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)  # (B, heads, T, T)
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        weights: Tensor = scores.masked_fill(later, -torch.inf).softmax(dim=-1)
        return weights @ v


class Attention(nn.Module):
    """Causal self-attention. With rotary positions, queries and keys are turned by where they stand."""

    def __init__(self, shape: Model, rotary: Rotary | None) -> None:
        super().__init__()
        self.head_size, self.rotary = shape.hidden // shape.heads, rotary
        kv_hidden = shape.kv_heads * self.head_size
        self.query = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.key = nn.Linear(shape.hidden, kv_hidden, bias=False)
        self.value = nn.Linear(shape.hidden, kv_hidden, bias=False)
        self.core = CoreAttention()
        self.output = nn.Linear(shape.hidden, shape.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (split_heads(project(x), self.head_size) for project in (self.query, self.key, self.value))
        if self.rotary is not None:
            q, k = self.rotary(q), self.rotary(k)
        mixed: Tensor = self.output(join_heads(self.core(q, k, v)))
        return mixed


def split_heads(x: Tensor, head_size: int) -> Tensor:
    """(B, T, heads × D) to (B, heads, T, D)."""
    rows, places, width = x.shape
    return x.view(rows, places, width // head_size, head_size).transpose(1, 2)


def join_heads(y: Tensor) -> Tensor:
    """(B, heads, T, D) to (B, T, heads × D)."""
    return y.transpose(1, 2).flatten(2)


class MLP(nn.Module):
    """Two matrices and a GELU; gated, three matrices and a SiLU."""

    def __init__(self, hidden: int, width: int, gated: bool) -> None:
        super().__init__()
        self.up = nn.Linear(hidden, width, bias=False)
        self.gate = nn.Linear(hidden, width, bias=False) if gated else None
        self.down = nn.Linear(width, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        narrow: Tensor = self.down(activate(self.up(x), None if self.gate is None else self.gate(x)))
        return narrow


def activate(up: Tensor, gate: Tensor | None) -> Tensor:
    """The MLP's non-linearity, value by value."""
    return functional.gelu(up) if gate is None else functional.silu(gate) * up


class Experts(nn.ModuleList):
    """The MLPs of a mixture, each for the rows that were sent to it."""

    def forward(self, rows: Tensor, counts: Tensor) -> Tensor:
        """`rows` (R, H) in the order of their experts, `counts` (experts,) of them for each; their results (R, H)."""
        pieces = torch.split(rows, counts.tolist())
        return torch.cat([expert(piece) for expert, piece in zip(self, pieces, strict=True)])


class Mixture(nn.Module):
    """A layer of many MLPs, the experts, of which each token passes through a few.

    A router scores all experts for every token, and softmax makes probabilities of the scores. The token goes to the
    `active` likeliest; their results are added up, each times its probability, which is also how the router learns.
    Every token is served, however many chose the same expert: nothing is dropped, and nothing balances the experts.
    Shared experts serve every token besides. (Shazeer et al. 2017; Fedus et al. 2021, section 2.1; DeepSeek-AI 2024.)
    """

    def __init__(self, shape: Model) -> None:
        super().__init__()
        self.active = shape.active_experts
        width = shape.expert_ffn_hidden or shape.ffn_hidden
        self.router = nn.Linear(shape.hidden, shape.experts, bias=False)
        self.shared = nn.ModuleList(MLP(shape.hidden, width, shape.gated_mlp) for _ in range(shape.shared_experts))
        self.experts = Experts(MLP(shape.hidden, width, shape.gated_mlp) for _ in range(shape.experts))

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.flatten(0, 1)  # (B × T, H)
        scores = self.router(tokens)
        # Not in 16 bits, in which likely experts could not be told apart.
        probabilities = scores.softmax(dim=-1, dtype=torch.promote_types(scores.dtype, torch.float32))
        weights, chosen = (each.flatten() for each in probabilities.topk(self.active))  # token after token, by weight
        order = chosen.argsort(stable=True)  # all that go to expert 0, then all that go to expert 1, ...
        token_of = order // self.active
        counts = chosen.bincount(minlength=probabilities.shape[-1])
        done = self.experts(tokens[token_of], counts) * weights[order, None]
        mixed = torch.zeros_like(tokens).index_add(0, token_of, done.to(tokens.dtype))
        for expert in self.shared:
            mixed = mixed + expert(tokens)
        return mixed.view_as(x)


class Block(nn.Module):
    """One layer: attention, then the MLP, each normalised before and added to what came in."""

    def __init__(self, shape: Model, layer: int, rotary: Rotary | None = None) -> None:
        super().__init__()
        self.attention_norm = make_norm(shape)
        self.attention = Attention(shape, rotary)
        self.mlp_norm = make_norm(shape)
        routed = shape.experts > 1 and layer >= shape.dense_layers
        self.mlp = Mixture(shape) if routed else MLP(shape.hidden, shape.ffn_hidden, shape.gated_mlp)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        x = x + self.mlp(self.mlp_norm(x))
        return x


def make_norm(shape: Model) -> nn.Module:
    return RMSNorm(shape.hidden) if shape.norm == "rms" else nn.LayerNorm(shape.hidden)


class NextToken(nn.Module):
    """What the model says comes next, held against what does: without a parameter of its own."""

    def forward(self, x: Tensor, table: Tensor, targets: Tensor) -> Tensor:
        """Mean cross entropy in nats of `targets` (B, T), given `x` (B, T, H) and the output matrix (V, H)."""
        logits = functional.linear(x, table)  # (B, T, V)
        # In 16 bits a loss of 5 would be known to 0.02 only, and so would what the softmax adds up.
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


class GPT(nn.Module):
    """The whole model. Calling it gives the loss.

    That is not only convenient: DDP and FSDP act when a module is *called*. With the loss inside, one call
    of the outermost module is the whole forward pass, and nothing uses a parameter outside such a call.
    """

    def __init__(self, shape: Model, sequence: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.vocab, shape.hidden)
        learned = shape.positions == "learned"
        self.positions = nn.Embedding(sequence, shape.hidden) if learned else None
        self.rotary = None if learned else Rotary(shape.hidden // shape.heads)
        self.blocks = nn.ModuleList(Block(shape, layer, self.rotary) for layer in range(shape.layers))
        self.norm = make_norm(shape)
        # Tied embeddings: the output matrix is the token table itself.
        self.head = None if shape.tied_embeddings else nn.Linear(shape.hidden, shape.vocab, bias=False)
        self.next_token = NextToken()

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Mean cross entropy in nats of `targets` given `tokens`, both (B, T) of token ids."""
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.loss(x, targets)

    def embed(self, tokens: Tensor) -> Tensor:
        """(B, T) token ids to (B, T, H): what each token is and, where positions are learned, where it stands."""
        embedded: Tensor = self.tokens(tokens)
        if self.positions is None:
            return embedded
        learned: Tensor = self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        return embedded + learned

    def loss(self, x: Tensor, targets: Tensor) -> Tensor:
        """The last block's (B, T, H) to the mean cross entropy."""
        output = self.tokens if self.head is None else self.head
        loss: Tensor = self.next_token(self.norm(x), output.weight, targets)
        return loss


def write_attention_out(model: GPT) -> None:
    """Have `model` compute its attention in full, with the same result."""
    for block in model.blocks:
        block.get_submodule("attention").core = FullAttention()


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
        adds_to_stream = name.endswith(("attention.output.weight", "down.weight"))
        std = _INITIAL_STD / (2 * shape.layers) ** 0.5 if adds_to_stream else _INITIAL_STD
        nn.init.normal_(parameter, std=std, generator=generator)
    return model


def count_parameters(model: nn.Module) -> int:
    """Parameters of the whole model; a tied matrix counts once. Ask before the model is sharded."""
    return sum(parameter.numel() for parameter in model.parameters())
