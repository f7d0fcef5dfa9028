"""PLOC around any torch module: `PLOCModule(net)` answers with the net's logits, centred in stream order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import nn

from ploc.center import PLOC

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray
    from torch import Tensor


class PLOCModule(nn.Module):
    """A frozen module whose logits are centred row by row, the rows of a batch in their order.

    Calling it is `step` for every row of the batch: row t is centred by the rows before it, so the answers do
    not depend on how the stream is cut into batches. `predict(x)` is pure, `observe(x)` only moves the
    origin; `observe` then `predict` is deferred PLOC. The answers are centred logits (take their sigmoid or
    softmax) in float64, shaped like the module's own, on the module's own device.

    `logits` is the number of logits a row: 1 for a head that answers (B,) or (B, 1), K for (B, K); a
    two-logit head has 2. The wrapped module is put in eval mode and stays there, and none of its parameters
    takes gradients. The whole state is the buffer `state`, float64 whatever the module is cast to: the number
    of rows, and the two sums of `ploc.origin.Mean`, one column a logit.

    >>> import torch
    >>> net = nn.Linear(1, 1).requires_grad_(False)
    >>> _ = net.weight.fill_(1.0), net.bias.fill_(0.0)
    >>> model = PLOCModule(net)
    >>> model(torch.tensor([[1.0], [3.0], [2.0]])).flatten().tolist()
    [1.0, 2.0, 0.0]
    """

    state: Tensor

    def __init__(self, module: nn.Module, logits: int = 1, *, anchor: float | ArrayLike = 0.0) -> None:
        super().__init__()
        if isinstance(logits, bool) or not isinstance(logits, int) or logits < 1:
            raise ValueError(
                f"logits is {logits!r}; it is how many logits the module answers a row: 1 or more"
            )
        self.module = module.requires_grad_(False).eval()
        self._blank = PLOC(None if logits == 1 else logits, anchor=anchor).state()
        with torch.inference_mode(False):  # a buffer made in that mode could not be loaded into outside it
            self.register_buffer("state", torch.zeros(3, logits, dtype=torch.float64))

    def forward(self, *inputs: Any, **options: Any) -> Tensor:
        """Centre every row by the rows before it, and observe it."""
        logits, rows = self._rows(*inputs, **options)
        center = self._center()
        answer = center.replay(rows, logits=True)
        self._keep(center)
        return _like(logits, answer)

    def predict(self, *inputs: Any, **options: Any) -> Tensor:
        """Centre every row by the current origin; nothing moves."""
        logits, rows = self._rows(*inputs, **options)
        return _like(logits, self._center().predict(rows, logits=True))

    def observe(self, *inputs: Any, **options: Any) -> None:
        """Let the rows move the origin, in their order."""
        _, rows = self._rows(*inputs, **options)
        center = self._center()
        center.observe(rows)
        self._keep(center)

    def reset(self) -> None:
        """Forget the stream."""
        self._set([[0.0] * self.state.shape[1]] * 3)

    @property
    def count(self) -> int:
        """Rows observed."""
        return self._center().count

    @property
    def shift(self) -> Tensor:
        """What the next row is centred by, one number a logit."""
        return torch.from_numpy(np.atleast_1d(self._center().shift))

    def train(self, mode: bool = True) -> Self:
        """Set the mode of this module; the wrapped one stays in eval mode."""
        super().train(mode)
        self.module.eval()
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        before = self.state
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if self.state.dtype != torch.float64:  # .half(), .float(), .to(dtype): sums of a stream stay float64
            self.state = before.to(self.state.device)
        return self

    @torch.no_grad()
    def _rows(self, *inputs: Any, **options: Any) -> tuple[Tensor, NDArray[np.float64]]:
        """The module's logits, and the same in float64 on the host: there sums run left to right."""
        logits: Tensor = self.module(*inputs, **options)
        if not isinstance(logits, torch.Tensor):
            raise TypeError(
                f"the module answered a {type(logits).__name__}, not a tensor; wrap it in a module that "
                "returns its logits alone"
            )
        if logits.is_complex() or logits.dtype == torch.bool:
            raise TypeError(f"logits must be real numbers, the module answered {logits.dtype}")
        width = self.state.shape[1]
        if logits.shape[1:] != (width,) and not (width == 1 and logits.ndim == 1):
            wanted = "(B,) or (B, 1)" if width == 1 else f"(B, {width})"
            raise ValueError(f"the module answered logits of shape {tuple(logits.shape)}, expected {wanted}")
        rows = logits.detach().to("cpu", torch.float64)
        return logits, (rows.flatten() if width == 1 else rows).numpy()

    def _center(self) -> PLOC:
        count, total, part = self.state.tolist()
        if not (count[0] >= 0 and count[0] == count[-1] and count[0] % 1 == 0):
            raise ValueError(
                f"the buffer `state` has the counts {count}, which no stream leaves; load what PLOCModule "
                "saved"
            )
        if len(count) == 1:
            total, part = total[0], part[0]
        origin = {**self._blank["origin"], "count": int(count[0]), "total": total, "part": part}
        return PLOC.from_state({**self._blank, "origin": origin})

    def _keep(self, center: PLOC) -> None:
        origin = center.state()["origin"]
        width = self.state.shape[1]
        self._set([np.broadcast_to(origin[key], width).tolist() for key in ("count", "total", "part")])

    def _set(self, rows: list[list[float]]) -> None:
        """A new buffer in the place of the old one: never half of a state, never in another precision."""
        with torch.inference_mode(False):
            self.state = torch.tensor(rows, dtype=torch.float64, device=self.state.device)


def _like(logits: Tensor, answer: NDArray[np.float64]) -> Tensor:
    return torch.from_numpy(answer).reshape(logits.shape).to(logits.device)
