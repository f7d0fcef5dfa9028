"""The rule itself: a frozen classifier's logits, centred by where the stream's past logits sat."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np

from ploc import links
from ploc import origin as origins
from ploc.origin import BLOCK, LARGEST, Mean, MeanRow, Origin

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

__all__ = ["PLOC", "PLOCProb", "deferred"]

CHUNK = 8_192
"""Rows that `replay` and `observe` take at a time: all they need besides the answers stays in the cache."""
UNCHANGED = "; the stream was not changed"
FEW = 10
"""Up to so many classes `step` computes with Python's own floats, which beat numpy's calls there."""


class PLOC:
    """Prequential logit-origin centering (Algorithm 1): sigmoid(z - mu) with mu the mean of past logits.

    `PLOC()` takes the relative logit log p1/p0 and answers P(y=1); `PLOC(classes=K)` takes rows of K
    logits and answers K probabilities, centring each coordinate (PLOC-K). Row 1 is centred by nothing.
    Labels have no place here, and nothing but the origin ever moves.

    `origin` and `anchor` are not the paper's method: another running estimate from `ploc.origin`, and
    the place where centred logits should sit instead of 0 (a number, or one a class).

    >>> c = PLOC()
    >>> [round(c.step(z), 3) for z in (-1.0, -1.0, 1.0)]
    [0.269, 0.5, 0.881]
    >>> c.count, round(c.shift, 3)
    (3, -0.333)
    """

    __slots__ = ("_anchor", "_classes", "_fast_row", "_kept", "_sums")

    what: ClassVar[str] = "logit"
    _sums: Any
    _fast_row: Any
    _kept: Any

    def __init__(
        self,
        classes: int | None = None,
        *,
        origin: Origin | None = None,
        anchor: float | ArrayLike = 0.0,
    ) -> None:
        whole = isinstance(classes, (int, np.integer)) and not isinstance(classes, bool)
        if classes is not None and (not whole or classes < 2):
            raise ValueError(
                f"classes must be a whole number from 2, or None for one relative logit; got {classes!r}"
            )
        if origin is not None and not isinstance(origin, Origin):
            raise TypeError(f"origin must be one of ploc.origin, such as origin.EMA(0.01); got {origin!r}")
        self._classes = None if classes is None else int(classes)
        self._anchor = _anchor(anchor, classes)
        self._start(Mean() if origin is None else origin.fresh())

    # ---------------------------------------------------------------------------------- verbs

    @overload
    def predict(self, z: float, logits: bool = ...) -> float: ...
    @overload
    def predict(self, z: ArrayLike, logits: bool = ...) -> Floats: ...
    def predict(self, z: Any, logits: bool = False) -> Any:
        """Answer with the current origin and move nothing: a float for a float, an array for rows.

        With `logits=True` the answer is the centred logit itself, which ranks where sigmoids saturate.
        """
        if isinstance(z, float) and self.classes is None:
            z = float(z)
            if self._sums is not None and -LARGEST < z < LARGEST:
                return z - self._sums[1] if logits else links.sigmoid(z - self._sums[1])
            self._refuse_beyond(z, self.count)
            centred = (z - self.shift) / self._origin.scale  # both exact where they are 0 and 1
            return centred if logits else self._link(centred)
        Z, single = self._take(z)
        Z = Z.astype(np.float64, copy=False)
        self._refuse_beyond(Z)
        centred = self._centre(Z, self._origin.shift, self._origin.scale, self.count)
        answer = centred if logits else self._link(centred)
        return _as_given(answer, single)

    def observe(self, z: float | ArrayLike) -> None:
        """Let one row, or rows in stream order, move the origin. A bad row anywhere changes nothing."""
        if isinstance(z, float) and self.classes is None:
            self._refuse_beyond(z, self.count, UNCHANGED)
            self._push(float(z))
            return
        Z, _ = self._take(z)
        moved = self._origin_copy() if len(Z) > 1 else self._origin
        for start in range(0, len(Z), CHUNK):
            chunk = Z[start : start + CHUNK].astype(np.float64, copy=False)
            self._refuse_beyond(chunk, start, UNCHANGED)
            moved.trail(chunk)
        self._adopt(moved)

    @overload
    def step(self, z: float) -> float: ...
    @overload
    def step(self, z: ArrayLike) -> Floats: ...
    def step(self, z: Any) -> Any:
        """Answer one row, then let it move the origin: Algorithm 1's lines 4 to 6.

        >>> PLOC(classes=3).step([0.0, 0.0, 0.0]).round(3)
        array([0.333, 0.333, 0.333])
        """
        sums = self._sums
        if sums is not None and type(z) is float and -1e290 < z < 1e290:
            # `predict`, `Mean.push` and `sigmoid` written out: three calls would take three times as long.
            count, shift, part, total = sums
            count += 1
            part += z
            if count & 0xFFFF:
                self._sums = count, (total + part) / count, part, total
            else:
                self._sums = count, (total + part) / count, 0.0, total + part
            try:
                return 1.0 / (1.0 + exp(shift - z))
            except OverflowError:
                return 0.0
        row_mean = self._fast_row
        if row_mean is not None and type(z) is np.ndarray and z.shape == row_mean.shape and z.dtype == float:
            answer = (_step_few if len(z) <= FEW else _step_many)(row_mean, z)
            if answer is not None:
                return answer
        if isinstance(z, float) and self.classes is None:
            self._refuse_beyond(z, self.count, UNCHANGED)
            p = self.predict(z)
            self._push(float(z))
            return p
        Z, single = self._take(z)
        if not single:
            raise ValueError(
                f"step takes one row, got shape {np.shape(z)}; replay answers many rows in stream order"
            )
        row = float(Z[0]) if self.classes is None else Z[0].astype(np.float64)
        self._refuse_beyond(Z, self.count, UNCHANGED)
        p = self.predict(row)
        self._push(row)
        return p

    def replay(self, Z: ArrayLike, logits: bool = False) -> Floats:
        """Step through rows in stream order, vectorised: the same answers, the same state at the end.

        The centred logits are those of `step` to the last bit (`logits=True` returns them); a bad row
        anywhere changes nothing. Memory beyond the answers is that of a few thousand rows.

        >>> PLOC().replay([-1.0, -1.0, 1.0]).round(3)
        array([0.269, 0.5  , 0.881])
        """
        Z, single = self._take(Z)
        if single:
            raise ValueError(f"replay takes rows in stream order, got one of shape {np.shape(Z)[1:]}")
        moved = self._origin_copy()
        answers = np.empty(Z.shape)
        for start in range(0, len(Z), CHUNK):
            chunk = Z[start : start + CHUNK].astype(np.float64, copy=False)
            self._refuse_beyond(chunk, start, UNCHANGED)
            count, out = moved.count, answers[start : start + CHUNK]
            shifts, scales = moved.trail(chunk)
            if self._sums is not None and not logits:
                _sigmoid_of_difference(chunk, shifts, out)
                continue
            centred = self._centre(chunk, shifts, 1.0 if scales is None else scales, count)
            out[...] = centred if logits else self._link(centred)
        self._adopt(moved)
        return answers

    # ---------------------------------------------------------------------------------- state

    @property
    def count(self) -> int:
        """Rows observed."""
        return int(self._origin.count)

    @property
    def shift(self) -> float | Floats:
        """What the next row is centred by: the origin less the anchor; 0 before any row."""
        if not self.count:
            return 0.0 if self.classes is None else np.zeros(self.classes)
        shift = self._origin.shift - self.anchor * self._origin.scale
        return float(shift) if self.classes is None else np.array(shift)

    @property
    def classes(self) -> int | None:
        """How many logits a row has; None for one relative logit."""
        return self._classes

    @property
    def anchor(self) -> Any:
        """Where centred logits should sit: a number, or one a class."""
        return self._anchor

    @property
    def origin(self) -> Origin:
        """The kind of the running estimate, as a value: what has been seen stays here."""
        kind: Origin = self._kept if isinstance(self._kept, Origin) else self._kept.kind
        return kind.fresh()

    def state(self) -> dict[str, Any]:
        """Everything that a restart needs, as JSON-safe values; `from_state` restores it to the last bit."""
        return {
            "format": type(self).__name__,
            "version": 1,
            "classes": self.classes,
            "anchor": self.anchor if self.classes is None else np.asarray(self.anchor).tolist(),
            "origin": {
                "kind": type(self.origin).__name__,
                "params": self.origin.params(),
                **self._origin.dump(),
            },
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The stream's centre as it was when `state()` was asked.

        >>> c = PLOC()
        >>> c.observe([0.1, 0.2])
        >>> PLOC.from_state(c.state()).shift == c.shift
        True
        """
        if not isinstance(state, dict) or state.get("format") != cls.__name__:
            named = state.get("format") if isinstance(state, dict) else state
            raise ValueError(f"this is not the state of a {cls.__name__}: its format is {named!r}")
        if state.get("version") != 1:
            raise ValueError(f"state has version {state.get('version')!r}; this ploc reads version 1")
        if not isinstance(state.get("origin"), dict):
            raise ValueError(f"state has the origin {state.get('origin')!r}; it must be a mapping")  # noqa: TRY004
        new = cls(
            state.get("classes"),
            origin=origins.from_dict(state["origin"]),
            anchor=state.get("anchor", 0.0),
        )
        origin = new._origin
        try:
            origin.load(state["origin"])
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(
                f"state holds no {new.origin!r} of {new.classes or 1} column(s): {error!r}"
            ) from None
        new._adopt(origin)
        return new

    def merge(self, other: Self) -> None:
        """Take in another stream's rows, as if this one had observed them: what shards of a stream need.

        Only origins that do not depend on the order merge; centres that differ in kind are refused.
        """
        if type(other) is not type(self) or (self.classes, self.origin) != (other.classes, other.origin):
            raise ValueError(f"{other!r} does not merge into {self!r}: classes and origin must be the same")
        if not np.array_equal(self.anchor, other.anchor):
            raise ValueError(f"anchors differ: {self.anchor} here, {other.anchor} there")
        merged: Any = self._origin_copy()
        merged.merge(other._origin)
        self._adopt(merged)

    def reset(self) -> None:
        """Forget every row."""
        self._start(self.origin.fresh())

    def copy(self) -> Self:
        """An independent centre in the same state."""
        return type(self).from_state(self.state())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_state, (self.state(),)

    def __repr__(self) -> str:
        kind = "" if self.classes is None else f"classes={self.classes}, "
        return f"{type(self).__name__}({kind}origin={self.origin!r}, count={self.count}, shift={self.shift})"

    # ---------------------------------------------------------------------------------- inside

    def _link(self, centred: Any) -> Any:
        return links.sigmoid(centred) if self.classes is None else links.softmax(centred)

    def _centre(self, Z: Any, shift: Any, scale: Any, count: int) -> Any:
        """(z - shift) / scale + anchor for rows of which the first has `count` rows before it."""
        if isinstance(scale, float) and scale == 1.0:
            centred = Z - (shift - self.anchor if self._anchored else shift)
        else:
            centred = (Z - (shift - self.anchor * scale)) / scale
        if self._anchored and not count:
            rows = slice(0, 1) if np.ndim(shift) == Z.ndim else slice(None)
            centred[rows] = Z[rows]  # before any row there is nothing to move to the anchor
        return centred

    @property
    def _anchored(self) -> bool:
        return bool(np.any(self.anchor))

    def _take(self, z: Any) -> tuple[NDArray[Any], bool]:
        """Rows as an array of rows, and whether it was one row that was given."""
        Z = links.numbers(z, self.what)
        width = self.classes
        single = Z.ndim == (0 if width is None else 1)
        if single:
            Z = Z[None]
        if (Z.ndim != 1) if width is None else (Z.ndim != 2 or Z.shape[1] != width):
            wanted = "one number a row" if width is None else f"{width} {self.what}s a row"
            hint = (
                "; PLOC(classes=K) takes K" if width is None and Z.ndim == 2 and self.what == "logit" else ""
            )
            whats = "probabilities" if self.what == "probability" else f"{self.what}s"
            raise ValueError(f"{whats} have shape {np.shape(z)} where {wanted} is taken{hint}")
        return Z, single

    def _refuse_beyond(self, Z: Any, start: int = 0, unchanged: str = "") -> None:
        low, high = (Z, Z) if isinstance(Z, float) else (float(Z.min(initial=0)), float(Z.max(initial=0)))
        largest = self._kept.largest
        if not (low > -largest and high < largest):
            where = links.refusal(np.atleast_1d(Z), self.what, largest, start)
            within = f" within ±{largest:g}" if np.isfinite(Z).all() else ""
            raise ValueError(f"{where}; it must be a finite number{within}{unchanged}")

    def _start(self, kind: Origin) -> None:
        self._adopt(kind if self.classes is None else origins.columns(kind, self.classes))

    def _origin_copy(self) -> Any:
        new: Any = self.origin.fresh() if self.classes is None else origins.columns(self.origin, self.classes)
        new.load(self._origin.dump())
        return new

    # The running origin. Where `step` has its short way with a scalar mean, only the mean's sums are kept,
    # and the origin is made from them when it is asked for; so whoever moves it hands it back to `_adopt`.

    @property
    def _origin(self) -> Any:
        if self._sums is None:
            return self._kept
        mean = Mean()
        mean.sums = self._sums
        return mean

    def _adopt(self, origin: Any) -> None:
        paper = type(self) is PLOC and not self._anchored
        self._sums = origin.sums if paper and type(origin) is Mean else None
        self._fast_row = origin if paper and type(origin) is MeanRow else None
        self._kept = origin

    def _push(self, z: Any) -> None:
        origin = self._origin
        origin.push(z)
        self._adopt(origin)


class PLOCProb(PLOC):
    """PLOC-prob: centres P(y=1) itself, clip(p - mean of past p + 1/2, 0, 1); probabilities in and out.

    Row 1 is answered as it came. There is no ranking guarantee in probability space: prefer `PLOC`.

    >>> c = PLOCProb()
    >>> [round(c.step(p), 3) for p in (0.2, 0.2, 0.9)]
    [0.2, 0.5, 1.0]
    """

    __slots__ = ()

    what = "probability"

    def __init__(self, classes: None = None, *, origin: Origin | None = None, anchor: float = 0.5) -> None:
        if classes is not None:
            raise ValueError(f"PLOCProb centres one probability, P(y=1); classes={classes!r} needs PLOC")
        super().__init__(None, origin=origin, anchor=anchor)

    def _link(self, centred: Any) -> Any:
        return min(max(centred, 0.0), 1.0) if isinstance(centred, float) else np.clip(centred, 0.0, 1.0)

    def _refuse_beyond(self, Z: Any, start: int = 0, unchanged: str = "") -> None:
        rows = np.atleast_1d(Z)
        inside = (rows >= 0.0) & (rows <= 1.0)
        if not inside.all():
            row = int(np.argmin(inside))
            raise ValueError(
                f"probability of row {start + row} is {rows[row]}; it must lie in [0, 1]{unchanged}"
            )


def deferred(
    Z: ArrayLike, *, origin: Origin | None = None, anchor: float | ArrayLike = 0.0
) -> tuple[Floats, Any]:
    """Deferred PLOC: every row answered with the full stream's one shift; (T,) relative logits or (T, K).

    One constant moves every logit, so the ranking, and with it AUROC, stays what it was (Proposition 1).
    For streams larger than memory use the verbs: `observe` every chunk, then `predict` every chunk.

    >>> probs, mu = deferred([1.0, 3.0])
    >>> probs.round(3), mu
    (array([0.269, 0.731]), 2.0)
    """
    Z = links.numbers(Z)
    if Z.ndim not in (1, 2):
        raise ValueError(f"logits have shape {Z.shape}; a stream is (T,) relative logits or (T, K)")
    c = PLOC(None if Z.ndim == 1 else Z.shape[1], origin=origin, anchor=anchor)
    c.observe(Z)
    return c.predict(Z), c.shift


def _step_few(mean: MeanRow, z: Floats) -> Floats | None:
    """One row of a few classes in Python's floats; None, and nothing moved, where it needs a closer look."""
    part, shift, closed = mean.part_items, mean.shift_items, mean.total_items
    row = z.tolist()
    e, total = [], 0.0
    try:
        for k, x in enumerate(row):
            term = exp(x - shift[k])
            e.append(term)
            total += term
    except OverflowError:
        return None
    if not (min(e) > 1e-300 and total < 1e300):  # also where a logit is not finite
        return None
    mean.count = count = mean.count + 1
    for k, x in enumerate(row):
        part[k] = new = part[k] + x
        shift[k] = (closed[k] + new) / count
    if not count % BLOCK:
        mean.close()
    return np.array([term / total for term in e])


def _step_many(mean: MeanRow, z: Floats) -> Floats | None:
    """One row of many classes in as few numpy calls as will do; None where it needs a closer look."""
    e: Floats = z - mean.shift
    top = e[e.argmax()]
    if not (top < LARGEST and z[z.argmin()] > -LARGEST):  # nan is the least and the largest
        return None
    e -= top
    np.exp(e, e)
    e /= np.add.reduce(e)
    mean.push(z)
    return e


def _sigmoid_of_difference(z: Floats, shift: Floats, out: Floats) -> None:
    """sigmoid(z - shift) without a temporary; the two operands are left alone."""
    with np.errstate(over="ignore"):
        np.subtract(shift, z, out=out)
        np.exp(out, out)
        out += 1.0
        np.divide(1.0, out, out)


def _anchor(anchor: Any, classes: int | None) -> Any:
    values = links.reals(anchor, "anchor")
    if classes is None:
        if values.ndim:
            raise ValueError(f"anchor has shape {values.shape}; one relative logit has one number for it")
        return float(values)
    if values.shape not in ((), (classes,)):
        raise ValueError(f"anchor has shape {values.shape}; it takes a number or {classes}, one a class")
    anchors = np.broadcast_to(values, (classes,)).copy()
    anchors.flags.writeable = False
    return anchors


def _as_given(answer: Floats, single: bool) -> Any:
    if not single:
        return answer
    return float(answer[0]) if answer.ndim == 1 else answer[0]
