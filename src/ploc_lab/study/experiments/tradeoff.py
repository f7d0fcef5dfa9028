"""Results, the AUROC-accuracy trade-off (figure): what each method gains in accuracy and pays in ranking."""

import polars as pl

from ploc_lab.study import frames
from ploc_lab.study.cell import Cell
from ploc_lab.study.experiments import main
from ploc_lab.study.grid import BACKBONES, Grid


def cells(grid: Grid) -> list[Cell]:
    """The cells of the main comparison."""
    return main.cells(grid)


def tables(cells: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """One point a method and backbone: mean changes of accuracy and AUROC against the source, same rows."""
    rows = frames.whole(frames.against(frames.plain(cells))).filter(pl.col("method") != "source")
    points = [_points(frames.paper_only(rows), "paper's tasks"), _points(rows, "all")]
    return {"tradeoff": frames.in_order(pl.concat(points), over=("paper's tasks", "all"), backbone=BACKBONES)}


def _points(rows: pl.DataFrame, over: str) -> pl.DataFrame:
    return rows.group_by("backbone", "method", maintain_order=True).agg(
        pl.lit(over).alias("over"),
        pl.col("d_accuracy", "d_auroc").mean(),
        pl.col("d_accuracy").std(ddof=1).alias("d_accuracy_sd"),
        pl.col("d_auroc").std(ddof=1).alias("d_auroc_sd"),
        pl.len().alias("cells"),
    )
