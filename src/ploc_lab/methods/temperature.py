"""Calibration on labelled source rows: temperature scaling, Platt scaling, bias-corrected temperature."""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import nn

from ploc import links
from ploc_lab.methods.batch_free import BatchFree
from ploc_lab.methods.protocol import (
    Answer,
    Card,
    Floats,
    SourceInfo,
    as_rows,
    from_rows,
)

STEEPEST = 1e3  # separable validation rows have no finite optimum: the slope stops here


class Scaling(NamedTuple):
    """The map `slope * logits + bias` of logits with one column a class."""

    slope: float
    bias: Floats

    def __call__(self, rows: Floats) -> Floats:
        """Scaled logits."""
        return self.slope * rows + self.bias


class TemperatureScaling(BatchFree):
    """`z / T` with the temperature T that minimises the source's validation NLL (Guo et al., 2017)."""

    info = Card(
        "Temperature scaling",
        needs="source labels",
        changes="nothing: one temperature is fitted on the source",
        at_one="the same: a fixed map of each logit",
    )
    biased: ClassVar[bool] = False
    flattest: ClassVar[float] = 1 / STEEPEST

    def __init__(self, model: nn.Module | None, source: SourceInfo) -> None:
        super().__init__(model, source)
        sample = source.labelled(self.info.title)
        self.scaling = fit(as_rows(sample.logits), sample.y, biased=self.biased, flattest=self.flattest)

    @property
    def temperature(self) -> float:
        """What logits are divided by."""
        return 1 / self.scaling.slope

    @property
    def state_size(self) -> int:
        """The slope, and a bias a class (one for the relative logit) where there is one."""
        classes = len(self.scaling.bias)
        return 1 + self.biased * (1 if classes == 2 else classes)

    def answer(self, z: Floats, _f: Floats | None, /) -> Answer:
        """Scale the batch."""
        return from_rows(self.scaling(as_rows(z)), z)


class PlattScaling(TemperatureScaling):
    """`a z + b` fitted by NLL on the source's validation rows; with K logits one slope and K biases."""

    info = Card(
        "Platt scaling",
        needs="source labels",
        changes="nothing: a slope and a bias are fitted on the source",
        at_one="the same: a fixed map of each logit",
    )
    biased = True
    flattest = -STEEPEST


def fit(
    rows: Floats, y: NDArray[np.integer[Any]], *, biased: bool, flattest: float = 1 / STEEPEST
) -> Scaling:
    """The scaling of least NLL, a convex problem in the slope 1/T and the biases.

    With `biased=True` this is the bias-corrected temperature scaling (BCTS) of Alexandari et al., 2020.

    >>> z, y = np.array([-2.0, -1.0, 1.0, 2.0]), np.array([0, 1, 0, 1])
    >>> round(1 / fit(as_rows(z), y, biased=False).slope, 4)  # a network as sure as it is often wrong
    2.3831
    """
    classes = rows.shape[1]
    seen = np.unique(y)
    if len(y) != len(rows) or seen.size < 2 or seen[0] < 0 or seen[-1] >= classes:
        raise ValueError(
            f"a calibration map needs a label from 0 to {classes - 1} for each of its {len(rows)} rows, "
            f"of two classes at least; got {len(y)} labels with values {seen.tolist()}"
        )
    truth = np.eye(classes)[y]

    def loss(theta: Floats) -> tuple[float, Floats]:
        log_p = links.log_softmax(theta[0] * rows + theta[1:])
        excess = (np.exp(log_p) - truth) / len(rows)
        gradient = np.concatenate([[np.sum(excess * rows)], excess.sum(axis=0) * biased])
        return -float(np.sum(log_p * truth)) / len(rows), gradient

    start = np.zeros(classes + 1)
    start[0] = 1.0
    found = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(flattest, STEEPEST)] + [(None, None)] * classes,
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 1000},
    )
    return Scaling(float(found.x[0]), np.asarray(found.x[1:], dtype=np.float64))
