"""The experiments, a file each, named after the paper's sections: cells to ask for, tables to sum them up."""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Protocol, cast

import polars as pl

from ploc_lab.study.cell import Cell
from ploc_lab.study.grid import Grid

NAMES = (
    "main",
    "deferred",
    "per_dataset",
    "tradeoff",
    "stability",
    "significance",
    "ablation",
    "theory",
    "prior_shift",
    "batch",
    "beyond",
    "sensitivity",
    "vision",
)


class Experiment(Protocol):
    """What each module of this folder offers."""

    cells: Callable[[Grid], list[Cell]]
    tables: Callable[[pl.DataFrame], dict[str, pl.DataFrame]]


def find(name: str) -> Experiment:
    """An experiment by name.

    >>> find("main").tables.__doc__.split(":")[0]
    'Table 1'
    """
    if name not in NAMES:
        raise ValueError(f"no experiment is called {name!r}; there are: {', '.join(NAMES)}")
    return cast(Experiment, import_module(f"{__name__}.{name}"))


def cells(grid: Grid, only: Iterable[str] = NAMES) -> list[Cell]:
    """Every cell that these experiments ask for, each once."""
    return list(dict.fromkeys(cell for name in only for cell in find(name).cells(grid)))
