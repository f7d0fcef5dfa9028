"""The work on cells, as it is done inside a worker: load once, answer, evaluate, store."""

import io
import json
import logging
import threading
import time
import traceback
import zipfile
import zlib
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from ploc import links
from ploc_lab import data, methods, models, paths
from ploc_lab.data import Stream
from ploc_lab.data.images import ImageDataset
from ploc_lab.methods import Answer, OutputMethod, SourceInfo, Validation, lockstep
from ploc_lab.models import Checkpoint
from ploc_lab.study import evaluate, multiclass, simulate, streams
from ploc_lab.study.cell import (
    ORACLE,
    SIMULATION,
    Cell,
    Draw,
    Facts,
    Options,
    Picture,
    answer_key,
    forward_only,
    resolved,
)
from ploc_lab.study.code import digest
from ploc_lab.study.store import Store, replace_file

CORE = {
    "id": pl.String, "dataset": pl.String, "backbone": pl.String, "seed": pl.Int64, "method": pl.String,
    "batch": pl.Int64, "variant": pl.String, "order": pl.String, "n": pl.Int64,
    "accuracy": pl.Float64, "balanced_accuracy": pl.Float64, "f1": pl.Float64, "auroc": pl.Float64,
    "ece": pl.Float64, "nll": pl.Float64, "brier": pl.Float64,
    "n_adapted": pl.Int64, "n_nan": pl.Int64, "seconds": pl.Float64,
    "limit": pl.Int64, "measure": pl.String, "order_seed": pl.Int64, "draw": pl.String, "rate": pl.Float64,
    "sample": pl.Int64, "options": pl.String, "recipe": pl.String, "oracle": pl.Boolean,
    "stand_in": pl.Boolean,
    "steps": pl.Int64, "state": pl.Int64, "skipped": pl.String, "undefined": pl.String,
    "base_rate": pl.Float64, "positive_rate": pl.Float64, "mu": pl.Float64, "checkpoint": pl.String,
    "data": pl.String, "versions": pl.String,
}  # fmt: skip
COST_ROWS = 500
_TRACING = threading.Lock()  # torch traces a step's graph through state of the whole process
Kept = tuple[list[Answer], list[dict[str, Any]], float]
CAP = 20_000  # rows of a stream at a set positive rate, at most
_log = logging.getLogger(__name__)
SMALL = 2_000  # shorter target splits are drawn with replacement, as the paper does for ASSISTments


class Failure(NamedTuple):
    """A cell that could not be done, and why."""

    cell: Cell
    error: str


class Played(NamedTuple):
    """What a method answered on its stream, per checkpoint: answers, reports, the source's logits, labels."""

    answers: list[Answer]
    reports: list[dict[str, Any]]
    logits: list[NDArray[np.float64]]
    y: list[NDArray[Any]]
    seconds: float
    changes: tuple[int, ...] = ()
    new: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)  # rows of the second domain, where there are two


def prepare(dataset: str, backbone: str, recipe: Options, seeds: Sequence[int]) -> Facts:
    """Load the data and the checkpoints, training those that are missing: what the cells' keys rest on."""
    bench = _bench(dataset, backbone, recipe)
    checkpoints = {seed: bench.checkpoint(seed, seeds) for seed in seeds}
    nets = {type(c.net).__module__ for c in checkpoints.values() if c.net is not None}
    return Facts(
        data=bench.ds.fingerprint,
        checkpoints={seed: c.sha for seed, c in checkpoints.items()},
        network=digest(*sorted(nets)) if nets else "",
        rows=len(bench.ds.part("ood_test")),
    )


def perform(cells: Sequence[tuple[Cell, str]], facts: Facts, root: Path) -> list[Failure]:
    """Do the cells of one (data set, backbone) that are not in the store yet; hand back those that failed."""
    torch.set_num_threads(1)
    store = Store(root)
    failures = []
    for cell, key in cells:
        if store.has(key):
            continue
        try:
            store.write(key, compute(cell, facts))
        except Exception:  # whatever breaks a cell must not break its neighbours
            failures.append(Failure(cell, traceback.format_exc()))
    return failures


def compute(cell: Cell, facts: Facts) -> pl.DataFrame:
    """The rows of one cell, one a seed."""
    rows = _simulated(cell) if cell.dataset == SIMULATION else _real(cell, facts)
    return pl.DataFrame(rows, schema_overrides=CORE, infer_schema_length=None).select(
        *(pl.lit(None, kind).alias(name) if name not in rows[0] else name for name, kind in CORE.items()),
        *(name for name in rows[0] if name not in CORE),
    )


class Bench:
    """One (data set, backbone, recipe) loaded: its stream, its checkpoints, their logits, each read once."""

    def __init__(self, dataset: str, backbone: str, recipe: Options) -> None:
        self.ds = data.load(dataset)
        self.backbone, self.recipe = backbone, cast(dict[str, Any], dict(recipe))
        self._checkpoints: dict[int, Checkpoint] = {}

    def checkpoint(self, seed: int, seeds: Sequence[int] = ()) -> Checkpoint:
        """The frozen source model of a seed; those of `seeds` that are missing are trained beside it."""
        if seed not in self._checkpoints:
            wanted = tuple(seeds) or (seed,)
            found = models.checkpoints(self.ds, self.backbone, seeds=wanted, **self.recipe)
            self._checkpoints |= {c.seed: c for c in found}
        return self._checkpoints[seed]

    def logits(self, seed: int, pools: Sequence[str] = ("ood_test",)) -> NDArray[np.float64]:
        """A checkpoint's logits over the splits named, end to end."""
        return np.concatenate([self.checkpoint(seed).logits(self.ds, pool) for pool in pools])

    def features(self, seed: int, pools: Sequence[str] = ("ood_test",)) -> NDArray[np.float32]:
        """A checkpoint's features over the splits named, end to end."""
        return np.concatenate([self.checkpoint(seed).features(self.ds, pool) for pool in pools])

    def source(self, seed: int, *, features: bool = False) -> SourceInfo:
        """What a method may know of the source: its class rates and a labelled validation sample."""
        part = self.ds.part("validation")
        sample = Validation(
            self._validation_rows,
            np.asarray(part.y),
            self.logits(seed, ("validation",)),
            self.features(seed, ("validation",)) if features else None,
        )
        return SourceInfo(self.ds.prior, sample)

    @cached_property
    def _validation_rows(self) -> NDArray[np.float32]:
        return self.ds.part("validation").rows()

    @property
    def images(self) -> ImageDataset:
        """The data set, where it is one of images."""
        if not isinstance(self.ds, ImageDataset):
            raise TypeError(f"{self.ds.name} is a table: only images can be corrupted")
        return self.ds

    def pools(self, cell: Cell) -> tuple[str, ...]:
        """The part of the data that a cell's stream takes its rows from."""
        return (self.images.pool(cell.draw.corrupt()) if isinstance(cell.draw, Picture) else "ood_test",)

    def stream(self, cell: Cell) -> Stream:
        """The target stream in a cell's own order, redrawn at its positive rate, or its stream of images."""
        if isinstance(cell.draw, Picture):
            return self.images.stream(
                "split" if cell.draw.rho is None else "permuted",
                cell.draw.seed,
                cell.limit,
                corruption=cell.draw.corrupt(),
                rho=cell.draw.rho,
            )
        if cell.draw is None:
            return self.ds.stream(
                order=cast(Literal["split", "time", "permuted"], cell.order),
                seed=cell.order_seed,
                limit=cell.limit,
            )
        return self.ds.stream(
            order="permuted",
            seed=cell.draw.seed,
            limit=min(cell.limit or CAP, CAP),
            positive_rate=cell.draw.rate,
            replace=len(self.ds.part("ood_test")) < SMALL,
        )


@lru_cache(maxsize=2)
def _bench(dataset: str, backbone: str, recipe: Options) -> Bench:
    return Bench(dataset, backbone, recipe)


def _real(cell: Cell, facts: Facts) -> list[evaluate.Row]:
    bench = _bench(*cell.source)
    if isinstance(cell.draw, Draw) and cell.draw.kind != "prior":
        played = _drifting(cell, bench, cell.draw)
    elif cell.order == "sorted":
        played = _sorted(cell, bench)
    elif cell.measure == "cost":
        played = _stepped(cell, bench)
    elif cell.method == ORACLE or forward_only(cell.method):
        played = _replayed(cell, bench)
    else:
        played = _adapted(cell, bench, facts)
    measure = MEASURES[cell.measure]
    return [
        _head(cell, bench, seed, played.reports[k])
        | {"n": len(played.y[k]), "seconds": played.seconds, "mu": _mean(played.logits[k])}
        | evaluate.measure(played.answers[k], played.y[k])
        | measure(played, k)
        for k, seed in enumerate(cell.seeds)
    ]


MEASURES: dict[str, Callable[[Played, int], evaluate.Row]] = {
    "metrics": lambda _played, _k: {},
    "propositions": lambda played, k: evaluate.propositions(played.logits[k], played.y[k]),
    "recovery": lambda played, k: evaluate.recovery(
        played.answers[k], played.logits[k], played.y[k], played.changes, played.new
    ),
    "cost": lambda played, k: {"us_per_row": played.reports[k]["us_per_row"]},
    "multiclass": lambda played, k: multiclass.measure(played.answers[k].probs, played.y[k]),
}


def _replayed(cell: Cell, bench: Bench) -> Played:
    """Forward-only, in an order that knows no labels: answer every checkpoint's cached logits, then open."""
    stream, pools = bench.stream(cell), bench.pools(cell)
    logits = [bench.logits(seed, pools)[stream.index] for seed in cell.seeds]
    if cell.method == ORACLE:
        source = [Answer(np.asarray(links.sigmoid(z)), z) for z in logits]
        y = evaluate.open_labels(stream, source)
        return _oracle(cell, logits, [y] * len(logits))
    answers, reports, seconds = _replay(cell, bench, logits, pools, [stream.index] * len(logits))
    y = evaluate.open_labels(stream, answers)
    return Played(answers, reports, logits, [y] * len(logits), seconds)


def _sorted(cell: Cell, bench: Bench) -> Played:
    """The worst order, each checkpoint's own: its rows from the lowest logit to the highest."""
    orders = [streams.ascending(bench.logits(seed))[: cell.limit] for seed in cell.seeds]
    logits = [bench.logits(seed)[rows] for seed, rows in zip(cell.seeds, orders, strict=True)]
    answers, reports, seconds = _replay(cell, bench, logits, ("ood_test",), orders)
    y = _all_labels(bench, cell.seeds)
    return Played(answers, reports, logits, [y[rows] for rows in orders], seconds)


def _drifting(cell: Cell, bench: Bench, draw: Draw) -> Played:
    """A stream that changes its domain on the way: rows of the source's held-out test, rows of the target."""
    old, new = bench.ds.part(streams.OLD), bench.ds.part(streams.NEW)
    plan = streams.drifting(draw.kind, len(old), len(new), draw.seed, cell.limit)
    rows = plan.rows
    logits = [bench.logits(seed, plan.pools)[rows] for seed in cell.seeds]
    answers, reports, seconds = _replay(cell, bench, logits, plan.pools, [rows] * len(logits))
    y = np.concatenate([np.asarray(old.y), _all_labels(bench, cell.seeds)])[rows]
    return Played(answers, reports, logits, [y] * len(logits), seconds, plan.changes, rows >= len(old))


def _replay(
    cell: Cell,
    bench: Bench,
    logits: Sequence[NDArray[np.float64]],
    pools: Sequence[str],
    rows: Sequence[NDArray[np.int64]],
) -> tuple[list[Answer], list[dict[str, Any]], float]:
    if not forward_only(cell.method):
        raise ValueError(
            f"method {cell.method!r} updates weights: it runs on the stream's own rows and order only"
        )
    answers, reports, seconds = [], [], 0.0
    cls = methods.spec(cell.method).cls
    features = issubclass(cls, OutputMethod) and cls.needs_features
    for seed, z, index in zip(cell.seeds, logits, rows, strict=True):
        net = bench.checkpoint(seed).net
        method = methods.build(cell.method, net, bench.source(seed, features=features), **_arguments(cell))
        assert isinstance(method, OutputMethod)  # noqa: S101 - forward_only() said so
        f = bench.features(seed, pools)[index] if features else None
        start = time.perf_counter()
        answers.append(method.replay(z, f, batch=cell.batch))
        seconds += time.perf_counter() - start
        reports.append(method.report())
    return answers, reports, seconds / len(cell.seeds)


def _oracle(cell: Cell, logits: list[NDArray[np.float64]], labels: list[NDArray[Any]]) -> Played:
    """The label-using reference: the best single shift of each checkpoint."""
    shifts = [evaluate.oracle_shift(z, y) for z, y in zip(logits, labels, strict=True)]
    centred = [z - b for z, b in zip(logits, shifts, strict=True)]
    answers = [Answer(np.asarray(links.sigmoid(z)), z) for z in centred]
    reports = [{"n_adapted": 0, "nan": 0, "steps": 0, "state": 1, "skipped": {}} for _ in cell.seeds]
    return Played(answers, reports, logits, labels, 0.0)


def _adapted(cell: Cell, bench: Bench, facts: Facts) -> Played:
    """A method that updates weights: all checkpoints in lockstep, once; the answers are kept."""
    stream = bench.stream(cell)
    logits = [bench.logits(seed, bench.pools(cell))[stream.index] for seed in cell.seeds]
    path = paths.work_root() / "answers" / f"{answer_key(cell, facts)}.npz"
    kept = _found(path)
    if kept is None:
        nets = [net for seed in cell.seeds if (net := bench.checkpoint(seed).net) is not None]
        if len(nets) < len(cell.seeds):
            raise ValueError(
                f"method {cell.method!r} updates weights, and {cell.backbone} has no network to update"
            )
        sources = [bench.source(seed, features=True) for seed in cell.seeds]
        x = stream.rows(slice(None))
        start = time.perf_counter()
        with _TRACING:
            results = lockstep.run(
                cell.method, nets, sources, x, batch=cell.batch, logits=logits, **_arguments(cell)
            )
        _keep(path, results, (time.perf_counter() - start) / len(nets))
        kept = _kept(path)
    answers, reports, seconds = kept
    y = evaluate.open_labels(stream, answers)
    return Played(answers, reports, logits, [y] * len(logits), seconds)


def _stepped(cell: Cell, bench: Bench) -> Played:
    """What one row costs: the stream's first rows through the whole method, network and all, one by one."""
    stream = bench.ds.stream(limit=min(cell.limit or COST_ROWS, len(bench.ds.part("ood_test"))))
    x = stream.rows(slice(None))
    answers, reports, seconds = [], [], 0.0
    for seed in cell.seeds:
        method = methods.build(
            cell.method, bench.checkpoint(seed).net, bench.source(seed, features=True), **_arguments(cell)
        )
        parts, times = [], []
        for row in range(len(x)):
            start = time.perf_counter()
            parts.append(method.respond(x[row : row + 1]))
            times.append(time.perf_counter() - start)
        answers.append(
            Answer(np.concatenate([p.probs for p in parts]), np.concatenate([p.scores for p in parts]))
        )
        reports.append(method.report() | {"us_per_row": float(np.median(times) * 1e6)})
        seconds += sum(times)
    y = evaluate.open_labels(stream, answers)
    logits = [bench.logits(seed)[stream.index] for seed in cell.seeds]
    return Played(answers, reports, logits, [y] * len(logits), seconds / len(cell.seeds))


def _keep(path: Path, results: Sequence[tuple[Answer, dict[str, Any]]], seconds: float) -> None:
    buffer = io.BytesIO()
    reports = json.dumps([report for _, report in results])
    arrays = {f"{name}{k}": getattr(a, name) for k, (a, _) in enumerate(results) for name in Answer._fields}
    np.savez(buffer, reports=np.array(reports), seconds=np.array(seconds), **arrays)
    replace_file(path, buffer.getvalue())


def _found(path: Path) -> Kept | None:
    """Answers that are kept and can be read; damaged ones are said, and computed anew."""
    if not path.exists():
        return None
    try:
        return _kept(path)
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        _log.warning("%s is damaged (%s); it is computed anew", path, error)
        return None


def _kept(path: Path) -> Kept:
    with path.open("rb") as content, np.load(content, allow_pickle=False) as file:
        reports = json.loads(str(file["reports"]))
        answers = [Answer(*(file[f"{name}{k}"] for name in Answer._fields)) for k in range(len(reports))]
        return answers, reports, float(file["seconds"])


def _all_labels(bench: Bench, seeds: Sequence[int]) -> NDArray[Any]:
    """The labels of the whole target split in split order, for the source's own predictions."""
    frozen = [bench.logits(seed) for seed in seeds]
    return evaluate.open_labels(bench.ds.stream(), [Answer(np.asarray(links.sigmoid(z)), z) for z in frozen])


def _simulated(cell: Cell) -> list[evaluate.Row]:
    return [
        {
            "id": cell.id,
            "dataset": cell.dataset,
            "backbone": cell.backbone,
            "seed": seed,
            "method": cell.method,
        }
        | {
            "batch": 1,
            "variant": cell.variant,
            "order": cell.order,
            "n": simulate.ROWS,
            "measure": cell.measure,
        }
        | simulate.variance(cell.method, seed)
        for seed in cell.seeds
    ]


def _head(cell: Cell, bench: Bench, seed: int, report: dict[str, Any]) -> evaluate.Row:
    draw = cell.draw
    skipped = report.get("skipped") or None
    return {
        "id": cell.id,
        "dataset": cell.dataset,
        "backbone": cell.backbone,
        "seed": seed,
        "method": cell.method,
        "batch": cell.batch,
        "variant": cell.variant,
        "order": cell.order,
        "limit": cell.limit,
        "measure": cell.measure,
        "order_seed": cell.order_seed,
        "draw": draw and draw.kind,
        "rate": draw and draw.rate,
        "sample": draw and draw.seed,
        "options": json.dumps(resolved(cell), sort_keys=True),
        "recipe": json.dumps(dict(cell.recipe), sort_keys=True),
        "oracle": cell.method == ORACLE,
        "stand_in": bench.ds.stand_in is not None,
        "n_adapted": report.get("n_adapted"),
        "n_nan": report.get("nan"),
        "steps": report.get("steps"),
        "state": report.get("state"),
        "skipped": json.dumps(skipped, sort_keys=True) if skipped else None,
        "checkpoint": bench.checkpoint(seed).sha,
        "data": bench.ds.fingerprint,
        "versions": f"numpy {np.__version__}, torch {torch.__version__}, polars {pl.__version__}",
    }


def _arguments(cell: Cell) -> dict[str, Any]:
    return dict(cell.options)


def _mean(z: NDArray[np.float64]) -> float | None:
    return float(z.mean()) if z.ndim == 1 else None
