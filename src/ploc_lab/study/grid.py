"""What a study is run on: data sets, backbones, seeds, methods, and how long a stream may be."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ploc_lab import data, methods, models
from ploc_lab.study.cell import ORACLE, SEEDS, Cell, Options, forward_only

BACKBONES = ("mlp", "ft_transformer", "tab_transformer")
TREES = ("hist_gradient_boosting", "lightgbm")

# The paper's five tasks, each by the data sets that may stand for it: the paper's own before a stand-in.
PAPER_TASKS = {
    "heloc": ("heloc",),
    "diabetes_readmission": ("diabetes_readmission",),
    "assistments": ("assistments",),
    "anes": ("anes", "anes_1952_2000"),
    "acs_pubcov": ("acs_pubcov", "acs_pubcov_2018"),
}

# Methods without weights to update that the protocol of several experiments compares, the paper's first.
CENTRED = ("source", "ploc", "ploc_deferred", "ploc_prob")

# A step of theirs takes milliseconds: weight-updating methods answer a fixed prefix on the slowest backbone,
# and elsewhere unless they are named here.
SLOW = "ft_transformer"
SLOW_LIMIT = 7_000
IN_FULL = ("tent", "eata", "sar", "ftat", "pft3a", "cotta")

# Source rows that a backbone is trained on where the whole split would take hours on one core.
SOURCE_ROWS: dict[tuple[str, str], int] = {}


@dataclass(frozen=True)
class Grid:
    """The lists that the experiments cross, with the limits that the clock sets; all of it enters the cells.

    `limit` cuts every stream; `slow_limit` those of weight-updating methods on the slowest backbone, and of
    their variants everywhere.
    """

    datasets: tuple[str, ...]
    backbones: tuple[str, ...] = BACKBONES
    methods: tuple[str, ...] = field(default_factory=methods.names)
    seeds: tuple[int, ...] = SEEDS
    limit: int | None = None
    slow_limit: int | None = SLOW_LIMIT

    def __post_init__(self) -> None:
        for what, chosen, known in (
            ("data set", self.datasets, data.names()),
            ("backbone", self.backbones, (*models.names(), "cnn")),
            ("method", self.methods, (*methods.names(), ORACLE)),
        ):
            strangers = [name for name in chosen if name not in known]
            if strangers:
                raise ValueError(f"no {what} is called {strangers[0]!r}; there are: {', '.join(known)}")
        for what, rows in (("limit", self.limit), ("slow_limit", self.slow_limit)):
            if rows is not None and rows < 1:
                raise ValueError(f"{what} must be at least 1 row, got {rows}; leave it out for whole streams")

    def cell(self, dataset: str, backbone: str, method: str, **fields: Any) -> Cell:
        """A cell of this grid, its stream cut where the grid cuts it."""
        limits = [fields.pop("limit", None), self.limit]
        slow = backbone.partition(":")[0] == SLOW or method not in IN_FULL
        if slow and not forward_only(method):
            limits.append(self.slow_limit)
        limit = min((n for n in limits if n is not None), default=None)
        return Cell(
            dataset=dataset,
            backbone=backbone,
            method=method,
            limit=limit,
            **{"seeds": self.seeds, "recipe": recipe(dataset, backbone)} | fields,
        )

    def wanted(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of an experiment's methods that this grid has, in the experiment's order."""
        return tuple(name for name in names if name in self.methods or name == ORACLE)

    def sources(self) -> Iterator[tuple[str, str]]:
        """Every (data set, backbone) of tables."""
        return ((dataset, backbone) for dataset in self.tables for backbone in self.backbones)

    @property
    def tables(self) -> tuple[str, ...]:
        """The data sets that are tables; images have an experiment of their own."""
        return tuple(name for name in self.datasets if not data.task(name).images)

    def paired(self, cells: Iterable[Cell]) -> list[Cell]:
        """The cells, and for each that is cut short the CENTRED cells of the same length."""
        listed = list(cells)
        cut = {(c.dataset, c.backbone, c.limit) for c in listed if c.limit != self.limit}
        return listed + [
            self.cell(dataset, backbone, method, limit=limit)
            for dataset, backbone, limit in sorted(cut, key=str)
            for method in self.wanted(CENTRED)
        ]


def recipe(dataset: str, backbone: str) -> Options:
    """How the checkpoints of a study are trained where it is not simply the backbone's recipe."""
    rows = SOURCE_ROWS.get((dataset, backbone.partition(":")[0]))
    return () if rows is None else (("limit", rows),)


def at_hand() -> tuple[str, ...]:
    """The data sets whose files are on this machine."""
    return tuple(name for name in data.names() if not data.missing(name))


def paper_tasks(datasets: Iterable[str]) -> dict[str, str]:
    """Which of these data sets stands for which of the paper's tasks; a task with none is left out.

    >>> paper_tasks(["rand_hie", "heloc", "anes_1952_2000"])
    {'heloc': 'heloc', 'anes': 'anes_1952_2000'}
    """
    here = set(datasets)
    chosen = {
        task: next((name for name in names if name in here), None) for task, names in PAPER_TASKS.items()
    }
    return {task: name for task, name in chosen.items() if name is not None}
