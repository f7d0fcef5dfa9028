"""Source and PLOC on our own checkpoints, beside Tables 3 to 5 of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ploc import PLOC, links, metrics
from ploc_lab import data
from ploc_lab.models.sources import train
from ploc_lab.report import paper

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray
    from rich.console import Group

METRICS = paper.PerDataset._fields
TITLES = ("Acc", "F1", "AUROC", "ECE")


class Row(NamedTuple):
    """One data set and backbone: means over seeds, their spread (ddof 1), and the paper's row if any."""

    dataset: str
    backbone: str
    ours: paper.PerDataset
    spread: paper.PerDataset
    paper: paper.PerDataset | None


def rows(datasets: Iterable[str], backbones: Iterable[str], seeds: Sequence[int]) -> list[Row]:
    """Evaluate every checkpoint on the target stream in the splitter's order; trains what is missing."""
    out = []
    backbones = list(backbones)
    for name in datasets:
        ds = data.load(name)
        stream = ds.stream()
        for backbone in backbones:
            found = []  # (seeds, source or PLOC, metric)
            for checkpoint in train(ds, backbone, seeds):
                z = checkpoint.logits(ds, "ood_test")[stream.index]
                centred = PLOC().replay(z, logits=True)
                y = stream.open(links.sigmoid(centred))
                both = [metrics.evaluate(links.sigmoid(s), y, scores=s).asdict() for s in (z, centred)]
                found.append([[values[metric] for metric in METRICS] for values in both])
            means = np.mean(found, axis=0)
            spread = np.std(found, axis=0, ddof=1) if len(found) > 1 else np.zeros_like(means)
            printed = paper.PER_DATASET.get(backbone.partition(":")[0], {}).get(name)
            out.append(Row(name, backbone, _changes(means), _changes(spread), printed))
    return out


def table(rows: Iterable[Row]) -> Group:
    """For the terminal, in 80 columns: a heading a data set and backbone, and its lines below."""
    from rich.console import Group  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    parts: list[str | Table] = ["source -> PLOC on the target stream"]
    for row in rows:
        shown = Table("", *TITLES, box=None, padding=(0, 2, 0, 0))
        for line in _lines(row):
            shown.add_row(*line[2:])
        parts += ["", f"{_named(row.dataset)}, {row.backbone}", shown]
    return Group(*parts)


def _named(dataset: str) -> str:
    return f"{dataset} (a stand-in)" if data.task(dataset).stand_in else dataset


def markdown(rows: Iterable[Row]) -> str:
    """The same lines as a Markdown table."""
    head = ["data set", "backbone", "", *TITLES]
    lines = [head, ["---"] * len(head), *(line for row in rows for line in _lines(row))]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _changes(values: NDArray[np.float64]) -> paper.PerDataset:
    return paper.PerDataset(*(paper.Change(float(a), float(b)) for a, b in values.T))


def _lines(row: Row) -> list[list[str]]:
    """Our means, their spread over seeds, and the paper's means where it has the data set."""
    lines = [[row.dataset, row.backbone, "ours", *_shown(row.ours)], ["", "", "sd", *_shown(row.spread)]]
    if row.paper:
        lines.append(["", "", "paper", *_shown(row.paper)])
    return lines


def _shown(values: paper.PerDataset) -> list[str]:
    return [f"{pair.source:.3f} -> {pair.ploc:.3f}" for pair in values]
