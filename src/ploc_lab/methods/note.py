"""NOTE (Gong et al., NeurIPS 2022): instance-aware batch norm, and steps on a class-balanced memory."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from ploc_lab.methods import norms
from ploc_lab.methods.adapting import NOTHING_TO_ADAPT, check_rows, settled
from ploc_lab.methods.losses import as_classes
from ploc_lab.methods.protocol import Answer, Card, Method, as_rows

if TYPE_CHECKING:
    from torch import Tensor

    from ploc_lab.methods.protocol import Rows, SourceInfo


class NOTE(Method):
    """Rows are answered alone by running statistics; every `every` rows Adam steps on the memory's entropy.

    Batch norms become instance-aware ones around the source's statistics. The authors train the source with
    them; here they come at test time, which is ours. A network without batch norm is left as it is.
    """

    info = Card(
        "NOTE",
        needs="gradients",
        changes="scales, offsets, running statistics of BatchNorm2d",
        at_one="native: a memory of 64 rows is learnt from",
    )

    def __init__(
        self,
        model: nn.Module,
        source: SourceInfo,
        *,
        k: float = 4.0,
        every: int = 64,
        lr: float = 1e-4,
        momentum: float = 0.01,
        seed: int = 0,
    ) -> None:
        super().__init__(model, source, k=k, every=every, lr=lr, momentum=momentum, seed=seed)
        self.net, self.every = deepcopy(model).requires_grad_(False), every
        self.norms = norms.replace(self.net, ("bn2d",), lambda norm: InstanceAware(norm, k, momentum))
        self.memory = Reservoir(every, np.random.default_rng(seed))
        self.seen = 0
        affine = [p for norm in self.norms for p in (norm.weight, norm.bias)]
        self.adam = torch.optim.Adam(affine, lr=lr) if affine else None

    @property
    def n_adapted(self) -> int:
        """Scales and offsets of the batch norms."""
        return sum(norm.weight.numel() + norm.bias.numel() for norm in self.norms)

    @property
    def state_size(self) -> int:
        """Running statistics and the rows remembered."""
        return 2 * self.n_adapted + sum(row.numel() for row, _ in self.memory.items)

    def respond(self, x: Rows) -> Answer:
        """Answer the rows one by one, remember them, and learn when it is time."""
        batch = torch.as_tensor(x, dtype=torch.float32)
        check_rows(batch)
        if self.adam is None:
            self.skip(NOTHING_TO_ADAPT)
            return settled(self, self.net, batch)
        found = []
        for row in batch:
            answer = settled(self, self.net, row[None])
            found.append(answer)
            self.memory.add(row, int(as_rows(answer.scores).argmax()))
            self.seen += 1
            if self.seen % self.every == 0:
                self._learn(self.adam)
        return Answer(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def _learn(self, adam: torch.optim.Adam) -> None:
        for norm in self.norms:
            norm.train()
        rows = torch.stack([row for row, _ in self.memory.items])
        p = as_classes(self.net(rows)).softmax(1)
        (-p * (p + 1e-6).log()).mean().backward()  # type: ignore[no-untyped-call]
        adam.step()
        adam.zero_grad()
        for norm in self.norms:
            norm.eval()
        self.step()


class InstanceAware(nn.Module):
    """Batch norm whose mean and variance follow a row's own only beyond k standard errors."""

    def __init__(self, norm: nn.BatchNorm2d, k: float, momentum: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(norm.weight.detach().clone())
        self.bias = nn.Parameter(norm.bias.detach().clone())
        if norm.running_mean is None or norm.running_var is None:
            raise ValueError("NOTE starts from the source's running statistics, this batch norm keeps none")
        self.register_buffer("mean", norm.running_mean.clone())
        self.register_buffer("var", norm.running_var.clone())
        self.k, self.momentum, self.eps = k, momentum, norm.eps
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> the same; in training by the batch's statistics, which the running ones follow."""
        area = x.shape[2] * x.shape[3]
        mean, var = self.get_buffer("mean"), self.get_buffer("var")
        if self.training:
            batch_mean, batch_var = x.mean((0, 2, 3)), x.var((0, 2, 3), unbiased=x.numel() > x.shape[1])
            with torch.no_grad():
                mean.lerp_(batch_mean, self.momentum)
                var.lerp_(batch_var, self.momentum)
            mean, var = batch_mean, batch_var
        mean, var = mean[None], var[None]
        if area > 1:
            own_mean, own_var = x.mean((2, 3)), x.var((2, 3), unbiased=True)
            noise = var + self.eps
            mean = mean + _shrink(own_mean - mean, self.k * (noise / area).sqrt())
            var = (var + _shrink(own_var - var, self.k * noise * (2 / (area - 1)) ** 0.5)).relu()
        scale = self.weight / (var + self.eps).sqrt()
        return (x - mean[..., None, None]) * scale[..., None, None] + self.bias[:, None, None]


class Reservoir:
    """A memory of rows in which no predicted class crowds out the others (PBRS)."""

    def __init__(self, capacity: int, chance: np.random.Generator) -> None:
        self.items: list[tuple[Tensor, int]] = []
        self.capacity, self.chance = capacity, chance
        self.seen: dict[int, int] = {}

    def add(self, row: Tensor, label: int) -> None:
        """Take a row in, at the cost of a largest class, or of its own class with probability kept / seen."""
        self.seen[label] = self.seen.get(label, 0) + 1
        if len(self.items) < self.capacity:
            self.items.append((row, label))
            return
        counts = {k: sum(kept == k for _, kept in self.items) for _, k in self.items}
        largest = {k for k, n in counts.items() if n == max(counts.values())}
        if label not in largest:
            victims = [i for i, (_, kept) in enumerate(self.items) if kept in largest]
        elif self.chance.random() <= counts[label] / self.seen[label]:
            victims = [i for i, (_, kept) in enumerate(self.items) if kept == label]
        else:
            return
        self.items[victims[self.chance.integers(len(victims))]] = (row, label)


def _shrink(difference: Tensor, slack: Tensor) -> Tensor:
    """What of a difference lies beyond the slack, on either side."""
    return difference.sign() * (difference.abs() - slack).relu()
