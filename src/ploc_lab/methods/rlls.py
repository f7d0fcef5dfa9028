"""Regularised learning under label shift (Azizzadenesheli et al., 2019): BBSE with a penalty."""

import math

import numpy as np
from scipy.optimize import brentq, nnls
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
        needs="source labels",
        changes="nothing: the posteriors are reweighed",
        at_one="one indicator drives the weights to a finite vertex",
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


def regularised(matrix: Floats, target: Floats, penalty: float) -> Floats:
    """The theta >= -1 of least |matrix theta - target| + penalty |theta|, norms not squared.

    That theta also solves the squared problem, a non-negative least squares, with the ridge for which
    ridge |theta| = penalty |residual|: one scalar equation.

    >>> regularised(np.diag([0.5, 0.5]), np.array([0.1, -0.1]), 0.01).round(6)
    array([ 0.2, -0.2])
    """
    k = matrix.shape[1]

    def theta(log_ridge: float) -> Floats:
        root = math.exp(log_ridge / 2)
        stacked = np.vstack([matrix, root * np.eye(k)])
        above: Floats = nnls(stacked, np.concatenate([target, np.zeros(k)]) + stacked.sum(axis=1))[0]
        return above - 1

    def excess(log_ridge: float) -> float:
        found = theta(log_ridge)
        residual = np.linalg.norm(matrix @ found - target)
        return float(math.exp(log_ridge) * np.linalg.norm(found) - penalty * residual)

    least, most = math.log(1e-14), math.log(1e6)
    if np.linalg.norm(matrix.T @ target) <= penalty * np.linalg.norm(target) or excess(most) <= 0:
        return np.zeros(k)  # the penalty outweighs the best first step
    if excess(least) >= 0:
        return theta(least)  # it pays to fit the target exactly
    return theta(brentq(excess, least, most, xtol=1e-10))
