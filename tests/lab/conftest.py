"""A small study on embedded data, run once: every method, every backbone, short streams, two seeds."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest
from rich.console import Console

from ploc_lab import methods
from ploc_lab.study import experiments, grid, runner
from ploc_lab.study.cell import Cell
from ploc_lab.study.grid import Grid
from ploc_lab.study.store import Store

# The exhaustive refits of these take minutes on the longest drawn streams; the main comparison has them all.
QUICK = tuple(name for name in methods.names() if name not in {"em_prequential", "em_bcts_prequential"})


class Study(NamedTuple):
    """A finished run: what was asked, where it lies, what became of it."""

    grid: Grid
    cells: list[Cell]
    store: Store
    work: Path
    outcome: runner.Outcome
    gathered: pl.DataFrame


@pytest.fixture(scope="session")
def quiet() -> Console:
    """A console that nobody reads."""
    return Console(stderr=True, quiet=True)


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A work folder of this session, with sources trained on a few hundred rows."""
    folder = tmp_path_factory.mktemp("work")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLOC_WORK", str(folder))
        families = (*grid.BACKBONES, *grid.TREES)
        patch.setattr(grid, "SOURCE_ROWS", {("rand_hie", family): 600 for family in families})
        yield folder


@pytest.fixture(scope="session")
def study(work: Path, quiet: Console) -> Study:
    """Every experiment on the first rows of one stream."""
    small = Grid(("rand_hie",), seeds=(0, 1), methods=QUICK, limit=120, slow_limit=60)
    cells = experiments.cells(small)
    cells = [cell for cell in cells if _telling(cell)]
    store = Store(work / "cells")
    outcome = runner.run(cells, store, runner.local(2), quiet)
    return Study(small, cells, store, work, outcome, store.gather(outcome.keys))


def _telling(cell: Cell) -> bool:
    """Whether a cell shows more than its neighbours: one sample of a redrawn stream, a few batch sizes."""
    plain = cell.draw is None and cell.order == "split" and cell.measure != "cost"
    return (
        (plain or cell.backbone == "mlp")
        and (cell.draw is None or cell.draw.seed == 0)
        and cell.order_seed <= 1
        and cell.batch in {1, 8, 1024}
        and (cell.measure != "cost" or cell.method in {"source", "ploc", "em", "tent_ln"})
    )
