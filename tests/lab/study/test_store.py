import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from ploc_lab import files
from ploc_lab.study.store import Store, replace_file

ROWS = pl.DataFrame({"id": ["q", "q"], "dataset": ["a", "a"], "seed": [1, 0], "x": [0.5, None]})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cells")


def test_what_is_written_is_read(store):
    assert not store.has("k")
    store.write("k", ROWS)
    assert store.has("k")
    assert store.keys() == {"k"}
    assert store.questions() == {"q"}
    assert store.read("k").equals(ROWS)
    assert [path.name for path in store.root.iterdir()] == ["k.parquet"]


def test_the_same_rows_are_the_same_bytes(store):
    store.write("k", ROWS)
    store.write("l", ROWS)
    assert store.path("k").read_bytes() == store.path("l").read_bytes()


def test_gather_has_one_row_a_cell_and_seed_and_the_columns_of_all(store):
    store.write("k", ROWS)
    store.write("l", pl.DataFrame({"id": ["r"], "dataset": ["a"], "seed": [0], "extra": [2.0]}))
    gathered = store.gather()
    assert gathered.height == 3
    assert gathered["key"].to_list() == ["k", "k", "l"]
    assert gathered["seed"].to_list() == [0, 1, 0]
    assert gathered["extra"].to_list() == [None, None, 2.0]


def test_gather_prefers_the_key_that_counts_and_else_the_latest(store):
    store.write("new", ROWS)
    store.write("old", ROWS.with_columns(x=pl.lit(9.0)))
    os.utime(store.path("new"), ns=(2, 2))
    os.utime(store.path("old"), ns=(1, 1))
    assert store.gather()["key"].unique().to_list() == ["new"]
    assert store.gather({"q": "old"})["key"].unique().to_list() == ["old"]
    # the key that counts isn't done: nothing stale stands in for it
    assert store.gather({"q": "not done yet"}).height == 0


def test_what_counts_comes_first_and_of_the_rest_the_newest(store):
    """Seeds and limits make other questions: `once` keeps the first of rows that look alike."""
    for age, key in enumerate(["b", "d", "a", "c"]):
        store.write(key, ROWS.with_columns(id=pl.lit(f"q{key}")))
        os.utime(store.path(key), ns=(age, age))
    gathered = store.gather({"qd": "d", "qb": "b"})
    assert gathered["key"].to_list() == ["b", "b", "d", "d", "c", "c", "a", "a"]
    assert gathered["seed"].to_list() == [0, 1] * 4
    assert "age" not in gathered.columns


@pytest.mark.parametrize("damage", [lambda _: b"", lambda c: c[: len(c) // 2], lambda c: bytes(len(c))])
def test_a_cell_that_cannot_be_read_counts_as_absent_and_is_said_once(store, damage, caplog):
    store.write("k", ROWS)
    store.write("l", ROWS.with_columns(id=pl.lit("r")))
    store.path("k").write_bytes(damage(store.path("k").read_bytes()))
    assert store.questions() == {"r"}
    assert store.gather({"q": "k"})["key"].unique().to_list() == ["l"]
    assert caplog.text.count(f"cell {store.path('k')} can't be read") == 1
    assert store.sweep() == 1
    assert store.keys() == {"l"}
    assert len(caplog.records) == 1


def test_a_store_is_one_folder_wherever_its_workers_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Store(Path("cells")).root == tmp_path / "cells"


def test_threads_write_under_names_of_their_own(tmp_path):
    with files.whole(tmp_path / "k") as one, files.whole(tmp_path / "k") as two:
        assert one != two
        one.write_bytes(b"a")
        two.write_bytes(b"a")
    assert [path.name for path in tmp_path.iterdir()] == ["k"]


WRITER = """
import sys
from pathlib import Path
from ploc_lab.study.store import replace_file
path = Path(sys.argv[1])
content = [b"a" * 4_000_000, b"b" * 4_000_000]
print("ready", flush=True)
k = 0
while True:
    replace_file(path, content[k % 2])
    k += 1
"""


@pytest.mark.parametrize("delay", [0.01, 0.05, 0.13])
def test_a_writer_that_is_killed_leaves_a_whole_file_or_none(tmp_path, delay):
    path = tmp_path / "k.parquet"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    writer.stdout.readline()
    deadline = time.monotonic() + delay
    while time.monotonic() < deadline:
        if path.exists():
            content = path.read_bytes()
            assert content in (b"a" * 4_000_000, b"b" * 4_000_000)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    if path.exists():
        assert path.read_bytes() in (b"a" * 4_000_000, b"b" * 4_000_000)
    store = Store(tmp_path)
    store.sweep()
    assert {p.name for p in tmp_path.iterdir()} <= {"k.parquet"}


def test_sweep_leaves_a_living_writer_alone(tmp_path):
    import socket

    mine = tmp_path / f".k.parquet.{socket.gethostname()}.{os.getpid()}.tmp"
    elsewhere = tmp_path / ".k.parquet.another-host.1.tmp"
    mine.touch()
    elsewhere.touch()
    assert Store(tmp_path).sweep() == 0
    assert mine.exists()
    assert elsewhere.exists()


def test_a_full_disk_is_an_error_and_nothing_is_lost(tmp_path):
    """A file-size limit makes write() fail midway, as a full disk does; the old content stays."""
    path = tmp_path / "k.parquet"
    path.write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            replace_file(path, b"x" * 1_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this machine")
def test_no_space_left_is_an_error_too(tmp_path, monkeypatch):
    """The temporary file is a link to /dev/full: a real ENOSPC from the kernel."""
    original = Path.open

    def full(self: Path, *args, **kwargs):
        return original(Path("/dev/full") if self.name.endswith(".tmp") else self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(OSError, match="No space left on device"):
        Store(tmp_path).write("k", ROWS)
    assert list(tmp_path.iterdir()) == []
