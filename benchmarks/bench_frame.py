"""`frame.center` beside the plain expression that each engine's user would write by hand, in the same run.

The hand-written expression refuses nothing: no NaN, no null, no tie. A ratio is our time over its time:
below 1 we are faster. Spark runs on two local cores, where it cannot shine; what it shows is the price of the
second pass that keeps one stream from collapsing into one partition.
"""

import math
import os
import shutil
import sys
import time

import duckdb
import numpy as np
import pandas as pd
import polars as pl
from rich.console import Console
from rich.table import Table

from ploc.frame import center

ROWS, TENANTS, ROUNDS = 1_000_000, 1_000, 3
PAST = "(w rows between unbounded preceding and 1 preceding)"
MU = f"coalesce(sum(z) over {PAST} / nullif(count(z) over {PAST}, 0), 0)"


def fastest(call):
    best = math.inf
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def pandas_plain(df, by):
    rows = df.sort_values([*by, "t"])
    groups = rows.groupby(by)["z"] if by else rows["z"]
    before = (groups.cumsum() - rows["z"]) / (groups.cumcount() if by else pd.RangeIndex(len(rows)))
    return df.assign(p=1 / (1 + np.exp(-(rows["z"] - before.fillna(0.0)))))


def polars_plain(df, by):
    past = pl.col("z").cum_sum().shift(1) / pl.int_range(pl.len())
    mu = past.over(by, order_by="t") if by else past.sort_by("t")
    if not by:
        df = df.sort("t")
    return df.with_columns(p=1 / (1 + (-(pl.col("z") - mu.fill_null(0.0))).exp()))


def sql_plain(by):
    window = f"{'partition by tenant ' if by else ''}order by t"
    mu = MU.replace("(w", f"({window}")
    return f"1 / (1 + exp(-(z - {mu})))"


def local(rows, by):
    frame, arrow = rows.to_pandas(), rows.to_arrow()
    relation = duckdb.connect().from_arrow(arrow)
    key = by or None
    yield "pandas", lambda: center(frame, by=key), lambda: pandas_plain(frame, by)
    yield "Polars", lambda: center(rows, by=key), lambda: polars_plain(rows, by)
    yield (
        "Polars, lazy",
        lambda: center(rows.lazy(), by=key).collect(),
        lambda: polars_plain(rows.lazy(), by).collect(),
    )
    # PyArrow has no running sum by key: its users go through another library.
    yield "PyArrow", lambda: center(arrow, by=key), lambda: polars_plain(pl.from_arrow(arrow), by).to_arrow()
    yield (
        "DuckDB",
        lambda: center(relation, by=key).aggregate("sum(ploc_proba)").fetchall(),
        lambda: relation.project(f"{sql_plain(by)} as p").aggregate("sum(p)").fetchall(),
    )


def cluster(rows, by):
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.ui.enabled": False, "spark.ui.showConsoleProgress": False, "spark.log.level": "OFF"}
    settings |= {"spark.sql.shuffle.partitions": 8, "spark.driver.host": "127.0.0.1"}
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    df = spark.createDataFrame(rows.to_arrow()).repartition(4).cache()
    df.count()
    yield (
        "PySpark",
        lambda: center(df, by=by or None).agg({"ploc_proba": "sum"}).collect(),
        lambda: df.selectExpr(f"{sql_plain(by)} as p").agg({"p": "sum"}).collect(),
    )
    spark.stop()


def main():
    rng = np.random.default_rng(0)
    tenants = rng.integers(0, TENANTS, ROWS)
    rows = pl.DataFrame({"tenant": tenants, "t": rng.permutation(ROWS), "z": rng.normal(1, 2, ROWS)})
    table = Table(
        "engine", "streams", "plain, s", "center, s", "center / plain", title=f"{ROWS:,} rows, shuffled"
    )
    for by in ([], ["tenant"]):
        cases = [*local(rows, by)]
        for engine, ours, plain in cases:
            add(table, engine, by, fastest(ours), fastest(plain))
        if shutil.which("java"):
            for engine, ours, plain in cluster(rows, by):
                add(table, engine, by, fastest(ours), fastest(plain))
    Console(width=100).print(table)


def add(table, engine, by, ours, plain):
    streams = f"{TENANTS:,}" if by else "1"
    table.add_row(engine, streams, f"{plain:.2f}", f"{ours:.2f}", f"{ours / plain:.2f}")


if __name__ == "__main__":
    main()
