"""FTAT (AAAI 2025), after its released code: three nets that learn at three rates, a running class prior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import torch
from torch.nn import functional

from ploc_lab.methods.adapting import Adapting, everything
from ploc_lab.methods.class_rates import next_rates, tilt
from ploc_lab.methods.losses import binary_entropy, masked_mean
from ploc_lab.methods.neighbours import agrees
from ploc_lab.methods.optim import SGD
from ploc_lab.methods.protocol import Card
from ploc_lab.methods.traced import Gradient

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from ploc_lab.methods.stack import Params

DRIVER_RATES = {
    "anes": 0.691,
    "heloc": 0.24,
    "assistments": 0.694,
    "diabetes_readmission": 0.42,
    "acs_pubcov": 0.224,
}
"""Source rates of class 1 typed into the authors' driver (acs_pubcov: PFT3A's table, FTAT has none)."""

NO_ROW = "no row agreed with its neighbours"
NO_PRIOR = "prior frozen: one class predicted, nothing confident or no inverse"


class FTAT(Adapting):
    """Nets step on the rows that agree with their neighbours; the answer is their mean, tilted by pi / pi_0.

    `loss="code"` is the released loss |d| h(sigmoid(d)) with d = p1 - p0, an entropy of a softmax of
    probabilities; it grows with |d|, so that learning pushes every answer towards 0.5. `loss="paper"` is the
    paper's: Shannon entropy of the tilted probabilities, weighted by their margin (which is held constant).
    `prior="none"` leaves the tilt out. `scale` multiplies the rates, which are meant for batches of 512.
    """

    info = Card(
        "FTAT",
        needs="gradients",
        changes="all parameters, in three copies; the class prior",
        at_one="every row is stepped on; the prior never moves",
    )

    def __init__(
        self,
        model: Any,
        source: Any,
        *,
        loss: Literal["code", "paper"] = "code",
        prior: Literal["code", "none"] = "code",
        lrs: Sequence[float] = (1e-5, 5e-4, 1e-4),
        scale: float = 1.0,
        smoothing: float = 0.1,
    ) -> None:
        if loss not in ("code", "paper") or prior not in ("code", "none"):
            raise ValueError(
                f"FTAT has loss 'code' or 'paper' and prior 'code' or 'none', not {loss!r}, {prior!r}"
            )
        options = {"loss": loss, "prior": prior, "lrs": list(lrs), "scale": scale, "smoothing": smoothing}
        super().__init__(model, source, options, moving=everything, copies=len(lrs))
        two_classes(self, "FTAT")
        self.kind, self.prior, self.smoothing, self.models = loss, prior, smoothing, len(lrs)
        self.source_rates = torch.stack([torch.from_numpy(each.prior) for each in self.sources])
        self.rates = self.source_rates.clone()
        self.gradient = Gradient(self.loss, outer=True)
        self.optim = SGD(self.stack, torch.tensor(lrs).repeat(self.checkpoints) * scale)

    @property
    def state_size(self) -> int:
        """The copies of the network and the prior."""
        return self.models * self.stack.scalars + 2

    def loss(self, params: Params, x: Tensor, rates: Tensor, source_rates: Tensor) -> tuple[Tensor, ...]:
        """Loss of each copy, (3 S,), then scores, who steps (S,), the new prior and for whom it is new."""
        _, z = self.stack(params, x)
        z = z[..., 0].view(-1, self.models, len(x))  # (S, 3, B)
        with torch.no_grad():
            log_p = self._ensemble(z)
            tilted = tilt(log_p, rates, source_rates)
            kept = agrees(x, (log_p[..., 1] > log_p[..., 0]).long())
            if self.prior == "code":
                new_rates, renewed = next_rates(tilted.exp(), rates, smoothing=self.smoothing)
            else:
                new_rates, renewed = rates.clone(), torch.zeros_like(kept[:, 0])
            answer = tilt(log_p, new_rates, source_rates) if self.prior == "code" else log_p
            tie = log_p[..., 1] == log_p[..., 0]
            scores = torch.where(tie, 0.0, answer[..., 1] - answer[..., 0])
        if self.kind == "code":
            each = concentration(z)
        else:
            shift = (rates / source_rates).log()
            each = _weighted_entropy(z + (shift[:, 1] - shift[:, 0]).to(z.dtype)[:, None, None])
        losses = masked_mean(each.flatten(0, 1), kept.repeat_interleave(self.models, 0))
        return losses, scores, kept.any(1), new_rates, renewed

    def _ensemble(self, z: Tensor) -> Tensor:
        """Log of the copies' mean probabilities, weighted by one minus their mean loss, (S, B, 2) float64."""
        r = 1 - concentration(z).mean(2)
        log_w = (r / r.sum(1, keepdim=True)).double().log()[..., None]
        z = z.double()
        both = torch.stack([functional.logsigmoid(-z) + log_w, functional.logsigmoid(z) + log_w], -1)
        return both.logsumexp(1)

    def advance(self, x: Tensor) -> Tensor:
        """Answer by the old weights and the new prior, then step."""
        grads, (scores, gate, rates, renewed) = self.gradient(
            self.stack.params, x, self.rates, self.source_rates
        )
        self.rates = rates
        self.count(gate, NO_ROW)
        self.note(renewed, NO_PRIOR)
        if len(x) == 1 or bool(gate.all()):
            self.optim.step(grads)
        else:
            self.optim.step(grads, gate.repeat_interleave(self.models))
        return scores


def concentration(z: Tensor) -> Tensor:
    """The released loss of each row: |d| h(sigmoid(d)) with d = p1 - p0 = tanh(z / 2), least at d = 0."""
    d = torch.tanh(z / 2)
    return d.abs() * binary_entropy(d)


def _weighted_entropy(z: Tensor) -> Tensor:
    margin = torch.tanh(z.detach() / 2).abs()
    return margin * binary_entropy(z)


def two_classes(method: Adapting, name: str) -> None:
    """Refuse networks that have more than the one relative logit of two classes."""
    head = getattr(method.nets[0], "head", None)
    if method.classes != 2 or getattr(head, "out_features", 1) != 1:
        raise ValueError(
            f"{name} is defined for two classes and one relative logit, not for {method.classes} classes"
        )
