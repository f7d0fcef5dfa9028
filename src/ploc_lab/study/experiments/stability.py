"""Results, checkpoint stability: how much the same method differs over independently trained sources."""

import polars as pl

from ploc_lab.study import frames
from ploc_lab.study.cell import Cell
from ploc_lab.study.evaluate import METRICS
from ploc_lab.study.experiments import main
from ploc_lab.study.grid import BACKBONES, Grid

MEAN = "mean over data sets"


def cells(grid: Grid) -> list[Cell]:
    """The cells of the main comparison."""
    return main.cells(grid)


def tables(cells: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Standard deviations over seeds (ddof 1) per data set; their mean over the paper's tasks at hand."""
    rows = frames.whole(frames.plain(cells))
    spread = rows.group_by("backbone", "dataset", "method", maintain_order=True).agg(
        pl.col(name).std(ddof=1) for name in METRICS
    )
    mean = (
        frames.paper_only(spread)
        .group_by("backbone", "method", maintain_order=True)
        .agg(pl.lit(MEAN).alias("dataset"), *(pl.col(name).mean() for name in METRICS))
    )
    names = [*main.PAPER, *rows["method"].unique(maintain_order=True)]
    both = pl.concat([spread, mean.select(spread.columns)])
    return {"stability": frames.in_order(both, backbone=BACKBONES, method=names)}
