"""Results, per data set (Tables 3-5, the F1 figure): source and PLOC, and where the gains come from."""

import polars as pl

from ploc_lab.study import frames
from ploc_lab.study.cell import Cell
from ploc_lab.study.evaluate import METRICS
from ploc_lab.study.experiments import main
from ploc_lab.study.grid import BACKBONES, CENTRED, Grid


def cells(grid: Grid) -> list[Cell]:
    """Source and PLOC on every stream; cells of the main comparison."""
    return [grid.cell(*source, method) for source in grid.sources() for method in grid.wanted(CENTRED)]


def tables(cells: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Tables 3-5: source and PLOC with the spread over checkpoints; all methods in `per_dataset_all`."""
    rows = frames.whole(frames.plain(cells))
    columns = [*METRICS, "positive_rate", "base_rate", "mu"]
    table = rows.group_by("backbone", "dataset", "method", maintain_order=True).agg(
        *(pl.col(name).mean() for name in columns),
        *(pl.col(name).std(ddof=1).alias(f"{name}_sd") for name in METRICS),
        pl.col("n").max(),
        pl.col("limit").max(),
        pl.col("n_adapted").max(),
        pl.len().alias("seeds"),
    )
    table = frames.in_order(table, backbone=BACKBONES, dataset=_datasets(), method=_methods(rows))
    return {"per_dataset": table.filter(pl.col("method").is_in(["source", "ploc"])), "per_dataset_all": table}


def _datasets() -> tuple[str, ...]:
    from ploc_lab import data  # noqa: PLC0415 - the order of the tables, asked for when one is made

    return data.names()


def _methods(rows: pl.DataFrame) -> list[str]:
    return [*main.PAPER, *rows["method"].unique(maintain_order=True)]
