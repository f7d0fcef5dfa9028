"""Between logits and probabilities: stable links, and the conversions that a caller asks for by name."""

from __future__ import annotations

from math import exp, log
from typing import TYPE_CHECKING, Any, overload

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

__all__ = ["from_log_proba", "from_proba", "log_softmax", "logit", "relative", "sigmoid", "softmax"]

CLIP = 1e-12
"""How near to 0 and 1 a probability may come before its logit is taken: |logit| stays below 27.64."""
OFF = 1e-3
"""How far from 1 the probabilities of a row may sum."""


@overload
def sigmoid(z: float) -> float: ...
@overload
def sigmoid(z: Floats) -> Floats: ...
def sigmoid(z: float | Floats) -> float | Floats:
    """1 / (1 + exp(-z)), a float for a float and an array for an array; never overflows.

    >>> sigmoid(0.0)
    0.5
    >>> sigmoid(-1000.0), sigmoid(1000.0)
    (0.0, 1.0)
    """
    if isinstance(z, (float, int)):
        try:
            return 1.0 / (1.0 + exp(-z))
        except OverflowError:  # below -709.78: the answer is under the smallest normal number
            return 0.0
    with np.errstate(over="ignore"):
        e = np.exp(np.negative(z, dtype=np.float64))
        e += 1.0
        return np.asarray(np.divide(1.0, e))


def softmax(Z: ArrayLike) -> Floats:
    """exp(Z) / sum(exp(Z)) over the last axis, which holds one logit a class.

    >>> softmax([0.0, 0.0, 1000.0])
    array([0., 0., 1.])
    """
    Z = np.asarray(Z, dtype=np.float64)
    e: Floats = np.exp(Z - Z.max(axis=-1, keepdims=True))
    e /= e.sum(axis=-1, keepdims=True)
    return e


def log_softmax(Z: ArrayLike) -> Floats:
    """The logarithm of `softmax`, exact where the softmax itself is 0.

    >>> log_softmax([0.0, 1000.0])
    array([-1000.,     0.])
    """
    Z = np.asarray(Z, dtype=np.float64)
    away: Floats = Z - Z.max(axis=-1, keepdims=True)
    away -= np.log(np.exp(away).sum(axis=-1, keepdims=True))
    return away


@overload
def logit(p: float, clip: float = CLIP) -> float: ...
@overload
def logit(p: Floats, clip: float = CLIP) -> Floats: ...
def logit(p: float | Floats, clip: float = CLIP) -> float | Floats:
    """log(p / (1 - p)) with p first clipped into [clip, 1 - clip]; a p outside [0, 1] is refused.

    >>> logit(0.5)
    0.0
    >>> round(logit(1.0), 2)
    27.63
    """
    _check_clip(clip)
    if isinstance(p, (float, int)):
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"probability is {p}; it must lie in [0, 1]")
        p = min(max(float(p), clip), 1.0 - clip)
        return log(p / (1.0 - p))
    p = np.clip(_probabilities(p), clip, 1.0 - clip)
    return np.asarray(np.log(p / (1.0 - p)), dtype=np.float64)


def from_proba(P: ArrayLike, clip: float = CLIP) -> Floats:
    """Logits of probabilities: of P(y=1) or of two columns the relative logit, of K columns their logarithms.

    The logarithms differ from the logits they came from by one number a row, which centring carries
    through to the softmax unchanged: PLOC-K answers the same from either.

    >>> from_proba([0.5, 0.75]).round(4)
    array([0.    , 1.0986])
    >>> from_proba([[0.25, 0.75]]).round(4)
    array([1.0986])
    """
    _check_clip(clip)
    P = _probabilities(P)
    if P.ndim < 2:
        return np.asarray(logit(P, clip))
    sums = P.sum(axis=-1)
    off = np.flatnonzero(np.abs(sums - 1.0) > OFF)
    if off.size:
        raise ValueError(f"probabilities of row {off[0]} sum to {sums[off[0]]}, not to 1")
    logs = np.log(np.clip(P, clip, None))
    return relative(logs) if P.shape[-1] == 2 else logs


def from_log_proba(L: ArrayLike, clip: float = CLIP) -> Floats:
    """Logits of log-probabilities, K columns: two give the relative logit, more are logits as they stand.

    Logarithms below log(clip), minus infinity among them, are raised to it.

    >>> from_log_proba(np.log([[0.25, 0.75]])).round(4)
    array([1.0986])
    """
    _check_clip(clip)
    logs = np.asarray(L, dtype=np.float64)
    if logs.ndim < 2:
        raise ValueError(f"log-probabilities must have one column a class, got shape {logs.shape}")
    if np.isnan(logs).any() or logs.max(initial=-1.0) > 1e-3:
        raise ValueError(f"log-probabilities must be at most 0, found {logs.max()}")
    logs = np.clip(logs, log(clip), None)
    return relative(logs) if logs.shape[-1] == 2 else logs


def relative(Z: ArrayLike) -> Floats:
    """The relative logit z1 - z0 of two logit columns.

    >>> relative([[1.0, 3.0]])
    array([2.])
    """
    Z = reals(Z)
    if Z.ndim < 1 or Z.shape[-1] != 2:
        raise ValueError(f"a relative logit needs two logit columns, got shape {Z.shape}")
    return np.asarray(Z[..., 1] - Z[..., 0])


def reals(values: ArrayLike, what: str = "logit") -> Floats:
    """The values as float64; anything but finite real numbers is refused with the first row that is not one.

    >>> reals([1, 2])
    array([1., 2.])
    """
    array = np.asarray(numbers(values, what), dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{refusal(array, what)}; it must be a finite number")
    return array


def numbers(values: ArrayLike, what: str = "logit") -> NDArray[Any]:
    """The values as an array of integers or floats in the caller's own precision, finite or not.

    Booleans are refused: a logit that is true or false is a label or a decision that lost its way.
    So are masked values, which numpy would unmask in silence.
    """
    array = np.asarray(values)
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        row = f" of row {np.argwhere(np.ma.getmaskarray(values))[0][0]}" if values.ndim else ""
        raise ValueError(f"{what}{row} is masked; drop or fill masked values first")
    if array.dtype.kind not in "iuf":
        whats = "probabilities" if what == "probability" else f"{what}s"
        for v in array.ravel().tolist():
            if isinstance(v, bool) or not isinstance(v, (int, float)):
                raise TypeError(f"{whats} must be real numbers, got {array.dtype} such as {v!r}")
        raise TypeError(
            f"{whats} must be real numbers, got an object array of them (integers beyond 64 bits make one); "
            "turn it into floats first: np.asarray(values, dtype=float)"
        )
    return array


def refusal(array: NDArray[Any], what: str, limit: float = np.inf, start: int = 0) -> str:
    """Where the first value stands that is not a number within the limit, in words."""
    wide = array.astype(np.float64)
    place = tuple(np.argwhere(~(np.abs(wide) < limit))[0])
    row = f" of row {start + place[0]}" if place else ""
    column = f", column {place[1]}," if len(place) > 1 else ""
    return f"{what}{row}{column} is {wide[place]}"


def _probabilities(P: ArrayLike) -> Floats:
    array = reals(P, "probability")
    bad = np.argwhere((array < 0.0) | (array > 1.0))
    if len(bad):
        place = f" of row {bad[0][0]}" if array.ndim else ""
        raise ValueError(f"probability{place} is {array[tuple(bad[0])]}; it must lie in [0, 1]")
    return array


def _check_clip(clip: float) -> None:
    if not 0.0 < clip < 0.5:
        raise ValueError(f"clip must lie between 0 and 0.5, got {clip}")
