"""Regularised learning under label shift (Azizzadenesheli et al., 2019): BBSE with a penalty."""

import math

import numpy as np
from scipy.optimize import nnls
from torch import nn

from ploc_lab.methods.bbse import BBSE
from ploc_lab.methods.protocol import Card, Floats, SourceInfo


class RLLS(BBSE):
    """Weights 1 + theta, theta >= -1, of least |C theta - (mu_T - mu_S)| + alpha rho |theta|.

    rho = 3 (2 ln(2K/delta) / 3n + sqrt(2 ln(2K/delta) / n)) for n validation rows;
    a singular C is no obstacle.
    """

    info = Card(
        "RLLS",
        needs="labels",
        changes="nothing: the posteriors are reweighed",
        at_one="batched: finite, but driven by one indicator; prequential: the past decides",
    )

    def __init__(
        self,
        model: nn.Module | None,
        source: SourceInfo,
        *,
        alpha: float = 0.01,
        delta: float = 0.05,
        soft: bool = False,
        prequential: bool = False,
        bcts: bool = False,
        growth: float = 0.02,
        warmup: int = 32,
    ) -> None:
        super().__init__(
            model,
            source,
            soft=soft,
            prequential=prequential,
            bcts=bcts,
            growth=growth,
            warmup=warmup,
            alpha=alpha,
            delta=delta,
        )
        if not 0 < delta < 1:
            raise ValueError(f"delta must lie between 0 and 1, got {delta}")
        if not alpha >= 0:
            raise ValueError(f"alpha must be 0 or more, got {alpha}")
        n = len(source.labelled(self.info.title).y)
        spread = 2 * math.log(2 * len(self.confusion) / delta)
        self.penalty = alpha * 3 * (spread / (3 * n) + math.sqrt(spread / n))

    def solve(self, mu: Floats) -> Floats:
        """Weights (M, K) for the target's rates `mu` (M, K); equal rates are solved once."""
        self.step(len(mu))
        source = self.confusion.sum(axis=1)
        distinct, which = np.unique(mu, axis=0, return_inverse=True)
        theta = [regularised(self.confusion, rates - source, self.penalty) for rates in distinct]
        weights: Floats = 1 + np.stack(theta)[which.reshape(-1)]
        return weights


def regularised(matrix: Floats, target: Floats, penalty: float, most: int = 200) -> Floats:
    """The theta >= -1 of least |matrix theta - target| + penalty |theta|, norms not squared.

    At the optimum theta also solves the squared problem of ridge `penalty` |residual| / |theta|; that scalar
    is found by fixed-point iteration, each step one non-negative least squares.

    >>> regularised(np.diag([0.5, 0.5]), np.array([0.1, -0.1]), 0.01).round(6)
    array([ 0.2, -0.2])
    """
    k = matrix.shape[1]
    gap = float(np.linalg.norm(target))
    if gap == 0 or np.linalg.norm(matrix.T @ target) <= penalty * gap:
        return np.zeros(k)  # the penalty outweighs the best first step
    ridge, theta = penalty, np.zeros(k)
    for _ in range(most):
        stacked = np.vstack([matrix, math.sqrt(ridge) * np.eye(k)])
        right = np.concatenate([target, np.zeros(k)]) + stacked.sum(axis=1)
        theta = nnls(stacked, right)[0] - 1
        size = float(np.linalg.norm(theta))
        residual = float(np.linalg.norm(matrix @ theta - target))
        new = penalty * residual / size if size > 0 else 0.0
        if abs(new - ridge) <= 1e-12 * max(new, ridge) or residual <= 1e-13 * gap:
            break
        ridge = new
    return theta
