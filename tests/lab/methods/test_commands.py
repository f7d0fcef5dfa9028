import re

import pytest

from ploc_lab.methods import names, spec
from ploc_lab.methods.commands import methods


@pytest.fixture(scope="module")
def lines():
    import contextlib
    import io

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        methods()
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_every_method_is_one_line_and_says_what_happens_at_one(lines):
    title, head, *rows = lines
    assert "parameters" in title
    assert re.split(r"\s{2,}", head) == [
        "method", "needs", "MLP", "FT-T", "TabT", "CNN", "changes (* ours)", "at B = 1",
    ]  # fmt: skip
    assert [row.split()[0] for row in rows] == list(names())
    for row, name in zip(rows, names(), strict=True):
        card = spec(name).card
        cells = re.split(r"\s{2,}", row)
        assert len(cells) == 8
        assert cells[1] == card.needs
        assert cells[7] == card.at_one
        assert cells[6].endswith("*") == card.ours


@pytest.mark.parametrize(
    ("name", "moving"),
    [
        ("ploc", "0 0 0 0"),
        ("tent", "0 0 0 1,088"),
        ("sar", "0 256 0 1,088"),
        ("tent_ln", "0 256 76 1,088"),
        ("ftat", "76,033 34,369 845 -"),
        ("cotta", "76,033 34,369 845 427,178"),
        ("dua", "0 0 0 0"),
        ("note", "0 0 0 1,088"),
        ("rotta", "0 0 0 1,088"),
    ],
)
def test_how_many_parameters_may_move(name, moving, lines):
    row = next(line for line in lines if line.split()[0] == name)
    assert re.split(r"\s{2,}", row)[2:6] == moving.split()


def test_a_given_width_cuts_the_lines(capsys):
    methods(width=100)
    shown = [line for line in capsys.readouterr().out.splitlines() if line]
    assert len(shown) == len(names()) + 2
    assert max(map(len, shown)) <= 100
