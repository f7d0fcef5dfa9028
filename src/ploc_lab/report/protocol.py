"""How the numbers came about: what each method did, which streams were cut, orders, seeds, versions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl

from ploc_lab import data
from ploc_lab.report import names
from ploc_lab.report.table import Number, Row, Table
from ploc_lab.study import frames
from ploc_lab.study.cell import SIMULATION
from ploc_lab.study.experiments import main
from ploc_lab.study.grid import BACKBONES

if TYPE_CHECKING:
    from collections.abc import Iterable


def tables(cells: pl.DataFrame) -> list[Table]:
    """What each method did one row at a time, and the streams that were cut."""
    return [doings(cells), cuts(cells)]


def doings(cells: pl.DataFrame) -> Table:
    """Weights moved, steps taken, rows skipped and why, answers that were not a number, no-ops."""
    rows = frames.whole(frames.against(frames.plain(cells)))
    listed = [*main.PAPER, *rows["method"].unique(maintain_order=True).sort()]
    backbones = [b for b in BACKBONES if b in set(rows["backbone"])]
    made = []
    for method in dict.fromkeys(listed):
        here = rows.filter(pl.col("method") == method)
        if not here.height:
            continue
        weights = {r["backbone"]: r["n_adapted"] for r in _most(here).to_dicts()}
        moved = here.select(pl.max_horizontal(pl.col(f"d_{m}").abs() for m in names.METRICS).max()).item()
        made.append(
            Row(
                (
                    names.method(method),
                    *(Number(weights.get(b), 0) for b in backbones),
                    Number(here.select((pl.col("steps") / pl.col("n")).mean()).item(), 2),
                    Number(int(here["n_nan"].sum()), 0),
                    "yes" if method != "source" and (moved or 0.0) < 1e-6 else "",
                    _skipped(here),
                )
            )
        )
    heads = (
        "Method",
        *(f"weights, {names.backbone(b)}" for b in backbones),
        "steps a row",
        "NaN",
        "no-op",
        "skipped, share of rows",
    )
    return Table(
        "doings",
        "What each method did, one row at a time",
        heads,
        made,
        [
            "weights: how many numbers of the network it moved, at most over streams",
            "steps a row: updates of weights or of a running state",
            "NaN: answers that were not a number and fell back to the source's",
            "no-op: no metric moved by 1e-6 on any stream",
        ],
    )


def cuts(cells: pl.DataFrame) -> Table:
    """Which methods answered a prefix, of which streams, and how long."""
    rows = frames.whole(frames.plain(cells))
    full = pl.col("n").max().over("dataset", "backbone")
    short = rows.with_columns(full.alias("full")).filter(pl.col("n") < pl.col("full"))
    found = short.group_by("dataset", "backbone", "n", "full").agg(pl.col("method").unique().sort())
    found = frames.in_order(found, dataset=data.names(), backbone=BACKBONES, n=[])
    made = [
        Row(
            (
                names.dataset(r["dataset"]),
                names.backbone(r["backbone"]),
                Number(r["n"], 0),
                Number(r["full"], 0),
                "; ".join(names.method(m) for m in r["method"]),
            )
        )
        for r in found.to_dicts()
    ]
    return Table(
        "cuts",
        "Streams cut to their first rows",
        ("Data set", "Backbone", "rows answered", "of", "methods"),
        made,
        ["Δ in every table is against the source on the same rows; other methods answered the whole stream"],
    )


def facts(cells: pl.DataFrame) -> list[tuple[str, str]]:
    """The protocol in a few words each: what was asked, of what, in which order, by which versions."""
    real = cells.filter(pl.col("dataset") != SIMULATION)
    plain = frames.plain(real)
    found = [
        ("results", f"{cells['id'].n_unique():,} cells, {cells.height:,} rows: one a cell and checkpoint"),
        ("checkpoints", f"seeds {_listed(real['seed'])}; an experiment may ask for fewer, its table says"),
        ("batch size", f"1 unless a table names another; here {_listed(real['batch'])}"),
        ("order of the stream", f"{_orders(real)}; a split's own order unless a table names another"),
        ("target labels", "sealed until the last prediction of a stream; the oracle shift alone uses them"),
        ("answers that were not a number", f"{real['n_nan'].sum():,} of {_answers(real):,}"),
        ("versions", "; ".join(sorted(set(cells["versions"].drop_nulls())))),
    ]
    if plain.height:
        spread = plain.group_by("dataset", "backbone").agg(pl.col("checkpoint").n_unique())
        distinct = spread["checkpoint"].sum()
        found.insert(2, ("source models", f"{distinct} frozen networks behind the plain protocol"))
    return found


def _most(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by("backbone").agg(pl.col("n_adapted").max())


def _skipped(rows: pl.DataFrame) -> str:
    """Each reason with the share of rows that it concerned, the most frequent first."""
    counts: dict[str, int] = {}
    for text in rows["skipped"].drop_nulls():
        for reason, rows_skipped in json.loads(text).items():
            counts[reason] = counts.get(reason, 0) + rows_skipped
    total = int(rows["n"].sum())
    shown = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return "; ".join(f"{_share(k / total)} {reason}" for reason, k in shown)


def _share(value: float) -> str:
    return f"{value:.0%}" if value >= 0.01 else "<1%"


def _answers(rows: pl.DataFrame) -> int:
    return int(rows["n"].sum())


def _orders(rows: pl.DataFrame) -> str:
    here = set(rows["order"].drop_nulls())
    return ", ".join(o for o in ("split", "time", "permuted", "sorted") if o in here)


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(str(v) for v in sorted(set(values)))
