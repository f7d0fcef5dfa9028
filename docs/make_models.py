"""The tables of models.md: our checkpoints beside the paper's rows, variants, and networks that died."""

from pathlib import Path

import numpy as np
from docs import pages

from ploc_lab import data, models
from ploc_lab.models import comparison
from ploc_lab.report import paper
from ploc_lab.study.grid import at_hand

BACKBONES = ("mlp", "ft_transformer", "tab_transformer")
VARIANTS = {
    "heloc": ("ft_transformer:paper_text", "tab_transformer:batch_1024", "tab_transformer:categorical"),
    "diabetes_readmission": ("tab_transformer:batch_1024", "tab_transformer:epochs_5"),
}


def make(folder: Path) -> None:
    if missing := set(VARIANTS) - set(at_hand()):
        print(f"docs: models.md stays as it is without {' and '.join(sorted(missing))}")
        return
    page = folder / "models.md"
    rows = comparison.rows(VARIANTS, BACKBONES, models.SEEDS)
    pages.replace(page, "comparison", comparison.markdown(rows))
    variants = [row for name, some in VARIANTS.items() for row in comparison.rows([name], some, models.SEEDS)]
    pages.replace(page, "variants", comparison.markdown(variants))
    pages.replace(page, "dead", dead())
    pages.replace(page, "mixture", mixture())


def dead() -> str:
    """Checkpoints whose logits are one constant on the whole target stream."""
    rows = []
    for name in ("heloc", "diabetes_readmission", "rand_hie", "rand_hie_health"):
        ds = data.load(name)
        counts = []
        for backbone in BACKBONES:
            found = models.checkpoints(ds, backbone)
            counts.append(sum(np.ptp(one.logits(ds, "ood_test")) < 1e-4 for one in found))
        rows.append([name, *(f"{count} of {len(models.SEEDS)}" for count in counts)])
    return pages.markdown(["data set", *BACKBONES], rows)


def mixture() -> str:
    """What the paper's TabTransformers on readmission would be if k of the five answered one constant."""
    ds = data.load("diabetes_readmission")
    stream = ds.stream()
    rate = float(stream.open(np.zeros(len(stream))).mean())
    # A constant below 1/2 answers no to all; centred it sits at 1/2 and answers yes to all.
    constant = paper.PerDataset(
        accuracy=paper.Change(1 - rate, rate),
        f1=paper.Change(0.0, 2 * rate / (1 + rate)),
        auroc=paper.Change(0.5, 0.5),
        ece=paper.Change(abs(ds.prior[0] - (1 - rate)), abs(0.5 - rate)),
    )
    printed = paper.PER_DATASET["tab_transformer"]["diabetes_readmission"]
    rows = []
    for k in (1, 2, 3):
        others = [
            [(5 * mean - k * one) / (5 - k) for mean, one in zip(pair, flat, strict=True)]
            for pair, flat in zip(printed, constant, strict=True)
        ]
        rows.append([str(k), *(f"{source:.3f} -> {ploc:.3f}" for source, ploc in others)])
    return pages.markdown(["constant", *comparison.TITLES], rows)
