"""The source models of a data set: trained where they are missing, verified where they are not."""

from __future__ import annotations

import hashlib
import json
import platform
from importlib import import_module
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ploc import links, metrics
from ploc_lab import paths
from ploc_lab.models import checkpoint, recipe, training
from ploc_lab.models.backbones import build
from ploc_lab.models.checkpoint import Checkpoint
from ploc_lab.models.trees import ENSEMBLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from ploc_lab.data import Dataset
    from ploc_lab.models.network import Network
    from ploc_lab.models.trees import Trees

FORMAT = 1
"""Goes up when training or the stored form changes what a checkpoint means; old ones are then left alone."""

SEEDS = (0, 1, 2, 3, 4)

METRICS = ("accuracy", "balanced_accuracy", "f1", "auroc", "ece", "nll", "brier")

HELD = 2**30
"""Bytes of source rows kept as float32 while training; a larger source is assembled batch by batch."""


def names() -> tuple[str, ...]:
    """Every backbone that can be trained on a table, variants after a colon."""
    return (*(name for name in recipe.RECIPES if name != "cnn"), *ENSEMBLES)


def train(
    ds: Dataset,
    backbone: str,
    seeds: Sequence[int] = SEEDS,
    *,
    limit: int | None = None,
    device: str = "cpu",
) -> list[Checkpoint]:
    """Checkpoints of a data set, one a seed, in the order of `seeds`; trains those that are not there yet.

    A seed that is done is loaded and verified, so an interrupted training goes on where it was. `limit`
    trains on that many source rows, a fixed sample; it is part of the card and of the folder's name.
    `device` is where networks are trained, any of torch's; the card names it.

    The bytes of a checkpoint depend on the data, the recipe and the seed, not on the other seeds.
    """
    plan = _Plan(ds, backbone, limit, device)
    missing = [seed for seed in dict.fromkeys(seeds) if not checkpoint.exists(plan.folder(seed))]
    if missing:
        with _progress() as progress:
            plan.run(missing, progress)
    return [checkpoint.load(plan.folder(seed)) for seed in seeds]


checkpoints = train
"""The same door under the name of what it returns."""


class _Plan:
    """One data set, one backbone: what its checkpoints are made of and where they go."""

    def __init__(self, ds: Dataset, backbone: str, limit: int | None, device: str = "cpu") -> None:
        self.ds = ds
        self.backbone = backbone
        self.device = _usable(device)
        self.trees = ENSEMBLES.get(backbone)
        plan = None if self.trees else recipe.find(backbone)
        rows = len(ds.part("train"))
        if limit is not None and limit < 1:
            raise ValueError(f"limit must be at least one source row, got {limit}")
        if self.trees and len(ds.prior) > 2:
            raise ValueError(f"{backbone} tells two classes apart, {ds.name} has {len(ds.prior)}")
        self.limit = limit if limit is not None and limit < rows else None
        self.made_of: dict[str, Any] = {
            "format": FORMAT,
            "dataset": ds.name,
            "fingerprint": ds.fingerprint,
            "d": ds.d,
            "classes": len(ds.prior),
            "backbone": backbone,
            "network": plan.network if plan else backbone,
            "options": {"categories": one_hot_blocks(ds)} if plan and plan.categorical else {},
            "recipe": plan.asdict() if plan else dict(ENSEMBLES[backbone].options),
            "source_rows": self.limit or rows,
            "source_rows_available": rows,
        }
        digest = hashlib.sha256(json.dumps(self.made_of, sort_keys=True).encode()).hexdigest()
        self.root = (
            paths.work_root() / "checkpoints" / ds.name / f"{backbone.replace(':', '.')}-{digest[:10]}"
        )

    def folder(self, seed: int) -> Path:
        return self.root / f"seed{seed}"

    def run(self, seeds: Sequence[int], progress: Progress) -> None:
        if self.trees:
            self._grow(seeds, progress)
        else:
            self._descend(seeds, progress)

    def _descend(self, seeds: Sequence[int], progress: Progress) -> None:
        plan = recipe.find(self.backbone)
        groups = list(_groups(seeds, plan.lockstep))
        task = progress.add_task(f"{self.ds.name} {self.backbone}", total=len(groups) * plan.epochs)
        source = self._source()
        for group in groups:
            fresh = [training.fresh(self._network, seed) for seed in group]
            nets = training.fit(fresh, source, plan, lambda: progress.advance(task), self.device)
            for seed, net in zip(group, nets, strict=True):
                if seed in seeds:
                    self._keep(seed, net)

    def _grow(self, seeds: Sequence[int], progress: Progress) -> None:
        task = progress.add_task(f"{self.ds.name} {self.backbone}", total=len(seeds))
        rows, y = self._source()
        x = rows(torch.arange(len(y))).numpy()
        for seed in seeds:
            self._keep(seed, ENSEMBLES[self.backbone].fit(x, y, seed))
            progress.advance(task)

    def _network(self) -> Network:
        return build(self.made_of["network"], self.ds.d, self.made_of["classes"], **self.made_of["options"])

    def _source(self) -> training.Source:
        """The train split, or its fixed sample in the split's own order."""
        part = self.ds.part("train")
        y = np.asarray(part.y)
        if self.limit:
            kept = np.sort(np.random.default_rng(0).permutation(len(part))[: self.limit])
            x = torch.from_numpy(part.rows(kept))
            return training.Source(lambda index: x.index_select(0, index), y[kept])
        if len(part) * self.ds.d * 4 > HELD:
            return training.Source(lambda index: torch.from_numpy(part.rows(index.numpy())), y)
        x = torch.from_numpy(part.rows())
        return training.Source(lambda index: x.index_select(0, index), y)

    def _keep(self, seed: int, model: Network | Trees) -> None:
        """Store a trained model with its metrics on the two held-out parts of the source."""
        trained = Checkpoint(self.folder(seed), {}, model)
        card = {
            **self.made_of,
            "stand_in": self.ds.stand_in,
            "seed": seed,
            "device": _named(self.device),
            "versions": {
                "python": platform.python_version(),
                "numpy": np.__version__,
                "torch": torch.__version__,
                **({self.trees.library: import_module(self.trees.library).__version__} if self.trees else {}),
            },
            **{split: _quality(trained, self.ds, split) for split in ("validation", "id_test")},
        }
        checkpoint.save(self.folder(seed), model, card)


def _usable(device: str) -> str:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        why = str(error).partition("\n")[0]
        raise ValueError(f"networks can't be trained on device {device!r} here ({why}); try cpu") from error
    return device


def _named(device: str) -> str:
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


def one_hot_blocks(ds: Dataset) -> list[tuple[int, int]]:
    """Half-open column ranges of X that code one category each; the encoder names them `column=value`."""
    runs = groupby(range(ds.d), key=lambda j: ds.columns[j].partition("=")[:2])
    blocks = [list(run) for (_, equals), run in runs if equals]
    if not blocks:
        raise ValueError(f"{ds.name} has no categorical columns: train tab_transformer without the variant")
    return [(run[0], run[-1] + 1) for run in blocks]


def _groups(seeds: Iterable[int], lockstep: bool) -> Iterator[tuple[int, ...]]:
    """Seeds alone, or in whole stacks of five in which every seed has its own place."""
    if not lockstep:
        yield from ((seed,) for seed in seeds)
        return
    for number in sorted({seed // training.PLACES for seed in seeds}):
        yield tuple(range(number * training.PLACES, (number + 1) * training.PLACES))


def _quality(trained: Checkpoint, ds: Dataset, split: str) -> dict[str, float | None]:
    part = ds.part(split)
    z = trained.margins(part.rows())
    probs = links.sigmoid(z) if z.ndim == 1 else links.softmax(z)
    found = metrics.evaluate(probs, part.y, scores=z).asdict()
    return {"rows": len(part), **{k: v if np.isfinite(v) else None for k, v in found.items() if k in METRICS}}


def _progress() -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
