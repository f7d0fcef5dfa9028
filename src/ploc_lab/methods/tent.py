"""Tent (Wang et al., ICLR 2021): entropy minimisation on the scales and offsets of the norm layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import torch

from ploc_lab.methods import norms
from ploc_lab.methods.adapting import Adapting, scores
from ploc_lab.methods.losses import entropy
from ploc_lab.methods.optim import SGD
from ploc_lab.methods.protocol import Card
from ploc_lab.methods.traced import Gradient

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from ploc_lab.methods.stack import Params


class Tent(Adapting):
    """One step of Adam or SGD on the batch's mean entropy; the answer is the forward pass before the step.

    As released: only BatchNorm2d layers are collected, and these normalise by the batch they see, always.
    `norm_types=("bn2d", "ln")` is the honest stronger variant for networks that have layer norms.

    >>> import numpy as np, torch
    >>> from ploc_lab.methods import SourceInfo
    >>> net = torch.nn.Sequential(torch.nn.LayerNorm(3), torch.nn.Linear(3, 1)).eval()
    >>> tent = Tent(net, SourceInfo(np.array([0.5, 0.5])), norm_types=("ln",))
    >>> len(tent.predict(np.eye(3, dtype=np.float32))), tent.report()["steps"], tent.n_adapted
    (3, 1, 6)
    """

    info = Card(
        "Tent",
        needs="gradients",
        changes="scales and offsets of BatchNorm2d",
        at_one="steps on one row; batch norm normalises by that row alone",
    )

    def __init__(
        self,
        model: Any,
        source: Any,
        *,
        norm_types: Sequence[str] = ("bn2d",),
        optimizer: Literal["adam", "sgd"] = "adam",
        lr: float = 1e-3,
        steps: int = 1,
        episodic: bool = False,
    ) -> None:
        if optimizer not in ("adam", "sgd") or steps < 1:
            raise ValueError(
                f"Tent needs optimizer 'adam' or 'sgd' and steps >= 1, got {optimizer!r}, {steps}"
            )
        options = {
            "norm_types": list(norm_types),
            "optimizer": optimizer,
            "lr": lr,
            "steps": steps,
            "episodic": episodic,
        }
        super().__init__(
            model, source, options, moving=lambda net: norms.affine(net, norm_types), batch_statistics=True
        )
        self.optimizer, self.lr, self.rounds, self.episodic = optimizer, lr, steps, episodic
        self.start = self.stack.memory.clone()
        self.gradient = Gradient(self.loss)
        self.reset()

    def reset(self) -> None:
        """Back to the source's parameters and a fresh optimiser."""
        self.stack.memory.copy_(self.start)
        params = list(self.stack.params.values())
        if self.optimizer == "sgd":
            self.sgd = SGD(self.stack, self.lr, momentum=0.9, nesterov=True)
        elif params:
            self.adam = torch.optim.Adam(params, lr=self.lr, betas=(0.9, 0.999), fused=True)

    def loss(self, params: Params, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean entropy of the batch, (S,), and its logits."""
        _, z = self.stack(params, x)
        return entropy(z).mean(1), z

    def advance(self, x: Tensor) -> Tensor:
        """Answer, then step down the entropy."""
        if self.episodic:
            self.reset()
        for _ in range(self.rounds):
            grads, (z,) = self.gradient(self.stack.params, x)
            if self.optimizer == "sgd":
                self.sgd.step(grads)
            else:
                self.stack.descend(self.adam, grads)
        self.count(rounds=self.rounds)
        return scores(z)
