"""What every weight-updating method stands on: S checkpoints adapt at once, and one is the case S = 1."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import nn

from ploc_lab.methods.norms import forget_running_statistics
from ploc_lab.methods.protocol import Method, SourceInfo, as_answer, check, outputs
from ploc_lab.methods.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from ploc_lab.methods.protocol import Answer, Floats, Rows

NOTHING_TO_ADAPT = "no adaptable parameter"


class Adapting(Method):
    """A method that moves weights by gradients, written over a stack of checkpoints that see the same rows.

    A subclass says which parameters move and writes `advance`: scores of a batch by all checkpoints, (S, B)
    or (S, B, K) in float64. Where nothing can move, the network answers as it is.
    """

    def __init__(
        self,
        model: nn.Module | Sequence[nn.Module],
        source: SourceInfo | Sequence[SourceInfo],
        options: dict[str, Any],
        *,
        moving: Callable[[nn.Module], list[str]],
        copies: int = 1,
        batch_statistics: bool = False,
    ) -> None:
        self.nets = [model] if isinstance(model, nn.Module) else list(model)
        self.sources: list[SourceInfo] = (
            [source] * len(self.nets) if isinstance(source, SourceInfo) else list(source)
        )
        if not self.nets or not isinstance(self.nets[0], nn.Module):
            raise ValueError(f"{type(self).__name__} adapts a network: give a torch module, not {model!r}")
        if len(self.sources) != len(self.nets):
            raise ValueError(
                f"{len(self.nets)} networks came with {len(self.sources)} sources: give one each"
            )
        super().__init__(self.nets[0], self.sources[0], **options)
        mine = [deepcopy(net) for net in self.nets]
        if batch_statistics:
            for net in mine:
                forget_running_statistics(net)
        names = moving(mine[0])
        self.idle = not names
        self.stack = Stack(mine, names, copies)
        self.taken = torch.zeros(len(self.nets), dtype=torch.int64)
        self.missed: dict[str, Tensor] = {}
        self.lost = [0] * len(self.nets)

    @abstractmethod
    def advance(self, x: Tensor) -> Tensor:
        """Answer a batch by all checkpoints, then adapt to it; runs without autograd."""

    @property
    def n_adapted(self) -> int:
        """How many of the network's parameters this method can move here; 0 is a no-op, not a success."""
        return self.stack.scalars

    @property
    def checkpoints(self) -> int:
        """S: how many networks adapt at once."""
        return len(self.nets)

    @property
    def classes(self) -> int:
        """K: how many classes the networks tell apart, as the source's class rates say."""
        return len(self.source.prior)

    def respond(self, x: Rows) -> Answer:
        """Answer the next batch of the one checkpoint."""
        if self.checkpoints > 1:
            raise ValueError(f"{self.checkpoints} checkpoints adapt here at once: use respond_all")
        return self.respond_all(x)[0]

    def respond_all(self, x: Rows) -> list[Answer]:
        """Answer the next batch of the stream by each checkpoint, in their order."""
        rows = torch.as_tensor(x, dtype=torch.float32)
        check_rows(rows)
        if self.idle:
            self.sit_out(1)
            return [as_answer(frozen(net, rows)) for net in self.nets]
        with torch.no_grad():
            scores = self.advance(rows)
        return self.answers(scores.numpy(), rows)

    def answers(self, scores: Floats | Sequence[Floats], x: Tensor) -> list[Answer]:
        """Probabilities of scores (S, B) or (S, B, K); a row that is not finite is the source's."""
        found = []
        for i, net in enumerate(self.nets):
            mine, bad = scores[i], ~np.isfinite(scores[i])
            bad = bad if bad.ndim == 1 else bad.any(axis=1)
            if bad.any():
                self.lost[i] += int(bad.sum())
                mine = mine.copy()
                mine[bad] = frozen(net, x[torch.from_numpy(bad)])
            found.append(as_answer(mine))
        return found

    def count(self, gate: Tensor | None = None, reason: str = "", *, rounds: int = 1) -> None:
        """Count a step of all checkpoints, or of those the gate (S,) lets through; the others' reason."""
        if gate is None:
            self.taken += rounds
            return
        self.taken += gate
        self.note(gate, reason)

    def note(self, gate: Tensor, reason: str) -> None:
        """Count, by its reason, a part of the update that checkpoints with a False gate left out."""
        if reason not in self.missed:
            self.missed[reason] = torch.zeros_like(self.taken)
        self.missed[reason] += ~gate

    def sit_out(self, batches: int) -> None:
        """Count batches at which there was nothing to adapt."""
        self.missed[NOTHING_TO_ADAPT] = (
            self.missed.get(NOTHING_TO_ADAPT, torch.zeros_like(self.taken)) + batches
        )

    def report(self, checkpoint: int = 0) -> dict[str, Any]:
        """What one of the checkpoints did and did not do, as JSON-safe values."""
        self.steps = int(self.taken[checkpoint])
        self.skipped = Counter({why: int(n[checkpoint]) for why, n in self.missed.items() if n[checkpoint]})
        self.nan = self.lost[checkpoint]
        return super().report()


def check_rows(x: Tensor) -> None:
    """Refuse rows that are not finite or not a batch, before anything has moved."""
    if x.ndim < 2 or len(x) == 0:
        raise ValueError(f"a batch is (B, columns) with at least one row, got shape {tuple(x.shape)}")
    if not bool(torch.isfinite(x).all()):
        row = int((~torch.isfinite(x).flatten(1).all(1)).nonzero()[0])
        raise ValueError(
            f"row {row} of the batch holds a value that is not finite; nothing was adapted to it"
        )


def frozen(net: nn.Module, x: Tensor, chunk: int = 1024) -> Floats:
    """The given network's own float64 logits of any number of rows."""
    z = np.concatenate([outputs(net, part)[0] for part in torch.split(x, chunk)])
    check(z)
    return z


def settled(method: Method, net: nn.Module, x: Tensor) -> Answer:
    """The answer of a network that a method has made; a row that is not finite is the given network's."""
    z = np.concatenate([outputs(net, part)[0] for part in torch.split(x, 1024)])
    if np.isfinite(z).all():
        return as_answer(z)
    return method.finite(as_answer(z), as_answer(frozen(cast("nn.Module", method.model), x)))


def everything(net: nn.Module) -> list[str]:
    """Names of all parameters."""
    return [name for name, _ in net.named_parameters()]


def scores(z: Tensor) -> Tensor:
    """Logits (S, B, 1 or K) as the scores of an answer: float64, (S, B) or (S, B, K)."""
    return (z[..., 0] if z.shape[-1] == 1 else z).double()
