"""What the paper leaves open about the sources: its stated recipes, to the letter, beside those used."""

import polars as pl

from ploc_lab.study import frames
from ploc_lab.study.cell import Cell
from ploc_lab.study.evaluate import METRICS
from ploc_lab.study.grid import CENTRED, Grid

# The stated batch size of TabTransformer and the stated optimiser of FT-Transformer.
RECIPES = ("tab_transformer:batch_1024", "ft_transformer:paper_text")
STREAMS = ("heloc", "rand_hie")


def cells(grid: Grid) -> list[Cell]:
    """Source and PLOC on sources of either recipe, on two short streams."""
    return [
        grid.cell(dataset, backbone, method)
        for dataset in grid.tables
        if dataset in STREAMS
        for recipe in RECIPES
        if (family := recipe.partition(":")[0]) in grid.backbones
        for backbone in (family, recipe)
        for method in grid.wanted(CENTRED)
    ]


def tables(cells: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Means over checkpoints, each recipe beside the one it departs from."""
    backbones = [name for recipe in RECIPES for name in (recipe.partition(":")[0], recipe)]
    rows = frames.whole(frames.plain(cells, backbones))
    rows = rows.filter(pl.col("dataset").is_in(STREAMS), pl.col("method").is_in(CENTRED))
    table = frames.means(rows, ["dataset", "backbone", "method"], METRICS)
    return {"sensitivity": frames.in_order(table, dataset=STREAMS, backbone=backbones, method=CENTRED)}
