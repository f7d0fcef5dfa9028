"""Results, the offline reference (Table 2): deferred PLOC beside its source and prequential PLOC."""

import polars as pl

from ploc_lab import data
from ploc_lab.study import frames
from ploc_lab.study.cell import Cell
from ploc_lab.study.evaluate import METRICS
from ploc_lab.study.experiments import main
from ploc_lab.study.grid import BACKBONES, Grid

METHODS = ("source", "ploc_deferred", "ploc")


def cells(grid: Grid) -> list[Cell]:
    """The three methods on every stream; cells of the main comparison."""
    return [grid.cell(*source, method) for source in grid.sources() for method in grid.wanted(METHODS)]


def tables(cells: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Table 2, and per data set how far deferred PLOC is from PLOC and from its source's AUROC."""
    rows = frames.whole(frames.plain(cells.filter(pl.col("method").is_in(METHODS))))
    table = main.summary(frames.paper_only(frames.against(rows))).drop("best")
    return {"deferred": frames.in_order(table, backbone=BACKBONES, method=METHODS), "deferred_gap": gap(rows)}


def gap(rows: pl.DataFrame) -> pl.DataFrame:
    """The largest distances over the checkpoints: deferred PLOC to PLOC, its AUROC to the source's."""
    on = ["dataset", "backbone", "seed"]
    ours = frames.against(rows, "ploc", on=on).filter(pl.col("method") == "ploc_deferred")
    source = frames.against(rows, "source", ["auroc"], on=on).filter(pl.col("method") == "ploc_deferred")
    distance = source.group_by("dataset", "backbone").agg(
        pl.col("d_auroc").abs().max().alias("auroc_from_source")
    )
    table = ours.group_by("dataset", "backbone", maintain_order=True).agg(
        pl.col(f"d_{name}").abs().max().alias(name) for name in METRICS
    )
    table = table.join(distance, on=["dataset", "backbone"])
    return frames.in_order(table, backbone=BACKBONES, dataset=data.names())
