"""A generalization probe beyond tabular data (two tables): PLOC-K on CIFAR-10, one image at a time.

Profile `paper` is FITTED to the paper's printed source accuracies (see `data.corruptions`): that noise s3,
contrast s5 and blur s3 lose as much as there is by construction. Profile `cifar10c` is the published one.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from ploc_lab.data.corruptions import KINDS, PROFILES, SEVERITIES, Kind
from ploc_lab.report import paper
from ploc_lab.study import frames
from ploc_lab.study.cell import Cell, Picture
from ploc_lab.study.evaluate import METRICS
from ploc_lab.study.grid import Grid

DATASET, BACKBONE = "cifar10", "cnn"
SEEDS = (0, 1, 2)
RHOS = (10.0, 100.0)
NOISE: Kind = "gaussian_noise"
FITTED = "paper"
DAMAGE = 0.05  # accuracy that a corruption must cost the source for the paper's "large losses"
WHOLE = 10_000  # a batch that holds every stream: what a batched method does when it may wait for all of it

# Methods that need logits alone, on every stream of both profiles.
FORWARD = (
    "source",
    "lame",
    "ploc_k",
    "ploc_deferred",
    "prior_ratio",
    "em_prequential",
    "bbse_soft_prequential",
    "rlls_prequential",
)
BATCHED = ("em", "bbse_soft", "rlls")
# Methods that normalise by the one image, and the control that does no more than that: hours of single steps
# over both profiles. Where no image's entropy is below MARGIN, EATA and SAR choose none and answer as the
# control does: `entropy_least` of the control says so.
NORMALISING = ("bn_stats", "tent", "eata", "sar")
MARGIN = 0.4 * math.log(10)

# The two-class stream. The paper states neither the classes nor the corruption: these are our choice.
PAIRS = ("cifar10_airplane_automobile", "cifar10_cat_dog")
PAIR_STREAMS = tuple(Picture(NOISE, 3, profile) for profile in (FITTED, "cifar10c"))
PAIR_METHODS = (
    "source",
    "bn_stats",
    "tent",
    "eata",
    "sar",
    "lame",
    "ploc",
    "ploc_deferred",
    "ploc_prob",
    "ploc_median",
    "prior_ratio",
    "em_prequential",
    "bbse_soft_prequential",
    "rlls_prequential",
)


def streams(profile: str) -> list[Picture]:
    """The thirteen streams of a profile; those without a corruption are the same in every profile."""
    corrupted = [Picture(kind, severity, profile) for kind in KINDS for severity in SEVERITIES]
    tails = [Picture(rho=rho) for rho in RHOS] + [Picture(NOISE, 3, profile, rho) for rho in RHOS]
    return [Picture(), *corrupted, *tails]


def cells(grid: Grid) -> list[Cell]:
    """All streams by three checkpoints, and the two-class streams by one; nothing where CIFAR-10 is not."""
    if DATASET not in grid.datasets:
        return []
    found = []
    for picture in dict.fromkeys(p for profile in PROFILES for p in streams(profile)):
        found += [_cell(grid, picture, method) for method in grid.wanted((*FORWARD, *NORMALISING))]
        found += [_cell(grid, picture, method, batch=WHOLE) for method in grid.wanted(BATCHED)]
    for pair in PAIRS:
        for picture in PAIR_STREAMS:
            found += pair_cells(grid, pair, picture)
    return found


def pair_cells(grid: Grid, pair: str, picture: Picture) -> list[Cell]:
    """The two-class stream of any pair of classes and any corruption, by one checkpoint as in the paper.

    >>> cells = pair_cells(Grid(("cifar10",)), "cifar10_deer_ship", Picture("contrast", 5, "cifar10c"))
    >>> cells[0].name, cells[0].seeds
    ('cifar10_deer_ship/cnn/source B=1 contrast_s5 (cifar10c)', (0,))
    """
    asked: dict[str, Any] = {"draw": picture, "seeds": grid.seeds[:1]}
    return [_uncut(grid).cell(pair, BACKBONE, method, **asked) for method in grid.wanted(PAIR_METHODS)]


def tables(cells: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The paper's two tables with its numbers beside ours, every method on every stream, every run."""
    ten, two = runs(cells), pairs(cells)
    found = {} if two.is_empty() else {"vision": two_class(two)}
    if not ten.is_empty():
        found |= {
            "vision10": ten_class(ten),
            "vision10_methods": every_method(ten),
            "vision10_one_class": one_class(ten),
        }
    return found


def runs(cells: pl.DataFrame) -> pl.DataFrame:
    """The ten-class rows, one a (profile, stream, seed, method, batch, n); clean streams are in each one."""
    named = [
        {"variant": _plain(picture).variant, "profile": profile, "stream": picture.stream}
        for profile in PROFILES
        for picture in streams(profile)
    ]
    order = [picture.stream for picture in streams(FITTED)]
    rows = cells.filter(pl.col("dataset") == DATASET, pl.col("backbone") == BACKBONE)
    rows = frames.whole(rows).join(pl.DataFrame(named), on="variant", maintain_order="left")
    return frames.in_order(rows, profile=(FITTED, *PROFILES), stream=order)


def pairs(cells: pl.DataFrame) -> pl.DataFrame:
    """The rows of the two-class streams."""
    pair = pl.col("dataset").str.starts_with(f"{DATASET}_")
    return frames.whole(cells.filter(pair, pl.col("backbone") == BACKBONE))


def two_class(rows: pl.DataFrame) -> pl.DataFrame:
    """Each method on each two-class stream, beside the paper's table on its unnamed pair and corruption."""
    columns = ("accuracy", "balanced_accuracy", "f1", "auroc", "ece")
    said = ("nll", "brier", "positive_rate", "n_adapted", "steps")
    table = rows.select("dataset", "variant", "method", "seed", "n", *columns, *said)
    printed = pl.DataFrame(
        [{"method": name} | _printed(row) for name, row in paper.VISION.items()],
        schema={"method": pl.String} | {f"paper_{name}": pl.Float64 for name in columns},
    )
    table = table.join(printed, on="method", how="left", maintain_order="left")
    variants = [str(picture) for picture in PAIR_STREAMS]
    return frames.in_order(table, dataset=PAIRS, variant=variants, method=PAIR_METHODS)


def ten_class(ten: pl.DataFrame) -> pl.DataFrame:
    """Source and PLOC-K, LAME, the normalising methods and deferred PLOC-K's AUROCs: means over checkpoints.

    `normalising` is over Tent, EATA and SAR, `control` what normalises as they do and learns nothing.
    """
    stream = ["profile", "stream"]
    four = ("accuracy", "balanced_accuracy", "ece", "nll")
    source, ploc_k, lame, normalising, control, moved = (
        rows.group_by(stream)
        for rows in (
            *(_of(ten, m) for m in ("source", "ploc_k", "lame", NORMALISING[1:], NORMALISING[0])),
            changes(ten),
        )
    )
    d_ovo = pl.col("d_ovo")
    needed = (
        source.agg(*_means(four, "source"), pl.len().alias("checkpoints"), pl.col("n").max()),
        ploc_k.agg(*_means(four, "ploc_k")),
        lame.agg(pl.col("accuracy").mean().alias("lame")),
        moved.agg(d_ovo.mean(), d_ovo.abs().max().alias("d_ovo_largest"), pl.col("d_ovr").mean()),
    )
    beside = (
        normalising.agg(pl.col("accuracy").mean().alias("normalising")),
        control.agg(pl.col("accuracy").mean().alias("control")),
    )
    table = ten.select(stream).unique(maintain_order=True)
    for part in needed:
        table = table.join(part, on=stream, how="inner", maintain_order="left")
    for part in beside:
        table = table.join(part, on=stream, how="left", maintain_order="left")
    fitted = pl.col("profile") == FITTED
    printed = pl.DataFrame([{"stream": name} | _printed10(row) for name, row in paper.VISION10.items()])
    comparable = fitted | pl.col("stream").is_in(UNCORRUPTED)
    table = table.join(printed, on="stream", how="left", maintain_order="left").with_columns(
        pl.when(comparable).then(pl.col("^paper_.*$"))
    )
    return table.with_columns(
        pl.when(fitted).then(pl.lit(f"{FITTED} (fitted)")).otherwise("profile").alias("profile")
    )


def every_method(ten: pl.DataFrame) -> pl.DataFrame:
    """Every method on every stream: means over checkpoints."""
    return ten.group_by("profile", "stream", "method", "batch", "n", maintain_order=True).agg(
        *(pl.col(name).mean() for name in (*METRICS, "auroc_ovr")),
        pl.len().alias("checkpoints"),
        pl.col("n_adapted").max(),
        pl.col("n_nan").sum(),
    )


def one_class(ten: pl.DataFrame) -> pl.DataFrame:
    """What the normalising methods answer, run by run: the class answered most, its share, the accuracy.

    `d_control` is the largest distance of any metric from the control's, which learns nothing;
    `entropy_least` is that of the surest image.
    """
    keys = ["profile", "stream", "seed"]
    control = _of(ten, NORMALISING[0]).select(*keys, *METRICS)
    rows = _of(ten, NORMALISING).join(control, on=keys, how="left", suffix="_control", maintain_order="left")
    away = pl.max_horizontal((pl.col(m) - pl.col(f"{m}_control")).abs() for m in METRICS)
    columns = ("n", "top_class", "top_share", "accuracy", "entropy_least", "steps", "n_adapted", "skipped")
    return rows.select("profile", "stream", "method", "seed", *columns, away.alias("d_control"))


def changes(ten: pl.DataFrame) -> pl.DataFrame:
    """Run by run, how deferred PLOC-K changes the source's one-vs-one and one-vs-rest AUROC (Remark 1)."""
    keys = ["profile", "stream", "seed"]
    source, deferred = (
        _of(ten, method).select(
            *keys, pl.col("auroc").alias(f"ovo_{k}"), pl.col("auroc_ovr").alias(f"ovr_{k}")
        )
        for k, method in enumerate(("source", "ploc_deferred"))
    )
    return source.join(deferred, on=keys, maintain_order="left").with_columns(
        (pl.col("ovo_1") - pl.col("ovo_0")).alias("d_ovo"), (pl.col("ovr_1") - pl.col("ovr_0")).alias("d_ovr")
    )


class Measured(NamedTuple):
    """What the section claims, measured on one profile's runs."""

    runs: int
    lame_difference: float
    """The largest distance of any metric of LAME from its source's."""
    accuracy_source: dict[str, float]
    """By stream, means over checkpoints; likewise the changes from source to PLOC-K that follow."""
    accuracy: dict[str, float]
    balanced_accuracy: dict[str, float]
    ece: dict[str, float]
    nll: dict[str, float]
    ovo_largest: float
    """The largest change of one-vs-one AUROC by deferred PLOC-K over all runs."""
    ovr_range: tuple[float, float]
    ovr_up: float
    """The share of runs on shifted streams (all but the control) whose one-vs-rest AUROC rises."""

    @property
    def damaged(self) -> list[str]:
        """The corrupted, balanced streams on which the source loses DAMAGE or more of its clean accuracy."""
        clean = self.accuracy_source["clean"]
        return [s for s in CORRUPTED if self.accuracy_source[s] <= clean - DAMAGE]


def measured(cells: pl.DataFrame, profile: str = FITTED) -> Measured | None:
    """The quantities that the section's claims are about; None while a run of them is missing."""
    ten = runs(cells).filter(pl.col("profile") == profile)
    parts = {method: _of(ten, method) for method in ("source", "lame", "ploc_k", "ploc_deferred")}
    if any(part.height < len(streams(profile)) * len(SEEDS) for part in parts.values()):
        return None
    table = ten_class(ten)
    keys = ["stream", "seed"]
    both = (
        parts["lame"]
        .select(*keys, *METRICS)
        .join(parts["source"].select(*keys, *METRICS), on=keys, suffix="_source")
    )
    delta = changes(ten)
    moved = delta.filter(pl.col("stream") != "clean")["d_ovr"]

    def change(metric: str) -> dict[str, float]:
        values = table[f"{metric}_ploc_k"] - table[f"{metric}_source"]
        return dict(zip(table["stream"], values, strict=True))

    return Measured(
        runs=parts["source"].height,
        lame_difference=max(_number((both[m] - both[f"{m}_source"]).abs().max()) for m in METRICS),
        accuracy_source=dict(zip(table["stream"], table["accuracy_source"], strict=True)),
        accuracy=change("accuracy"),
        balanced_accuracy=change("balanced_accuracy"),
        ece=change("ece"),
        nll=change("nll"),
        ovo_largest=_number(delta["d_ovo"].abs().max()),
        ovr_range=(_number(delta["d_ovr"].min()), _number(delta["d_ovr"].max())),
        ovr_up=_number((moved > 0).mean()),
    )


class Collapse(NamedTuple):
    """What the normalising methods answer on one profile's streams."""

    runs: int
    """Of each method: so many streams and checkpoints."""
    one_class_share: dict[str, float]
    """Of each method the smallest share of the class that a run answers most."""
    accuracy: dict[str, tuple[float, float]]
    """Of each method the lowest and the highest accuracy of a run."""
    apart: float
    """The largest difference of two methods' accuracy on one stream, means over checkpoints."""
    control_difference: float
    """The largest distance of any metric of EATA and SAR from the control's."""
    entropy_least: float
    """The surest image of the control over all runs, in nats; EATA and SAR learn below MARGIN."""


def collapse(cells: pl.DataFrame, profile: str = FITTED) -> Collapse | None:
    """How the normalising methods collapse; None while a run of them is missing."""
    ten = runs(cells).filter(pl.col("profile") == profile)
    if ten.is_empty():
        return None
    rows = one_class(ten)
    by = {m: rows.filter(pl.col("method") == m) for m in NORMALISING}
    expected = len(streams(profile)) * len(SEEDS)
    if any(part.height < expected for part in by.values()):
        return None
    learning = rows.filter(pl.col("method") != NORMALISING[0])
    mean = learning.group_by("stream", "method").agg(pl.col("accuracy").mean())
    apart = mean.group_by("stream").agg(pl.col("accuracy").max() - pl.col("accuracy").min())
    return Collapse(
        runs=expected,
        one_class_share={m: _number(part["top_share"].min()) for m, part in by.items()},
        accuracy={
            m: (_number(part["accuracy"].min()), _number(part["accuracy"].max())) for m, part in by.items()
        },
        apart=_number(apart["accuracy"].max()),
        control_difference=_number(pl.concat([by["eata"], by["sar"]])["d_control"].max()),
        entropy_least=_number(by[NORMALISING[0]]["entropy_least"].min()),
    )


CORRUPTED = tuple(p.stream for p in streams(FITTED) if p.corruption is not None and p.rho is None)
UNCORRUPTED = tuple(p.stream for p in streams(FITTED) if p.corruption is None)


def _cell(grid: Grid, picture: Picture, method: str, **fields: Any) -> Cell:
    seeds = tuple(seed for seed in grid.seeds if seed in SEEDS)
    asked = {"draw": picture, "seeds": seeds, "measure": "multiclass"} | fields
    if picture.rho is not None:
        asked["order"] = "permuted"
    return _uncut(grid).cell(DATASET, BACKBONE, method, **asked)


def _uncut(grid: Grid) -> Grid:
    """The grid without its cut of slow methods: the probe has its own."""
    return replace(grid, slow_limit=None)


def _plain(picture: Picture) -> Cell:
    return _cell(Grid(datasets=(DATASET,)), picture, "source")


def _of(rows: pl.DataFrame, method: str | Iterable[str]) -> pl.DataFrame:
    """The rows of a method, or of several, at batch size one."""
    names = [method] if isinstance(method, str) else list(method)
    return rows.filter(pl.col("method").is_in(names), pl.col("batch") == 1)


def _printed(row: paper.Origin) -> dict[str, float]:
    return {f"paper_{name}": value for name, value in row._asdict().items()}


def _printed10(row: paper.TenClass) -> dict[str, float]:
    printed = {"normalising": row.normalising, "lame": row.lame, "d_ovr": row.deferred_ovr}
    for name in ("accuracy", "ece", "nll"):
        change: paper.Change = getattr(row, name)
        printed |= {f"{name}_source": change.source, f"{name}_ploc_k": change.ploc}
    return {f"paper_{name}": value for name, value in printed.items()}


def _means(metrics: Iterable[str], side: str) -> list[pl.Expr]:
    return [pl.col(name).mean().alias(f"{name}_{side}") for name in metrics]


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
