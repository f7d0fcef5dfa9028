"""SAR (Niu et al., ICLR 2023): sharpness-aware entropy minimisation on reliable rows, with recovery."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from ploc_lab.methods import norms
from ploc_lab.methods.adapting import Adapting, scores
from ploc_lab.methods.losses import entropy, masked_mean
from ploc_lab.methods.optim import SGD
from ploc_lab.methods.protocol import Card
from ploc_lab.methods.traced import Gradient, Outer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from ploc_lab.methods.stack import Params

NO_ROW = "no row was reliable: momentum alone moved the weights"


def top_layer(name: str) -> bool:
    """Whether the released code leaves a layer of this name alone, meaning the top of a ResNet or a ViT."""
    return name == "norm" or any(
        part in name for part in ("norm.", "layer4", "blocks.9", "blocks.10", "blocks.11")
    )


class SAR(Adapting):
    """Climb to the sharpest point within `rho`, take the entropy gradient there, step from where one was.

    As released: batch, layer and group norms are collected, less those that `top_layer` names (among them any
    layer called `norm`; `skip_top=False` keeps them); a step without reliable rows still moves by momentum;
    when the running loss falls under `reset` the source's weights are restored, and neither the running loss
    (they are restored again at each batch until it has risen) nor the velocity, which the released optimiser
    keeps where its state is not reset.

    `lr=None` is the authors' rule by the first batch's size B: for layer norm 1e-3 B/64, twice that at B = 1,
    and 1e-3 at most; with batch or group norm 2.5e-4, and 2.5e-4 B/32 below B = 32, twice that at B = 1.
    """

    info = Card(
        "SAR",
        needs="gradients",
        changes="scales and offsets of norm layers, less those that it skips",
        at_one="steps on a reliable row, tiny rate; batch norm as Tent's",
    )

    def __init__(
        self,
        model: Any,
        source: Any,
        *,
        norm_types: Sequence[str] = ("bn2d", "ln", "gn"),
        skip_top: bool = True,
        lr: float | None = None,
        momentum: float = 0.9,
        rho: float = 0.05,
        margin: float = 0.4,
        reset: float = 0.2,
    ) -> None:
        options = {
            "norm_types": list(norm_types), "skip_top": skip_top, "lr": lr, "momentum": momentum,
            "rho": rho, "margin": margin, "reset": reset,
        }  # fmt: skip
        skip = top_layer if skip_top else lambda _name: False
        super().__init__(
            model,
            source,
            options,
            moving=lambda net: norms.affine(net, norm_types, skip),
            batch_statistics=True,
        )
        self.lr, self.momentum, self.rho, self.reset = lr, momentum, rho, reset
        self.e0 = margin * math.log(self.classes)
        self.layer_norm_only = not norms.affine(self.nets[0], ("bn2d", "gn"))
        self.running = torch.full((self.checkpoints,), torch.nan)  # nan: no loss yet
        self.start = self.stack.memory.clone()
        self.optim: SGD | None = None
        self.first, self.second = Gradient(self.loss), Gradient(self.loss_again)
        self.resets = torch.zeros(self.checkpoints, dtype=torch.int64)

    @property
    def state_size(self) -> int:
        """The running loss and the velocities."""
        return 0 if self.idle else 1 + self.stack.scalars

    def loss(self, params: Params, x: Tensor) -> tuple[Tensor, ...]:
        """Mean entropy of the reliable rows, (S,), logits, and which rows are reliable, (S, B)."""
        _, z = self.stack(params, x)
        e = entropy(z)
        reliable = e.detach() < self.e0
        return masked_mean(e, reliable), z, reliable

    def loss_again(self, params: Params, x: Tensor, reliable: Tensor) -> tuple[Tensor, ...]:
        """The same at the climbed point, over those of the reliable rows that are so there too."""
        e = entropy(self.stack(params, x)[1])
        still = reliable & (e.detach() < self.e0)
        loss = masked_mean(e, still)
        return loss, loss, still.any(1)

    def advance(self, x: Tensor) -> Tensor:
        """Answer; climb, take the gradient there, come back, step; recover if the entropy has collapsed."""
        if self.optim is None:
            self.optim = SGD(self.stack, self._rate(len(x)), momentum=self.momentum)
        grads, (z, reliable) = self.first(self.stack.params, x)
        dense = [g.dense() if isinstance(g, Outer) else g for g in grads]
        norm = torch.stack([(g**2).flatten(1).sum(1) for g in dense]).sum(0).sqrt()
        scale = self.rho / (norm + 1e-12)
        climbed = {
            name: p + g * scale.view(-1, *[1] * (p.ndim - 1))
            for (name, p), g in zip(self.stack.params.items(), dense, strict=True)
        }
        grads, (loss, gate) = self.second(climbed, x, reliable)
        self.optim.step(grads)
        self.count(gate, NO_ROW)

        running = torch.where(self.running.isnan(), loss, 0.9 * self.running + 0.1 * loss)
        self.running = torch.where(gate, running, self.running)
        self._recover(self.running < self.reset)
        return scores(z)

    def _recover(self, collapsed: Tensor) -> None:
        if not bool(collapsed.any()):
            return
        start = self.stack.views(self.start)
        for name, p in self.stack.params.items():
            p[collapsed] = start[name][collapsed]
        self.resets += collapsed

    def _rate(self, batch: int) -> float:
        if self.lr is not None:
            return self.lr
        twice = 2 if batch == 1 else 1
        if self.layer_norm_only:
            return 1e-3 / 64 * min(batch * twice, 64)
        return 2.5e-4 if batch >= 32 else 2.5e-4 / 64 * batch * 2 * twice

    def report(self, checkpoint: int = 0) -> dict[str, Any]:
        """As every method's, and how often the source was restored."""
        return super().report(checkpoint) | {"resets": int(self.resets[checkpoint])}
