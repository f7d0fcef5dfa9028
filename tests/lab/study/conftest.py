"""A few cells of the small study in `tests/lab/conftest.py`, and one that can't be done."""

import dataclasses
from pathlib import Path

import pytest

from ploc_lab.study.cell import Cell
from ploc_lab.study.grid import Grid


@pytest.fixture
def few(work: Path) -> list[Cell]:
    """A handful of cells, forward-only and weight-updating, on two backbones."""
    small = Grid(("rand_hie",), backbones=("mlp", "tab_transformer"), seeds=(0, 1), limit=80)
    return [
        small.cell(*source, method)
        for source in small.sources()
        for method in ("source", "ploc", "lame", "ftat", "cotta")
    ]


@pytest.fixture
def without(few: list[Cell]) -> Cell:
    """A cell that can't be done: there is no weight in an ensemble of trees that FTAT could move."""
    return dataclasses.replace(few[0], backbone="hist_gradient_boosting", method="ftat")
