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


@pytest.mark.parametrize("columns", [80, 120])
def test_list_is_a_table_that_a_person_can_read(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert commands.list_() == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if "Raw files" not in line) <= columns
    assert len(lines) <= 24  # a screen
    starts = [line.split() for line in lines]
    for name in data.names():
        (cells,) = (cells for cells in starts if cells[:1] == [name])
        task = data.task(name)
        rows = task.fingerprint.expected.get("rows")
        here = name.startswith("rand_hie")
        assert cells[1:6] == [
            "-" if rows is None else f"{rows:,}",
            f"{task.fingerprint.expected['ood_test']:,}",
            "yes" if here else "no",
            "yes" if here else "-",
            "yes" if task.source.form else "no",
        ]
        assert cells[6] == task.source.licence.split()[0]
    # A stand-in is called one.
    (heading,) = (number for number, cells in enumerate(starts) if cells == ["stand-ins"])
    below = {cells[0] for cells in starts[heading + 1 :] if cells}
    assert {name for name in data.names() if data.task(name).stand_in} < below
    assert "heloc" not in below


def test_list_of_a_name_shows_all_of_it_and_breaks_no_address(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert commands.list_("anes", "anes_1952_2000", "acs_pubcov", "rand_hie") == 0
    shown = capsys.readouterr().out
    words = " ".join(shown.split())
    for name in ("anes", "anes_1952_2000", "acs_pubcov", "rand_hie"):
        task = data.task(name)
        for text in (
            task.title,
            task.label,
            task.domain,
            task.stand_in or "",
            task.source.terms,
            *task.source.steps,
        ):
            assert text in words
        assert f"  source    {task.source.page}\n" in shown
    assert "get it    ploc-lab data fetch acs_pubcov" in shown
    assert "csv_pal.zip and 254 more" in words
    assert max(len(line) for line in shown.splitlines() if "/" not in line) <= 80


def test_list_of_all_at_length(capsys):
    assert commands.list_(long=True) == 0
    shown = capsys.readouterr().out
    for name in data.names():
        assert f"{name}: {data.task(name).title}\n" in shown


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
    assert "heloc: WRONG\n  rows: expected 10,459, found 30\n  train: expected" in capsys.readouterr().out
    # What is here does not make the steps superfluous.
    assert commands.fetch("heloc") == 2
    shown = capsys.readouterr().out
    assert "What is here is not the one: rows: expected 10,459, found 30" in shown
    assert "1. Open https://community.fico.com" in shown
    commands.list_("heloc")
    assert "  WRONG     rows: expected 10,459, found 30\n" in capsys.readouterr().out


def test_a_folder_or_a_locked_file_in_the_files_place_is_said(root, capsys, monkeypatch):
    (root / heloc.FILE).mkdir(parents=True)
    assert commands.check() == 1
    assert "heloc_dataset_v1.csv is a folder where a file is expected" in capsys.readouterr().out
    (root / heloc.FILE).rmdir()
    (root / heloc.FILE).write_text("x")

    def locked(files):
        raise PermissionError(13, "Permission denied", str(files[0]))

    monkeypatch.setattr(data.cache, "key", locked)  # a test that runs as root can't lock a file
    assert commands.check("heloc") == 1
    assert "heloc_dataset_v1.csv can't be read: Permission denied" in capsys.readouterr().out


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
