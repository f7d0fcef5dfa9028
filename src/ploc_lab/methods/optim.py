"""Stochastic gradient descent over a stack, in which each network has its own rate and may sit a step out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ploc_lab.methods.traced import Outer

if TYPE_CHECKING:
    from torch import Tensor

    from ploc_lab.methods.stack import Stack
    from ploc_lab.methods.traced import Grads


class SGD:
    """torch's SGD by network: v <- momentum v + g, theta <- theta - lr v (lr (g + momentum v) if nesterov).

    `lr` is one rate or one a network (N,). A network whose gate is False keeps its weights and its velocity.
    """

    def __init__(
        self, stack: Stack, lr: float | Tensor, *, momentum: float = 0.0, nesterov: bool = False
    ) -> None:
        self.params = list(stack.params.values())
        self.lr = torch.as_tensor(lr, dtype=torch.float32).expand(stack.count).clone()
        self.momentum, self.nesterov = momentum, nesterov
        self.velocity = [torch.zeros_like(p) for p in self.params] if momentum else []

    def step(self, grads: Grads, gate: Tensor | None = None) -> None:
        """Move the stack's parameters in place."""
        rate = self.lr if gate is None else self.lr * gate
        if self.momentum:
            self._with_momentum(grads, rate, gate)
            return
        for p, g in zip(self.params, grads, strict=True):
            if not isinstance(g, Outer):
                p.addcmul_(g, _to(rate, p), value=-1)
            elif (
                g.right.shape[1] == 1
            ):  # one row: an outer product, fused with the subtraction by broadcasting
                p.addcmul_(g.left * _to(rate, p), g.right, value=-1)
            else:
                p.baddbmm_(g.left * _to(rate, p), g.right, alpha=-1)

    def _with_momentum(self, grads: Grads, rate: Tensor, gate: Tensor | None) -> None:
        for p, v, given in zip(self.params, self.velocity, grads, strict=True):
            g = given.dense() if isinstance(given, Outer) else given
            moved = v * self.momentum + g
            v.copy_(moved if gate is None else torch.where(_to(gate, v), moved, v))
            p.addcmul_(g + self.momentum * v if self.nesterov else v, _to(rate, p), value=-1)


def _to(row: Tensor, like: Tensor) -> Tensor:
    return row.view(-1, *[1] * (like.ndim - 1))
