"""Design ablations (Table 6): other origins in place of the mean, and the label-using oracle shift."""

import polars as pl

from ploc_lab.study import frames
from ploc_lab.study.cell import ORACLE, Cell
from ploc_lab.study.evaluate import METRICS
from ploc_lab.study.grid import BACKBONES, Grid

ORIGINS = (
    "source",
    "ploc",
    "ploc_ema01",
    "ploc_ema20",
    "ploc_window100",
    "ploc_zscore",
    "ploc_huber",
    "ploc_median",
    ORACLE,
)
PAPER_BACKBONES = ("mlp", "ft_transformer")


def cells(grid: Grid) -> list[Cell]:
    """Every origin on every stream; what the main comparison lacks is the oracle."""
    return [grid.cell(*source, method) for source in grid.sources() for method in grid.wanted(ORIGINS)]


def tables(cells: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Table 6 as the paper has it (seed 0, two backbones), and over all seeds and backbones at hand."""
    rows = frames.whole(frames.plain(cells.filter(pl.col("method").is_in(ORIGINS))))
    rows = frames.paper_only(rows)
    paper = rows.filter(pl.col("seed") == 0, pl.col("backbone").is_in(PAPER_BACKBONES))
    return {
        "ablation": _summary(paper),
        "ablation_all": _summary(rows),
        "ablation_by_backbone": _by_backbone(rows),
    }


def _summary(rows: pl.DataFrame) -> pl.DataFrame:
    return frames.in_order(frames.means(rows, ["method"], METRICS), method=ORIGINS)


def _by_backbone(rows: pl.DataFrame) -> pl.DataFrame:
    return frames.in_order(
        frames.means(rows, ["backbone", "method"], METRICS), backbone=BACKBONES, method=ORIGINS
    )
