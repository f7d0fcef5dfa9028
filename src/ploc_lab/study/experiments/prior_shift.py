"""Behaviour under controlled prior shift (figure): streams at five positive rates, three samples each."""

import polars as pl

from ploc_lab.study import frames
from ploc_lab.study.cell import Cell, Draw
from ploc_lab.study.evaluate import METRICS
from ploc_lab.study.grid import BACKBONES, Grid

RATES = (0.1, 0.3, 0.5, 0.7, 0.9)
SAMPLES = (0, 1, 2)
METHODS = ("source", "ploc", "ploc_deferred", "ploc_prob", "ploc_anchor", "ploc_median", "prior_ratio",
           "em_prequential", "bbse_soft_prequential")  # fmt: skip


def cells(grid: Grid) -> list[Cell]:
    """Every method that needs only logits, on every redrawn stream."""
    return [
        grid.cell(*source, method, draw=Draw("prior", sample, rate))
        for source in grid.sources()
        for rate in RATES
        for sample in SAMPLES
        for method in grid.wanted(METHODS)
    ]


def tables(cells: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Means at each rate over the paper's tasks at hand, backbones, checkpoints and samples; by data set."""
    rows = frames.whole(cells.filter(pl.col("draw") == "prior", pl.col("backbone").is_in(BACKBONES)))
    over = frames.paper_only(rows)
    table = frames.means(over, ["rate", "method"], METRICS)
    by = frames.means(rows, ["dataset", "backbone", "rate", "method"], METRICS)
    return {
        "prior_shift": frames.in_order(table, rate=RATES, method=METHODS),
        "prior_shift_by_dataset": frames.in_order(by, backbone=BACKBONES, rate=RATES, method=METHODS),
    }
