"""The embedded table is the one that is documented: its size, its rates, and nothing lost in packing."""

import doctest
import gzip
import hashlib
from importlib import resources

import numpy as np

from ploc import randhie


def test_it_is_the_file_that_statsmodels_ships():
    packed = (resources.files("ploc") / "data" / "randhie.csv.gz").read_bytes()
    digest = "9f6c87d05aef087a82cc4465310c8cd3f38327be6eafa43bd81fb98c4f3d088c"
    assert hashlib.sha256(gzip.decompress(packed)).hexdigest() == digest


def test_every_cell_is_read_as_written():
    packed = (resources.files("ploc") / "data" / "randhie.csv.gz").read_bytes()
    header, *lines = gzip.decompress(packed).decode().splitlines()
    table = randhie.load()
    assert header.split(",") == list(table)
    assert {len(column) for column in table.values()} == {20_190} == {len(lines)}
    for row in (0, 7, 10_000, 20_189):
        assert [float(cell) for cell in lines[row].split(",")] == [column[row] for column in table.values()]


def test_counts_and_flags_are_integers_and_the_rest_floats():
    table = randhie.load()
    whole = {name for name, column in table.items() if column.dtype == np.int64}
    assert whole == {"mdvis", "idp", "hlthg", "hlthf", "hlthp"}
    assert all(column.dtype == np.float64 for name, column in table.items() if name not in whole)
    assert all(set(np.unique(table[name])) == {0, 1} for name in ("idp", "hlthg", "hlthf", "hlthp"))


def test_the_shift_of_the_first_task_is_there_and_that_of_the_second_is_not():
    table = randhie.load()
    often = table["mdvis"] > 2
    limited, good = table["physlm"] > 0.5, table["hlthg"] == 1
    assert (limited.sum(), good.sum()) == (2_387, 7_309)
    np.testing.assert_allclose((often[~limited].mean(), often[limited].mean()), (0.34022, 0.50733), atol=5e-6)
    np.testing.assert_allclose((often[~good].mean(), often[good].mean()), (0.35611, 0.36681), atol=5e-6)


def test_its_example_runs():
    assert doctest.testmod(randhie).failed == 0
