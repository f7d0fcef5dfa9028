"""What every method promises: batches of a stream in, probabilities out, and no place for a label."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ploc import links

Floats = NDArray[np.float64]
Rows = NDArray[np.float32] | torch.Tensor
Needs = Literal["logits", "features", "network", "gradients", "source rates", "source rows", "source labels"]


@dataclass(frozen=True)
class Validation:
    """A labelled sample of the source: rows, labels, the frozen network's logits and, if kept, features."""

    x: NDArray[np.float32]
    y: NDArray[np.integer[Any]]
    logits: Floats
    features: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class SourceInfo:
    """What a method may know besides the network: the source's class rates and a labelled sample of it."""

    prior: Floats
    validation: Validation | None = None

    def __post_init__(self) -> None:
        prior = np.asarray(self.prior, dtype=np.float64)
        if prior.ndim != 1 or prior.size < 2 or not np.all(prior > 0) or abs(prior.sum() - 1) > 1e-6:
            raise ValueError(
                f"source prior must be two or more positive rates that sum to 1, got {self.prior}"
            )
        object.__setattr__(self, "prior", prior)

    def labelled(self, method: str) -> Validation:
        """The validation sample, or an error that says which method cannot do without it."""
        if self.validation is None:
            raise ValueError(
                f"method {method!r} is fitted on labelled source rows: pass SourceInfo(prior, validation)"
            )
        return self.validation


class Answer(NamedTuple):
    """Probabilities of a batch, and the scores that rank it before any sigmoid can saturate.

    For a network of one logit both have shape (B,): P(y=1) and a relative logit. Otherwise both are (B, K).
    """

    probs: Floats
    scores: Floats


@dataclass(frozen=True)
class Card:
    """A method in one line: what it needs, what it changes, and what becomes of it at batch size one."""

    title: str
    needs: Needs
    changes: str
    at_one: str
    ours: bool = False


class Method(ABC):
    """One method on one stream. Build a new one for each stream and each checkpoint; no state is shared.

    A subclass sets `info`, calls `super().__init__(model, source, **its options)` and writes `respond`.
    It never changes `model`: what it adapts is a copy. It counts its work with `step()` and `skip(reason)`.
    """

    info: ClassVar[Card]

    def __init__(self, model: nn.Module | None, source: SourceInfo, **options: object) -> None:
        self.model = model
        self.source = source
        self.options = options
        self.steps = 0
        self.skipped: Counter[str] = Counter()
        self.nan = 0

    @abstractmethod
    def respond(self, x: Rows) -> Answer:
        """Answer the next batch of the stream (B rows, 1 <= B), then or thereby adapt to it."""

    def predict(self, x: Rows) -> Floats:
        """Probabilities of the next batch in float64: (B,) P(y=1) for a one-logit network, else (B, K)."""
        return self.respond(x).probs

    @property
    def n_adapted(self) -> int:
        """How many of the network's parameters this method can move here; 0 is a no-op, not a success."""
        return 0

    @property
    def state_size(self) -> int:
        """Numbers carried from one batch to the next."""
        return 0

    def step(self, count: int = 1) -> None:
        """Count updates of what the method carries: gradient steps, refits, rows observed."""
        self.steps += count

    def skip(self, reason: str, count: int = 1) -> None:
        """Count updates that the batch could not support, by reason."""
        self.skipped[reason] += count

    def finite(self, answer: Answer, source: Answer) -> Answer:
        """The answer with each row that is not finite replaced by the source's row, and counted as NaN."""
        bad = ~np.isfinite(answer.probs) | ~np.isfinite(answer.scores)
        if bad.ndim == 2:
            bad = np.logical_or.reduce(bad, axis=1)
        if not bad.any():
            return answer
        self.nan += int(bad.sum())
        probs, scores = answer.probs.copy(), answer.scores.copy()
        probs[bad], scores[bad] = source.probs[bad], source.scores[bad]
        return Answer(probs, scores)

    def report(self) -> dict[str, Any]:
        """What was done and what was not, as JSON-safe values."""
        return {
            "n_adapted": self.n_adapted,
            "steps": self.steps,
            "skipped": dict(self.skipped),
            "nan": self.nan,
            "state": self.state_size,
            "options": dict(self.options),
        }


class OutputMethod(Method):
    """A method that sees only the frozen network's outputs: a stream can be replayed from cached logits.

    A subclass writes `answer`; where stepping through a stream would be slow it overrides `replay` too,
    with the same answers. `model` may be None when only `replay` is used and the method needs no head.
    """

    needs_features: ClassVar[bool] = False

    @abstractmethod
    def answer(self, z: Floats, f: Floats | None, /) -> Answer:
        """Answer one batch of logits: z is (B,) relative logits or (B, K); f is (B, h) or None."""

    def respond(self, x: Rows) -> Answer:
        """Run the frozen network on the batch and answer its outputs."""
        if self.model is None:
            raise ValueError("this method was built without a network: give one to build(), or use replay()")
        z, f = outputs(self.model, x, features=self.needs_features)
        return self._checked(z, f)

    def replay(self, z: Floats, f: NDArray[Any] | None = None, batch: int = 1) -> Answer:
        """Answer a whole stream of cached logits in batches of `batch` rows, the last one partial."""
        z = np.asarray(z, dtype=np.float64)
        if len(z) == 0:
            return as_answer(z)
        parts = [self._checked(z[rows], None if f is None else f[rows]) for rows in batches(len(z), batch)]
        return Answer(np.concatenate([p.probs for p in parts]), np.concatenate([p.scores for p in parts]))

    def _checked(self, z: Floats, f: NDArray[Any] | None) -> Answer:
        check(z)
        if self.needs_features and f is None:
            raise ValueError("this method needs the network's features: pass f, one row a logit")
        f = None if f is None else np.asarray(f, dtype=np.float64)
        return self.finite(self.answer(z, f), as_answer(z))


def batches(n: int, size: int) -> Iterator[slice]:
    """Cut n rows into consecutive batches of `size`, the last one partial."""
    if size < 1:
        raise ValueError(f"batch size must be at least 1, got {size}")
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def outputs(model: nn.Module, x: Rows, *, features: bool = False) -> tuple[Floats, Floats | None]:
    """One frozen forward pass: float64 logits, (B,) for a one-logit network, and features if asked for."""
    if model.training:
        raise ValueError("the network is in training mode: call .eval() on it before it meets a stream")
    net = cast(Any, model)
    with torch.inference_mode():
        rows = torch.as_tensor(x)
        h = net.features(rows) if features else None
        out = net(rows) if h is None else net.head(h)
    z: Floats = out.double().numpy()
    f: Floats | None = None if h is None else h.double().numpy()
    return (z[:, 0] if z.shape[1] == 1 else z), f


def check(z: Floats) -> None:
    """Refuse logits that are not finite or not one batch."""
    if z.ndim not in (1, 2):
        raise ValueError(f"logits must be (B,) or (B, K), got shape {z.shape}")
    bad = np.argwhere(~np.isfinite(z))
    if len(bad):
        row = int(bad[0][0])
        raise ValueError(f"logit of row {row} of the batch is {z[row]}: the network's output is not finite")


def as_answer(z: Floats) -> Answer:
    """The answer that logits give by themselves, in the shape they came in."""
    return Answer(np.asarray(links.sigmoid(z) if z.ndim == 1 else links.softmax(z)), z)


def as_rows(z: Floats) -> Floats:
    """One logit a class: (B,) relative logits become [0, z], which softmax turns into [1 - p, p]."""
    return np.stack([np.zeros_like(z), z], axis=1) if z.ndim == 1 else z


def from_rows(rows: Floats, z: Floats) -> Answer:
    """The answer of (B, K) logits, in the shape that the network's own logits `z` have."""
    return as_answer(rows[:, 1] - rows[:, 0] if z.ndim == 1 else rows)
