import re

import polars as pl
import pytest

from ploc_lab.cli import app
from ploc_lab.study import grid


def call(*words: str) -> int:
    try:
        app(list(words), exit_on_error=False, result_action="return_value")
    except SystemExit as end:
        return int(end.code or 0)
    return 0


SMALL = ("--datasets", "rand_hie", "--backbones", "mlp", "--seeds", "1", "--limit", "60", "--workers", "1")


@pytest.fixture
def here(tmp_path, work, monkeypatch):
    monkeypatch.setattr(grid, "SOURCE_ROWS", {("rand_hie", "mlp"): 600})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_run_status_and_run_again(here, capsys):
    out = here / "results"
    words = (*SMALL, "--only", "deferred,per_dataset", "--methods", "source,ploc,ploc_deferred")
    assert call("run", *words, "--out", str(out)) == 0
    rows = pl.read_parquet(out / "cells.parquet").filter(pl.col("limit") == 60)
    assert {"source", "ploc", "ploc_deferred"} <= set(rows["method"])
    assert (out / "tables" / "deferred_gap.csv").exists()
    capsys.readouterr()

    assert call("run", *words, "--out", str(out)) == 0
    said = capsys.readouterr().err
    assert re.match(r"0 cells done, 3 were done before, 0 failed", said)

    assert call("status", *SMALL[:-2], "--methods", "source,ploc,ploc_deferred", "--only", "deferred") == 0
    assert re.search(r"deferred\W+3\W+3\W+0", capsys.readouterr().out)


def test_results_of_another_machine_are_not_written_over(here):
    out = here / "results"
    words = (*SMALL, "--only", "deferred", "--methods", "source", "--out", str(out))
    assert call("run", *words) == 0
    pl.read_parquet(out / "cells.parquet").with_columns(id=pl.lit("asked of nobody here")).write_parquet(
        out / "cells.parquet"
    )
    before = (out / "cells.parquet").read_bytes()
    with pytest.raises(ValueError, match=r"cells.parquet holds 1 cells .* would be lost; name another"):
        call("run", *words)
    assert (out / "cells.parquet").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--datasets", "helok"), "no data set is called 'helok'"),
        (("--methods", "plok"), "no method is called 'plok'"),
        (("--only", "everything"), "no experiment is called 'everything'"),
        (("--executor", "ray"), "no executor is called 'ray'"),
        (("--seeds", "0"), "at least one seed"),
        (("--backbones", "nosuch"), "no backbone is called 'nosuch'; there are: mlp, .*lightgbm.*cnn"),
        (("--limit", "0"), "limit must be at least 1 row, got 0"),
        (("--limit", "-5"), "limit must be at least 1 row, got -5"),
        (("--slow-limit", "0"), "slow_limit must be at least 1 row, got 0"),
        (("--workers", "0"), "workers must be at least 1, got 0"),
    ],
)
def test_what_is_not_there_is_refused_by_name(here, words, message):
    with pytest.raises(ValueError, match=message):
        call("run", "--datasets", "rand_hie", "--only", "deferred", *words)


def test_a_run_of_nothing_is_refused(here):
    with pytest.raises(ValueError, match=r"nothing to run: of cifar10 with .*, deferred, main ask no cell"):
        call("run", "--datasets", "cifar10", "--only", "deferred,main")
    assert list(here.iterdir()) == []


def test_a_failed_cell_is_the_exit_code(here, capsys, monkeypatch):
    monkeypatch.setenv("PLOC_DATA", str(here / "nowhere"))
    monkeypatch.setenv("PLOC_WORK", str(here / "work"))
    words = ("--datasets", "assistments", "--backbones", "mlp", "--seeds", "1", "--only", "deferred")
    assert call("run", *words, "--workers", "1", "--methods", "source") == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "1 failed; results/cells.parquet was not written: no cell is done" in said
