"""The two commands: what they write, what they print, what they refuse."""

import json
import re

import polars as pl
import pytest

from ploc_lab.cli import app
from ploc_lab.report import claims, commands, tables
from ploc_lab.study.commands import write_tables
from ploc_lab.study.work import CORE


def call(*words: str) -> None:
    app(list(words), exit_on_error=False, result_action="return_value")


@pytest.fixture(scope="module")
def results(study, tmp_path_factory):
    """A results folder as `ploc-lab run` leaves it."""
    folder = tmp_path_factory.mktemp("results")
    write_tables(study.gathered, folder, ("main",))
    return folder


def test_report_writes_everything_from_the_cells_alone(results, reports, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PLOC_DATA", str(tmp_path / "no data"))
    monkeypatch.setenv("PLOC_WORK", str(tmp_path / "no work"))
    out = tmp_path / "out"
    call("report", "--results", str(results), "--out", str(out))
    made, drawn = reports["run"].tables, reports["run"].drawn
    expected = {"index.html", "claims.json"}
    expected |= {f"tables/{name}.{suffix}" for name in made for suffix in ("md", "tex")}
    expected |= {f"figures/{name}.{suffix}" for name in drawn for suffix in ("svg", "png")}
    assert {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()} == expected
    assert json.loads((out / "claims.json").read_text())[0]["id"] == claims.CLAIMS[0].id
    assert (out / "tables" / "orders.md").read_text().startswith("**Orders of the stream")
    said = capsys.readouterr()
    assert "The target streams" in said.out
    assert "Data sets that are not the paper's" in said.out
    assert re.search(r"Claims: \d+; holds \d+, does not hold \d+, cannot be tested here \d+", said.out)
    assert "tables" in said.err


def test_report_goes_beside_the_cells_by_default(world, tmp_path, capsys):
    world.write_parquet(tmp_path / "cells.parquet")
    call("report", "--results", str(tmp_path))
    assert (tmp_path / "index.html").exists()
    out = capsys.readouterr().out
    for title in ("Table 1", "Table 2", "Table 3", "Table 4", "Table 5"):
        assert title in out
    assert "0.612, +0.000" in out


def test_claims_as_json(results, capsys):
    call("claims", "--json", "--results", str(results))
    rows = json.loads(capsys.readouterr().out)
    keys = {"id", "place", "claim", "threshold", "paper", "ours", "verdict", "reason"}
    assert all(set(row) == keys for row in rows)
    assert [row["id"] for row in rows] == [claim.id for claim in claims.CLAIMS]


def test_claims_on_the_terminal(results, capsys):
    call("claims", "--results", str(results))
    said = capsys.readouterr().out
    flat = " ".join(said.split())
    for claim in claims.CLAIMS:
        assert claim.id in flat
    for word in claims.count([]):
        assert word in flat
    assert max(len(line) for line in said.splitlines()) <= 150


@pytest.mark.parametrize("command", ["report", "claims"])
def test_without_cells_it_says_what_to_run(tmp_path, command):
    with pytest.raises(ValueError, match=r"there is no .*cells\.parquet: `ploc-lab run --out .*` makes it"):
        call(command, "--results", str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no parquet at all", "can't be read"),
        (b"", "can't be read"),
        ({"id": ["a"], "dataset": ["heloc"]}, "has no column 'backbone'"),
    ],
)
def test_cells_that_are_none_are_refused(tmp_path, content, message):
    path = tmp_path / "cells.parquet"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        pl.DataFrame(content).write_parquet(path)
    with pytest.raises(ValueError, match=message):
        call("claims", "--results", str(tmp_path))


@pytest.mark.parametrize("name", [name for name in CORE if name not in commands.NEEDED])
def test_columns_that_are_not_asked_for_are_not_needed(world, tmp_path, name, capsys):
    world.drop(name).write_parquet(tmp_path / "cells.parquet")
    call("claims", "--results", str(tmp_path))
    tables.build(world.drop(name))
    assert "holds" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["positive_rate", "mu", "skipped", "checkpoint"])
@pytest.mark.parametrize("command", ["report", "claims"])
def test_a_column_that_is_needed_and_absent_is_named(world, tmp_path, name, command):
    world.drop(name).write_parquet(tmp_path / "cells.parquet")
    with pytest.raises(ValueError, match=f"has no column '{name}': it was not gathered by"):
        call(command, "--results", str(tmp_path))


def test_no_rows_are_refused(world, tmp_path):
    world.clear().write_parquet(tmp_path / "cells.parquet")
    with pytest.raises(ValueError, match="has no rows"):
        call("report", "--results", str(tmp_path))


def test_a_report_again_gives_the_same_bytes_and_broken_off_it_leaves_whole_files(
    results, tmp_path, monkeypatch
):
    call("report", "--results", str(results), "--out", str(tmp_path))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    call("report", "--results", str(results), "--out", str(tmp_path))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before

    def broken(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("pathlib.Path.replace", broken)
    with pytest.raises(KeyboardInterrupt):
        call("report", "--results", str(results), "--out", str(tmp_path))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before
