"""The TabTransformer of tab-transformer-pytorch 0.2.1, with and without categorical columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

from ploc_lab.models.network import Network, outputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor


class TabTransformer(Network):
    """Contextual embeddings of the categorical columns beside a layer norm of the others, then an MLP.

    `categories` names the categorical columns by their one-hot blocks, half-open ranges of columns of
    x: `((20, 30), (30, 38))`. TableShift passes none, so its TabTransformer, the default here, is
    LayerNorm(d), Linear(d, 4 l), ReLU, Linear(4 l, 2 l), ReLU, Linear(2 l, 1) with l = d // 8, and the
    transformer is never run. With blocks it is the published network, `depth` transformer layers of
    width `dim` over one token a block.
    """

    def __init__(
        self,
        d: int,
        classes: int = 2,
        *,
        categories: Sequence[tuple[int, int]] = (),
        dim: int = 32,
        depth: int = 6,
        heads: int = 1,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.categories = tuple((int(a), int(b)) for a, b in categories)
        coded = [j for a, b in self.categories for j in range(a, b)]
        if len(set(coded)) < len(coded) or not set(coded) <= set(range(d)):
            raise ValueError(f"one-hot blocks {self.categories} overlap or leave the {d} columns of x")
        continuous = sorted(set(range(d)) - set(coded))
        self.register_buffer("continuous", torch.tensor(continuous), persistent=False)
        if self.categories:
            self.embeds = nn.Parameter(torch.randn(len(coded), dim))
            self.layers = nn.ModuleList(Layer(dim, heads, dropout) for _ in range(depth))
        if continuous:
            self.norm = nn.LayerNorm(len(continuous))
        width = dim * len(self.categories) + len(continuous)
        if width < 8:
            raise ValueError(
                f"TabTransformer's hidden widths are multiples of columns // 8: {d} columns are too few"
            )
        step = width // 8
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * step), nn.ReLU(), nn.Linear(4 * step, 2 * step), nn.ReLU()
        )
        self.head = nn.Linear(2 * step, outputs(classes))

    def features(self, x: Tensor) -> Tensor:
        """The last hidden layer after its ReLU."""
        if not self.categories:
            hidden: Tensor = self.mlp(self.norm(x))
            return hidden
        tokens = self._tokens(x)
        for layer in self.layers:
            tokens = layer(tokens)
        parts = [tokens.flatten(1)]
        continuous = self.get_buffer("continuous")
        if len(continuous):
            parts.append(self.norm(x[:, continuous]))
        out: Tensor = self.mlp(torch.cat(parts, dim=1))
        return out

    def _tokens(self, x: Tensor) -> Tensor:
        """One embedding a block: a one-hot block times its rows of the table is the lookup."""
        sizes = [b - a for a, b in self.categories]
        tables = torch.split_with_sizes(self.embeds, sizes)
        return torch.stack([x[:, a:b] @ t for (a, b), t in zip(self.categories, tables, strict=True)], dim=1)


class Layer(nn.Module):
    """Pre-norm self-attention and a GEGLU feed-forward, each with a residual."""

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(dim)
        self.attention = SelfAttention(dim, heads, dropout)
        self.ffn_norm = nn.LayerNorm(dim)
        self.ffn = GEGLU(dim, dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, blocks, dim) -> (B, blocks, dim)."""
        tokens = tokens + self.attention(self.attention_norm(tokens))
        out: Tensor = tokens + self.ffn(self.ffn_norm(tokens))
        return out


class SelfAttention(nn.Module):
    """Attention among the tokens of one row, 16 numbers a head."""

    def __init__(self, dim: int, heads: int, dropout: float, size: int = 16) -> None:
        super().__init__()
        self.to_qkv = nn.Linear(dim, 3 * heads * size, bias=False)
        self.to_out = nn.Linear(heads * size, dim)
        self.dropout = nn.Dropout(dropout)
        self.heads = heads

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, n, dim) -> (B, n, dim)."""
        q, k, v = (
            t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.to_qkv(tokens).chunk(3, dim=-1)
        )
        weights = self.dropout((q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(-1))
        out: Tensor = self.to_out((weights @ v).transpose(1, 2).flatten(2))
        return out


class GEGLU(nn.Module):
    """Feed-forward whose first half is gated by the GELU of its second, four times as wide."""

    def __init__(self, dim: int, dropout: float) -> None:
        super().__init__()
        self.linear_first = nn.Linear(dim, 8 * dim)
        self.dropout = nn.Dropout(dropout)
        self.linear_second = nn.Linear(4 * dim, dim)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, n, dim) -> (B, n, dim)."""
        a, gate = self.linear_first(tokens).chunk(2, dim=-1)
        out: Tensor = self.linear_second(self.dropout(a * functional.gelu(gate)))
        return out
