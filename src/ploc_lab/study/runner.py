"""The grid runner: cells on any `concurrent.futures.Executor`, resumable to the cell."""

import multiprocessing
import os
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol, cast

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ploc_lab import files, paths
from ploc_lab.study.cell import SIMULATION, Cell, Facts, forward_only, key
from ploc_lab.study.store import Store
from ploc_lab.study.work import Failure, perform, prepare

GROUP = 24  # forward-only cells of one (data set, backbone) that share one task
FORWARD = 200.0  # what such a cell weighs in the estimate, in singleton steps of an MLP
POLL = 0.5
DIED = "the worker process died on this cell: killed, or out of memory"
ASTRAY = (
    "its worker says it is done, but it is not in {}: give this machine and all workers one shared work "
    "folder, PLOC_WORK as an absolute path"
)


class Pool(NamedTuple):
    """Where tasks run: how to open an executor, and how many tasks it works on at once."""

    open: Callable[[], Executor]
    width: int
    close: Callable[[Executor], None]


@dataclass
class Outcome:
    """What became of a grid: cells done now, cells done before, failures, and the keys that count."""

    done: int = 0
    before: int = 0
    failures: list[Failure] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether every cell is there."""
        return not self.failures


def run(cells: Iterable[Cell], store: Store, pool: Pool, console: Console | None = None) -> Outcome:
    """Do every cell of a grid that the store does not have; the same call again does nothing.

    A cell that fails is reported and the others go on. Ctrl-C stops at once: what is stored stays, the same
    call goes on from there.
    """
    grid = list(dict.fromkeys(cells))
    store.sweep()
    for name in ("answers", "checkpoints"):
        files.sweep(paths.work_root() / name)
    return _Run(grid, store, pool, console or Console(stderr=True)).go()


def local(workers: int | None = None) -> Pool:
    """Processes on this machine, one thread each."""
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}; leave it out for one a processor")
    width = workers or max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
    return Pool(partial(_processes, width), width, _stop)


def given(executor: Executor, width: int = 2) -> Pool:
    """An executor that the caller owns and closes."""
    return Pool(lambda: executor, width, lambda _: None)


def dask(address: str) -> Pool:
    """A Dask cluster by its scheduler's address, e.g. `dask://10.0.0.5:8786`.

    Its workers need this package, the data, and one work folder that they share with this machine.
    """
    from distributed import Client  # noqa: PLC0415 - only who has a cluster pays for the import

    client: Any = cast(Any, Client)(address.replace("dask://", "tcp://", 1), timeout=10)
    width = max(1, sum(client.nthreads().values()))
    return Pool(client.get_executor, width, lambda _: client.close())


def pool(executor: str, workers: int | None = None) -> Pool:
    """The pool that a command line names: `local` or `dask://host:port`."""
    if executor == "local":
        return local(workers)
    if executor.startswith("dask://"):
        return dask(executor)
    raise ValueError(f"no executor is called {executor!r}; there are: local, dask://host:port")


class _Task(Protocol):
    """Something to run: what, on which cells, and what it weighs in the estimate."""

    weight: float

    @property
    def cells(self) -> list[Cell]: ...

    def submit(self, executor: Executor) -> Future[Any]: ...


@dataclass
class _Prepare:
    cells: list[Cell]
    weight: float = 0.0

    def submit(self, executor: Executor) -> Future[Any]:
        cell = self.cells[0]
        seeds = sorted({seed for c in self.cells for seed in c.seeds})
        return executor.submit(prepare, cell.dataset, cell.backbone, cell.recipe, seeds)


@dataclass
class _Perform:
    keyed: list[tuple[Cell, str]]
    facts: Facts
    store: Store
    weight: float

    @property
    def cells(self) -> list[Cell]:
        return [cell for cell, _ in self.keyed]

    def submit(self, executor: Executor) -> Future[Any]:
        return executor.submit(perform, self.keyed, self.facts, self.store.root)


class _Run:
    """One run of a grid: a window of tasks in flight, so that what breaks the pool is among a known few."""

    def __init__(self, grid: list[Cell], store: Store, pool: Pool, console: Console) -> None:
        self.store, self.pool, self.console = store, pool, console
        self.outcome = Outcome()
        self.simulated = [cell for cell in grid if cell.dataset == SIMULATION]
        self.real = [cell for cell in grid if cell.dataset != SIMULATION]
        self.waiting: deque[_Task] = deque()
        self.flying: dict[Future[Any], _Task] = {}
        self.pending: set[str] = set()
        self.total = len(grid)
        self.weight = 0.0

    def go(self) -> Outcome:
        by_source: dict[Any, list[Cell]] = {}
        for cell in self.real:
            by_source.setdefault(cell.source, []).append(cell)
        self.waiting.extend(_Prepare(cells) for cells in by_source.values())
        self._plan(self.simulated, Facts())
        with _progress(self.console) as progress:
            bar = progress.add_task("cells", total=None, cells=f"0/{self.total}")
            executor = self.pool.open()
            try:
                while self.waiting or self.flying:
                    while self.waiting and len(self.flying) < self.pool.width:
                        task = self.waiting.popleft()
                        self.flying[task.submit(executor)] = task
                    finished, _ = wait(self.flying, timeout=POLL, return_when=FIRST_COMPLETED)
                    broken = [self._settle(future) for future in finished]
                    if any(broken):
                        executor = self._mend(executor)
                    self._show(progress, bar)
            except BaseException:
                for future in self.flying:
                    future.cancel()
                raise
            finally:
                self.pool.close(executor)
            self._show(progress, bar)
        return self.outcome

    def _plan(self, cells: Sequence[Cell], facts: Facts) -> None:
        """Turn the cells of one source into tasks: what is done is left out, what shares logits is one."""
        left: list[tuple[Cell, str]] = []
        for cell in cells:
            try:
                name = key(cell, facts)
            except Exception:  # an unknown method is one failure, not the end
                self._fail(cell, traceback.format_exc())
                continue
            self.outcome.keys[cell.id] = name
            if self.store.has(name):
                self.outcome.before += 1
            else:
                left.append((cell, name))
        self.pending |= {name for _, name in left}
        cheap = [pair for pair in left if pair[0].dataset == SIMULATION or forward_only(pair[0].method)]
        heavy = [pair for pair in left if pair not in cheap]
        tasks: list[_Task] = [
            _Perform(group, facts, self.store, FORWARD * len(group))
            for group in (cheap[start : start + GROUP] for start in range(0, len(cheap), GROUP))
        ]
        # What only needs logits is done first: within minutes there is a table to look at.
        self.waiting.extendleft(reversed(tasks))
        self.waiting.extend(_Perform([pair], facts, self.store, _steps(pair[0], facts)) for pair in heavy)

    def _settle(self, future: Future[Any]) -> bool:
        """Take a finished task's result; True if the pool broke under it."""
        task = self.flying.pop(future)
        try:
            result = future.result()
        except Exception as error:  # whatever a worker died of
            if _broke(error):
                self.flying[future] = task
                return True
            text = "".join(traceback.format_exception(error))
            for cell in task.cells:
                self._fail(cell, text)
            return False
        if isinstance(task, _Prepare):
            self._plan(task.cells, result)
        else:
            for failure in result:
                self._fail(failure.cell, failure.error)
            self._count(task)
            for cell in task.cells:
                if self.outcome.keys[cell.id] in self.pending:
                    self._fail(cell, ASTRAY.format(self.store.root))
        return False

    def _mend(self, executor: Executor) -> Executor:
        """A worker died: each task in flight is tried alone, so that only the guilty cell is lost."""
        suspects = list(self.flying.values())
        self.flying.clear()
        self.pool.close(executor)
        for task in suspects:
            self._alone(task)
        return self.pool.open()

    def _alone(self, task: _Task) -> None:
        executor = self.pool.open()
        try:
            future = task.submit(executor)
            self.flying[future] = task
            wait([future])
            if not self._settle(future):
                return
            del self.flying[future]
        finally:
            self.pool.close(executor)
        if isinstance(task, _Perform):
            self._count(task)
            left = [(cell, name) for cell, name in task.keyed if not self.store.has(name)]
            if len(left) > 1:
                for pair in left:
                    self._alone(_Perform([pair], task.facts, task.store, task.weight / len(left)))
                return
            for cell, _ in left:
                self._fail(cell, DIED)
            return
        for cell in task.cells:
            self._fail(cell, DIED)

    def _count(self, task: _Task) -> None:
        stored = self.store.keys()  # a listing: shared file systems remember for a while what wasn't there
        for cell in task.cells:
            name = self.outcome.keys[cell.id]
            if name in self.pending and name in stored:
                self.pending.discard(name)
                self.outcome.done += 1

    def _fail(self, cell: Cell, error: str) -> None:
        self.outcome.failures.append(Failure(cell, error))
        self.pending.discard(self.outcome.keys.get(cell.id, ""))
        self.console.print(
            f"failed: {cell.name}\n{error.rstrip()}", highlight=False, markup=False, soft_wrap=True
        )

    def _show(self, progress: Progress, bar: Any) -> None:
        """Weights of what is done and left, the stored cells of tasks in flight included."""
        left = sum(task.weight for task in self.waiting)
        stored = 0
        for task in self.flying.values():
            here = 0
            if isinstance(task, _Perform):
                here = sum(self.store.has(name) for _, name in task.keyed)
            stored += here
            left += task.weight * (1 - here / max(1, len(task.cells)))
        done = self.outcome.before + self.outcome.done + stored
        self.weight = max(self.weight, left)
        progress.update(
            bar,
            total=self.weight or 1.0,
            completed=(self.weight or 1.0) - left,
            cells=f"{done}/{self.total}" + (f", {n} failed" if (n := len(self.outcome.failures)) else ""),
        )


_PACE = {"ft_transformer": 4.0}  # steps of other backbones in the time of one


def _steps(cell: Cell, facts: Facts) -> float:
    rows = min(cell.limit or facts.rows, facts.rows)
    return float(rows / cell.batch**0.7 * _PACE.get(cell.backbone.partition(":")[0], 1.0))


def _broke(error: BaseException) -> bool:
    return any(
        cls.__name__ in {"BrokenProcessPool", "BrokenExecutor", "KilledWorker"} for cls in type(error).__mro__
    )


def _processes(width: int) -> Executor:
    # Workers inherit the environment: one thread each, or they would fight for the cores.
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ.setdefault(name, "1")
    # Spawned, not forked: no lock or thread of this process is copied in the middle of something.
    return ProcessPoolExecutor(width, multiprocessing.get_context("spawn"), initializer=_quiet)


def _quiet() -> None:
    """In a worker, Ctrl-C is the parent's to handle, and a progress bar would be drawn over the grid's."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["TTY_COMPATIBLE"] = "0"


def _stop(executor: Executor) -> None:
    """End a pool now. What its workers were writing has temporary names, so nothing half-written stays."""
    workers = list((getattr(executor, "_processes", None) or {}).values())
    executor.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join(5)


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        TextColumn("{task.fields[cells]}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
