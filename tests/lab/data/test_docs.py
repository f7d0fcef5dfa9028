import doctest
from pathlib import Path

import numpy as np
import pytest

from ploc_lab import data, paths
from ploc_lab.data import commands, schema, splits

PAGE = Path(__file__).parents[3] / "docs" / "data.md"


def test_the_table_of_the_page_is_the_one_that_the_command_prints(capsys):
    assert commands.list_(markdown=True) == 0
    assert capsys.readouterr().out in PAGE.read_text(encoding="utf-8")


def test_the_code_of_the_page_runs():
    text = PAGE.read_text(encoding="utf-8")
    code = text.split("```python\n")[1].split("```")[0]
    names = {}
    exec(code, names)
    assert len(names["y"]) == 2_148
    np.testing.assert_allclose(names["rate"], 4_854 / 14_242)


@pytest.mark.parametrize("module", [paths, data, splits, schema], ids=lambda module: module.__name__)
def test_the_examples_run(module):
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed
