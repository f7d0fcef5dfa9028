"""Results, main comparison (Table 1): every method at batch size one, judged by seven metrics."""

import polars as pl

from ploc_lab.study import frames
from ploc_lab.study.cell import Cell
from ploc_lab.study.evaluate import METRICS
from ploc_lab.study.grid import BACKBONES, Grid

# The rows of the paper's table, in its order.
PAPER = ("source", "tent", "eata", "sar", "lame", "ftat", "pft3a", "ploc", "ploc_prob")
LOWER = ("ece", "nll", "brier")


def cells(grid: Grid) -> list[Cell]:
    """Every method on every stream; where a stream is cut short, its source and PLOC at that length too."""
    return grid.paired(
        grid.cell(dataset, backbone, method)
        for dataset, backbone in grid.sources()
        for method in grid.methods
    )


def tables(cells: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Table 1: means over the paper's tasks at hand and five checkpoints; beside it, over all data sets.

    `auroc_distance` is the mean distance of a method's AUROC from its source's on the same rows (closest is
    best), `no_op` says that a method answered as its source everywhere, `best` names the metrics in which a
    row is the best of its backbone; a no-op is the best of nothing.
    """
    rows = frames.whole(frames.against(frames.plain(cells)))
    return {"main": summary(frames.paper_only(rows)), "main_all": summary(rows)}


def summary(rows: pl.DataFrame) -> pl.DataFrame:
    """The mean row of each backbone and method, the best of each metric named."""
    table = frames.means(rows, ["backbone", "method"], [*METRICS, "d_accuracy", "d_auroc", "d_ece"])
    moved = pl.max_horizontal(pl.col(f"d_{name}").abs() for name in METRICS)
    away = rows.group_by("backbone", "method").agg(
        pl.col("d_auroc").abs().mean().alias("auroc_distance"), (moved.max() < 1e-6).alias("no_op")
    )
    table = table.join(away, on=["backbone", "method"])
    names = [*PAPER, *rows["method"].unique(maintain_order=True)]
    table = frames.in_order(table, backbone=BACKBONES, method=names)
    return _with_best(table)


def _with_best(table: pl.DataFrame) -> pl.DataFrame:
    """Mark the best of each metric within a backbone; AUROC's is the closest to the source's."""
    judged = (pl.col("method") == "source") | ~pl.col("no_op")
    moving = ~pl.col("no_op")
    marks: list[pl.Expr] = []
    for name in METRICS:
        if name == "auroc":
            score: pl.Expr = pl.when(moving).then(-pl.col("auroc_distance"))
        else:
            score = pl.when(judged).then(-pl.col(name) if name in LOWER else pl.col(name))
        best = score == score.max().over("backbone")
        marks.append(pl.when(best).then(pl.lit(name)))
    return table.with_columns(pl.concat_list(marks).list.drop_nulls().list.join(" ").alias("best"))
