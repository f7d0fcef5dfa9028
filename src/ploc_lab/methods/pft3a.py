"""PFT3A (ICLR 2026): entropy, aligned feature subspaces, a prior-free class prior; guarded for any B."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import torch
from torch.nn import functional

from ploc_lab.methods.adapting import Adapting, everything
from ploc_lab.methods.class_rates import CONFIDENT, next_rates, tilt
from ploc_lab.methods.ftat import NO_PRIOR, NO_ROW, concentration, two_classes
from ploc_lab.methods.losses import binary_entropy
from ploc_lab.methods.neighbours import agrees
from ploc_lab.methods.optim import SGD
from ploc_lab.methods.protocol import Card
from ploc_lab.methods.traced import Gradient

if TYPE_CHECKING:
    from torch import Tensor

    from ploc_lab.methods.stack import Params

DIRECTIONS = 5
NO_SUBSPACE = "too few rows for the subspace term"
NO_START = "no first prior yet: a batch needs a confident and an unconfident row"


class PFT3A(Adapting):
    """One SGD step on entropy + `kl_weight` KL of unconfident and confident rows' features.

    The released code, as far as it is known, is undefined below some tens of rows. The guards are ours:
    the KL term needs 6 confident and 2 unconfident rows; eigenvalues and variances are at least 1e-6; the
    first prior waits for a batch with a confident and an unconfident row (until then it is even, and at B = 1
    for ever); a later prior needs both classes, a confident row and |det| > 1e-6.

    `entropy="shannon"` is the paper's; "code" is FTAT's released loss, which the released PFT3A shares.
    `stream_prior=True`, which is not the paper's, takes the first prior's two means over the stream so far.
    """

    info = Card(
        "PFT3A, guarded",
        needs="gradients",
        changes="all parameters; the class prior",
        at_one="only the entropy step is left (as released: NaN)",
        ours=True,
    )

    def __init__(
        self,
        model: Any,
        source: Any,
        *,
        entropy: Literal["shannon", "code"] = "shannon",
        lr: float = 1e-5,
        entropy_weight: float = 1.0,
        kl_weight: float = 0.1,
        smoothing: float = 0.1,
        stream_prior: bool = False,
    ) -> None:
        if entropy not in ("shannon", "code"):
            raise ValueError(f"PFT3A has entropy 'shannon' or 'code', not {entropy!r}")
        options = {
            "entropy": entropy, "lr": lr, "entropy_weight": entropy_weight, "kl_weight": kl_weight,
            "smoothing": smoothing, "stream_prior": stream_prior,
        }  # fmt: skip
        super().__init__(model, source, options, moving=everything)
        two_classes(self, "PFT3A")
        self.row_loss = binary_entropy if entropy == "shannon" else concentration
        self.weights, self.smoothing, self.stream_prior = (entropy_weight, kl_weight), smoothing, stream_prior
        even = torch.full((self.checkpoints, 2), 0.5, dtype=torch.float64)
        self.rates, self.first_rates = even, even.clone()
        self.started = torch.zeros(self.checkpoints, dtype=torch.bool)
        # Sums of p and counts over confident and unconfident rows: (S, 2, 3).
        self.seen = torch.zeros(self.checkpoints, 2, 3, dtype=torch.float64)
        self.gradient = Gradient(self.loss, outer=True)
        self.optim = SGD(self.stack, lr)

    @property
    def state_size(self) -> int:
        """The network, the two priors and, with `stream_prior`, their sums."""
        return self.stack.scalars + 4 + (6 if self.stream_prior else 0)

    def loss(  # noqa: PLR0917
        self, params: Params, x: Tensor, rates: Tensor, first: Tensor, started: Tensor, seen: Tensor
    ) -> tuple[Tensor, ...]:
        """Loss (S,), scores, who steps, whose KL is defined, then what is carried on."""
        f, z = self.stack(params, x)
        z = z[..., 0]
        with torch.no_grad():
            new, renewed = rates, torch.zeros_like(started)
            if len(x) > 1 or self.stream_prior:  # one row alone is not confident and unconfident
                log_p = torch.stack(
                    [functional.logsigmoid(-z.double()), functional.logsigmoid(z.double())], -1
                )
                rates, first, started, seen = self._first_prior(log_p.exp(), rates, first, started, seen)
                new, renewed = rates, started
            if len(x) > 1:
                tilted = tilt(log_p, rates, first).exp()
            if len(x) > 1 and not self.stream_prior:
                new, renewed = next_rates(tilted, rates, smoothing=self.smoothing, least=1e-6)
                renewed = renewed & started
                new = torch.where(renewed[:, None], new, rates)
            gate = agrees(x, (z > 0).long()).any(1)
            shift = (new / first).log()
            scores = torch.where(z == 0, 0.0, z.double() + (shift[:, 1:] - shift[:, :1]))
        loss = self.weights[0] * self.row_loss(z).mean(1)
        defined = torch.zeros_like(gate)
        if len(x) >= _rows_needed(f.shape[-1]) + 2 and self.weights[1]:
            kl, defined = subspace_kl(f, tilted.amax(-1) > CONFIDENT, tilted.amax(-1) < CONFIDENT)
            loss = loss + self.weights[1] * kl
        return loss, scores, gate, defined, new, first, started, renewed, seen

    def _first_prior(
        self, p: Tensor, rates: Tensor, first: Tensor, started: Tensor, seen: Tensor
    ) -> tuple[Tensor, ...]:
        """The mean answer of confident rows is the source's prior, that of the others the target's first."""
        sure = (p.amax(-1) > CONFIDENT, p.amax(-1) < CONFIDENT)
        sums = torch.stack(
            [torch.cat([(p * w[..., None]).sum(1), w.sum(1, keepdim=True)], -1) for w in sure], 1
        )
        total = seen + sums if self.stream_prior else sums
        defined = (total[..., 2] > 0).all(1)
        renew = defined if self.stream_prior else defined & ~started
        means = total[..., :2] / total[..., 2:].clamp(min=1)
        first = torch.where(renew[:, None], means[:, 0], first)
        rates = torch.where(renew[:, None], means[:, 1], rates)
        return rates, first, started | defined, total

    def advance(self, x: Tensor) -> Tensor:
        """Answer by the old weights and the new prior, then step."""
        grads, aux = self.gradient(
            self.stack.params, x, self.rates, self.first_rates, self.started, self.seen
        )
        scores, gate, defined, self.rates, self.first_rates, self.started, renewed, self.seen = aux
        self.count(gate, NO_ROW)
        self.note(defined, NO_SUBSPACE)
        self.note(self.started, NO_START)
        self.note(renewed | ~self.started, NO_PRIOR)
        self.optim.step(grads, gate)
        return scores


def subspace_kl(f: Tensor, sure: Tensor, unsure: Tensor) -> tuple[Tensor, Tensor]:
    """KL of Gaussians in the five leading directions of the confident rows, and where it is defined.

    f is (S, B, h), the masks are (S, B), the results (S,). Gradients flow through both means and the
    unconfident variance; the directions and their variances are constants. Where it is undefined the KL is 0.
    """
    m = min(DIRECTIONS, f.shape[-1])
    n_s, n_t = sure.sum(1), unsure.sum(1)
    defined = (n_s >= _rows_needed(f.shape[-1])) & (n_t >= 2)
    a, b = sure.to(f.dtype)[..., None], unsure.to(f.dtype)[..., None]
    many_s, many_t = (n.clamp(min=2).to(f.dtype)[:, None] for n in (n_s, n_t))
    center = (f * a).sum(1) / many_s
    values, directions = _leading(((f - center[:, None]) * a).detach() / (many_s - 1).sqrt()[..., None], m)
    q = (f - center[:, None]) @ directions
    mean = (q * b).sum(1) / many_t
    variance = ((((q - mean[:, None]) * b) ** 2).sum(1) / (many_t - 1)).clamp(min=1e-6)
    kl = 0.5 * (values.log() - variance.log() + (variance + mean**2) / (values + 1e-8) - 1)
    return kl.mean(1) * defined, defined


def _rows_needed(width: int) -> int:
    return min(DIRECTIONS, width) + 1


def _leading(rows: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """Leading eigenvalues (S, m), at least 1e-6, and eigenvectors (S, h, m) of rows^T rows, (S, B, h)."""
    rows = rows.double()
    if rows.shape[1] >= rows.shape[2]:
        values, vectors = torch.linalg.eigh(rows.mT @ rows)
        values, vectors = values[:, -m:].clamp(min=1e-6), vectors[..., -m:]
    else:  # fewer rows than features: the eigenvectors of the small product give those of the large one
        values, small = torch.linalg.eigh(rows @ rows.mT)
        values = values[:, -m:].clamp(min=1e-6)
        vectors = rows.mT @ small[..., -m:] / values.sqrt()[:, None]
    return values.float(), vectors.float()
