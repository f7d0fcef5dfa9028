"""Theoretical analysis, measured: Propositions 1 and 2 on every stream, 3 simulated, self-modulation."""

import polars as pl

from ploc_lab.study import frames, simulate
from ploc_lab.study.cell import SIMULATION, Cell
from ploc_lab.study.grid import BACKBONES, Grid

PREFIXES = (100, 300, 1_000, 3_000, 10_000, 30_000)


def cells(grid: Grid) -> list[Cell]:
    """PLOC on growing prefixes of every stream; each origin on simulated noise."""
    measured = [
        grid.cell(*source, "ploc", measure="propositions", limit=limit)
        for source in grid.sources()
        for limit in (*PREFIXES, None)
    ]
    noise = [
        Cell(dataset=SIMULATION, backbone="noise", method=method, measure="variance", seeds=grid.seeds)
        for method in grid.wanted(simulate.ORIGINS)
    ]
    return measured + noise


def tables(cells: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The propositions by prefix, the variances, and mu with the gain data set by data set."""
    found = {"self_modulation": self_modulation(cells)}
    if "drift_bound" in cells.columns:
        found["propositions"] = propositions(cells.filter(pl.col("measure") == "propositions"))
    if "variance" in cells.columns:
        found["variance"] = variance(cells.filter(pl.col("measure") == "variance"))
    return found


def propositions(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows that deferred PLOC moved (Proposition 1: none), PLOC's drift and its bound (Proposition 2)."""
    # A prefix longer than the stream is the stream.
    table = (
        frames.once(rows)
        .group_by("dataset", "backbone", "n", maintain_order=True)
        .agg(
            pl.col("rank_changes", "rank_changes_sigmoid").max(),
            (pl.col("auroc_deferred") - pl.col("auroc_source")).abs().max().alias("auroc_deferred_gap"),
            pl.col("drift").mean(),
            pl.col("drift").max().alias("drift_max"),
            pl.col("drift_bound").mean(),
            (pl.col("drift") <= pl.col("drift_bound")).all().alias("bound_holds"),
            pl.len().alias("seeds"),
        )
    )
    return frames.in_order(table.sort("dataset", "n"), backbone=BACKBONES).sort(
        "dataset", maintain_order=True
    )


def variance(rows: pl.DataFrame) -> pl.DataFrame:
    """Measured variance over the least possible one, beside what the weights promise (Proposition 3)."""
    table = rows.group_by("method", maintain_order=True).agg(
        pl.col("n").first(), pl.col("variance", "bias", "variance_promised", "variance_least").mean()
    )
    times = (pl.col("variance") / pl.col("variance_least")).alias("times_least")
    return frames.in_order(table.with_columns(times), method=tuple(simulate.ORIGINS))


def self_modulation(cells: pl.DataFrame) -> pl.DataFrame:
    """The stream's mean logit, the source's share of positive answers, and what PLOC gained."""
    rows = frames.whole(frames.against(frames.plain(cells)))
    ours = rows.filter(pl.col("method") == "ploc")
    source = rows.filter(pl.col("method") == "source").select(
        "dataset", "backbone", "seed", pl.col("positive_rate").alias("source_positive_rate")
    )
    return (
        ours.join(source, on=["dataset", "backbone", "seed"])
        .group_by("dataset", "backbone", maintain_order=True)
        .agg(
            pl.col("mu").mean(),
            pl.col("mu").std(ddof=1).alias("mu_sd"),
            pl.col("base_rate", "source_positive_rate", "positive_rate").mean(),
            pl.col("d_accuracy", "d_balanced_accuracy", "d_f1", "d_auroc", "d_ece", "d_nll").mean(),
        )
    )
