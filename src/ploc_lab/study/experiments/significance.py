"""Results, statistical significance: PLOC against the source and each rival, paired over all checkpoints."""

from typing import Any

import polars as pl

from ploc_lab.study import frames
from ploc_lab.study.cell import Cell
from ploc_lab.study.experiments import main
from ploc_lab.study.grid import BACKBONES, Grid
from ploc_lab.study.stats import holm, paired

RIVALS = (
    "source",
    "tent",
    "eata",
    "sar",
    "lame",
    "ftat",
    "pft3a",
    "ploc_prob",
    "ploc_deferred",
    "prior_ratio",
    "ploc_median",
    "em_prequential",
    "t3a",
    "cotta",
)
TESTED = ("accuracy", "balanced_accuracy", "f1", "auroc", "ece", "nll", "brier")


def cells(grid: Grid) -> list[Cell]:
    """The cells of the main comparison."""
    return main.cells(grid)


def tables(cells: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Two-sided Wilcoxon tests of PLOC minus the rival, on the rows that both answered.

    Holm's correction is over all tests of one backbone; `n` is data sets times seeds.
    """
    rows = frames.plain(cells)
    tests = [_tests(frames.paper_only(rows), "paper's tasks"), _tests(rows, "all")]
    return {"significance": pl.concat(tests, how="diagonal_relaxed")}


def _tests(rows: pl.DataFrame, over: str) -> pl.DataFrame:
    found: list[dict[str, Any]] = []
    for backbone in (b for b in BACKBONES if b in rows["backbone"].unique()):
        family: list[dict[str, Any]] = []
        for rival in RIVALS:
            here = frames.whole(rows.filter(pl.col("backbone") == backbone, pl.col("method") == rival))
            on = ["dataset", "seed", "n"]
            both = here.join(
                rows.filter(pl.col("backbone") == backbone, pl.col("method") == "ploc"),
                on=on,
            )
            for metric in TESTED:
                pairs = both.select(metric, f"{metric}_right").drop_nulls()
                if pairs.height:
                    result = paired(pairs[f"{metric}_right"], pairs[metric])
                    family.append(
                        {"over": over, "backbone": backbone, "rival": rival, "metric": metric}
                        | result._asdict()
                    )
        for row, p in zip(family, holm([row["p"] for row in family]), strict=True):
            found.append(row | {"p_holm": p})
    return pl.DataFrame(found)
