"""What the tables have in common: choosing rows of the gathered cells, differences to a reference, means."""

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from ploc_lab.study.evaluate import METRICS
from ploc_lab.study.grid import BACKBONES, paper_tasks

PAIR = ("dataset", "backbone", "seed", "variant", "n")
ANSWER = ("dataset", "backbone", "seed", "method", "batch", "variant", "n")


def plain(cells: pl.DataFrame, backbones: Sequence[str] = BACKBONES) -> pl.DataFrame:
    """The rows of the plain protocol: batch size one, the split's own order, nothing redrawn."""
    return once(
        cells.filter(pl.col("variant") == "", pl.col("batch") == 1, pl.col("backbone").is_in(list(backbones)))
    )


def once(cells: pl.DataFrame) -> pl.DataFrame:
    """Each answer once: experiments ask the same of other seeds, or with a limit that cuts nothing."""
    limit = pl.when(pl.col("limit") == pl.col("n")).then("limit")
    return cells.with_columns(limit).unique(ANSWER, keep="first", maintain_order=True)


def whole(cells: pl.DataFrame) -> pl.DataFrame:
    """Of each method its longest stream only: cells cut to pair with a slower method are left out."""
    rank = pl.col("n").max().over("dataset", "backbone", "method", "batch", "variant")
    return once(cells.filter(pl.col("n") == rank))


def paper_only(cells: pl.DataFrame) -> pl.DataFrame:
    """The rows of the paper's tasks, each by one data set."""
    return cells.filter(pl.col("dataset").is_in(list(paper_tasks(cells["dataset"].unique()).values())))


def against(
    cells: pl.DataFrame, reference: str = "source", metrics: Iterable[str] = METRICS, on: Sequence[str] = PAIR
) -> pl.DataFrame:
    """Each row with its differences (`d_<metric>`) to the reference on the same rows and checkpoint."""
    names = list(metrics)
    same = [*on, "checkpoint"]
    base = cells.filter(pl.col("method") == reference).select(
        *same, *(pl.col(name).alias(f"{reference}_{name}") for name in names)
    )
    joined = cells.join(base.unique(same), on=same, how="inner", nulls_equal=True)
    return joined.with_columns(
        (pl.col(name) - pl.col(f"{reference}_{name}")).alias(f"d_{name}") for name in names
    )


def means(cells: pl.DataFrame, by: Sequence[str], columns: Sequence[str] = METRICS) -> pl.DataFrame:
    """Unweighted means over (data set, checkpoint) cells, and how many; groups in order of appearance."""
    return cells.group_by(by, maintain_order=True).agg(
        *(pl.col(name).mean() for name in columns),
        pl.len().alias("cells"),
        pl.col("dataset").n_unique().alias("datasets"),
        pl.col("limit").max().alias("limit"),
        pl.col("n_adapted").max().alias("n_adapted"),
        pl.col("n_nan").sum().alias("n_nan"),
    )


def in_order(frame: pl.DataFrame, **orders: Sequence[Any]) -> pl.DataFrame:
    """Sort by columns of names in orders of our own; names that are not listed come last, by name."""
    keys: list[pl.Expr] = []
    for column, names in orders.items():
        place = {name: i for i, name in enumerate(dict.fromkeys(names))}
        keys += [
            pl.col(column).replace_strict(place, default=len(place), return_dtype=pl.Int64),
            pl.col(column),
        ]
    return frame.sort(keys, maintain_order=True)
