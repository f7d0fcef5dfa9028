import io
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from rich.console import Console

from ploc_lab.study import runner
from ploc_lab.study import work as work_
from ploc_lab.study.cell import Cell, Draw, Facts, key
from ploc_lab.study.store import Store

CLOCK = ["seconds"]  # the only column that a second run may change


def alike(here: pl.DataFrame, there: pl.DataFrame) -> None:
    clock = [name for name in (*CLOCK, "us_per_row") if name in here.columns]
    assert_frame_equal(here.drop(clock), there.drop(clock), check_exact=True)


def test_a_small_study_is_done_whole(study):
    assert study.outcome.ok, study.outcome.failures[0].error
    assert study.outcome.done == len(study.cells)
    assert study.gathered.height == sum(len(cell.seeds) for cell in study.cells)
    assert set(study.gathered["method"]) >= set(study.grid.methods)
    assert set(study.gathered["backbone"]) >= set(study.grid.backbones)


def test_the_columns_are_those_of_the_protocol(study):
    first = (
        "dataset backbone seed method batch variant order n accuracy balanced_accuracy f1 auroc ece nll brier"
    )
    assert set(f"{first} n_adapted n_nan seconds".split()) <= set(study.gathered.columns)
    real = study.gathered.filter(pl.col("dataset") != "simulation")
    for name in (
        "n",
        "accuracy",
        "nll",
        "n_adapted",
        "n_nan",
        "seconds",
        "checkpoint",
        "data",
        "versions",
        "mu",
    ):
        assert real[name].null_count() == 0, name
    assert real["n"].max() == study.grid.limit


def test_the_second_run_does_nothing(study, quiet):
    stamps = {path: path.stat().st_mtime_ns for path in study.store.root.iterdir()}
    again = runner.run(study.cells, study.store, runner.local(1), quiet)
    assert (again.done, again.before, again.failures) == (0, len(study.cells), [])
    assert {path: path.stat().st_mtime_ns for path in study.store.root.iterdir()} == stamps


def test_every_executor_and_every_run_gives_the_same_bits(few, work, tmp_path, quiet):
    one, two = Store(tmp_path / "threads"), Store(tmp_path / "processes")
    with ThreadPoolExecutor(2) as threads:
        assert runner.run(few, one, runner.given(threads, 2), quiet).done == len(few)
    answers = list((work / "answers").iterdir())
    assert answers, "weight-updating methods keep their answers"
    for path in answers:
        path.unlink()  # so that the second run adapts again
    assert runner.run(few, two, runner.local(2), quiet).done == len(few)
    assert one.keys() == two.keys()
    alike(one.gather(), two.gather())


def test_a_failing_cell_takes_no_other_along(few, without, tmp_path):
    said = io.StringIO()
    store = Store(tmp_path)
    with ThreadPoolExecutor(1) as threads:
        outcome = runner.run([*few, without], store, runner.given(threads, 1), Console(file=said, width=200))
    assert outcome.done == len(few)
    assert [failure.cell for failure in outcome.failures] == [without]
    assert not outcome.ok
    assert "Traceback" in said.getvalue()
    assert "has no network to update" in said.getvalue()
    assert without.name in said.getvalue()


class Astray(ThreadPoolExecutor):
    """Workers that write to another folder, as those of a machine without the shared one do."""

    def submit(self, fn, /, *args, **kwargs):
        if fn is work_.perform:
            args = (*args[:2], args[2] / "elsewhere")
        return super().submit(fn, *args, **kwargs)


def test_cells_that_workers_wrote_elsewhere_are_failures(few, tmp_path, quiet):
    store = Store(tmp_path / "cells")
    with Astray(1) as threads:
        outcome = runner.run(few[:2], store, runner.given(threads, 1), quiet)
    assert not outcome.ok
    assert [failure.cell for failure in outcome.failures] == few[:2]
    assert all(f"not in {store.root}: give" in failure.error for failure in outcome.failures)
    assert "PLOC_WORK" in outcome.failures[0].error


def test_what_is_damaged_is_done_anew(few, work, quiet, caplog):
    heavy = [cell for cell in few if cell.method == "ftat"][:1]
    store = Store(work / "mended")

    def go() -> tuple[int, int]:
        with ThreadPoolExecutor(1) as threads:
            outcome = runner.run(heavy, store, runner.given(threads, 1), quiet)
        assert outcome.ok, outcome.failures
        return outcome.done, outcome.before

    before = set((work / "answers").iterdir())
    for path in before:
        path.unlink()
    assert go() == (1, 0)
    (kept,) = (work / "answers").iterdir()
    (key,) = store.keys()
    rows, cell, answers = store.read(key), store.path(key).read_bytes(), kept.read_bytes()
    for content in (b"", answers[: len(answers) // 2], answers[:-200] + bytes(200)):
        store.path(key).write_bytes(cell[:100])
        kept.write_bytes(content)
        assert go() == (1, 0)
        alike(store.read(key), rows)
        assert f"{kept} is damaged" in caplog.text
        assert f"cell {store.path(key)} can't be read" in caplog.text
        assert go() == (0, 1)
        caplog.clear()


def test_leftovers_of_dead_writers_are_swept(few, work, tmp_path, quiet):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (work / "checkpoints" / "deep").mkdir(parents=True, exist_ok=True)
    (work / "answers").mkdir(exist_ok=True)
    name = f".x.npz.{socket.gethostname()}.{dead.pid}-0123abcd.tmp"
    left = [work / "answers" / name, work / "checkpoints" / "deep" / name]
    for path in left:
        path.touch()
    with ThreadPoolExecutor(1) as threads:
        runner.run(few[:1], Store(tmp_path), runner.given(threads, 1), quiet)
    assert [path.exists() for path in left] == [False, False]


def test_a_limit_never_lengthens_a_redrawn_stream():
    """With 40,000 rows at hand, CAP is the most that a stream at a set rate has."""
    asked = []

    class Rows:
        def part(self, _):
            return range(40_000)

        def stream(self, **options):
            asked.append(options["limit"])

    bench = object.__new__(work_.Bench)
    bench.ds = Rows()
    cell = Cell(dataset="any", backbone="mlp", method="ploc", draw=Draw("prior", 0, 0.5))
    for limit in (None, 100, 30_000):
        bench.stream(cell.but(limit=limit))
    assert asked == [work_.CAP, 100, work_.CAP]


def test_data_that_is_not_here_fails_its_own_cells_only(few, tmp_path, quiet, monkeypatch):
    monkeypatch.setenv("PLOC_DATA", str(tmp_path / "nowhere"))
    absent = few[0].but(dataset="assistments", recipe=())
    with ThreadPoolExecutor(1) as threads:
        outcome = runner.run([absent, few[0]], Store(tmp_path / "cells"), runner.given(threads, 1), quiet)
    assert outcome.done == 1
    assert "ploc-lab data fetch assistments" in outcome.failures[0].error


def test_a_worker_that_is_killed_costs_no_cell(few, tmp_path, quiet):
    """Out of memory, say: the pool breaks, what was in flight is tried again, all cells are done."""
    killed = threading.Event()

    def kill() -> None:
        while not killed.is_set():
            for child in multiprocessing.active_children():
                if child.pid is not None and not killed.is_set():
                    os.kill(child.pid, signal.SIGKILL)
                    killed.set()
            time.sleep(0.01)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        outcome = runner.run(few[:3], Store(tmp_path), runner.local(1), quiet)
    finally:
        killed.set()
        thread.join()
    assert outcome.ok, outcome.failures
    assert outcome.done == 3


RUN = """
import sys
from pathlib import Path
from rich.console import Console
from ploc_lab.study import grid, runner
from ploc_lab.study.store import Store
grid.SOURCE_ROWS[("rand_hie", "mlp")] = 600

def main():
    small = grid.Grid(("rand_hie",), backbones=("mlp",), seeds=(0, 1), limit=80)
    cells = [small.cell("rand_hie", "mlp", name) for name in sys.argv[2:]]
    outcome = runner.run(cells, Store(Path(sys.argv[1])), runner.local(1), Console(stderr=True, quiet=True))
    print(outcome.done, outcome.before, len(outcome.failures))

if __name__ == "__main__":
    main()
"""
METHODS = [
    "source",
    "ploc",
    "ploc_deferred",
    "ploc_prob",
    "t3a",
    "lame",
    "em",
    "ftat",
    "pft3a",
    "cotta",
    "ftat_paper",
]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "run.py"
    path.write_text(RUN)
    return path


def start(script: Path, store: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(script), str(store), *METHODS],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def until(store: Path, cells: int, process: subprocess.Popen[str]) -> None:
    while process.poll() is None and len(list(store.glob("*.parquet"))) < cells:
        time.sleep(0.005)


def test_a_run_that_is_killed_goes_on_and_ends_the_same(work, script, tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    done, _ = start(script, whole).communicate()
    assert done.split() == [str(len(METHODS)), "0", "0"]
    for path in (work / "answers").iterdir():
        path.unlink()

    victim = start(script, broken)
    until(broken, 3, victim)
    os.killpg(victim.pid, signal.SIGKILL)
    victim.communicate()
    before = {path.name: path.read_bytes() for path in broken.glob("*.parquet")}
    assert 3 <= len(before) < len(METHODS)

    rest, errors = start(script, broken).communicate()
    assert rest.split() == [str(len(METHODS) - len(before)), str(len(before)), "0"], errors
    for name, content in before.items():
        assert (broken / name).read_bytes() == content
    assert Store(whole).keys() == Store(broken).keys()
    alike(Store(whole).gather(), Store(broken).gather())


def test_ctrl_c_ends_a_run_at_once_and_leaves_no_process(work, script, tmp_path):
    store = tmp_path / "cells"
    process = start(script, store)
    until(store, 1, process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    assert "KeyboardInterrupt" in errors
    gone = False
    for _ in range(1000):  # the interpreter's own helper process ends a moment after its parent
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            gone = True
            break
        time.sleep(0.01)
    assert gone
    assert not list(store.glob(".*.tmp"))


def test_a_pool_is_named_or_refused():
    with pytest.raises(ValueError, match=r"'ray://.*local, dask://"):
        runner.pool("ray://10.0.0.1")
    with pytest.raises(ValueError, match="at least 1, got -1"):
        runner.local(-1)
    with pytest.raises(ValueError, match="at least 1, got 0; leave it out"):
        runner.local(0)


def test_a_cluster_does_the_same(few, tmp_path, quiet):
    distributed = pytest.importorskip("distributed")
    one, two = Store(tmp_path / "cluster"), Store(tmp_path / "threads")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, protocol="tcp"
    ) as cluster:
        pool = runner.pool(cluster.scheduler_address.replace("tcp://", "dask://"))
        assert pool.width == 2
        assert runner.run(few[:4], one, pool, quiet).done == 4
    with ThreadPoolExecutor(1) as threads:
        runner.run(few[:4], two, runner.given(threads, 1), quiet)
    alike(one.gather(), two.gather())


def test_simulated_cells_need_no_source(tmp_path, quiet):
    cell = Cell(dataset="simulation", backbone="noise", method="ploc", measure="variance", seeds=(0,))
    with ThreadPoolExecutor(1) as threads:
        outcome = runner.run([cell], Store(tmp_path), runner.given(threads, 1), quiet)
    assert outcome.keys == {cell.id: key(cell, Facts())}
    assert Store(tmp_path).gather()["variance"].len() == 1
