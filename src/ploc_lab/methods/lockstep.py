"""One method over many checkpoints of a cell at once: the same class, on a stack of networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from ploc_lab.methods import spec
from ploc_lab.methods.adapting import Adapting, check_rows, frozen
from ploc_lab.methods.protocol import Answer, OutputMethod, SourceInfo, batches, outputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ploc_lab.methods import Method
    from ploc_lab.methods.protocol import Floats, Rows

Result = tuple[Answer, dict[str, Any]]


def run(
    name: str,
    nets: Sequence[nn.Module],
    sources: SourceInfo | Sequence[SourceInfo],
    X: Rows | Sequence[Rows],
    batch: int = 1,
    *,
    logits: Sequence[Floats] | None = None,
    progress: Callable[[int], object] | None = None,
    **options: Any,
) -> list[Result]:
    """Answers over a whole stream and the report of each checkpoint, in the order of `nets`.

    X is the stream, (T, d) float32, which is cut into batches of `batch` rows, or a sequence of batches.
    `logits` are the checkpoints' cached logits of the stream, (T,) or (T, K): with them a method that moves
    nothing answers to the bit as the source does, at no cost. `progress` is told of each batch's rows.

    >>> nets = [nn.Linear(2, 1).eval(), nn.Linear(2, 1).eval()]
    >>> from ploc_lab.methods import SourceInfo
    >>> results = run("ftat", nets, SourceInfo(np.array([0.5, 0.5])), np.zeros((7, 2), np.float32), batch=3)
    >>> [(answer.probs.shape, report["steps"]) for answer, report in results]
    [((7,), 3), ((7,), 3)]
    """
    entry = spec(name)
    given = {**entry.options, **options}
    per_net: list[SourceInfo] = [sources] * len(nets) if isinstance(sources, SourceInfo) else list(sources)
    if len(per_net) != len(nets):
        raise ValueError(f"{len(nets)} networks came with {len(per_net)} sources: give one each")
    stream = _Stream(X, batch)
    if issubclass(entry.cls, Adapting):
        stacks = [[i] for i in range(len(nets))] if _heavy(nets[0]) else [list(range(len(nets)))]
        found: list[Result] = []
        for members in stacks:
            method = entry.cls([nets[i] for i in members], [per_net[i] for i in members], **given)
            cached = None if logits is None else [logits[i] for i in members]
            found += _together(method, stream, cached, progress)
        return found
    return [
        _alone(entry.cls(net, source, **given), net, stream, None if logits is None else logits[i], progress)
        for i, (net, source) in enumerate(zip(nets, per_net, strict=True))
    ]


def _together(
    method: Adapting,
    stream: _Stream,
    logits: Sequence[Floats] | None,
    progress: Callable[[int], object] | None,
) -> list[Result]:
    if method.idle:
        method.sit_out(len(stream.starts) - 1)
        answers = method.answers(logits or [frozen(net, stream.rows) for net in method.nets], stream.rows)
    else:
        parts = []
        with torch.no_grad():
            for x in stream:
                parts.append(method.advance(x))
                if progress:
                    progress(len(x))
        answers = method.answers(torch.cat(parts, 1).numpy(), stream.rows)
    return [(answer, method.report(i)) for i, answer in enumerate(answers)]


def _alone(
    method: Method,
    net: nn.Module,
    stream: _Stream,
    logits: Floats | None,
    progress: Callable[[int], object] | None,
) -> Result:
    if isinstance(method, OutputMethod) and stream.batch:
        if logits is None or method.needs_features:
            parts = [outputs(net, x, features=method.needs_features) for x in torch.split(stream.rows, 1024)]
            logits = np.concatenate([z for z, _ in parts])
            f = np.concatenate([f for _, f in parts]) if method.needs_features else None
        return method.replay(logits, f, stream.batch), method.report()
    answers = []
    for x in stream:
        answers.append(method.respond(x))
        if progress:
            progress(len(x))
    whole = Answer(np.concatenate([a.probs for a in answers]), np.concatenate([a.scores for a in answers]))
    return whole, method.report()


def _heavy(net: nn.Module) -> bool:
    """Whether arithmetic, not overhead, bounds a step: stacked convolutions are slower than single ones."""
    return any(isinstance(module, nn.Conv2d) for module in net.modules())


class _Stream:
    """Checked rows and where its batches begin."""

    def __init__(self, X: Rows | Sequence[Rows], batch: int) -> None:
        if isinstance(X, np.ndarray | torch.Tensor):
            self.rows = torch.as_tensor(X, dtype=torch.float32)
            self.starts = [rows.start for rows in batches(len(self.rows), batch)] + [len(self.rows)]
            self.batch = batch
        else:
            parts = [torch.as_tensor(x, dtype=torch.float32) for x in X]
            self.rows = torch.cat(parts)
            self.starts = [0, *np.cumsum([len(x) for x in parts]).tolist()]
            self.batch = 0  # they may differ in size
        check_rows(self.rows)

    def __iter__(self) -> Iterator[torch.Tensor]:
        return (self.rows[a:b] for a, b in zip(self.starts, self.starts[1:], strict=False))
