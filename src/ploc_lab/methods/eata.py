"""EATA (Niu et al., ICML 2022): entropy minimisation on rows that are reliable and not redundant."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from ploc_lab.methods import norms
from ploc_lab.methods.adapting import Adapting, scores
from ploc_lab.methods.losses import as_classes, entropy, masked_mean
from ploc_lab.methods.optim import SGD
from ploc_lab.methods.protocol import Card
from ploc_lab.methods.traced import Gradient

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from ploc_lab.methods.stack import Params

NO_ROW = "no row was reliable and non-redundant"


class EATA(Adapting):
    """Steps on rows of entropy below `margin` ln K whose class vector is nearly orthogonal to their mean.

    `fisher` is the weight of the anti-forgetting penalty, sum F (theta - theta_0)^2, with F from the source
    validation rows and the network's own labels; 0, the default, is the authors' "ETA".

    On two classes a cosine below 0.05 asks for a row that contradicts the running mean almost with certainty:
    after the first reliable row there are hardly any updates.
    """

    info = Card(
        "EATA",
        needs="gradients",
        changes="scales and offsets of BatchNorm2d",
        at_one="steps on a row if reliable and new; batch norm as Tent's",
    )

    def __init__(
        self,
        model: Any,
        source: Any,
        *,
        norm_types: Sequence[str] = ("bn2d",),
        lr: float = 2.5e-4,
        momentum: float = 0.9,
        margin: float = 0.4,
        cosine: float = 0.05,
        fisher: float = 0.0,
        fisher_rows: int = 2000,
    ) -> None:
        options = {
            "norm_types": list(norm_types), "lr": lr, "momentum": momentum, "margin": margin,
            "cosine": cosine, "fisher": fisher, "fisher_rows": fisher_rows,
        }  # fmt: skip
        super().__init__(
            model, source, options, moving=lambda net: norms.affine(net, norm_types), batch_statistics=True
        )
        classes = self.classes
        self.e0, self.cosine, self.fisher = margin * math.log(classes), cosine, fisher
        self.mean = torch.zeros(self.checkpoints, classes)  # zero: nothing seen yet
        self.start = self.stack.views(self.stack.memory.clone())
        self.weights = self._fisher(fisher_rows) if fisher and not self.idle else None
        self.gradient = Gradient(self.loss)
        self.optim = SGD(self.stack, lr, momentum=momentum)

    @property
    def state_size(self) -> int:
        """The running class vector and the velocities."""
        return 0 if self.idle else self.mean.shape[1] + self.stack.scalars

    def loss(self, params: Params, x: Tensor, mean: Tensor) -> tuple[Tensor, ...]:
        """Weighted entropy of the chosen rows, (S,), logits, the new running vector, who chose any row."""
        _, z = self.stack(params, x)
        p = as_classes(z).softmax(-1).detach()
        e = entropy(z)
        started = mean.any(1)
        redundant = functional.cosine_similarity(mean[:, None], p, dim=-1).abs() >= self.cosine
        chosen = (e.detach() < self.e0) & ~(redundant & started[:, None])
        weight = (self.e0 - e.detach()).exp()
        loss = masked_mean(weight * e, chosen)
        if self.weights is not None:
            moved = ((self.weights[k] * (params[k] - self.start[k]) ** 2).flatten(1).sum(1) for k in params)
            loss = loss + self.fisher * torch.stack(list(moved)).sum(0)
        gate = chosen.any(1)
        chosen_mean = (p * chosen[..., None]).sum(1) / chosen.sum(1, keepdim=True).clamp(min=1)
        new = torch.where(started[:, None], 0.9 * mean + 0.1 * chosen_mean, chosen_mean)
        return loss, z, torch.where(gate[:, None], new, mean), gate

    def advance(self, x: Tensor) -> Tensor:
        """Answer, then step on the chosen rows, if any."""
        grads, (z, self.mean, gate) = self.gradient(self.stack.params, x, self.mean)
        self.count(gate, NO_ROW)
        if bool(gate.any()):
            self.optim.step(grads, gate)
        return scores(z)

    def _fisher(self, rows: int, batch: int = 64) -> Params:
        """Mean over source batches of the squared gradient of the cross-entropy to the own labels."""
        samples = [torch.as_tensor(source.labelled("eata").x[:rows]) for source in self.sources]
        gradient = Gradient(self._own_labels)
        total = self.stack.views(torch.zeros_like(self.stack.memory))
        for i, sample in enumerate(samples):
            parts = torch.split(sample, batch)
            for part in parts:
                grads, _ = gradient(self.stack.params, part)
                for name, g in zip(total, grads, strict=True):
                    total[name][i] += g[i] ** 2 / len(parts)
        return total

    def _own_labels(self, params: Params, x: Tensor) -> tuple[Tensor]:
        z = as_classes(self.stack(params, x)[1])
        return (
            functional.cross_entropy(z.flatten(0, 1), z.argmax(-1).flatten(), reduction="none")
            .view(z.shape[:2])
            .mean(1),
        )
