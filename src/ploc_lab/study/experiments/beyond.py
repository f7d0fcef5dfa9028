"""Beyond the paper: stream orders, drift, tree ensembles, cheap controls, the anchor, the cost of a row."""

from typing import Any

import polars as pl

from ploc_lab.methods import names
from ploc_lab.study import frames, streams
from ploc_lab.study.cell import ORACLE, Cell, Draw, forward_only
from ploc_lab.study.evaluate import METRICS
from ploc_lab.study.grid import BACKBONES, TREES, Grid

ORDERED = (
    "source",
    "ploc",
    "ploc_deferred",
    "ploc_prob",
    "ploc_ema01",
    "ploc_ema20",
    "ploc_window100",
    "em_prequential",
)
PERMUTATIONS = (1, 2, 3)
DRIFTED = (
    "source",
    "ploc",
    "ploc_prob",
    "ploc_ema01",
    "ploc_ema20",
    "ploc_window100",
    "ploc_zscore",
    "ploc_huber",
    "ploc_median",
    "em_prequential",
    "prior_ratio",
)
# Of these, whose scores are z less an origin: only an origin can follow the mean logit.
FOLLOWING = ("ploc", "ploc_ema01", "ploc_ema20", "ploc_window100", "ploc_huber", "ploc_median")
DRIFT_SAMPLES = (0, 1, 2)
CONTROLS = (
    "source",
    "ploc",
    "ploc_median",
    "prior_ratio",
    "prior_threshold",
    "em_prequential",
    "em_bcts_prequential",
    "bbse_soft_prequential",
    "rlls_prequential",
    "temperature",
    "platt",
    "ploc_anchor",
    ORACLE,
)
TREED = (
    "source",
    "ploc",
    "ploc_deferred",
    "ploc_prob",
    "ploc_median",
    "prior_ratio",
    "em_prequential",
    "platt",
    ORACLE,
)
COSTED = ("heloc", "rand_hie")
COST_ROWS = 500


def cells(grid: Grid) -> list[Cell]:
    """All of it; controls and the anchor are cells of the main comparison."""
    return [*_orders(grid), *_drifts(grid), *_trees(grid), *_controls(grid), *_costs(grid)]


def tables(cells: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """One table a question."""
    found = {
        "orders": orders(cells),
        "trees": trees(cells),
        "controls": controls(cells),
        "anchor": anchor(cells),
    }
    if "recovery_rows" in cells.columns:
        found["drift"] = drift(cells)
    if "us_per_row" in cells.columns:
        found["cost"] = cost(cells)
    return found


def orders(cells: pl.DataFrame) -> pl.DataFrame:
    """Each method in each order: means, and the change of AUROC against the source in the same order."""
    rows = cells.filter(
        pl.col("measure") == "metrics",
        pl.col("draw").is_null(),
        pl.col("batch") == 1,
        pl.col("method").is_in(ORDERED),
        pl.col("backbone").is_in(BACKBONES),
        pl.col("variant").is_in(["", "time", "sorted"]) | (pl.col("order") == "permuted"),
    )
    rows = frames.whole(frames.against(rows))
    by = ["dataset", "method", "order"]
    table = rows.group_by(by, maintain_order=True).agg(
        *(pl.col(name).mean() for name in (*METRICS, "d_accuracy", "d_auroc")),
        pl.col("d_auroc").abs().max().alias("d_auroc_max"),
        pl.len().alias("cells"),
    )
    return frames.in_order(table, order=("split", "time", "permuted", "sorted"), method=ORDERED).sort(
        "dataset", maintain_order=True
    )


def drift(cells: pl.DataFrame) -> pl.DataFrame:
    """Drifting streams: metrics over all rows and right after changes, and rows until the origin follows."""
    rows = frames.whole(frames.against(cells.filter(pl.col("measure") == "recovery"))).with_columns(
        pl.when(pl.col("method").is_in(FOLLOWING)).then(pl.col("recovery_rows", "recovered"))
    )
    over = ("accuracy", "balanced_accuracy", "ece", "nll")
    columns = [
        *over,
        *(f"after_{name}" for name in over),
        "d_balanced_accuracy",
        "recovery_rows",
        "recovered",
    ]
    table = rows.group_by("draw", "dataset", "method", maintain_order=True).agg(
        *(pl.col(name).mean() for name in columns), pl.len().alias("cells")
    )
    return frames.in_order(table, draw=streams.KINDS, method=DRIFTED).sort(
        "draw", "dataset", maintain_order=True
    )


def trees(cells: pl.DataFrame) -> pl.DataFrame:
    """Tree ensembles as frozen sources."""
    rows = frames.whole(frames.against(frames.plain(cells, TREES)))
    table = frames.means(rows, ["dataset", "backbone", "method"], [*METRICS, "d_accuracy", "d_auroc"])
    return frames.in_order(table, backbone=TREES, method=TREED).sort("dataset", maintain_order=True)


def controls(cells: pl.DataFrame) -> pl.DataFrame:
    """PLOC beside methods as cheap, which ask whether its gain is a prior correction under another name."""
    rows = frames.whole(frames.against(frames.plain(cells).filter(pl.col("method").is_in(CONTROLS))))
    ours = rows.filter(pl.col("method") == "ploc").select(
        "dataset",
        "backbone",
        "seed",
        *(pl.col(name).alias(f"ploc_{name}") for name in ("accuracy", "balanced_accuracy")),
    )
    rows = rows.join(ours, on=["dataset", "backbone", "seed"]).with_columns(
        (pl.col("ploc_accuracy") - pl.col("accuracy")).alias("ploc_ahead_accuracy"),
        (pl.col("ploc_balanced_accuracy") - pl.col("balanced_accuracy")).alias(
            "ploc_ahead_balanced_accuracy"
        ),
    )
    columns = [*METRICS, "base_rate", "positive_rate", "ploc_ahead_accuracy", "ploc_ahead_balanced_accuracy"]
    table = frames.means(rows, ["dataset", "backbone", "method"], columns)
    return frames.in_order(table, backbone=BACKBONES, method=CONTROLS).sort("dataset", maintain_order=True)


def anchor(cells: pl.DataFrame) -> pl.DataFrame:
    """The anchor: PLOC at zero and at the source's mean logit, where the target's base rate is what it is."""
    rows = cells.filter(
        pl.col("method").is_in(["source", "ploc", "ploc_anchor"]),
        pl.col("measure") == "metrics",
        pl.col("batch") == 1,
        pl.col("backbone").is_in(BACKBONES),
        (pl.col("variant") == "") | (pl.col("draw") == "prior"),
    )
    table = frames.means(
        frames.whole(rows), ["dataset", "rate", "method"], [*METRICS, "base_rate", "positive_rate"]
    )
    return table.sort("dataset", "rate", "method")


def cost(cells: pl.DataFrame) -> pl.DataFrame:
    """Wall time of one row at batch size one, network and all, over its source's, and the state carried."""
    rows = cells.filter(pl.col("measure") == "cost")
    table = rows.group_by("backbone", "method", "dataset", maintain_order=True).agg(
        pl.col("us_per_row").median(), pl.col("state", "n_adapted").max(), pl.col("n").max()
    )
    source = table.filter(pl.col("method") == "source").select(
        "backbone", "dataset", pl.col("us_per_row").alias("source_us")
    )
    table = table.join(source, on=["backbone", "dataset"]).with_columns(
        (pl.col("us_per_row") / pl.col("source_us")).alias("times_source")
    )
    return frames.in_order(table, backbone=BACKBONES, method=names()).sort("dataset", maintain_order=True)


def _orders(grid: Grid) -> list[Cell]:
    orders: list[dict[str, Any]] = [
        {"order": "time"},
        {"order": "sorted"},
        *({"order": "permuted", "order_seed": k} for k in PERMUTATIONS),
    ]
    return [
        grid.cell(*source, method, **order)
        for source in grid.sources()
        for order in orders
        for method in grid.wanted(ORDERED)
    ]


def _drifts(grid: Grid) -> list[Cell]:
    return [
        grid.cell(*source, method, draw=Draw(kind, sample), measure="recovery")
        for source in grid.sources()
        for kind in ("abrupt", "gradual", "recurring")
        for sample in DRIFT_SAMPLES
        for method in grid.wanted(DRIFTED)
    ]


def _trees(grid: Grid) -> list[Cell]:
    return [
        grid.cell(dataset, backbone, method)
        for dataset in grid.tables
        for backbone in TREES
        for method in grid.wanted(TREED)
    ]


def _controls(grid: Grid) -> list[Cell]:
    return [grid.cell(*source, method) for source in grid.sources() for method in grid.wanted(CONTROLS)]


def _costs(grid: Grid) -> list[Cell]:
    """Every method that streams, on one checkpoint of two short data sets."""
    return [
        grid.cell(*source, method, measure="cost", seeds=grid.seeds[:1], limit=COST_ROWS)
        for source in grid.sources()
        if source[0] in COSTED
        for method in grid.methods
        if method != "ploc_deferred" and (forward_only(method) or source[1] in BACKBONES)
    ]
