import json
import subprocess
import sys

import pytest

from ploc_lab import data
from ploc_lab.data import commands, heloc


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    """An empty folder of raw files."""
    folder = tmp_path / "raw"
    monkeypatch.setenv("PLOC_DATA", str(folder))
    return folder


def test_list_shows_every_data_set_with_its_terms(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert commands.list_() == 0
    shown = capsys.readouterr().out
    for name in data.names():
        assert name in shown
        assert data.task(name).source.licence in shown
    assert "5,916,565" in shown
    assert "A stand-in for acs_pubcov" in shown


def test_check_as_json_is_for_programs(capsys):
    assert commands.check("rand_hie", as_json=True) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert (one["name"], one["here"], one["right"], one["problems"]) == ("rand_hie", True, True, [])
    assert one["fingerprint"] == data.load("rand_hie").fingerprint
    assert one["expected"]["ood_test"] == 2_148


def test_check_of_all_passes_over_what_is_not_here_but_a_named_one_must_be(capsys):
    assert commands.check() == 0
    assert "heloc: not here" in capsys.readouterr().out
    assert commands.check("heloc") == 1


def test_check_says_what_differs_in_a_wrong_file(root, shapes, capsys):
    columns = {name: [1] * 30 for name in (*heloc.COLUMNS.numeric, *heloc.COLUMNS.onehot)}
    score = list(range(49, 79))
    labels = ["Good", "Bad"] * 15
    shapes.table(root / heloc.FILE, {**columns, "ExternalRiskEstimate": score, "RiskPerformance": labels})
    assert commands.check() == 1
    assert "heloc: WRONG: rows: expected 10,459, found 30; train: expected" in capsys.readouterr().out


def test_fetch_prints_the_steps_for_what_needs_a_person(root, capsys):
    assert commands.fetch("heloc") == 2
    shown = capsys.readouterr().out
    assert "1. Open https://community.fico.com" in shown
    assert f"Put it here: {root / heloc.FILE}" in shown
    assert "ploc-lab data check heloc" in shown
    assert commands.fetch("rand_hie") == 0
    assert "rand_hie: already here" in capsys.readouterr().out


def test_fetch_wants_names_that_exist():
    with pytest.raises(ValueError, match="name the data sets to fetch: heloc"):
        commands.fetch()
    with pytest.raises(ValueError, match="no data set is called 'x'"):
        commands.fetch("heloc", "x")


def test_the_command_line_refuses_in_one_line_with_exit_code_2(root):
    line = [sys.executable, "-c", "from ploc_lab.cli import main; main()", "data"]
    done = subprocess.run([*line, "check", "helock"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip().startswith("ploc-lab: no data set is called 'helock'")
    assert "\n" not in done.stderr.strip()
    done = subprocess.run([*line, "check", "--json", "rand_hie"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)[0]["right"] is True
