"""A cell of the study, and the key that everything which decides its result goes into."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from typing import Any, Literal

from ploc_lab import methods
from ploc_lab.data.corruptions import Corruption, Kind, find
from ploc_lab.methods import OutputMethod
from ploc_lab.study.code import digest, own

SEEDS = (0, 1, 2, 3, 4)
SIMULATION = "simulation"
ORACLE = "oracle_shift"

Scalar = str | int | float | bool
Options = tuple[tuple[str, Scalar], ...]
Order = Literal["split", "time", "permuted", "sorted"]
# What draws a stream's rows and plays a cell; what these import has its own say where it decides a result.
PLAYS = ("ploc_lab.data.dataset", "ploc_lab.data.stream", "ploc_lab.study.work")
# Code of ours that some cells rest on besides their method's: the making of images, a measure of its own.
PICTURES = ("ploc_lab.data.corruptions", "ploc_lab.data.long_tail")
MEASURES = {"multiclass": "ploc_lab.study.multiclass"}


@dataclass(frozen=True)
class Draw:
    """A stream redrawn from real rows: at a set positive rate, or from two domains that take turns."""

    kind: Literal["prior", "abrupt", "gradual", "recurring"]
    seed: int = 0
    rate: float | None = None

    def __str__(self) -> str:
        rate = "" if self.rate is None else f"={self.rate:g}"
        return f"{self.kind}{rate} sample={self.seed}"


@dataclass(frozen=True)
class Picture:
    """A stream of images: corrupted by a profile's severity, with a long tail of classes, both, or neither.

    >>> str(Picture("gaussian_noise", 3, "paper", rho=100))
    'gaussian_noise_s3_rho100 (paper)'
    """

    corruption: Kind | None = None
    severity: int | None = None
    profile: str | None = None
    rho: float | None = None
    seed: int = 0

    kind = "image"

    @property
    def stream(self) -> str:
        """The stream's name, whatever the profile."""
        kind = "blur" if self.corruption == "gaussian_blur" else self.corruption
        name = "clean" if kind is None else f"{kind}_s{self.severity}"
        return name if self.rho is None else f"{name}_rho{self.rho:g}"

    @property
    def rate(self) -> float | None:
        """The first class over the last, where it is set."""
        return self.rho

    def __str__(self) -> str:
        return self.stream if self.profile is None else f"{self.stream} ({self.profile})"

    def corrupt(self) -> Corruption | None:
        """The corruption itself, or none."""
        if self.corruption is None:
            return None
        if self.severity is None or self.profile is None:
            raise ValueError(f"{self.corruption} needs a severity and a profile, got {self}")
        return find(self.corruption, self.severity, self.profile)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One (data set, backbone, seeds, method, batch size, variant): done once, stored whole.

    >>> Cell(dataset="heloc", backbone="mlp", method="ploc", order="permuted", order_seed=2).variant
    'permuted=2'
    """

    dataset: str
    backbone: str
    method: str
    seeds: tuple[int, ...] = SEEDS
    batch: int = 1
    limit: int | None = None
    order: Order = "split"
    order_seed: int = 0
    draw: Draw | Picture | None = None
    options: Options = ()
    recipe: Options = ()
    measure: str = "metrics"

    @property
    def variant(self) -> str:
        """What sets the cell apart from the plain protocol, in words; empty for the plain protocol."""
        words = [f"{name}={value}" for name, value in self.options]
        if self.order != "split":
            words.append(f"permuted={self.order_seed}" if self.order == "permuted" else self.order)
        if self.draw is not None:
            words.append(str(self.draw))
        if self.measure != "metrics":
            words.append(self.measure)
        return ", ".join(words)

    @property
    def name(self) -> str:
        """The cell in a few words, for people."""
        words = [f"{self.dataset}/{self.backbone}/{self.method}", f"B={self.batch}"]
        if self.limit is not None:
            words.append(f"first {self.limit} rows")
        return " ".join([*words, self.variant]).rstrip()

    @property
    def source(self) -> tuple[str, str, Options]:
        """What its checkpoints are trained by: data set, backbone, recipe."""
        return self.dataset, self.backbone, self.recipe

    @property
    def id(self) -> str:
        """A hash of the question alone, the same before and after code, data or weights change."""
        return _hash(asdict(self))

    def but(self, **changes: Any) -> "Cell":
        """The same cell with some fields changed."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Facts:
    """What the cells of one (data set, backbone) rest on: hashes of data, checkpoints and network code."""

    data: str = ""
    checkpoints: Mapping[int, str] | None = None
    network: str = ""
    rows: int = 0


def forward_only(name: str) -> bool:
    """Whether a method needs no gradient: it answers from cached logits, so cells can share them."""
    return name == ORACLE or issubclass(methods.spec(name).cls, OutputMethod)


def resolved(cell: Cell) -> dict[str, Scalar]:
    """The method's options as they will be used: the cell's before the registry's."""
    registry = {} if cell.method == ORACLE else methods.spec(cell.method).options
    return {**registry, **dict(cell.options)}


def answer_key(cell: Cell, facts: Facts) -> str:
    """A hash of everything that decides the predictions: question, data, weights, code, versions."""
    question = asdict(cell) | {"measure": ""}
    drawn = [digest(*PICTURES)] if isinstance(cell.draw, Picture) else []
    return _hash([question, _ground(cell, facts), resolved(cell), _method_code(cell.method), *drawn])


def key(cell: Cell, facts: Facts) -> str:
    """A hash of everything that decides the stored result; the name of its file.

    Changing the question, the data, a checkpoint, an option, the code of the method or of the evaluation,
    or the versions of numpy and torch makes another key; nothing else does.
    """
    if cell.dataset == SIMULATION:
        return _hash([asdict(cell), digest("ploc_lab.study.simulate"), _versions()])
    measured = [digest(MEASURES[cell.measure])] if cell.measure in MEASURES else []
    return _hash([answer_key(cell, facts), cell.measure, digest("ploc_lab.study.evaluate"), *measured])


def _ground(cell: Cell, facts: Facts) -> list[Any]:
    checkpoints = facts.checkpoints or {}
    missing = [seed for seed in cell.seeds if seed not in checkpoints]
    if missing:
        raise ValueError(
            f"no checkpoint of {cell.dataset}/{cell.backbone} for seeds {missing}: train them first"
        )
    return [facts.data, [checkpoints[seed] for seed in cell.seeds], facts.network, own(*PLAYS), _versions()]


@cache
def _method_code(name: str) -> str:
    rows = digest("ploc_lab.study.streams")
    if name == ORACLE:
        return rows
    modules = [methods.spec(name).cls.__module__]
    if not forward_only(name):
        modules.append("ploc_lab.methods.lockstep")
    return digest(*modules) + rows


@cache
def _versions() -> tuple[str, ...]:
    return tuple(f"{package} {version(package)}" for package in ("numpy", "torch"))


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
