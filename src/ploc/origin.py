"""Where logits sit: the running estimates that a stream can be centred by, one protocol, all interchangeable.

An origin is used as a value: `PLOC(origin=origin.EMA(0.01))` starts a fresh one of that kind and never
moves the one it was given. Every origin keeps one number a column (some keep more, each says what);
K columns are centred coordinate by coordinate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from heapq import heapify, heappush, heappushpop
from math import inf, isfinite, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["EMA", "Huber", "Mean", "Median", "Origin", "Window", "ZScore"]

BLOCK = 65_536
"""Rows after which a running sum is closed and added to the total of the closed blocks.

One plain left-to-right sum of 10^8 logits of 0.1 misses their mean by 2e-10; in blocks it is right to 1e-13.
"""

LARGEST = 1e290
"""Logits beyond this are refused: sums of 10^18 of them would overflow."""


class Origin(ABC):
    """The running estimate of one column: what the next logit is centred by.

    `count` rows were pushed; the next logit z is centred to (z - shift) / scale. Before the first row
    shift is 0 and scale is 1: row 1 is centred by nothing.
    """

    mergeable: ClassVar[bool] = False
    largest: ClassVar[float] = LARGEST
    """Logits beyond this are refused."""

    def __init__(self) -> None:
        self._count = 0
        self._shift = 0.0

    @property
    def count(self) -> int:
        """Rows pushed."""
        return self._count

    @property
    def shift(self) -> float:
        """What the next logit is centred by."""
        return self._shift

    @property
    def scale(self) -> float:
        """What a centred logit is divided by; 1 for every origin but `ZScore`."""
        return 1.0

    @abstractmethod
    def push(self, z: float) -> None:
        """Let one finite logit move the estimate."""

    def trail(self, z: Floats) -> tuple[Floats, Floats | None]:
        """Push a column in stream order; the shifts before each row, and the scales where they are not 1."""
        shifts = np.empty(len(z))
        for row, value in enumerate(z.tolist()):
            shifts[row] = self.shift
            self.push(value)
        return shifts, None

    def fresh(self) -> Self:
        """A new origin of the same kind and parameters that has seen nothing."""
        return type(self)(**self.params())

    def params(self) -> dict[str, Any]:
        """The arguments this origin was made with."""
        return {}

    @abstractmethod
    def dump(self) -> dict[str, Any]:
        """What the stream left behind, as JSON-safe values that `load` restores to the last bit."""

    @abstractmethod
    def load(self, data: dict[str, Any]) -> None:
        """Take over what `dump` gave."""

    def merge(self, other: Self) -> None:  # noqa: ARG002
        """Become the origin of both streams' rows together, where that is defined."""
        raise ValueError(
            f"{type(self).__name__} origins depend on the order of the stream and do not merge; use Mean"
        )

    def __eq__(self, other: object) -> bool:
        """Two origins are the same value if kind and parameters are: what they have seen does not count."""
        return isinstance(other, Origin) and type(self) is type(other) and self.params() == other.params()

    def __hash__(self) -> int:
        return hash((type(self), *self.params().values()))

    def __repr__(self) -> str:
        args = ", ".join(f"{value!r}" for value in self.params().values())
        return f"{type(self).__name__}({args})"


class Mean(Origin):
    """The mean of all past logits: the paper's origin (Eq. 2), in O(1) memory. Merges.

    `sums` is all it has: count, mean, the sum of the block that is filling, the sum of the closed blocks.
    It is replaced whole, so an interrupt never leaves half of an update behind.

    >>> m = Mean()
    >>> m.push(1.0), m.push(2.0), m.shift
    (None, None, 1.5)
    """

    mergeable = True

    def __init__(self) -> None:
        self.sums: tuple[int, float, float, float] = (0, 0.0, 0.0, 0.0)

    @property
    def count(self) -> int:
        """Rows pushed."""
        return self.sums[0]

    @property
    def shift(self) -> float:
        """The mean."""
        return self.sums[1]

    def push(self, z: float) -> None:
        """Let one finite logit move the mean."""
        count, _, part, total = self.sums
        self._set(count + 1, part + z, total)

    def trail(self, z: Floats) -> tuple[Floats, None]:
        """The same sums as `push` makes, in the same order, without a Python loop."""
        count, _, part, total = self.sums
        shifts, *sums = _mean_trail(z, count, part, total)
        self._set(*sums)
        return shifts, None

    def dump(self) -> dict[str, Any]:
        """Count and the two sums."""
        count, _, part, total = self.sums
        return {"count": count, "part": part, "total": total}

    def load(self, data: dict[str, Any]) -> None:
        """Take over count and sums."""
        self._set(_count(data), _real(data, "part"), _real(data, "total"))

    def merge(self, other: Self) -> None:
        """The mean of both streams' rows."""
        count, _, part, total = (a + b for a, b in zip(self.sums, other.sums, strict=True))
        self._set(int(count), part, total)

    def close(self) -> None:
        """Add the full block to the closed ones."""
        count, mean, part, total = self.sums
        self.sums = count, mean, 0.0, total + part

    def _set(self, count: int, part: float, total: float) -> None:
        self.sums = count, (total + part) / count if count else 0.0, part, total
        if part and not count % BLOCK:
            self.close()


class EMA(Origin):
    """The exponential moving average (1 - alpha) mu + alpha z, started at the first logit. O(1), no merge.

    >>> m = EMA(0.5)
    >>> m.push(1.0), m.push(2.0), m.shift
    (None, None, 1.5)
    """

    def __init__(self, alpha: float) -> None:
        super().__init__()
        if not 0.0 < alpha <= 1.0:
            raise ValueError(f"EMA's alpha must lie in (0, 1], got {alpha}")
        self.alpha = float(alpha)

    def push(self, z: float) -> None:
        """Move a fraction alpha of the way to the logit."""
        self._shift = (1.0 - self.alpha) * self._shift + self.alpha * z if self._count else z
        self._count += 1

    def params(self) -> dict[str, Any]:
        """The decay."""
        return {"alpha": self.alpha}

    def dump(self) -> dict[str, Any]:
        """Count and average."""
        return {"count": self._count, "shift": self._shift}

    def load(self, data: dict[str, Any]) -> None:
        """Take over count and average."""
        self._count, self._shift = _count(data), _real(data, "shift")


class Huber(Origin):
    """A mean that no logit pulls by more than tau / t: mu + clip(z - mu, -tau, tau) / t. O(1), no merge.

    >>> m = Huber(1.0)
    >>> m.push(0.5), m.push(100.0), m.shift
    (None, None, 1.0)
    """

    def __init__(self, tau: float = 2.5) -> None:
        super().__init__()
        if not 0.0 < tau < inf:
            raise ValueError(f"Huber's tau must be a positive number, got {tau}")
        self.tau = float(tau)

    def push(self, z: float) -> None:
        """Move by the clipped residual over the number of rows."""
        self._count += 1
        self._shift += min(max(z - self._shift, -self.tau), self.tau) / self._count

    def params(self) -> dict[str, Any]:
        """The clip."""
        return {"tau": self.tau}

    def dump(self) -> dict[str, Any]:
        """Count and estimate."""
        return {"count": self._count, "shift": self._shift}

    def load(self, data: dict[str, Any]) -> None:
        """Take over count and estimate."""
        self._count, self._shift = _count(data), _real(data, "shift")


class Window(Origin):
    """The mean of the last `rows` logits. O(rows) memory, no merge.

    The window is cut where blocks of `rows` logits meet, and its mean made from a sum of the older part,
    taken from its newest logit backwards, and one of the younger. Nothing is subtracted, no error builds up.

    >>> m = Window(2)
    >>> m.push(1.0), m.push(2.0), m.push(4.0), m.shift
    (None, None, None, 3.0)
    """

    def __init__(self, rows: int) -> None:
        super().__init__()
        if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 1:
            raise ValueError(f"Window's rows must be a whole number from 1, got {rows!r}")
        self.rows = int(rows)
        self._older: list[float] = []  # sums of the older block's last 1, 2, ... logits
        self._block: list[float] = []
        self._part = 0.0

    def push(self, z: float) -> None:
        """Let the newest logit in and the oldest out."""
        self._block.append(z)
        self._part += z
        self._count += 1
        if len(self._block) == self.rows:
            self._older, total = [], 0.0
            for value in reversed(self._block):
                total += value
                self._older.append(total)
            self._block, self._part = [], 0.0
        self._shift = self._mean()

    def params(self) -> dict[str, Any]:
        """The window's length."""
        return {"rows": self.rows}

    def dump(self) -> dict[str, Any]:
        """Count, the logits of the filling block and the sums of the one before."""
        return {"count": self._count, "block": list(self._block), "older": list(self._older)}

    def load(self, data: dict[str, Any]) -> None:
        """Take over the block and the sums."""
        count, block, older = _count(data), _reals(data, "block"), _reals(data, "older")
        full, filling = divmod(count, self.rows)
        if len(block) != filling or len(older) != (self.rows if full else 0):
            raise ValueError(
                f"state holds {len(block)} logits and {len(older)} sums after {count} rows, "
                f"which is none of Window({self.rows})"
            )
        self._count, self._block, self._older, self._part = count, block, older, 0.0
        for value in block:
            self._part += value
        self._shift = self._mean()

    def _mean(self) -> float:
        if self._older:
            return (self._older[self.rows - 1 - len(self._block)] + self._part) / self.rows
        return self._part / self._count if self._count else 0.0


class ZScore(Origin):
    """Mean and population standard deviation of all past logits: centres and divides. O(1). Merges.

    The scale is 1 until two rows were seen and never below 1e-6.

    >>> m = ZScore()
    >>> m.push(1.0), m.push(3.0), m.shift, m.scale
    (None, None, 2.0, 1.0)
    """

    mergeable = True
    largest = 1e140  # sums of 10^18 of their squares do not overflow

    def __init__(self) -> None:
        super().__init__()
        self.squares = 0.0  # sum of squared distances from the mean (Welford)

    @property
    def scale(self) -> float:
        """The standard deviation of the past."""
        return max(sqrt(self.squares / self._count), 1e-6) if self._count > 1 else 1.0

    def push(self, z: float) -> None:
        """Welford's update."""
        self._count += 1
        away = z - self._shift
        self._shift += away / self._count
        self.squares += away * (z - self._shift)

    def trail(self, z: Floats) -> tuple[Floats, Floats]:
        """Shifts and scales before each row."""
        shifts, scales = np.empty(len(z)), np.empty(len(z))
        for row, value in enumerate(z.tolist()):
            shifts[row], scales[row] = self._shift, self.scale
            self.push(value)
        return shifts, scales

    def dump(self) -> dict[str, Any]:
        """Count, mean and squares."""
        return {"count": self._count, "shift": self._shift, "squares": self.squares}

    def load(self, data: dict[str, Any]) -> None:
        """Take over count, mean and squares."""
        self._count, self._shift, self.squares = _count(data), _real(data, "shift"), _real(data, "squares")
        if self.squares < 0.0:
            raise ValueError(f"state has the squares {self.squares}; a sum of squares is at least 0")

    def merge(self, other: Self) -> None:
        """Mean and spread of both streams' rows (Chan)."""
        count = self._count + other.count
        if other.count:
            away = other.shift - self._shift
            self._shift += away * other.count / count
            self.squares += other.squares + away * away * self._count * other.count / count
        self._count = count


class Median(Origin):
    """The median of all past logits, exact: it keeps every logit, O(t) memory. Merges.

    Centring by the median makes half of the answers positive, whatever the tails do.

    >>> m = Median()
    >>> m.push(1.0), m.push(100.0), m.push(2.0), m.shift
    (None, None, None, 2.0)
    """

    mergeable = True

    def __init__(self) -> None:
        super().__init__()
        self._low: list[float] = []  # a heap of the negated lower half: never shorter than the upper
        self._high: list[float] = []

    def push(self, z: float) -> None:
        """File the logit under the lower or the upper half."""
        self._count += 1
        if self._count % 2:
            heappush(self._low, -heappushpop(self._high, z))
            self._shift = -self._low[0]
        else:
            heappush(self._high, -heappushpop(self._low, -z))
            self._shift = (self._high[0] - self._low[0]) / 2

    def dump(self) -> dict[str, Any]:
        """All logits, sorted."""
        return {"logits": sorted([-z for z in self._low] + self._high)}

    def load(self, data: dict[str, Any]) -> None:
        """Take over the logits."""
        logits = sorted(_reals(data, "logits"))
        half = (len(logits) + 1) // 2
        self._count = len(logits)
        self._low, self._high = [-z for z in logits[:half]], logits[half:]
        heapify(self._low)
        if logits:
            self._shift = -self._low[0] if self._count % 2 else (self._high[0] - self._low[0]) / 2

    def merge(self, other: Self) -> None:
        """The median of both streams' rows."""
        self.load({"logits": self.dump()["logits"] + other.dump()["logits"]})


class Columns:
    """K origins of one kind side by side, with the face of one: shift and scale are arrays of K."""

    def __init__(self, kind: Origin, width: int) -> None:
        self.kind, self.largest = kind, kind.largest
        self.columns = [kind.fresh() for _ in range(width)]

    @property
    def count(self) -> int:
        """Rows pushed."""
        return self.columns[0].count

    @property
    def shift(self) -> Floats:
        """What the next row is centred by."""
        return np.array([column.shift for column in self.columns])

    @property
    def scale(self) -> Floats:
        """What the next centred row is divided by."""
        return np.array([column.scale for column in self.columns])

    def push(self, z: Floats) -> None:
        """Push one row."""
        for column, value in zip(self.columns, z.tolist(), strict=True):
            column.push(value)

    def trail(self, Z: Floats) -> tuple[Floats, Floats | None]:
        """Push rows; the shifts before each, and the scales where they are not 1."""
        trails = [column.trail(Z[:, k]) for k, column in enumerate(self.columns)]
        scales = [scale for _, scale in trails if scale is not None]
        return np.stack([shift for shift, _ in trails], axis=1), np.stack(scales, axis=1) if scales else None

    def dump(self) -> dict[str, Any]:
        """The states of the columns."""
        return {"columns": [column.dump() for column in self.columns]}

    def load(self, data: dict[str, Any]) -> None:
        """Take over the states of the columns."""
        states = data["columns"]
        if len(states) != len(self.columns):
            raise ValueError(f"state has {len(states)} columns where {len(self.columns)} are needed")
        for column, state in zip(self.columns, states, strict=True):
            column.load(state)
        if len({column.count for column in self.columns}) > 1:
            raise ValueError(f"state's columns disagree on the count: {[c.count for c in self.columns]}")

    def merge(self, other: Self) -> None:
        """Merge column by column."""
        for column, theirs in zip(self.columns, other.columns, strict=True):
            column.merge(theirs)


class MeanRow:
    """`Mean` of K columns at once: what `Columns(Mean(), K)` does, on arrays.

    Each array stands over the same memory as its `_items`, whose single numbers Python reads and writes
    several times faster than an array's.
    """

    kind = Mean()
    largest = LARGEST
    scale = 1.0

    def __init__(self, width: int) -> None:
        self.count = 0
        self.shape = (width,)
        self.total_items, self.part_items, self.shift_items = (array("d", bytes(8 * width)) for _ in range(3))
        self.total, self.part, self.shift = (
            np.frombuffer(items) for items in (self.total_items, self.part_items, self.shift_items)
        )

    def push(self, z: Floats) -> None:
        """Push one row."""
        self.part += z
        self.count += 1
        sums = self.part if self.count <= BLOCK else self.total + self.part
        np.divide(sums, self.count, out=self.shift)
        if not self.count % BLOCK:
            self.close()

    def close(self) -> None:
        """Add the full block to the total."""
        self.total += self.part
        self.part[:] = 0.0

    def trail(self, Z: Floats) -> tuple[Floats, None]:
        """Push rows; the shifts before each."""
        shifts, self.count, self.part[:], self.total[:] = _mean_trail(Z, self.count, self.part, self.total)
        if self.count:
            self.shift[:] = (self.total + self.part) / self.count
        return shifts, None

    def dump(self) -> dict[str, Any]:
        """Count and the two sums."""
        return {"count": self.count, "total": self.total.tolist(), "part": self.part.tolist()}

    def load(self, data: dict[str, Any]) -> None:
        """Take over count and sums."""
        count, total, part = _count(data), _reals(data, "total"), _reals(data, "part")
        if not len(total) == len(part) == len(self.total):
            raise ValueError(f"state has {len(total)} columns where {len(self.total)} are needed")
        self.count, self.total[:], self.part[:] = count, total, part
        self.shift[:] = (self.total + self.part) / count if count else 0.0

    def merge(self, other: Self) -> None:
        """The mean of both streams' rows."""
        self.count += other.count
        self.total += other.total
        self.part += other.part
        self.shift[:] = (self.total + self.part) / self.count if self.count else 0.0


def columns(kind: Origin, width: int) -> Columns | MeanRow:
    """A fresh origin of K columns."""
    return MeanRow(width) if type(kind) is Mean else Columns(kind, width)


def from_dict(data: dict[str, Any]) -> Origin:
    """The origin that a state names: its kind and parameters, nothing seen."""
    name = data.get("kind")
    if not isinstance(name, str) or name not in _KINDS:
        raise ValueError(f"state names the origin {name!r}; there are {', '.join(_KINDS)}")
    params = data.get("params", {})
    try:
        return _KINDS[name](**params)
    except TypeError:
        raise ValueError(f"state gives the origin {name} the parameters {params}") from None


_KINDS: dict[str, type[Origin]] = {kind.__name__: kind for kind in (Mean, EMA, Window, Huber, ZScore, Median)}


def _mean_trail(z: Floats, count: int, part: Any, total: Any) -> tuple[Floats, int, Any, Any]:
    """Means before each row of (T,) or (T, K), sums down axis 0; count, part and total after the last row."""
    shifts = np.empty(z.shape)
    done = 0
    while done < len(z):
        rows = min(BLOCK - count % BLOCK, len(z) - done)
        sums = np.empty((rows + 1, *z.shape[1:]))
        sums[0] = part
        sums[1:] = z[done : done + rows]
        np.cumsum(sums, axis=0, out=sums)
        part = sums[-1] if z.ndim > 1 else float(sums[-1])
        before = np.arange(count, count + rows, dtype=np.float64)
        if not count:
            before[0] = 1.0  # nothing was seen: 0 / 1
        means = sums[:-1] + total if np.any(total) else sums[:-1]
        np.divide(means, before if z.ndim == 1 else before[:, None], out=shifts[done : done + rows])
        count += rows
        done += rows
        if not count % BLOCK:
            part, total = part - part, total + part
    return shifts, count, part, total


def _count(data: dict[str, Any]) -> int:
    count = data.get("count")
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise ValueError(f"state has the count {count!r}; it must be a whole number from 0")
    if not count and any(np.any(data.get(key, 0)) for key in ("part", "total", "shift", "squares", "block")):
        raise ValueError("state has the count 0, but sums of rows")
    return count


def _real(data: dict[str, Any], key: str) -> float:
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        raise ValueError(f"state has the {key} {value!r}; it must be a finite number")
    return float(value)


def _reals(data: dict[str, Any], key: str) -> list[float]:
    values = data.get(key)
    if not isinstance(values, list):
        raise ValueError(f"state has the {key} {values!r}; it must be a list of finite numbers")  # noqa: TRY004
    return [_real({key: value}, key) for value in values]
