"""`ploc-lab methods`: what each method needs, what it may change, what becomes of it at B = 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table

from ploc_lab import models
from ploc_lab.methods import SourceInfo, build, names, spec

if TYPE_CHECKING:
    from torch import nn

COLUMNS = 38
WIDEST = 1000


def methods(*, width: int | None = None) -> None:
    """Print each method in a line: what it needs, how many parameters it may move and which, and B = 1.

    Parameters
    ----------
    width
        Cut the lines at this width; by default they are as long as they are.
    """
    nets = {
        "MLP": models.build("mlp", COLUMNS).eval(),
        "FT-T": models.build("ft_transformer", COLUMNS).eval(),
        "TabT": models.build("tab_transformer", COLUMNS).eval(),
        "CNN": models.build("cnn", 3072, classes=10).eval(),
    }
    title = f"Methods, and how many parameters they may move in networks of {COLUMNS} columns or of images"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in ("method", "needs", *nets, "changes (* ours)", "at B = 1"):
        table.add_column(column, justify="right" if column in nets else "left", no_wrap=True)
    for name in names():
        card = spec(name).card
        moving = [adapted(name, net, classes=10 if key == "CNN" else 2) for key, net in nets.items()]
        what = (spec(name).note or card.changes) + " *" * card.ours
        table.add_row(name, card.needs, *moving, what, card.at_one)
    Console(width=width or WIDEST).print(table)


def adapted(name: str, net: nn.Module, classes: int) -> str:
    """How many parameters a method may move, a dash where it is not defined for the network."""
    entry = spec(name)
    if entry.card.needs != "gradients":
        return "0"
    source = SourceInfo(np.full(classes, 1 / classes))
    try:
        return f"{build(name, net, source).n_adapted:,}"
    except ValueError:
        return "-"
