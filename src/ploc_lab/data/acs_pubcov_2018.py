"""A stand-in for `acs_pubcov`: a 40 % sample of the year 2018, without states."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from ploc_lab.data import acs_pubcov
from ploc_lab.data.schema import Columns, Fingerprint, Source, Table, Task, near, require

FILES = ("acs_pubcov/ACSPublicCoverage.test.parquet", "acs_pubcov/ACSPublicCoverage.validation.parquet")
COLUMNS = Columns(
    numeric=("PINCP", "AGEP"),
    onehot=tuple(name for name in acs_pubcov.ONEHOT if name not in {"ST", "DIVISION"}),
    passthrough=("SEX", "RAC1P"),
)


def read(files: Sequence[Path]) -> Table:
    """Both files, put back into the census order by their row number; RAC1P counts from 0 here."""
    wanted = ["PUBCOV", "DIS", "index", *COLUMNS.numeric, *COLUMNS.onehot, *COLUMNS.passthrough]
    for path in files:
        require(path, list(pl.read_parquet_schema(path)), wanted)
    people = pl.concat([pl.read_parquet(path, columns=wanted) for path in files]).sort("index")
    return acs_pubcov.table(people.with_columns(pl.exclude("PINCP").cast(pl.Int32)), white=0)


TASK = Task(
    name="acs_pubcov_2018",
    title="ACS public health coverage, 2018, 40 %",
    files=FILES,
    read=read,
    columns=COLUMNS,
    label=acs_pubcov.TASK.label,
    domain=acs_pubcov.TASK.domain,
    stand_in="A stand-in for acs_pubcov: the year 2018 alone, a uniform 40 % of its rows, and no state, "
    "division or year among the features.",
    fingerprint=Fingerprint(
        {
            "rows": 455_316,
            "train": 307_817,
            "validation": 38_477,
            "id_test": 38_478,
            "ood_validation": 7_055,
            "ood_test": 63_489,
            "positive train": 71_912,
            "positive ood_test": 40_965,
            "width": 73,
            "sum of |numbers|": near(800_084.254628),
            "sum of codes": 5_101_857,
        }
    ),
    source=Source(
        page="https://www.census.gov/programs-surveys/acs/microdata.html",
        licence="US government work, public",
        terms="no attempt to identify a person; name the Census Bureau as the source",
        steps=(
            "This extract of the 2018 file has no official address; it is here for machines that have it.",
            "Where the Census Bureau can be reached, fetch acs_pubcov instead: it is the real one.",
        ),
    ),
)
