"""Batch size confirms a distinct regime (figure): methods of the batch from B = 1 to 1024."""

import polars as pl

from ploc_lab.study import frames
from ploc_lab.study.cell import Cell
from ploc_lab.study.evaluate import METRICS
from ploc_lab.study.grid import PAPER_TASKS, Grid

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
SEEDS = (0, 1, 2)
BACKBONES = ("mlp", "ft_transformer")
METHODS = (
    "source",
    "ploc",
    "ploc_deferred",
    "ploc_batch",
    "lame",
    "lame_rbf",
    "lame_linear",
    "ftat",
    "pft3a",
    "em",
    "bbse_soft",
    "adaptable",
)
ACS = PAPER_TASKS["acs_pubcov"]
TWICE = "source", "ploc_deferred"  # no cut of the stream can change these: one size is enough


def cells(grid: Grid) -> list[Cell]:
    """The sweep on all benchmarks but ACS, as in the paper; sources meet cut streams at their length."""
    few = tuple(seed for seed in grid.seeds if seed in SEEDS)
    # at B = 1 these are cells of the main comparison, of which the table takes the three seeds
    swept = [
        grid.cell(dataset, backbone, method, batch=size, seeds=grid.seeds if size == 1 else few)
        for dataset, backbone in grid.sources()
        if dataset not in ACS and backbone in BACKBONES
        for size in SIZES
        for method in grid.wanted(METHODS)
        if size == 1 or method not in TWICE
    ]
    return grid.paired(swept)


def tables(cells: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Means by batch size over data sets and backbones, and changes against the source on the same rows."""
    rows = frames.once(
        cells.filter(
            pl.col("variant") == "",
            pl.col("seed").is_in(SEEDS),
            pl.col("backbone").is_in(BACKBONES),
            pl.col("method").is_in(METHODS),
            ~pl.col("dataset").is_in(ACS),
        )
    )
    rows = frames.whole(frames.against(rows))
    columns = [*METRICS, "d_auroc", "d_accuracy"]
    over = frames.means(frames.paper_only(rows), ["method", "batch"], columns)
    by = frames.means(rows, ["dataset", "backbone", "method", "batch"], columns)
    return {
        "batch": frames.in_order(over, method=METHODS, batch=SIZES),
        "batch_by_dataset": frames.in_order(by, backbone=BACKBONES, method=METHODS, batch=SIZES),
    }
