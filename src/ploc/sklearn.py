"""PLOC behind any scikit-learn classifier: `PLOCClassifier(fitted)`."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from ploc import links
from ploc.center import PLOC

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from ploc.origin import Origin

# How a source is asked for its scores, by the name its own library gives them; values tell nothing apart.
_RESPONSES: dict[str, Callable[[Any, Any], Any]] = {
    "decision_function": lambda source, X: source.decision_function(X),
    "predict_proba": lambda source, X: links.from_proba(source.predict_proba(X)),
    "predict_log_proba": lambda source, X: links.from_log_proba(source.predict_log_proba(X)),
    "raw_score": lambda source, X: source.predict_proba(X, raw_score=True),
    "output_margin": lambda source, X: source.predict(X, output_margin=True),
    "RawFormulaVal": lambda source, X: source.predict(X, prediction_type="RawFormulaVal"),
}
_AUTO = ("decision_function", "predict_proba", "predict_log_proba")


class PLOCClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A frozen classifier whose logits are centred by the rows it has observed, never by their labels.

    `predict`, `predict_proba`, `predict_log_proba` and `decision_function` are pure: they use the current
    origin. `partial_fit(X)` observes rows, `replay(X)` answers a stream in order, each row before it is
    observed. `partial_fit(X)` followed by `predict_proba(X)` is deferred PLOC.

    An estimator that is fitted already (also inside a `FrozenEstimator`, which survives `clone`) is taken as
    it is and works without `fit`; an unfitted one is cloned and fitted by `fit`. Either way `fit` empties the
    origin.

    `response_method` names what is read as logits: "decision_function", "predict_proba", "predict_log_proba",
    "raw_score" (LightGBM), "output_margin" (XGBoost), "RawFormulaVal" (CatBoost) or a callable `(estimator,
    X) -> logits`. "auto" is the first of decision_function, predict_proba and predict_log_proba that the
    estimator has. A decision function that is no log-odds (a support vector machine's) is centred all the
    same, but its probabilities then mean no more than its margins do.

    `origin` and `anchor` other than the defaults are not the paper's method.

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> source = LogisticRegression().fit(X, X[:, 0] > 0)
    >>> model = PLOCClassifier(source)
    >>> shifted = X + [1.5, 0.0]
    >>> probs = model.replay(shifted)
    >>> bool(np.mean(model.predict(shifted)) < np.mean(source.predict(shifted)))
    True
    """

    def __init__(
        self,
        estimator: Any,
        *,
        origin: Origin | None = None,
        anchor: float | ArrayLike = 0.0,
        response_method: str | Callable[[Any, Any], ArrayLike] = "auto",
    ) -> None:
        self.estimator = estimator
        self.origin = origin
        self.anchor = anchor
        self.response_method = response_method

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the source on labelled source rows, unless it is fitted already, and empty the origin."""
        if params and not sklearn.get_config()["enable_metadata_routing"]:
            names = ", ".join(sorted(params))
            raise ValueError(
                f"fit was handed {names}: metadata goes to the wrapped estimator by routing; call "
                "sklearn.set_config(enable_metadata_routing=True) and the estimator's set_fit_request"
            )
        if _is_fitted(self.estimator):
            source = self.estimator
        else:
            routed = process_routing(self, "fit", **params)
            source = clone(self.estimator).fit(X, y, **routed.estimator.fit)
        center = self._fresh(source)
        self.estimator_, self.center_ = source, center
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Observe the rows of `X` in their order; `y` is there for the API and is not looked at.

        Only on a source that is not fitted, and only when `classes` is handed in, as scikit-learn's first
        call of `partial_fit` does, are `X` and `y` labelled source rows: that call is `fit(X, y)` and
        observes nothing.
        """
        try:
            source = self._source()
        except NotFittedError:
            if classes is None:
                raise
            _same_classes(classes, np.unique(y), "y has")
            return self.fit(X, y)
        if classes is not None:
            _same_classes(classes, source.classes_, "the source knows")
        center = self._center(source)
        center.observe(self._logits(source, X))
        self.center_ = center
        return self

    def replay(self, X: Any) -> NDArray[np.float64]:
        """Answer the rows of `X` in order, each by the origin of the rows before it, and observe them."""
        source = self._source()
        center = self._center(source)
        centred = center.replay(self._logits(source, X), logits=True)
        self.center_ = center
        return _proba(centred)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The centred logits: (n,) for two classes, (n, K) for more."""
        source = self._source()
        centred: NDArray[np.float64] = self._center(source).predict(self._logits(source, X), logits=True)
        return centred

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities by the current origin, one column a class."""
        return _proba(self.decision_function(X))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Log-probabilities by the current origin, one column a class."""
        return links.log_softmax(_columns(self.decision_function(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class whose centred logit is largest."""
        best = _columns(self.decision_function(X)).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    @property
    def classes_(self) -> NDArray[Any]:
        """The source's classes."""
        return np.asarray(self._source().classes_)

    @property
    def n_features_in_(self) -> int:
        """The source's number of features, where it has one."""
        return int(self._source().n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """The source's feature names, where it has them."""
        names: NDArray[np.object_] = self._source().feature_names_in_
        return names

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata of `fit` goes to the wrapped estimator's `fit`."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_") or _is_fitted(self.estimator)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = deepcopy(get_tags(self.estimator))
        tags.input_tags, tags.classifier_tags = inner.input_tags, inner.classifier_tags
        tags.classifier_tags.multi_label = False
        return tags

    def _source(self) -> Any:
        if hasattr(self, "estimator_"):
            return self.estimator_
        check_is_fitted(self.estimator)
        return self.estimator

    def _center(self, source: Any) -> PLOC:
        return self.center_ if hasattr(self, "center_") else self._fresh(source)

    def _fresh(self, source: Any) -> PLOC:
        if not hasattr(source, "classes_"):
            raise TypeError(
                f"{type(source).__name__} is no classifier (it has no classes_); PLOC centres one"
            )
        classes = source.classes_
        if any(np.ndim(label) for label in classes):
            raise ValueError(
                f"the source has {len(classes)} outputs; PLOC centres one: wrap one source an output"
            )
        if len(classes) < 2:
            raise ValueError(f"the source knows one class only, {classes[0]!r}: nothing to centre")
        return PLOC(None if len(classes) == 2 else len(classes), origin=self.origin, anchor=self.anchor)

    def _logits(self, source: Any, X: Any) -> NDArray[np.float64]:
        ask = self.response_method
        if not callable(ask):
            name = _response(source, ask)
            if name == "decision_function" and len(source.classes_) > 2 and _votes(source):
                raise ValueError(
                    "the source answers a number for each pair of classes (decision_function_shape='ovo'); "
                    "set its decision_function_shape='ovr', one a class, which needs no new fit"
                )
            ask = _RESPONSES[name]
        z = links.reals(ask(source, X))
        if z.ndim == 2 and z.shape[1] == 1:
            return z[:, 0]
        return links.relative(z) if z.ndim == 2 and z.shape[1] == 2 else z


def _response(source: Any, name: str) -> str:
    if name == "auto":
        for method in _AUTO:
            if hasattr(source, method):
                return method
        raise AttributeError(
            f"{type(source).__name__} has none of {', '.join(_AUTO)}; name a response_method"
        )
    if name not in _RESPONSES:
        raise ValueError(
            f"response_method is {name!r}; known are auto, {', '.join(_RESPONSES)}, or a callable"
        )
    return name


def _votes(source: Any) -> bool:
    """Whether a decision function has a column a pair of classes: with three classes there are three, too."""
    while True:
        if isinstance(source, Pipeline):
            source = source[-1]
        elif isinstance(source, FrozenEstimator):
            source = source.estimator
        elif hasattr(source, "best_estimator_"):  # a search
            source = source.best_estimator_
        else:
            return getattr(source, "decision_function_shape", None) == "ovo"


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def _same_classes(asked: ArrayLike, known: ArrayLike, who: str) -> None:
    if not np.array_equal(np.unique(asked), np.unique(known)):
        raise ValueError(f"classes={np.unique(asked).tolist()}, but {who} {np.unique(known).tolist()}")


def _columns(centred: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.column_stack((np.zeros_like(centred), centred)) if centred.ndim == 1 else centred


def _proba(centred: NDArray[np.float64]) -> NDArray[np.float64]:
    if centred.ndim == 1:
        return np.column_stack((links.sigmoid(-centred), links.sigmoid(centred)))
    return links.softmax(centred)
