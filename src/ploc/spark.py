"""PLOC on PySpark: one stream over a whole cluster, and online in Structured Streaming."""

from __future__ import annotations

import json
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from ploc import links
from ploc.center import PLOC
from ploc.frame import TEMP, plan_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import Column, DataFrame

    from ploc.frame import Plan
    from ploc.origin import Origin

__all__ = ["center_stream"]

STORE = "spark.sql.streaming.stateStore.providerClass"
AT = f"{TEMP}at"  # the working columns of the order
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


# --- online: one state a key ------------------------------------------------------------------------------


def center_stream(
    df: DataFrame,
    logit: str | Sequence[str] | None = None,
    *,
    by: str | Sequence[str],
    proba: str | Sequence[str] | None = None,
    order_by: str | Sequence[str] = "t",
    late: str = "refuse",
    origin: Origin | None = None,
    anchor: float | Sequence[float] = 0.0,
    clip: float = links.CLIP,
    prefix: str = "ploc_",
) -> DataFrame:
    """Add PLOC's answers to a streaming DataFrame, each key's state kept by Spark (Algorithm 1).

    The columns are those of `frame.center`, and so are their numbers. A micro-batch's rows are taken in the
    order of `order_by`, after all rows of earlier micro-batches. A row that comes after one with the same or
    a later `order_by` was answered stops the query (`late="refuse"`), or is the next row of its stream
    all the same (`late="arrival"`: the stream's order is then that of arrival). The state is `PLOC.state()`
    in Spark's own checkpoint, committed with the micro-batch: a killed query that is started again on
    its checkpoint loses nothing and counts nothing twice.

    Needs PySpark 4.1, and the RocksDB state store:
    `spark.conf.set("spark.sql.streaming.stateStore.providerClass", "...RocksDBStateStoreProvider")`.
    """
    if not df.isStreaming:
        raise TypeError("this PySpark DataFrame is no stream; use ploc.frame.center")
    if late not in {"refuse", "arrival"}:
        raise ValueError(f"late is {late!r}; it is 'refuse' or 'arrival'")
    plan = plan_of(nw.from_native(df), logit, proba, by, order_by, False, anchor, clip, prefix, None)
    if not plan.by:
        raise ValueError(
            "a stream needs by=: one state a key; for one stream, name a column that never changes"
        )
    store = df.sparkSession.conf.get(STORE, "")
    if store != ROCKSDB:
        raise ValueError(
            f"keyed state needs the RocksDB state store, not {store!r}: set {STORE} to {ROCKSDB}"
        )
    PLOC(_classes(plan), origin=origin, anchor=_anchor(plan))  # refuses bad settings here, not on a worker
    fields = [T.StructField(name, T.DoubleType()) for name in (*plan.answers, *plan.shifts)]
    output = T.StructType([*df.schema.fields, *fields, T.StructField(plan.count, T.LongType())])
    # An instant reaches Python with a time zone from a row and without one from a state: compare its number.
    instants = [isinstance(df.schema[name].dataType, T.TimestampType) for name in plan.order]
    ats = [F.col(_quoted(name)) for name in plan.order]
    ats = [F.unix_micros(at) if instant else at for at, instant in zip(ats, instants, strict=True)]
    df = df.withColumns({f"{AT}{i}": at for i, at in enumerate(ats)})
    order = [df.schema[f"{AT}{i}"] for i in range(len(ats))]
    state = T.StructType([T.StructField(f"{TEMP}center", T.StringType()), *order])
    return df.groupBy(*map(_quoted, plan.by)).transformWithState(
        Center(plan, origin, state, late), output, outputMode="Append", timeMode="None"
    )


class Center(StatefulProcessor):
    """One `PLOC` a key: answers the rows of a micro-batch in their order, then keeps the state after them."""

    def __init__(self, plan: Plan, origin: Origin | None, schema: T.StructType, late: str) -> None:
        self.plan, self.origin, self.schema, self.late = plan, origin, schema, late

    def init(self, handle: Any) -> None:
        """Declare a key's state: PLOC's own as JSON, and the last place in the order that was answered."""
        self.state = handle.getValueState("center", self.schema)

    def handleInputRows(self, key: Any, rows: Any, timer_values: Any) -> Iterator[Row]:  # noqa: ARG002, N802
        """The rows with their answers; a bad one fails the micro-batch, and its state is never committed."""
        plan = self.plan
        of = ", ".join(f"{name} = {value}" for name, value in zip(plan.by, key, strict=True))
        if any(map(_absent, key)):
            raise ValueError(f"ploc: a row has no stream: {of}")
        center, last = self._center(of)

        placed = sorted(((self._place(row), row) for row in rows), key=itemgetter(0))
        for place, _ in placed:
            if last is not None and place <= last and self.late == "refuse":
                raise ValueError(
                    f"ploc: {self._words(place)} comes after {self._words(last)}, where {of}: name further "
                    "columns in order_by= if they tie, or take such rows as they arrive with late='arrival'"
                )
            last = place if last is None else max(place, last)
        Z = self._logits([row for _, row in placed])
        answers = center.copy().replay(Z)
        shifts, counts = [], range(center.count, center.count + len(Z))
        for z in Z:
            shifts.append(center.shift)
            center.observe(z)
        self.state.update((json.dumps(center.state()), *(last or ())))

        for (_, row), answer, shift, count in zip(placed, answers, shifts, counts, strict=True):
            values = (*np.atleast_1d(answer).tolist(), *np.atleast_1d(shift).tolist(), count)
            own = {name: value for name, value in row.asDict().items() if not name.startswith(TEMP)}
            yield Row(**own, **dict(zip(plan.added, values, strict=True)))

    def close(self) -> None:
        """Nothing is held open."""

    def _center(self, of: str) -> tuple[PLOC, tuple[Any, ...] | None]:
        asked = PLOC(_classes(self.plan), origin=self.origin, anchor=_anchor(self.plan))
        if not self.state.exists():
            return asked, None
        saved, *last = self.state.get()
        center = PLOC.from_state(json.loads(saved))
        if center.origin != asked.origin or not np.array_equal(center.anchor, asked.anchor):
            raise ValueError(
                f"ploc: the checkpoint has {center!r} where {of}, but the query asks for {asked!r}; "
                "start it as it was, or on a new checkpoint"
            )
        return center, tuple(last)

    def _place(self, row: Row) -> tuple[Any, ...]:
        place = tuple(row[f"{AT}{i}"] for i in range(len(self.plan.order)))
        if any(map(_absent, place)):
            raise ValueError(f"ploc: a row has no place in its stream: {row}")
        return place

    def _logits(self, rows: Sequence[Row]) -> Any:
        for row in rows:
            if any(_absent(row[name]) for name in self.plan.source):
                raise ValueError(f"ploc: a {self.plan.what} is missing: {row}")
        Z = np.array([[row[name] for name in self.plan.source] for row in rows], dtype=np.float64)
        if Z.shape[1] == 1:
            Z = Z[:, 0]
        return links.from_proba(Z, self.plan.clip) if self.plan.is_proba else Z

    def _words(self, place: Iterable[Any]) -> str:
        return ", ".join(f"{name} = {value}" for name, value in zip(self.plan.order, place, strict=True))


def _classes(plan: Plan) -> int | None:
    return len(plan.answers) if len(plan.answers) > 1 else None


def _anchor(plan: Plan) -> Any:
    return plan.anchor if len(plan.anchor) > 1 else plan.anchor[0]


def _absent(value: Any) -> bool:
    return value is None or value != value  # noqa: PLR0124 - NaN alone differs from itself


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


# --- one stream over many partitions ----------------------------------------------------------------------

BLOCK, LO, HI = (f"{TEMP}{name}" for name in ("block", "lo", "hi"))


def totals(df: DataFrame, z: Sequence[str], s: Sequence[str], n: str) -> DataFrame:
    """The sums of all rows beside each row: an aggregate of one row, broadcast."""
    sums = df.agg(*(F.sum(a).alias(b) for a, b in zip(z, s, strict=True)), F.count(z[0]).alias(n))
    return df.crossJoin(F.broadcast(sums))


def blocked(  # noqa: PLR0917 - the columns, in the order they are made
    df: DataFrame, order: Sequence[str], z: Sequence[str], s: Sequence[str], n: str, blocks: int | None
) -> DataFrame:
    """Each row's block, a range of the order, and beside it the sums and count of the blocks before.

    The blocks' edges are quantiles of a sample of the order that depends on the rows alone (those with the
    smallest hashes), because both passes over the rows must cut them alike: Spark's own range partitioning
    samples anew in every pass, and sums over other cuts would be wrong without a sign of it.
    """
    count = blocks or int(df.sparkSession.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    df = df.withColumn(AT, F.struct(*map(_quoted, order)) if len(order) > 1 else F.col(_quoted(order[0])))

    sample = df.select(AT).orderBy(F.xxhash64(AT), AT).limit(SAMPLES * count)
    ats = sample.agg(F.sort_array(F.collect_list(AT)).alias("ats"))
    cuts = F.transform(
        F.filter(F.sequence(F.lit(0), F.lit(count - 1)), lambda i: (i > 0) & (F.size("ats") > 0)),
        lambda i: F.get("ats", F.floor(i * F.size("ats") / count).cast("int")),
    )
    ends = F.array(F.lit(None).cast(df.schema[AT].dataType))
    edges = ats.select(F.array_distinct(cuts).alias("cuts")).select(
        F.posexplode(F.arrays_zip(F.concat(ends, "cuts").alias(LO), F.concat("cuts", ends).alias(HI)))
    )
    edges = edges.select(F.col("pos").alias(BLOCK), f"col.{LO}", f"col.{HI}")

    def cut(edges: DataFrame) -> DataFrame:
        above = F.col(LO).isNull() | (F.col(AT) >= F.col(LO))
        below = F.col(HI).isNull() | (F.col(AT) < F.col(HI))
        # left: a row without a place must stay until its refusal is met
        return df.join(F.broadcast(edges), above & below, "left")

    sums = [F.sum(a).alias(b) for a, b in zip(z, s, strict=True)]
    each = cut(edges).groupBy(BLOCK, LO, HI).agg(*sums, F.count(z[0]).alias(n))
    row = each.agg(F.sort_array(F.collect_list(F.struct(BLOCK, LO, HI, *s, n))).alias("each"))
    # The blocks' sums, added from left to right: a handful of numbers in one row.
    before = row.select("each", F.posexplode("each").alias("i", "own")).select(
        F.col(f"own.{BLOCK}"),
        F.col(f"own.{LO}"),
        F.col(f"own.{HI}"),
        *(_before(b, F.lit(0.0)) for b in s),
        _before(n, F.lit(0).cast("long")),
    )
    return cut(before).drop(AT, LO, HI)


SAMPLES = 20
"""Rows sampled a block, as Spark's range partitioning does: blocks then differ in size by a quarter or so."""


def _before(name: str, zero: Column) -> Column:
    earlier = F.slice("each", F.lit(1), F.col("i"))
    return F.aggregate(earlier, zero, lambda total, each: total + each[name]).alias(name)
