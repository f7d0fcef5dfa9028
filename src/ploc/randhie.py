"""The RAND Health Insurance Experiment: 20,190 person-years in the public domain, no download needed."""

import csv
import gzip
import io
from importlib import resources

import numpy as np
from numpy.typing import NDArray

Columns = dict[str, NDArray[np.int64] | NDArray[np.float64]]

_COUNTS = frozenset({"mdvis", "idp", "hlthg", "hlthf", "hlthp"})


def load() -> Columns:
    """Read the embedded table: a key a column, in the order of the file; counts and flags int64, else floats.

    It is the table that statsmodels ships as `randhie`, prepared for Cameron and Trivedi (2005);
    `data/README.md` says what each column means. The paper does not use it: it is here because anyone may
    have it. Each call reads afresh, so the arrays are the caller's.

    >>> table = load()
    >>> list(table)
    ['mdvis', 'lncoins', 'idp', 'lpi', 'fmde', 'physlm', 'disea', 'hlthg', 'hlthf', 'hlthp']
    >>> often, limited = table["mdvis"] > 2, table["physlm"] > 0.5
    >>> len(often), int(limited.sum())
    (20190, 2387)
    >>> f"{often[~limited].mean():.2f} -> {often[limited].mean():.2f}"
    '0.34 -> 0.51'
    """
    text = gzip.decompress((resources.files("ploc") / "data" / "randhie.csv.gz").read_bytes()).decode("ascii")
    names = next(csv.reader([text[: text.index("\n")]]))
    values = np.loadtxt(io.StringIO(text), delimiter=",", skiprows=1, ndmin=2)
    return {
        name: column.astype(np.int64) if name in _COUNTS else np.ascontiguousarray(column)
        for name, column in zip(names, values.T, strict=True)
    }
