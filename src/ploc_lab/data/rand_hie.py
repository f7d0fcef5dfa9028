"""The RAND Health Insurance Experiment, twice: a shift that miscentres a model and one that doesn't."""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ploc import randhie
from ploc_lab.data.schema import Columns, Fingerprint, Source, Table, Task, near

FILE = str(resources.files("ploc") / "data" / "randhie.csv.gz")
OFTEN = 2

SOURCE = Source(
    page="https://www.rand.org/health-care/projects/hie.html",
    licence="public domain",
    terms="comes with the package",
)


def _table(ood: NDArray[np.bool_], table: randhie.Columns) -> Table:
    return Table(features=pl.DataFrame(table).drop("mdvis"), y=table["mdvis"] > OFTEN, ood=ood)


def read_limited(_: Sequence[Path]) -> Table:
    """Person-years, those with a physical limitation as the target."""
    table = randhie.load()
    return _table(table["physlm"] > 0.5, table)


def read_good(_: Sequence[Path]) -> Table:
    """Person-years, those in good instead of another state of health as the target."""
    table = randhie.load()
    return _table(table["hlthg"] == 1, table)


RAND_HIE = Task(
    name="rand_hie",
    title="RAND health insurance: physical limitation",
    files=(FILE,),
    read=read_limited,
    columns=Columns(
        numeric=("lncoins", "lpi", "fmde", "disea"), passthrough=("idp", "hlthg", "hlthf", "hlthp")
    ),
    label="more than two outpatient visits in the year",
    domain="physlm > 0.5, people with a physical limitation",
    fingerprint=Fingerprint(
        {
            "rows": 20_190,
            "train": 14_242,
            "validation": 1_780,
            "id_test": 1_781,
            "ood_validation": 239,
            "ood_test": 2_148,
            "positive train": 4_854,
            "positive ood_test": 1_077,
            "width": 8,
            "sum of |numbers|": near(71_956.8986392),
            "sum of codes": 0,
        }
    ),
    source=SOURCE,
    note="not in the paper; embedded, needs no file",
)

RAND_HIE_HEALTH = Task(
    name="rand_hie_health",
    title="RAND health insurance: good health",
    files=(FILE,),
    read=read_good,
    columns=Columns(
        numeric=("lncoins", "lpi", "fmde", "physlm", "disea"), passthrough=("idp", "hlthf", "hlthp")
    ),
    label="more than two outpatient visits in the year",
    domain="hlthg is 1, people who call their health good",
    fingerprint=Fingerprint(
        {
            "rows": 20_190,
            "train": 10_304,
            "validation": 1_288,
            "id_test": 1_289,
            "ood_validation": 731,
            "ood_test": 6_578,
            "positive train": 3_660,
            "positive ood_test": 2_412,
            "width": 8,
            "sum of |numbers|": near(83_654.245554),
            "sum of codes": 0,
        }
    ),
    source=SOURCE,
    note="not in the paper; the rate stays, so centring is not expected to help",
)
