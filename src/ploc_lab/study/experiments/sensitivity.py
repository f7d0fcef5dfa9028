"""What the paper's text leaves open, varied: recipes of the sources, step sizes of the rivals."""

import polars as pl

from ploc_lab.study import frames
from ploc_lab.study.cell import Cell, Options
from ploc_lab.study.evaluate import METRICS
from ploc_lab.study.grid import CENTRED, Grid

# The stated batch size of TabTransformer and the stated optimiser of FT-Transformer, to the letter.
RECIPES = ("tab_transformer:batch_1024", "ft_transformer:paper_text")
STREAMS = ("heloc", "rand_hie")
OPTIONS: tuple[tuple[str, Options], ...] = (
    ("pft3a", (("lr", 1e-4),)),
    ("pft3a", (("lr", 1e-3),)),
    ("ftat", (("loss", "paper"),)),
)


def cells(grid: Grid) -> list[Cell]:
    """Sources by other recipes, and rivals by other steps, on two short streams."""
    streams = [dataset for dataset in grid.datasets if dataset in STREAMS]
    recipes = [
        grid.cell(dataset, backbone, method)
        for dataset in streams
        for backbone in RECIPES
        if backbone.partition(":")[0] in grid.backbones
        for method in grid.wanted(CENTRED)
    ]
    steps = [
        grid.cell(dataset, backbone, method, options=options)
        for dataset in streams
        for backbone in grid.backbones
        for method, options in OPTIONS
        if method in grid.methods
    ]
    return recipes + steps


def tables(cells: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Means over checkpoints, each beside the protocol it departs from."""
    families = [name.partition(":")[0] for name in RECIPES]
    recipes = cells.filter(
        pl.col("variant") == "",
        pl.col("batch") == 1,
        pl.col("dataset").is_in(STREAMS),
        pl.col("backbone").is_in([*RECIPES, *families]),
        pl.col("method").is_in(CENTRED),
    )
    words = [" ".join(f"{name}={value}" for name, value in options) for _, options in OPTIONS]
    steps = cells.filter(
        pl.col("batch") == 1,
        pl.col("dataset").is_in(STREAMS),
        pl.col("method").is_in(sorted({method for method, _ in OPTIONS})),
        pl.col("variant").is_in(["", *words]),
    )
    return {
        "recipes": frames.means(frames.whole(recipes), ["dataset", "backbone", "method"], METRICS),
        "steps": frames.means(frames.whole(steps), ["dataset", "backbone", "method", "variant"], METRICS),
    }
