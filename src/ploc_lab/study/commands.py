"""The commands of the study: `ploc-lab run` does it, `ploc-lab status` says how far it is."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated

import polars as pl
from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from ploc_lab import methods, paths
from ploc_lab.study import experiments, runner
from ploc_lab.study.grid import BACKBONES, SLOW_LIMIT, Grid, at_hand
from ploc_lab.study.store import Store, replace_file

# One flag may name several: `--only main batch`, `--only main,batch` or twice `--only`.
Names = Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")]


def run(
    *,
    only: Names = None,
    datasets: Names = None,
    backbones: Names = None,
    methods: Names = None,
    seeds: int = 5,
    executor: str = "local",
    workers: int | None = None,
    limit: int | None = None,
    slow_limit: int | None = SLOW_LIMIT,
    out: Path = Path("results"),
) -> None:
    """Run the study, or what is left of it; the same command again goes on from where it was.

    Parameters
    ----------
    only
        Experiments to run; all by default. `ploc-lab status` lists them.
    datasets
        Data sets; those whose files are on this machine by default.
    backbones
        Backbones of the source models; the paper's three by default.
    methods
        Methods; all by default. `ploc-lab methods` lists them.
    seeds
        Source checkpoints of each data set and backbone.
    executor
        `local` (processes on this machine) or `dask://host:port`.
    workers
        Local processes, one thread each; one a processor by default.
    limit
        Cut every stream to its first rows.
    slow_limit
        Cut the streams of weight-updating methods on the FT-Transformer, of their variants everywhere.
    out
        Where `cells.parquet` and the tables are gathered; never over cells that only that file has.
    """
    console = Console(stderr=True)
    chosen = _split(only) or experiments.NAMES
    grid = _grid(datasets, backbones, methods, seeds=seeds, limit=limit, slow_limit=slow_limit)
    cells = experiments.cells(grid, chosen)
    if not cells:
        raise ValueError(
            f"nothing to run: of {', '.join(grid.datasets)} with these backbones and methods, "
            f"{', '.join(chosen)} ask no cell; `ploc-lab status` with the same words counts them"
        )
    store = _store()
    lost = _answered(out) - {cell.id for cell in cells}
    if lost and (lost := lost - store.questions()):
        raise ValueError(
            f"{out / 'cells.parquet'} holds {len(lost):,} cells that are neither asked for nor in "
            f"{store.root} and would be lost; name another folder with --out"
        )
    outcome = runner.run(cells, store, runner.pool(executor, workers), console)
    gathered = store.gather(outcome.keys)
    if gathered.height:
        write_tables(gathered, out, chosen)
    written = f"has {gathered.height} rows" if gathered.height else "was not written: no cell is done"
    console.print(
        f"{outcome.done} cells done, {outcome.before} were done before, {len(outcome.failures)} failed; "
        f"{out / 'cells.parquet'} {written}",
        highlight=False,
    )
    if not outcome.ok:
        for failure in outcome.failures[:20]:
            last = failure.error.rstrip().rsplit("\n", 1)[-1]
            console.print(f"  failed: {failure.cell.name}: {last}", highlight=False, markup=False)
        sys.exit(1)


def status(
    *,
    only: Names = None,
    datasets: Names = None,
    backbones: Names = None,
    methods: Names = None,
    seeds: int = 5,
    limit: int | None = None,
    slow_limit: int | None = SLOW_LIMIT,
) -> None:
    """How many cells of each experiment are in the store; `run` also checks code, data and weights."""
    grid = _grid(datasets, backbones, methods, seeds=seeds, limit=limit, slow_limit=slow_limit)
    answered = _store().questions()
    table = Table("experiment", "cells", "answered", "left", title=f"{paths.work_root() / 'cells'}")
    for name in _split(only) or experiments.NAMES:
        ids = {cell.id for cell in experiments.find(name).cells(grid)}
        done = len(ids & answered)
        table.add_row(name, str(len(ids)), str(done), str(len(ids) - done))
    Console().print(table)


def write_tables(cells: pl.DataFrame, out: Path, only: tuple[str, ...] = experiments.NAMES) -> list[Path]:
    """Gather: `cells.parquet` and each experiment's tables as CSV, all written whole or not at all."""
    buffer = io.BytesIO()
    cells.write_parquet(buffer)
    written = [out / "cells.parquet"]
    replace_file(written[0], buffer.getvalue())
    for name in only:
        for title, table in experiments.find(name).tables(cells).items():
            if table.height:
                written.append(out / "tables" / f"{title}.csv")
                replace_file(written[-1], table.write_csv(float_precision=6).encode())
    return written


def _answered(out: Path) -> set[str]:
    """The ids of the cells in a folder's `cells.parquet`; one that can't be read has none to lose."""
    try:
        return set(pl.read_parquet(out / "cells.parquet", columns=["id"])["id"])
    except (FileNotFoundError, pl.exceptions.PolarsError):
        return set()


def _grid(
    datasets: list[str] | None,
    backbones: list[str] | None,
    names: list[str] | None,
    *,
    seeds: int,
    limit: int | None,
    slow_limit: int | None,
) -> Grid:
    if seeds < 1:
        raise ValueError(f"a study needs at least one seed, got {seeds}")
    return Grid(
        datasets=_split(datasets) or at_hand(),
        backbones=_split(backbones) or BACKBONES,
        methods=_split(names) or methods.names(),
        seeds=tuple(range(seeds)),
        limit=limit,
        slow_limit=slow_limit,
    )


def _split(names: list[str] | None) -> tuple[str, ...]:
    return tuple(word for name in names or () for word in name.split(",") if word)


def _store() -> Store:
    return Store(paths.work_root() / "cells")
