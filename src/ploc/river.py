"""PLOC behind any river classifier: `PLOCClassifier(model)`."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

from river import base, linear_model, naive_bayes

from ploc import links
from ploc.center import PLOC

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from ploc.origin import Origin

Features = dict[base.typing.FeatureName, Any]
Answer = dict[base.typing.ClfTarget, float]


class PLOCClassifier(base.Wrapper, base.Classifier):  # type: ignore[type-arg]
    """A river classifier whose logits are centred by the records it has observed, never by their labels.

    `predict_one` and `predict_proba_one` are pure, as river wants it: they use the current origin.
    `learn_one(x, y)` observes x; the label does not reach the origin. `step_one(x)` answers and observes in
    one call, for those who get no labels and call nothing else.

    The wrapped model is frozen: `learn_one` does not teach it. With `frozen=False` it goes on learning from
    (x, y), after its logit of x was observed: centring then follows a model that moves.

    `origin` and `anchor` other than the defaults are not the paper's method. Two classes are centred by their
    relative logit, more by one logit a class. A class that shows up later begins a new origin, since logits
    over another set of classes have another zero; until two classes are known the answers are the model's
    own.

    >>> from river import linear_model
    >>> source = linear_model.LogisticRegression()
    >>> for x in (-1.0, 1.0, -2.0, 2.0):
    ...     source.learn_one({"x": x}, x > 0)
    >>> model = PLOCClassifier(source)
    >>> answers = [model.step_one({"x": x}) for x in (5.0, 6.0)]
    >>> answers[0] == source.predict_proba_one({"x": 5.0})
    True
    >>> model.predict_one({"x": 4.0}), source.predict_one({"x": 4.0})
    (False, True)
    """

    def __init__(
        self,
        model: base.Classifier,
        origin: Origin | None = None,
        anchor: float = 0.0,
        frozen: bool = True,
    ) -> None:
        self.model = model
        self.origin = origin
        self.anchor = anchor
        self.frozen = frozen
        self._labels: tuple[base.typing.ClfTarget, ...] = ()
        self._center: PLOC | None = None

    def predict_proba_one(self, x: Features, **kwargs: Any) -> Answer:
        """The probability of each label by the current origin."""
        source = self.model.predict_proba_one(x, **kwargs)
        z = self._logits(source)
        return source if z is None or self._center is None else self._named(self._center.predict(z))

    def learn_one(self, x: Features, y: Any = None, **kwargs: Any) -> None:
        """Observe `x`; teach (x, y) to the model only if it is not frozen."""
        self._observe(self.model.predict_proba_one(x))
        if not self.frozen:
            self.model.learn_one(x, y, **kwargs)

    def observe_one(self, x: Features, **kwargs: Any) -> None:
        """Observe `x` and nothing else: no label, no learning."""
        self._observe(self.model.predict_proba_one(x, **kwargs))

    def step_one(self, x: Features, **kwargs: Any) -> Answer:
        """Answer, then observe: `predict_proba_one` and `observe_one` for one call of the model."""
        source = self.model.predict_proba_one(x, **kwargs)
        z = self._logits(source)
        if z is not None and self._center is not None:
            return self._named(self._center.step(z))
        self._observe(source)
        return source

    @property
    def count(self) -> int:
        """Records observed by the current origin."""
        return self._center.count if self._center else 0

    def _observe(self, source: Answer) -> None:
        """Let the model's own answer move the origin; a class not met before begins a new one."""
        labels = source.keys() | self._labels
        if len(labels) != len(self._labels) and len(labels) > 1:
            self._labels = tuple(sorted(labels, key=str))
            classes = None if len(labels) == 2 else len(labels)
            self._center = PLOC(classes, origin=self.origin, anchor=self.anchor)
        z = self._logits(source)
        if z is not None and self._center is not None:
            self._center.observe(z)

    def _logits(self, source: Answer) -> float | NDArray[np.float64] | None:
        """The model's answer in logits over the known labels; None where it names another label or none."""
        labels = self._labels
        if len(labels) == 2 and len(source) == 2:  # the common case, at a third of the price
            no, yes = source.get(labels[0]), source.get(labels[1])
            if no is not None and yes is not None and no + yes != 0.0:
                p = yes / (no + yes)
                return log(p / (1.0 - p)) if links.CLIP < p < 1.0 - links.CLIP else links.logit(p)
        total = sum(source.values())
        if total == 0.0:
            return None
        if len(labels) == 2:
            if not source.keys() <= set(labels):
                return None
            return links.logit(source.get(labels[1], 0.0) / total)
        if not labels or not source.keys() <= set(labels):
            return None
        row: NDArray[np.float64] = links.from_proba([[source.get(label, 0.0) / total for label in labels]])[0]
        return row

    def _named(self, p: Any) -> Answer:
        if len(self._labels) == 2:
            return {self._labels[0]: 1.0 - p, self._labels[1]: p}
        return dict(zip(self._labels, p.tolist(), strict=True))

    @property
    def _wrapped_model(self) -> base.Classifier:
        return self.model

    @property
    def _supervised(self) -> bool:
        return not self.frozen and self.model._supervised

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": linear_model.LogisticRegression()}
        yield {"model": linear_model.LogisticRegression(), "frozen": False}
        yield {"model": naive_bayes.GaussianNB(), "frozen": False}  # type: ignore[no-untyped-call]
