"""The FT-Transformer as TableShift has it: rtdl 0.0.13 with one block that only the CLS token queries."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

from ploc_lab.models.network import Network, outputs

if TYPE_CHECKING:
    from torch import Tensor


class FTTransformer(Network):
    """Feature tokens and a CLS token, one attention block, a ReGLU feed-forward and a normalised head.

    Column j becomes the token x_j w_j + b_j, one-hot columns included. The one block has no
    normalisation before its attention (rtdl leaves out the first), and nothing but CLS asks for an
    answer. 128 d + 29,505 parameters with the defaults.
    """

    def __init__(self, d: int, classes: int = 2, *, token: int = 64, heads: int = 8) -> None:
        super().__init__()
        self.feature_tokenizer = FeatureTokenizer(d, token)
        self.cls_token = nn.Parameter(_uniform(token))
        self.attention = ClsAttention(token, heads)
        self.ffn_normalization = nn.LayerNorm(token)
        self.ffn = ReGLU(token)
        self.head_normalization = nn.LayerNorm(token)
        self.head = nn.Linear(token, outputs(classes))

    def features(self, x: Tensor) -> Tensor:
        """The CLS token after the block, normalised and rectified."""
        h = self.cls_token + self.attention(x, self.cls_token, self.feature_tokenizer)
        h = h + self.ffn(self.ffn_normalization(h))
        return functional.relu(self.head_normalization(h))


class FeatureTokenizer(nn.Module):
    """The affine map of every column to its token: weights and biases, (d, token) each."""

    def __init__(self, d: int, token: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(_uniform(d, token))
        self.bias = nn.Parameter(_uniform(d, token))


class ClsAttention(nn.Module):
    """Multi-head attention of the CLS token over the d feature tokens and itself.

    The query is the same for every row and token j is x_j w_j + b_j, so both halves of attention fold
    onto the tokeniser: the score of token j is x_j (w_j . u) + b_j . u with u = W_k^T q, and the
    attended token is (a * x) W + a B. The tokens are never laid out, which saves 64 numbers a column
    and four fifths of the arithmetic; it is rtdl's attention in exact arithmetic.
    """

    def __init__(self, token: int, heads: int) -> None:
        super().__init__()
        self.W_q, self.W_k, self.W_v, self.W_out = (nn.Linear(token, token) for _ in range(4))
        for linear in (self.W_q, self.W_k, self.W_v, self.W_out):
            nn.init.zeros_(linear.bias)
        self.heads, self.size = heads, token // heads

    def forward(self, x: Tensor, cls: Tensor, tokens: FeatureTokenizer) -> Tensor:
        """(B, d) columns -> (B, token), what CLS collects."""
        size = self.size
        x = functional.pad(x, (0, 1))  # CLS, last: a column whose token is its bias
        weight = functional.pad(tokens.weight, (0, 0, 0, 1))
        bias = torch.cat([tokens.bias, cls.unsqueeze(0)])

        q = self.W_q(cls).view(self.heads, 1, size) / math.sqrt(size)
        u = (q @ self.W_k.weight.view(self.heads, size, -1)).squeeze(1)
        of_key_bias = (q.squeeze(1) * self.W_k.bias.view(self.heads, size)).sum(1, keepdim=True)
        scores = x.unsqueeze(1) * (u @ weight.T) + (u @ bias.T + of_key_bias)
        attention = scores.softmax(-1)  # (B, heads, d + 1)

        flat = attention.flatten(0, 1)
        attended = (attention * x.unsqueeze(1)).flatten(0, 1) @ weight + flat @ bias
        attended = attended.unflatten(0, (-1, self.heads))
        values = torch.einsum("bhi,hki->bhk", attended, self.W_v.weight.view(self.heads, size, -1))
        collected: Tensor = self.W_out(values.flatten(1) + self.W_v.bias)
        return collected


class ReGLU(nn.Module):
    """Feed-forward whose first half is gated by the ReLU of its second."""

    def __init__(self, token: int) -> None:
        super().__init__()
        self.linear_first = nn.Linear(token, 2 * token)
        self.linear_second = nn.Linear(token, token)

    def forward(self, h: Tensor) -> Tensor:
        """(B, token) -> (B, token)."""
        a, gate = self.linear_first(h).chunk(2, dim=-1)
        out: Tensor = self.linear_second(a * functional.relu(gate))
        return out


def _uniform(*shape: int) -> Tensor:
    bound = 1 / math.sqrt(shape[-1])
    return torch.empty(shape).uniform_(-bound, bound)
