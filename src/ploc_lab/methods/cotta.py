"""CoTTA (Wang et al., CVPR 2022): a student learns from its own average and forgets at random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ploc_lab.methods import norms
from ploc_lab.methods.adapting import Adapting, everything, scores
from ploc_lab.methods.losses import as_classes
from ploc_lab.methods.protocol import Card
from ploc_lab.methods.stack import Params  # noqa: TC001
from ploc_lab.methods.traced import Gradient

if TYPE_CHECKING:
    from torch import Tensor


class CoTTA(Adapting):
    """Cross-entropy of the student to the teacher, one Adam step, teacher <- 0.999 teacher + 0.001 student.

    The answer is the teacher's: its own forward pass or, where the source's mean confidence on the batch is
    below `confidence`, the mean logit over `views` noisy copies of the batch: a table has no augmentations,
    Gaussian noise of deviation `noise` on every column stands in for them. Batch norm normalises each copy by
    itself. Each number of the student is set back to the source's with probability `restore` after each step.

    The student starts as the teacher: without noise its gradient is zero and stays so, and `noise=0` is the
    source.
    """

    info = Card(
        "CoTTA",
        needs="gradients",
        changes="all parameters of a student, slowly the teacher's",
        at_one="a slow drift; batch norm as Tent's",
    )

    def __init__(
        self,
        model: Any,
        source: Any,
        *,
        lr: float = 1e-3,
        slow: float = 0.999,
        restore: float = 0.01,
        confidence: float = 0.92,
        noise: float = 0.01,
        views: int = 32,
        seed: int = 0,
    ) -> None:
        if not 0 <= restore <= 1:
            raise ValueError(f"CoTTA's restore is a probability, got {restore}")
        options = {
            "lr": lr, "slow": slow, "restore": restore, "confidence": confidence, "noise": noise,
            "views": views, "seed": seed,
        }  # fmt: skip
        super().__init__(model, source, options, moving=everything, batch_statistics=True)
        self.slow, self.restore, self.confidence, self.noise, self.views = (
            slow,
            restore,
            confidence,
            noise,
            views,
        )
        self.batch_norm = bool(norms.affine(self.nets[0], ("bn2d",)))
        self.start = self.stack.memory.clone()
        self.memory = self.stack.memory.clone()
        self.teacher = self.stack.views(self.memory)
        self.anchor = self.stack.views(self.start)
        self.gradient = Gradient(self.loss, outer=True)
        self.adam = torch.optim.Adam(list(self.stack.params.values()), lr=lr, betas=(0.9, 0.999), fused=True)
        # One draw a step for all checkpoints, so that each of them draws as it would alone.
        self.chance = np.random.default_rng(seed)

    @property
    def state_size(self) -> int:
        """Student, teacher and Adam's two moments."""
        return 4 * self.stack.scalars

    def loss(self, params: Params, x: Tensor, target: Tensor) -> tuple[Tensor]:
        """A loss (S,) with the gradient of the cross-entropy to the target's classes."""
        student = as_classes(self.stack(params, x)[1])
        # p - q by the same operations, exactly 0 where they agree: Adam makes whole steps of rounding errors.
        difference = student.detach().softmax(-1) - as_classes(target).softmax(-1)
        return ((difference * student).sum(-1).mean(1),)

    def advance(self, x: Tensor) -> Tensor:
        """Answer by the teacher, then let the student and the teacher learn."""
        target = self._target(x)
        grads, _ = self.gradient(self.stack.params, x, target)
        self.stack.descend(self.adam, grads)
        self.memory.lerp_(self.stack.memory, 1 - self.slow)
        self._restore()
        self.count()
        return scores(target)

    def _target(self, x: Tensor) -> Tensor:
        plain = self.stack.logits(self.teacher, x)
        if not self.noise:
            return plain
        sure = as_classes(self.stack.logits(self.anchor, x)).softmax(-1).amax(-1).mean(1) >= self.confidence
        noise = torch.from_numpy(self.chance.normal(0, self.noise, (self.views, *x.shape)).astype(np.float32))
        if self.batch_norm:
            noisy = torch.stack([self.stack.logits(self.teacher, x + each) for each in noise], 1)
        else:  # a row's answer does not depend on its batch: one pass for all copies
            noisy = self.stack.logits(self.teacher, (x + noise).flatten(0, 1))
            noisy = noisy.view(len(noisy), self.views, len(x), -1)
        return torch.where(sure[:, None, None], plain, noisy.mean(1))

    def _restore(self) -> None:
        size = self.stack.scalars
        if not self.restore:
            return
        # Gaps between successes are geometric: the same draw as a mask, at a hundredth of its random numbers.
        at = np.empty(0, dtype=np.int64)
        while not len(at) or at[-1] < size:
            gaps = self.chance.geometric(self.restore, int(size * self.restore) + 32)
            at = np.concatenate([at, (at[-1] if len(at) else -1) + np.cumsum(gaps)])
        where = self.stack.places(at[at < size])
        self.stack.memory[where] = self.start[where]
