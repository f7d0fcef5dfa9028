"""The commands of the report: `ploc-lab report` writes it, `ploc-lab claims` prints the ledger."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from ploc_lab.report import claims as ledger
from ploc_lab.study.store import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ploc_lab.report.claims import Entry
    from ploc_lab.report.table import Table

CELLS = "cells.parquet"
NEEDED = (
    "id", "dataset", "backbone", "seed", "method", "batch", "variant", "n", "limit", "accuracy",
    "balanced_accuracy", "f1", "auroc", "ece", "nll", "brier", "n_adapted", "n_nan", "measure", "order",
    "draw", "rate", "stand_in", "base_rate", "positive_rate", "mu", "steps", "state", "skipped", "checkpoint",
    "data",
)  # fmt: skip
SHOWN = ("streams", "main", "deferred", "per_dataset_", "main_other")
"""Tables that the terminal shows, by how their names begin; those of data that aren't the paper's alone."""
WIDTH = 150
"""Columns where nobody says how wide a line is: a pipe, a file."""


def report(*, results: Path = Path("results"), out: Path | None = None) -> None:
    """Write tables, figures, claims and one HTML page from the gathered cells; nothing is run again.

    Parameters
    ----------
    results
        Where `ploc-lab run` left `cells.parquet`.
    out
        Where `tables/`, `figures/`, `claims.json` and `index.html` go; the same folder by default.
    """
    from ploc_lab.report import figures, page, tables  # noqa: PLC0415 - the ledger needs no matplotlib

    cells = read(results)
    out = results if out is None else out
    made, drawn, entries = tables.build(cells), figures.draw(cells), ledger.ledger(cells)
    for table in made:
        replace_file(out / "tables" / f"{table.name}.md", table.markdown().encode())
        replace_file(out / "tables" / f"{table.name}.tex", table.latex().encode())
    figures.save(drawn, out / "figures")
    replace_file(out / "claims.json", ledger.as_json(entries).encode())
    replace_file(out / "index.html", page.html(cells, made, drawn, entries).encode())
    console = _console()
    for table in _main(made):
        console.print(table.terminal(), "")
    console.print(f"Claims: {_counted(entries)}", highlight=False)
    Console(stderr=True).print(
        f"{len(made)} tables, {len(drawn)} figures, {len(entries)} claims: {out / 'index.html'}",
        highlight=False,
    )


def claims(*, results: Path = Path("results"), json: bool = False) -> None:
    """Print the ledger: each claim of the paper, what it prints, what was found, the verdict and why.

    Parameters
    ----------
    results
        Where `ploc-lab run` left `cells.parquet`.
    json
        As data: objects of id, place, claim, threshold, paper, ours, verdict, reason.
    """
    entries = ledger.ledger(read(results))
    if json:
        sys.stdout.write(ledger.as_json(entries))
        return
    _console().print(_listed(entries), _counted(entries), highlight=False)


def read(results: Path) -> pl.DataFrame:
    """The gathered cells of a results folder."""
    path = results / CELLS
    if not path.exists():
        raise ValueError(f"there is no {path}: `ploc-lab run --out {results}` makes it")
    try:
        cells = pl.read_parquet(io.BytesIO(path.read_bytes()))
    except pl.exceptions.PolarsError as error:
        why = str(error).splitlines()[0]
        raise ValueError(f"{path} can't be read ({why}): `ploc-lab run` gathers it anew") from error
    if missing := [name for name in NEEDED if name not in cells.columns]:
        raise ValueError(f"{path} has no column {missing[0]!r}: it was not gathered by `ploc-lab run`")
    if not cells.height:
        raise ValueError(f"{path} has no rows: `ploc-lab run` fills it")
    return cells


def _main(made: Iterable[Table]) -> list[Table]:
    tables = {table.name: table for table in made}
    shown = [t for name, t in tables.items() if name.startswith(SHOWN[:-1]) and t.name not in _ASIDE]
    return shown if "main" in tables else [*shown, *(tables[n] for n in SHOWN[-1:] if n in tables)]


_ASIDE = frozenset({"main_more", "main_other", "main_exact", "deferred_gap"})
_STYLES = {ledger.HOLDS: "bold blue", ledger.FAILS: "bold dark_orange3", ledger.UNTESTABLE: "dim"}


def _listed(entries: Iterable[Entry]) -> RichTable:
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_lines=True, expand=True)
    for head, ratio in (("claim", 5), ("paper", 2), ("ours", 3), ("verdict", 5)):
        shown.add_column(head, ratio=ratio, overflow="fold")
    for e in entries:
        shown.add_row(
            Text.assemble((e.id, "bold"), "\n", e.claim, "\n", (e.place, "dim")),
            Text(e.paper),
            Text(e.ours),
            Text.assemble((e.verdict, _STYLES[e.verdict]), "\n", (e.reason, "dim")),
        )
    return shown


def _counted(entries: Iterable[Entry]) -> str:
    found = ledger.count(entries)
    return f"{sum(found.values())}; " + ", ".join(f"{word} {number}" for word, number in found.items())


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)
