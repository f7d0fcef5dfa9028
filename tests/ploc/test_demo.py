import io

import numpy as np
import pytest
from rich.console import Console

from ploc import randhie
from ploc.center import PLOC
from ploc.demo import Task, answer, show, sparkline


@pytest.fixture(scope="module")
def told() -> str:
    out = io.StringIO()
    show(Console(file=out, width=100))
    return out.getvalue()


def test_it_shows_where_it_helps_and_where_it_hurts(told):
    helps, hurts = " ".join(told.split()).split("2 Where it does not")
    assert "PLOC helps here" in helps
    assert "PLOC hurts here" in hurts
    assert "34% go often" in helps
    assert "51% do (2,387 rows)" in helps
    assert "37% do (7,309 rows)" in hurts


def test_it_is_plain_when_piped(told):
    assert "\x1b" not in told
    assert max(map(len, told.splitlines())) <= 100


def test_the_stream_is_answered_row_by_row_as_replay_would():
    table = randhie.load()
    task = Task("", "", "", "physlm", table["physlm"] > 0.5)
    run = answer(table, table["mdvis"] > 2, task)
    assert np.abs(run.probs - PLOC().replay(run.z)).max() < 1e-15
    assert run.shifts[0] == 0
    assert run.shifts[-1] == pytest.approx(run.z[:-1].mean())


def test_a_path_in_a_line():
    assert sparkline(np.array([0.0, 1.0, 0.0])) == "▁█▁"
    assert sparkline(np.array([2.0, 2.0])) == "▁▁"
