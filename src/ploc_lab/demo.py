"""The laboratory at work in under a minute: the paper's methods, one row at a time, on the embedded data."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - the command line reads the annotation
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from ploc_lab import paths
from ploc_lab.report import claims, figures, names, page, tables
from ploc_lab.study import frames, runner
from ploc_lab.study.commands import write_tables
from ploc_lab.study.evaluate import METRICS
from ploc_lab.study.experiments import main, theory
from ploc_lab.study.grid import Grid
from ploc_lab.study.store import Store, replace_file

if TYPE_CHECKING:
    import polars as pl

SMALL = Grid(
    ("rand_hie", "rand_hie_health"),
    backbones=("mlp",),
    methods=(*main.PAPER, "ploc_deferred"),
    seeds=(0, 1, 2),
    limit=2_000,
)
SOURCE_ROWS = 4_000
"""Rows that the networks are trained on: enough for this table, and done in seconds."""
FIGURE = "gains"
ABOUT = {
    "rand_hie": (
        "Trained on people without a physical limitation, a third of whom see a doctor often; met: people "
        "with one, half of whom do."
    ),
    "rand_hie_health": "The same table, met: people in good health. Their rate is that of the source.",
}


def demo(*, workers: int | None = None, out: Path | None = None) -> None:
    """Run a small study on the embedded data: train, freeze, meet a shifted stream, sum up.

    Parameters
    ----------
    workers
        Processes, one thread each; one a processor by default.
    out
        Where its cells, tables, figures and page go; a folder of the work folder by default.
    """
    out = out or paths.work_root() / "demo"
    console = Console(highlight=False)
    console.print(
        f"A small study. {len(SMALL.seeds)} networks a task are trained on {SOURCE_ROWS:,} rows and frozen; "
        f"{len(SMALL.methods)} methods answer the first {SMALL.limit:,} rows of a shifted stream, one at a "
        "time, without a label.\n"
    )
    asked = [
        cell.but(recipe=(("limit", SOURCE_ROWS),)) for cell in (*main.cells(SMALL), *theory.cells(SMALL))
    ]
    store = Store(out / "cells")
    outcome = runner.run(asked, store, runner.local(workers), Console(stderr=True))
    if not outcome.ok:
        sys.exit(1)
    cells = store.gather(outcome.keys)
    write_tables(cells, out, ("main", "theory"))
    drawn = figures.draw(cells)
    figures.save(drawn, out / "figures")
    replace_file(
        out / "index.html", page.html(cells, tables.build(cells), drawn, claims.ledger(cells)).encode()
    )
    for name in SMALL.datasets:
        console.print(f"[bold]{names.dataset(name)}[/bold]  {ABOUT[name]}", table(cells, name))
    console.print(
        "PLOC moves the middle of the scores to even odds. Where the shift has carried the stream there, it "
        "restores the threshold; where the base rate stays far from one half, it costs accuracy. A method "
        "that has nothing to move at batch size one answers as its source, and is said to.\n\n"
        f"the page    {out / 'index.html'}\nthe figure  {out / 'figures' / FIGURE}.png"
    )


def table(cells: pl.DataFrame, dataset: str) -> Table:
    """The means over checkpoints on one stream, for eighty columns."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    shown.add_column("method")
    for metric in METRICS[:-1]:
        shown.add_column(names.metric(metric), justify="right")
    shown.add_column("moved", justify="right")
    rows = frames.whole(frames.against(frames.plain(cells.filter(cells["dataset"] == dataset))))
    for row in main.summary(rows).to_dicts():
        best = (row["best"] or "").split()
        numbers = (
            f"[bold]{row[metric]:.3f}[/bold]" if metric in best else f"{row[metric]:.3f}"
            for metric in METRICS[:-1]
        )
        as_source = row["no_op"] and row["method"] != "source"
        shown.add_row(
            names.method(row["method"]), *numbers, "as source" if as_source else f"{row['n_adapted']:,}"
        )
    return shown
