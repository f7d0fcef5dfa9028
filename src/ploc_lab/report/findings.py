"""What the cells say, in sentences that they fill: no number here is typed, each is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from ploc_lab.report import names, paper
from ploc_lab.report.checks import ROUNDING, SPREAD
from ploc_lab.study import experiments, frames
from ploc_lab.study.evaluate import AFTER
from ploc_lab.study.grid import BACKBONES
from ploc_lab.study.streams import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

RIVALS = ("tent", "eata", "sar", "lame", "note", "rotta", "dua", "ftat", "pft3a", "cotta", "t3a")
CONTROLS = ("prior_ratio", "ploc_median", "em_prequential", "bbse_soft_prequential")
FORGETTING = ("ploc_ema01", "ploc_ema20", "ploc_window100")
BY = ("dataset", "backbone")


class Line(NamedTuple):
    """A finding: a few words, the sentence, and the table that has the rest."""

    head: str
    words: str
    table: str


class Seen(NamedTuple):
    """All cells, and those of the plain protocol with their differences to the source."""

    cells: pl.DataFrame
    rows: pl.DataFrame


def find(cells: pl.DataFrame) -> list[Line]:
    """All findings that these cells can fill, the reproduction first."""
    seen = Seen(cells, frames.whole(frames.against(frames.plain(cells))))
    found = [make(seen) for make in ALL]
    return [line for line in found if line is not None]


def reproduced(seen: Seen) -> Line | None:
    """How many printed means of source and PLOC lie within our checkpoints' spread, on exact data."""
    exact = seen.rows.filter(
        pl.col("dataset").is_in(list(paper.STREAMS)), ~pl.col("stand_in"), pl.col("backbone").is_in(BACKBONES)
    )
    exact = exact.filter(pl.col("method").is_in(["source", "ploc"]))
    table = exact.group_by("dataset", "backbone", "method").agg(
        *(pl.col(m).mean() for m in paper.PerDataset._fields),
        *(pl.col(m).std(ddof=1).alias(f"{m}_sd") for m in paper.PerDataset._fields),
        pl.len().alias("seeds"),
    )
    table = table.filter(pl.col("seeds") >= 3)
    if not table.height:
        return None
    near: dict[str, list[bool]] = {"source": [], "ploc": []}
    for row in table.to_dicts():
        printed = paper.PER_DATASET[row["backbone"]][row["dataset"]]
        for metric in printed._fields:
            gap = abs(row[metric] - getattr(getattr(printed, metric), row["method"]))
            near[row["method"]].append(gap <= SPREAD * row[f"{metric}_sd"] + ROUNDING)
    both = [*near["source"], *near["ploc"]]
    return Line(
        f"{sum(both)} of {len(both)} printed means reproduced",
        f"On {_sets(table)}, whose files are exactly the paper's, the paper's means lie within two standard "
        f"deviations over our checkpoints {sum(near['source'])} of {len(near['source'])} times for the "
        f"source and {sum(near['ploc'])} of {len(near['ploc'])} times for PLOC.",
        _first(table),
    )


def gained(seen: Seen) -> Line | None:
    """In how many cells PLOC gains accuracy, where most, and where it loses."""
    ours = seen.rows.filter(pl.col("method") == "ploc")
    if not ours.height:
        return None
    means = ours.group_by(BY).agg(pl.col("d_accuracy", "d_f1", "d_ece").mean()).sort("d_accuracy", *BY)
    best, worst = means.row(-1, named=True), means.row(0, named=True)
    up = int((ours["d_accuracy"] > 0).sum())
    calm = int((ours["d_ece"] < 0).sum())
    return Line(
        f"PLOC gains accuracy in {up} of {ours.height} cells",
        f"A cell is a checkpoint on a data set. The mean change is {_mean(ours, 'd_accuracy'):+.3f} of "
        f"accuracy, {_mean(ours, 'd_f1'):+.3f} of F1 and {_mean(ours, 'd_ece'):+.3f} of ECE, which falls in "
        f"{calm}. Most is gained on {_place(best)} ({best['d_accuracy']:+.3f}), least on {_place(worst)} "
        f"({worst['d_accuracy']:+.3f}).",
        "self_modulation",
    )


def lost(seen: Seen) -> Line | None:
    """On which data sets and backbones plain PLOC costs accuracy or balanced accuracy."""
    ours = seen.rows.filter(pl.col("method") == "ploc")
    means = ours.group_by(BY).agg(
        pl.col("d_accuracy", "d_balanced_accuracy", "base_rate", "positive_rate").mean()
    )
    down = means.filter(pl.col("d_accuracy") < 0).sort("d_accuracy", *BY)
    if not means.height:
        return None
    if not down.height:
        return Line("PLOC costs accuracy nowhere here", "No mean over checkpoints is negative.", "controls")
    shown = "; ".join(
        f"{_place(r)} {r['d_accuracy']:+.3f} (positive {r['base_rate']:.0%}, PLOC says "
        f"{r['positive_rate']:.0%}; balanced accuracy {r['d_balanced_accuracy']:+.3f})"
        for r in down.head(4).to_dicts()
    )
    more = f"; and {down.height - 4} more" if down.height > 4 else ""
    return Line(
        f"PLOC costs accuracy on {down.height} of {means.height} streams and backbones",
        f"Means over checkpoints: {shown}{more}.",
        "controls",
    )


def ranking(seen: Seen) -> Line | None:
    """What centring does to AUROC: deferred nothing, one row at a time a little."""
    late, ours = (seen.rows.filter(pl.col("method") == m) for m in ("ploc_deferred", "ploc"))
    if not ours.height or not late.height:
        return None
    means = ours.group_by(BY).agg(pl.col("d_auroc").mean()).sort(pl.col("d_auroc").abs(), *BY)
    worst = means.row(-1, named=True)
    return Line(
        f"Deferred PLOC moves AUROC by {_top(late, 'd_auroc'):.0e} at most"
        if _top(late, "d_auroc")
        else "Deferred PLOC moves no AUROC at all",
        f"That is Proposition 1 on {late.height} streams. One row at a time PLOC's largest mean change over "
        f"checkpoints is {worst['d_auroc']:+.4f} on {_place(worst)}.",
        "deferred_gap",
    )


def idle(seen: Seen) -> Line | None:
    """Which rivals answer as the source does at batch size one, and what the others do."""
    theirs = seen.rows.filter(pl.col("method").is_in(RIVALS))
    if not theirs.height:
        return None
    moved = theirs.group_by("method").agg(
        pl.max_horizontal(pl.col(f"d_{m}").abs() for m in names.METRICS).max().alias("moved"),
        pl.col("d_accuracy", "d_auroc").mean(),
    )
    found = {r["method"]: r for r in moved.to_dicts()}
    same = [m for m in RIVALS if m in found and found[m]["moved"] < 1e-6]
    others = [m for m in RIVALS if m in found and m not in same]
    shown = "; ".join(
        f"{names.method(m)} {found[m]['d_accuracy']:+.3f} of accuracy, {found[m]['d_auroc']:+.3f} of AUROC"
        for m in others
    )
    words = (
        f"{', '.join(names.method(m) for m in same)} answered as the source on every stream. " if same else ""
    )
    return Line(
        f"{len(same)} of {len(found)} rivals do nothing at batch size one",
        words + (f"The others, against the source on the same rows: {shown}." if shown else ""),
        "doings",
    )


def controls(seen: Seen) -> Line | None:
    """Whether a control as cheap as PLOC does as well: the prior ratio, the median, EM."""
    ours = seen.rows.filter(pl.col("method") == "ploc")
    shown = []
    for name in CONTROLS:
        pairs = ours.join(seen.rows.filter(pl.col("method") == name), on=[*BY, "seed", "n"], suffix="_theirs")
        if not pairs.height:
            continue
        ahead = (pairs["balanced_accuracy"] - pairs["balanced_accuracy_theirs"]).to_list()
        plain = (pairs["accuracy"] - pairs["accuracy_theirs"]).to_list()
        shown.append(
            f"{names.method(name)}: ahead in {sum(d > 0 for d in plain)} of {len(plain)} cells in accuracy "
            f"({sum(plain) / len(plain):+.3f}) and in {sum(d > 0 for d in ahead)} in balanced accuracy "
            f"({sum(ahead) / len(ahead):+.3f})"
        )
    if not shown:
        return None
    return Line(
        "Is it a prior correction under another name?",
        "PLOC beside controls that know the source's class rates or estimate the target's. "
        f"{'; '.join(shown)}.",
        "controls",
    )


def drifting(seen: Seen) -> Line | None:
    """Whether an origin that forgets answers better than the mean right after a domain changes."""
    table = experiments.find("beyond").tables(seen.cells).get("drift")
    if table is None or not table.height:
        return None
    means = table.group_by("draw", "method").agg(pl.col("after_balanced_accuracy").mean())
    value = {(r["draw"], r["method"]): r["after_balanced_accuracy"] for r in means.to_dicts()}
    ahead, shown = 0, []
    for kind in KINDS:
        here = [m for m in FORGETTING if (kind, m) in value]
        if not here or (kind, "ploc") not in value:
            continue
        best = max(here, key=lambda m: value[kind, m])
        ahead += round(value[kind, best], 3) > round(value[kind, "ploc"], 3)
        shown.append(
            f"{kind} {names.method(best)} {value[kind, best]:.3f} (the mean {value[kind, 'ploc']:.3f})"
        )
    if not shown:
        return None
    return Line(
        f"After a change of domain, forgetting is ahead in {ahead} of {len(shown)} kinds of drift",
        f"Balanced accuracy of the best forgetting origin in the {AFTER} rows after the change, not over the "
        f"whole stream: {'; '.join(shown)}.",
        "drift",
    )


def orders(seen: Seen) -> Line | None:
    """How the order of the rows decides what PLOC does to the ranking."""
    table = experiments.find("beyond").tables(seen.cells)["orders"]
    ours = table.filter(pl.col("method") == "ploc") if table.height else table
    if not ours.height or "sorted" not in set(ours["order"]):
        return None
    most = ours.group_by("order").agg(pl.col("d_auroc_max").max(), pl.col("d_accuracy").mean())
    by = {r["order"]: r for r in most.to_dicts()}
    shown = ", ".join(
        f"{word} {by[o]['d_auroc_max']:.4f}"
        for o, word in (("split", "as it comes"), ("time", "by time"), ("permuted", "shuffled"))
        if o in by
    )
    return Line(
        f"Sorted by score, a stream moves AUROC by up to {by['sorted']['d_auroc_max']:.3f}",
        f"The worst order that needs no label. Otherwise the largest change of a checkpoint is: {shown}.",
        "orders",
    )


ALL: tuple[Callable[[Seen], Line | None], ...] = (
    reproduced,
    gained,
    lost,
    ranking,
    idle,
    controls,
    orders,
    drifting,
)


def _place(row: dict[str, str]) -> str:
    return f"{names.dataset(row['dataset'])}, {names.backbone(row['backbone'])}"


def _sets(rows: pl.DataFrame) -> str:
    return _and(names.dataset(name) for name in paper.STREAMS if name in set(rows["dataset"]))


def _first(rows: pl.DataFrame) -> str:
    return "per_dataset_" + next(b for b in BACKBONES if b in set(rows["backbone"]))


def _and(words: Iterable[str]) -> str:
    listed = list(words)
    return " and ".join([", ".join(listed[:-1]), listed[-1]] if len(listed) > 1 else listed)


def _mean(rows: pl.DataFrame, column: str) -> float:
    return float(rows[column].mean())  # type: ignore[arg-type]


def _top(rows: pl.DataFrame, column: str) -> float:
    return float(rows[column].abs().max())  # type: ignore[arg-type]
