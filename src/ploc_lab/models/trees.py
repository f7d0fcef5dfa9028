"""Tree ensembles as source models, kept without a pickle: LightGBM's text, scikit-learn's nodes as arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import safetensors.numpy

if TYPE_CHECKING:
    import lightgbm
    from numpy.typing import NDArray


class Trees(ABC):
    """A fitted binary ensemble that answers with raw margins, its relative logits."""

    file: ClassVar[str]
    library: ClassVar[str]
    options: ClassVar[dict[str, Any]]

    @classmethod
    @abstractmethod
    def fit(cls, x: NDArray[np.float32], y: NDArray[np.integer], seed: int) -> Self:
        """Grow the ensemble on the source; the seed draws the columns and rows that a tree may see."""

    @abstractmethod
    def margins(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """Relative logits of rows, (n,)."""

    @abstractmethod
    def dump(self) -> bytes:
        """The whole model as the content of its file."""

    @classmethod
    @abstractmethod
    def load(cls, content: bytes) -> Self:
        """The model that `dump` wrote."""


@dataclass(frozen=True)
class LightGBM(Trees):
    """LightGBM's gradient boosting; every tree sees 80 % of the columns and of the rows."""

    booster: lightgbm.Booster
    file = "model.txt"
    library = "lightgbm"
    options: ClassVar = {
        "num_iterations": 100,
        "learning_rate": 0.1,
        "num_leaves": 31,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "feature_fraction": 0.8,
    }

    @classmethod
    def fit(cls, x: NDArray[np.float32], y: NDArray[np.integer], seed: int) -> Self:
        """Grow 100 trees on one thread."""
        import lightgbm  # noqa: PLC0415

        fixed = {"objective": "binary", "deterministic": True, "force_row_wise": True, "num_threads": 1}
        options = {**cls.options, **fixed, "seed": seed, "verbosity": -1}
        return cls(lightgbm.train(options, lightgbm.Dataset(x, np.asarray(y))))

    def margins(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """Raw scores of the booster."""
        return np.asarray(self.booster.predict(x, raw_score=True, num_threads=1), dtype=np.float64)

    def dump(self) -> bytes:
        """LightGBM's text format."""
        return str(self.booster.model_to_string()).encode()

    @classmethod
    def load(cls, content: bytes) -> Self:
        """Read LightGBM's text format."""
        import lightgbm  # noqa: PLC0415

        return cls(lightgbm.Booster(model_str=content.decode()))


@dataclass(frozen=True)
class HistGradientBoosting(Trees):
    """scikit-learn's HistGradientBoostingClassifier as a table of nodes, walked by numpy.

    scikit-learn stores its ensembles as pickles only. The table has one row a node: the column it
    splits, its threshold, its two children (a leaf is its own child), and the value a leaf adds.
    """

    nodes: dict[str, NDArray[Any]]
    file = "trees.safetensors"
    library = "sklearn"
    options: ClassVar = {
        "learning_rate": 0.1,
        "max_iter": 100,
        "max_leaf_nodes": 31,
        "max_features": 0.8,
        "early_stopping": False,
    }

    @classmethod
    def fit(cls, x: NDArray[np.float32], y: NDArray[np.integer], seed: int) -> Self:
        """Grow 100 trees; every split may use 80 % of the columns."""
        from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # noqa: PLC0415

        with threadpool_limits(1):
            return cls.of(HistGradientBoostingClassifier(**cls.options, random_state=seed).fit(x, y))

    @classmethod
    def of(cls, fitted: Any) -> Self:
        """The table of a fitted binary classifier without categorical columns."""
        trees = [predictor.nodes for (predictor,) in fitted._predictors]
        roots = np.cumsum([0, *map(len, trees)])[:-1]
        nodes = np.concatenate(trees)
        if nodes["is_categorical"].any():
            raise ValueError("the node table has no place for categorical splits: encode those columns first")
        first = np.repeat(roots, [len(tree) for tree in trees])
        leaf, own = nodes["is_leaf"].astype(bool), np.arange(len(nodes))
        return cls(
            {
                "roots": roots.astype(np.int64),
                "column": nodes["feature_idx"].astype(np.int32),
                "threshold": np.where(leaf, np.inf, nodes["num_threshold"]),
                "left": np.where(leaf, own, nodes["left"] + first).astype(np.int32),
                "right": np.where(leaf, own, nodes["right"] + first).astype(np.int32),
                "value": np.where(leaf, nodes["value"], 0.0),
                "depth": np.array([tree["depth"].max() for tree in trees]),
                "baseline": np.ravel(fitted._baseline_prediction).astype(np.float64),
            }
        )

    def margins(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """The baseline plus one leaf of every tree, in the order of the trees."""
        if np.isnan(x).any():
            raise ValueError(
                f"row {np.argwhere(np.isnan(x))[0][0]} has a missing value: rows are encoded first"
            )
        t = self.nodes
        rows = np.arange(len(x))
        margins = np.full(len(x), t["baseline"][0])
        for root, depth in zip(t["roots"], t["depth"], strict=True):
            at = np.full(len(x), root)
            for _ in range(int(depth)):
                at = np.where(x[rows, t["column"][at]] <= t["threshold"][at], t["left"][at], t["right"][at])
            margins += t["value"][at]
        return margins

    def dump(self) -> bytes:
        """The table as safetensors."""
        return bytes(safetensors.numpy.save(self.nodes))

    @classmethod
    def load(cls, content: bytes) -> Self:
        """Read the table."""
        return cls(dict(safetensors.numpy.load(content)))


ENSEMBLES: dict[str, type[Trees]] = {"hist_gradient_boosting": HistGradientBoosting, "lightgbm": LightGBM}
