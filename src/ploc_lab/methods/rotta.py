"""RoTTA (Yuan et al., CVPR 2023): robust batch norm, and a teacher taught from a balanced, fresh memory."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn

from ploc_lab.methods import norms
from ploc_lab.methods.adapting import NOTHING_TO_ADAPT, check_rows, settled
from ploc_lab.methods.augment import strong
from ploc_lab.methods.losses import as_classes
from ploc_lab.methods.protocol import Card, Method, as_rows

if TYPE_CHECKING:
    from torch import Tensor

    from ploc_lab.methods.protocol import Answer, Rows, SourceInfo


class RoTTA(Method):
    """A teacher answers by slowly moving statistics; every `every` rows its student steps on the memory.

    The student, on an augmented view of the memory's rows, learns the teacher's answers on the rows
    themselves, the less the older a row; then teacher <- slow teacher + (1 - slow) student. Both take the
    statistics in as they go. Rows of a table, which have no views, get noise of deviation 0.005.
    """

    info = Card(
        "RoTTA",
        needs="gradients",
        changes="scales, offsets, running statistics of batch norm",
        at_one="native: a memory of 64 rows is learnt from",
    )

    def __init__(
        self,
        model: nn.Module,
        source: SourceInfo,
        *,
        capacity: int = 64,
        every: int = 64,
        lr: float = 1e-3,
        slow: float = 0.999,
        momentum: float = 0.05,
        seed: int = 0,
    ) -> None:
        super().__init__(
            model, source, capacity=capacity, every=every, lr=lr, slow=slow, momentum=momentum, seed=seed
        )
        self.student = deepcopy(model).requires_grad_(False)
        self.pictures = any(isinstance(m, nn.BatchNorm2d) for m in model.modules())
        kinds = ("bn1d", "bn2d")
        self.norms = norms.replace(self.student, kinds, lambda norm: RobustNorm(norm, momentum))
        self.teacher = deepcopy(self.student)
        self.memory = Memory(capacity, len(source.prior))
        self.every, self.slow, self.seen = every, slow, 0
        self.chance = torch.Generator().manual_seed(seed)
        self.affine = [p for norm in self.norms for p in (norm.weight, norm.bias)]
        self.adam = torch.optim.Adam(self.affine, lr=lr) if self.affine else None

    @property
    def n_adapted(self) -> int:
        """Scales and offsets of the batch norms."""
        return sum(p.numel() for p in self.affine)

    @property
    def state_size(self) -> int:
        """Student and teacher with their statistics, Adam's two moments, and the rows remembered."""
        return 6 * self.n_adapted + sum(item.row.numel() + 3 for item in self.memory.items())

    def respond(self, x: Rows) -> Answer:
        """Answer the batch by the teacher, remember its rows, and learn when it is time."""
        batch = torch.as_tensor(x, dtype=torch.float32)
        check_rows(batch)
        if self.adam is None:
            self.skip(NOTHING_TO_ADAPT)
            return settled(self, self.teacher, batch)
        answer = settled(self, self.teacher, batch)
        p = torch.from_numpy(as_rows(answer.scores)).softmax(1)
        doubt = -(p * (p + 1e-6).log()).sum(1)
        for row, label, entropy in zip(batch, p.argmax(1).tolist(), doubt.tolist(), strict=True):
            self.memory.add(row, label, entropy)
            self.seen += 1
            if self.seen % self.every == 0:
                self._learn(self.adam)
        return answer

    def _learn(self, adam: torch.optim.Adam) -> None:
        items = self.memory.items()
        rows = torch.stack([item.row for item in items])
        ages = torch.tensor([item.age / self.memory.capacity for item in items])
        self._listen(True)
        with torch.no_grad():
            target = as_classes(self.teacher(rows)).softmax(1)
        told = as_classes(self.student(self._view(rows))).log_softmax(1)
        (-(target * told).sum(1) * (-ages).sigmoid()).mean().backward()  # type: ignore[no-untyped-call]
        adam.step()
        adam.zero_grad()
        self._listen(False)
        with torch.no_grad():
            for slow, fast in zip(self.teacher.parameters(), self.student.parameters(), strict=True):
                slow.lerp_(fast, 1 - self.slow)
        self.step()

    def _view(self, rows: Tensor) -> Tensor:
        if self.pictures:
            return strong(rows, self.chance)
        return rows + 0.005 * torch.randn(rows.shape, generator=self.chance)

    def _listen(self, on: bool) -> None:
        for net in (self.student, self.teacher):
            for module in net.modules():
                if isinstance(module, RobustNorm):
                    module.train(on)


class RobustNorm(nn.Module):
    """Batch norm by the running statistics, which in training take a share of the batch's in first."""

    def __init__(self, norm: nn.BatchNorm1d | nn.BatchNorm2d, momentum: float) -> None:
        super().__init__()
        if norm.running_mean is None or norm.running_var is None or not norm.affine:
            raise ValueError(
                "RoTTA starts from the source's running statistics, scales and offsets: "
                "this batch norm is without"
            )
        self.weight = nn.Parameter(norm.weight.detach().clone())
        self.bias = nn.Parameter(norm.bias.detach().clone())
        self.register_buffer("mean", norm.running_mean.clone())
        self.register_buffer("var", norm.running_var.clone())
        self.momentum, self.eps = momentum, norm.eps
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        """(B, C) or (B, C, ...) -> the same."""
        mean, var = self.get_buffer("mean"), self.get_buffer("var")
        if self.training:
            others = [axis for axis in range(x.ndim) if axis != 1]
            mean = mean.lerp(x.mean(others), self.momentum)
            var = var.lerp(x.var(others, unbiased=False), self.momentum)
            self.mean, self.var = mean.detach(), var.detach()
        shape = (-1, *[1] * (x.ndim - 2))
        scale = self.weight / (var + self.eps).sqrt()
        return (x - mean.view(shape)) * scale.view(shape) + self.bias.view(shape)


class Item(NamedTuple):
    """A remembered row: how unsure its answer was, and how many rows ago it came."""

    row: Tensor
    entropy: float
    age: int


class Memory:
    """Rows balanced by predicted class, the fresh and sure ones kept (CSTU)."""

    def __init__(self, capacity: int, classes: int) -> None:
        self.capacity = capacity
        self.kept: list[list[Item]] = [[] for _ in range(classes)]

    def items(self) -> list[Item]:
        """All rows, class by class."""
        return [item for kept in self.kept for item in kept]

    def add(self, row: Tensor, label: int, entropy: float) -> None:
        """Take a row in, at the cost of the oldest and least sure if there is no room; all rows age."""
        if self._room(label, entropy):
            self.kept[label].append(Item(row, entropy, 0))
        self.kept = [[item._replace(age=item.age + 1) for item in kept] for kept in self.kept]

    def _room(self, label: int, entropy: float) -> bool:
        sizes = [len(kept) for kept in self.kept]
        if sizes[label] >= self.capacity / len(sizes):
            crowded = [label]
        elif sum(sizes) < self.capacity:
            return True
        else:
            crowded = [k for k, size in enumerate(sizes) if size == max(sizes)]
        # The last of equal scores goes, as released.
        worst = max((self._score(item), k, i) for k in crowded for i, item in enumerate(self.kept[k]))
        if worst[0] <= self._score(Item(torch.empty(0), entropy, 0)):
            return False
        del self.kept[worst[1]][worst[2]]
        return True

    def _score(self, item: Item) -> float:
        return 1 / (1 + math.exp(-item.age / self.capacity)) + item.entropy / math.log(len(self.kept))
