"""PLOC on the caller's own dataframe or SQL engine: pandas, Polars, PyArrow, DuckDB and PySpark."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, TypeVar

import narwhals as nw
import numpy as np

from ploc import links
from ploc.origin import LARGEST, Mean, columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["center"]

Frame = TypeVar("Frame")

TEMP = "__ploc_"
"""How the names of working columns begin; none of them is in the result."""

SHORT = 1_024
"""Rows up to which a stream is summed together with others of its length."""


def center(
    df: Frame,
    logit: str | Sequence[str] | None = None,
    *,
    proba: str | Sequence[str] | None = None,
    by: str | Sequence[str] | None = None,
    order_by: str | Sequence[str] | None = "t",
    deferred: bool = False,
    anchor: float | Sequence[float] = 0.0,
    clip: float = links.CLIP,
    prefix: str = "ploc_",
    blocks: int | None = None,
) -> Frame:
    """Add PLOC's answers to a frame as columns, Eq. 2 or deferred; the frame's own kind comes back.

    The stream is the rows in the order of `order_by` (one or more columns), one stream for each value of
    `by` (none: one for all rows). Logits are one column (default `"z"`) or one a class; probabilities
    are `proba=`, likewise, clipped by `clip` as in `links.from_proba`. What is added:

    - `ploc_proba`: the answer, as `PLOC().replay` gives it; for K columns `ploc_proba_<column>` each;
    - `ploc_shift`: the origin the row was centred by, less the anchor (or `ploc_shift_<column>`);
    - `ploc_count`: how many rows that origin had seen.

    Eager frames and Polars keep their row order, and `order_by=None` takes it as the stream's. Lazy frames
    stay lazy. A null, NaN or infinite logit, a probability outside [0, 1], a null or NaN in `by` or
    `order_by`, and two rows of one stream with the same `order_by` are refused: at once by eager frames,
    when the query runs by lazy ones. `deferred` needs no order and looks at no `order_by`.

    `blocks` is for PySpark without `by`: into how many ranges of `order_by` the one stream is cut, so that
    it is centred in parallel (default: `spark.sql.shuffle.partitions`).

    >>> import polars as pl
    >>> df = pl.DataFrame({"t": [2, 1, 3], "z": [3.0, 1.0, 2.0]})
    >>> center(df).select("t", "ploc_shift", "ploc_count").rows()
    [(2, 1.0, 1), (1, 0.0, 0), (3, 2.0, 2)]
    """
    wrapped = isinstance(df, (nw.DataFrame, nw.LazyFrame))
    frame: Any = df if wrapped else _known(df)
    plan = plan_of(frame, logit, proba, by, order_by, deferred, anchor, clip, prefix, blocks)
    if isinstance(frame, nw.DataFrame):
        answered: Any = _eager(frame, plan)
    elif frame.implementation.is_polars():
        answered = _polars(frame, plan)
    else:
        answered = _sql(frame, plan)
    return answered if wrapped else answered.to_native()  # type: ignore[no-any-return]


# --- what was asked for -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """The arguments of `center`, checked against the frame's columns."""

    source: tuple[str, ...]  # the logit or probability columns
    is_proba: bool
    by: tuple[str, ...]
    order: tuple[str, ...]
    deferred: bool
    anchor: tuple[float, ...]  # one an answer
    clip: float
    blocks: int | None
    floats: frozenset[str]  # the columns of `by` and `order` that can hold NaN
    columns: tuple[str, ...]  # of the frame
    answers: tuple[str, ...]
    shifts: tuple[str, ...]
    count: str

    @property
    def what(self) -> str:
        return "probability" if self.is_proba else "logit"

    def place(self, name: str) -> str:
        return "stream" if name in self.by else "place in its stream"

    @property
    def added(self) -> tuple[str, ...]:
        return (*self.answers, *self.shifts, self.count)

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.source, *self.by, *self.order)))


def _known(df: Any) -> Any:
    try:
        frame = nw.from_native(df)
    except TypeError:
        raise TypeError(
            f"center needs a pandas, Polars, PyArrow, DuckDB or PySpark frame, got {type(df).__name__}; "
            "for an array use ploc.PLOC().replay"
        ) from None
    kind = frame.implementation
    lazy = isinstance(frame, nw.LazyFrame)
    if lazy and not (kind.is_polars() or kind.is_duckdb() or kind.is_pyspark() or kind.is_pyspark_connect()):
        raise TypeError(
            f"center does not know lazy {kind.value} frames; hand in what it computes to (pandas, Polars or "
            "PyArrow), or the same table as a DuckDB relation or a PySpark DataFrame"
        )
    if getattr(df, "isStreaming", False):
        raise TypeError(
            "this PySpark DataFrame is a stream; use ploc.spark.center_stream, which keeps its state"
        )
    return frame


def plan_of(  # noqa: PLR0917 - the arguments of center, in its order
    frame: nw.DataFrame[Any] | nw.LazyFrame[Any],
    logit: str | Sequence[str] | None,
    proba: str | Sequence[str] | None,
    by: str | Sequence[str] | None,
    order_by: str | Sequence[str] | None,
    deferred: bool,
    anchor: float | Sequence[float],
    clip: float,
    prefix: str,
    blocks: int | None,
) -> Plan:
    if logit is not None and proba is not None:
        raise ValueError(f"logit={logit!r} and proba={proba!r}: name the one or the other")
    source = _names(proba if proba is not None else "z" if logit is None else logit)
    is_proba = proba is not None
    keys, order = _names(by), () if deferred else _names(order_by)
    schema = dict(frame.collect_schema())
    for name in (*source, *keys, *order):
        if name not in schema:
            raise ValueError(f"no column {name!r} in the frame; it has {', '.join(map(repr, schema))}")
    for name in source:
        if not schema[name].is_numeric():
            raise TypeError(
                f"column {name!r} is {schema[name]}; {'probabilities' if is_proba else 'logits'} are numbers"
            )
    if not source or len(set(source)) < len(source):
        raise ValueError(f"the columns to centre are {source}; name one, or one a class, each once")
    if not 0.0 < clip < 0.5:
        raise ValueError(f"clip must lie between 0 and 0.5, got {clip}")
    if blocks is not None and blocks < 1:
        raise ValueError(f"blocks is {blocks}; a stream has at least one")
    lazy = isinstance(frame, nw.LazyFrame)
    if lazy and not (order or deferred or frame.implementation.is_polars()):
        raise ValueError("rows of a relation have no order of their own; name the column(s) with order_by=")
    unread = [name for name in (*source, *keys, *order) if "." in name or "`" in name]
    if unread and lazy and not (frame.implementation.is_polars() or frame.implementation.is_duckdb()):
        raise ValueError(
            f"PySpark takes the dot or backtick in {unread[0]!r} for syntax; rename the column first"
        )
    # Two probability columns are one relative logit, as in links.from_proba; two logit columns are two.
    names = [""] if len(source) == 1 or (is_proba and len(source) == 2) else [f"_{name}" for name in source]
    anchors = links.reals(np.asarray(anchor), "anchor")
    if anchors.shape not in ((), (len(names),)):
        raise ValueError(f"anchor is {anchor}; it takes a number or {len(names)}, one an answer")
    plan = Plan(
        source=source,
        is_proba=is_proba,
        by=keys,
        order=order,
        deferred=deferred,
        anchor=tuple(np.broadcast_to(anchors, (len(names),)).tolist()),
        clip=clip,
        blocks=blocks,
        floats=frozenset(name for name in (*keys, *order) if schema[name].is_float()),
        columns=tuple(schema),
        answers=tuple(f"{prefix}proba{name}" for name in names),
        shifts=tuple(f"{prefix}shift{name}" for name in names),
        count=f"{prefix}count",
    )
    new = {name.casefold() for name in plan.added}  # SQL engines take two cases of a name for one
    # pandas has columns whose names are no text.
    taken = [name for name in map(str, schema) if name.casefold() in new or name.startswith(TEMP)]
    if taken:
        raise ValueError(f"column {taken[0]!r} is in the frame already; rename it, or choose another prefix=")
    return plan


def _names(value: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)


# --- eager frames, and Polars lazy ones when they are collected: PLOC's own sums --------------------------


def _eager(frame: nw.DataFrame[Any], plan: Plan) -> nw.DataFrame[Any]:
    answers = _answers(frame.select(*plan.reads), plan)
    backend = frame.implementation
    return frame.with_columns(
        *(nw.new_series(name, values, backend=backend) for name, values in answers.items())
    )


def _polars(frame: nw.LazyFrame[Any], plan: Plan) -> nw.LazyFrame[Any]:
    """The eager answers as one expression of the query: it reads its own columns, and no filter passes it."""
    import polars as pl  # noqa: PLC0415 - the caller's frame has imported it

    def answer(rows: pl.Series) -> pl.Series:
        frame = nw.from_native(rows.struct.unnest(), eager_only=True)
        return pl.DataFrame(_answers(frame, plan)).to_struct(TEMP)

    kinds = pl.Struct({name: pl.Int64 if name == plan.count else pl.Float64 for name in plan.added})
    native: pl.LazyFrame = frame.to_native()
    answered = pl.struct(*plan.reads).map_batches(answer, return_dtype=kinds)
    return nw.from_native(native.with_columns(answered.alias(TEMP)).unnest(TEMP))


def _answers(frame: nw.DataFrame[Any], plan: Plan) -> dict[str, NDArray[Any]]:
    """The added columns, in the frame's row order."""
    Z = _logits(frame, plan)
    index, starts = _streams(frame, plan)
    shift, count = np.empty_like(Z), np.empty(len(Z), dtype=np.int64)
    shift[index], count[index] = _shifts(Z[index], starts, whole=plan.deferred)
    shift[count > 0] -= plan.anchor  # before any row there is nothing to move to the anchor
    Z = Z - shift
    probs = links.sigmoid(Z) if Z.shape[1] == 1 else links.softmax(Z)
    answers: dict[str, NDArray[Any]] = {name: probs[:, k] for k, name in enumerate(plan.answers)}
    answers |= {name: shift[:, k] for k, name in enumerate(plan.shifts)}
    return answers | {plan.count: count}


def _shifts(Z: Floats, starts: NDArray[np.intp], *, whole: bool) -> tuple[Floats, NDArray[np.int64]]:
    """What each row of streams that stand one after the other is centred by, and how many rows made it."""
    lengths = np.diff(starts, append=len(Z))
    shift = np.empty_like(Z)
    for start, length in zip(starts[lengths > SHORT], lengths[lengths > SHORT], strict=True):
        origin = columns(Mean(), Z.shape[1])
        trail, _ = origin.trail(Z[start : start + length])
        shift[start : start + length] = origin.shift if whole else trail
    # Short streams of like length are summed side by side: a call for each would cost more than its sums.
    sizes = np.where(lengths > SHORT, -1, np.ceil(np.log2(lengths)))
    for size in np.unique(sizes[sizes >= 0]):
        of = sizes == size
        row = np.arange(1 << int(size))
        inside = row < lengths[of, None]
        at = np.minimum(starts[of, None] + row, len(Z) - 1)
        sums = np.cumsum(np.where(inside[..., None], Z[at], 0.0), axis=1)
        if whole:
            means = np.broadcast_to(sums[:, -1:] / lengths[of, None, None], sums.shape)
        else:
            means = np.zeros_like(sums)
            np.divide(sums[:, :-1], row[1:, None], out=means[:, 1:])
        shift[at[inside]] = means[inside]
    seen = np.arange(len(Z)) - np.repeat(starts, lengths)
    return shift, np.repeat(lengths, lengths) if whole else seen


def _logits(frame: nw.DataFrame[Any], plan: Plan) -> Floats:
    """(rows, columns) float64, or the refusal of the first value that is no logit."""
    Z = np.empty((len(frame), len(plan.source)))
    for k, name in enumerate(plan.source):
        Z[:, k] = frame[name].cast(nw.Float64).to_numpy()
        bad = np.flatnonzero(~(np.abs(Z[:, k]) < LARGEST))
        if bad.size:
            row = int(bad[0])
            value = "null" if frame[name].is_null()[row] else Z[row, k]
            raise ValueError(f"{plan.what} {name!r} of row {row} is {value}; the frame was not changed")
    if plan.is_proba:
        Z = links.from_proba(Z if len(plan.source) > 1 else Z[:, 0], plan.clip)
    return Z.reshape(len(frame), len(plan.answers))


def _streams(frame: nw.DataFrame[Any], plan: Plan) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows stream by stream, each in its order, and where in that list each stream starts."""
    rows = frame.select(*dict.fromkeys((*plan.by, *plan.order))) if plan.by or plan.order else frame.select()
    if not rows.columns:
        return np.arange(len(frame)), np.arange(min(len(frame), 1))
    for name in rows.columns:
        absent = rows[name].is_null()
        if name in plan.floats:
            absent = absent | rows[name].is_nan().fill_null(True)
        bad = np.flatnonzero(absent.to_numpy())
        if bad.size:
            raise ValueError(
                f"{name!r} of row {bad[0]} is {rows[name][int(bad[0])]}: no {plan.place(name)}; drop or fill "
                "such rows; the frame was not changed"
            )
    at = f"{TEMP}row"
    rows = rows.with_row_index(at)
    rows = rows.sort(*plan.by, *(plan.order or (at,)))
    index = rows[at].to_numpy().astype(np.intp)
    new = _differs(rows, plan.by)
    if plan.order:
        tie = np.flatnonzero(~(new | _differs(rows, plan.order)))
        if tie.size:
            one, other = sorted(index[tie[0] - 1 : tie[0] + 1])
            values = ", ".join(f"{name} = {rows[name][int(tie[0])]}" for name in (*plan.by, *plan.order))
            raise ValueError(f"rows {one} and {other} tie at {values}; {_TIE}; the frame was not changed")
    return index, np.flatnonzero(new)


def _differs(rows: nw.DataFrame[Any], names: Iterable[str]) -> NDArray[np.bool_]:
    """Where any of the columns is not what it is one row above; the first row differs from nothing."""
    differs = np.zeros(len(rows), dtype=bool)
    differs[:1] = True
    for name in names:
        values = rows[name].to_numpy()
        differs[1:] |= values[1:] != values[:-1]
    return differs


# --- SQL engines: the same rule as window expressions -----------------------------------------------------


def _sql(frame: nw.LazyFrame[Any], plan: Plan) -> nw.LazyFrame[Any]:
    """Working columns z (logits), s and n (sum and count of the origin's rows), then the answers from those.

    Every refusal is an error that the engine raises in place of a z, before any sum takes that z in: whoever
    reads an answer that a bad row had a part in meets the error, whatever the optimizer prunes.
    """
    unkeyed_spark = not plan.by and not frame.implementation.is_duckdb()
    raw = tuple(f"{TEMP}x{k}" for k in range(len(plan.source)))
    frame = frame.with_columns(
        *(nw.col(name).cast(nw.Float64).alias(x) for name, x in zip(plan.source, raw, strict=True))
    )
    frame = _refuse(frame, raw, _complaint(plan, raw))
    z = tuple(f"{TEMP}z{k}" for k in range(len(plan.answers)))
    s = tuple(f"{TEMP}s{k}" for k in range(len(z)))
    n = f"{TEMP}n"
    frame = frame.with_columns(
        *(expr.alias(name) for expr, name in zip(_relative(plan, raw), z, strict=True))
    )
    streams = plan.by
    if plan.deferred and unkeyed_spark:
        from ploc import spark  # noqa: PLC0415 - needs PySpark, which the caller's frame has imported

        frame = nw.from_native(spark.totals(frame.to_native(), z, s, n))
    elif plan.deferred:
        sums = [nw.col(a).sum() for a in z] + [nw.len()]
        frame = frame.with_columns(
            *((e.over(*streams) if streams else e).alias(b) for e, b in zip(sums, (*s, n), strict=True))
        )
    else:
        if unkeyed_spark:
            from ploc import spark  # noqa: PLC0415

            frame = nw.from_native(spark.blocked(frame.to_native(), plan.order, z, s, n, plan.blocks))
            streams = (spark.BLOCK,)
        frame = _running(frame, plan, streams, z, s, n, carried=unkeyed_spark)
    mu = tuple(f"{TEMP}mu{k}" for k in range(len(z)))
    frame = frame.with_columns(
        nw.when(nw.col(n) > 0).then(nw.col(b) / nw.col(n) - anchor).otherwise(nw.lit(0.0)).alias(c)
        for b, c, anchor in zip(s, mu, plan.anchor, strict=True)
    )
    frame = frame.with_columns((nw.col(a) - nw.col(c)).alias(a) for a, c in zip(z, mu, strict=True))
    answers = [_sigmoid(z[0])] if len(z) == 1 else _softmax(z)
    added = (*answers, *map(nw.col, mu), nw.col(n).cast(nw.Int64))
    frame = frame.with_columns(e.alias(name) for e, name in zip(added, plan.added, strict=True))
    return frame.drop(name for name in frame.collect_schema() if name.startswith(TEMP))


def _running(  # noqa: PLR0917 - the columns, in the order they are made
    frame: nw.LazyFrame[Any],
    plan: Plan,
    streams: tuple[str, ...],
    z: tuple[str, ...],
    s: tuple[str, ...],
    n: str,
    *,
    carried: bool,
) -> nw.LazyFrame[Any]:
    """Sum and count of the rows before each; `carried`: s and n hold those of the blocks before already."""

    def over(expr: nw.Expr) -> nw.Expr:
        return expr.over(*streams, order_by=plan.order) if streams else expr.over(order_by=plan.order)

    tied = reduce(and_, (over(nw.col(name) == nw.col(name).shift(1)) for name in plan.order))
    frame = frame.with_columns(tied.alias(f"{TEMP}tied"))
    where = _where((*plan.by, *plan.order))
    frame = _refuse(
        frame,
        z,
        nw.when(nw.col(f"{TEMP}tied")).then(
            nw.concat_str(nw.lit("ploc: two rows tie"), where, nw.lit(f"; {_TIE}"))
        ),
    )
    sums, count = tuple(f"{TEMP}sum{k}" for k in range(len(z))), f"{TEMP}count"
    frame = frame.with_columns(
        *(over(nw.col(a).cum_sum()).alias(b) for a, b in zip(z, sums, strict=True)),
        over(nw.col(z[0]).cum_count()).alias(count),
    )
    frame = frame.with_columns(*(over(nw.col(b).shift(1)).fill_null(0.0).alias(b) for b in sums))
    if carried:
        return frame.with_columns(
            *((nw.col(b) + nw.col(c)).alias(c) for b, c in zip(sums, s, strict=True)),
            (nw.col(n) + nw.col(count) - 1).alias(n),
        )
    return frame.with_columns(
        *(nw.col(b).alias(c) for b, c in zip(sums, s, strict=True)), (nw.col(count) - 1).alias(n)
    )


def _complaint(plan: Plan, raw: tuple[str, ...]) -> nw.Expr:
    """What is wrong with a row by itself, in words; null if nothing is."""
    complaint = nw.lit(None, nw.String)
    where = _where((*plan.by, *plan.order))
    if plan.is_proba and len(raw) > 1:
        total = reduce(lambda a, b: a + b, map(nw.col, raw))
        text = nw.concat_str(nw.lit("ploc: probabilities sum to "), total.cast(nw.String), where)
        complaint = nw.when((total - 1.0).abs() > links.OFF).then(text).otherwise(complaint)
    for name, x in zip(plan.source, raw, strict=True):
        good = (
            (nw.col(x) >= 0.0) & (nw.col(x) <= 1.0)
            if plan.is_proba
            else nw.col(x).is_finite() & (nw.col(x).abs() < LARGEST)
        )
        text = nw.concat_str(nw.lit(f"ploc: {plan.what} {name!r} is "), _text(x), where)
        complaint = nw.when(nw.col(x).is_null() | ~good).then(text).otherwise(complaint)
    for name in (*plan.order, *plan.by):
        absent = nw.col(name).is_null()
        if name in plan.floats:
            absent = absent | nw.col(name).is_nan()
        text = nw.concat_str(
            nw.lit(f"ploc: {name!r} is "), _text(name), nw.lit(f": no {plan.place(name)}"), where
        )
        complaint = nw.when(absent).then(text).otherwise(complaint)
    return complaint


def _where(names: tuple[str, ...]) -> nw.Expr:
    """` where t = 7, tenant = acme`: the row in the words of its own columns."""
    parts = [
        part
        for i, name in enumerate(names)
        for part in (nw.lit(f"{', ' if i else ' where '}{name} = "), _text(name))
    ]
    return nw.concat_str(*parts) if parts else nw.lit("")


def _text(name: str) -> nw.Expr:
    return nw.when(nw.col(name).is_null()).then(nw.lit("null")).otherwise(nw.col(name).cast(nw.String))


def _refuse(frame: nw.LazyFrame[Any], names: tuple[str, ...], complaint: nw.Expr) -> Any:
    """The columns with an error of the engine in every row that has a complaint."""
    message = f"{TEMP}complaint"
    native: Any = frame.with_columns(complaint.alias(message)).to_native()
    if frame.implementation.is_duckdb():
        raising = (
            f'CASE WHEN "{message}" IS NULL THEN "{x}" ELSE error("{message}") END AS "{x}"' for x in names
        )
        return nw.from_native(native.project(f"* REPLACE ({', '.join(raising)})"))
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    good = F.col(message).isNull()
    return nw.from_native(
        native.withColumns(
            {x: F.when(good, F.col(x)).otherwise(F.raise_error(F.col(message))) for x in names}
        )
    )


def _relative(plan: Plan, raw: tuple[str, ...]) -> list[nw.Expr]:
    """`links.from_proba` as expressions; logits stay as they are."""
    if not plan.is_proba:
        return [nw.col(x) for x in raw]
    if len(raw) == 1:
        p = nw.col(raw[0]).clip(plan.clip, 1.0 - plan.clip)
        return [(p / (1.0 - p)).log()]
    logs = [nw.col(x).clip(lower_bound=plan.clip).log() for x in raw]
    return [logs[1] - logs[0]] if len(logs) == 2 else logs


def _sigmoid(z: str) -> nw.Expr:
    e = (-nw.col(z).abs()).exp()  # never overflows
    return nw.when(nw.col(z) >= 0).then(nw.lit(1.0)).otherwise(e) / (e + 1.0)


def _softmax(z: tuple[str, ...]) -> list[nw.Expr]:
    top = nw.max_horizontal(*z)
    exps = [(nw.col(a) - top).exp() for a in z]
    total = reduce(lambda a, b: a + b, exps)
    return [e / total for e in exps]


_TIE = "name further columns in order_by= that tell their order"
