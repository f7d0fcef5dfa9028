"""The results on docs/vision.md, from the gathered cells in results/; left alone where there are none."""

from pathlib import Path

import polars as pl
from docs.pages import markdown, replace

from ploc_lab.report import claims, vision

SHOWN = ("vision", "vision10")
FIGURE = "results/figures/vision_accuracy.png"


def make(folder: Path) -> None:
    gathered = folder.parent / "results" / "cells.parquet"
    if not gathered.is_file():
        return
    cells = pl.read_parquet(gathered)
    tables = {table.name: table for table in vision.tables(cells)}
    for name in SHOWN:
        if name in tables:
            replace(folder / "vision.md", name, tables[name].markdown())
    if (folder.parent / FIGURE).is_file():
        replace(folder / "vision.md", "figure", f"![Accuracy of source and PLOC-K by stream](../{FIGURE})")
    entries = claims.ledger(cells, [claims.Claim(*line) for line in vision.CLAIMS])
    rows = [[e.claim, e.paper, e.ours, f"**{e.verdict}**", e.threshold] for e in entries]
    heads = ["the paper says", "its number", "ours", "verdict", "threshold, stated before the run"]
    replace(folder / "vision.md", "claims", markdown(heads, rows))
