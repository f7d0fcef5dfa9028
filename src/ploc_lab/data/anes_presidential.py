"""A second stand-in for `anes`: presidential years, 1952 to 2024, few columns."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from ploc_lab.data.schema import Columns, Fingerprint, Source, Table, Task, near, require

FILE = "anes/anes_presidential_1952_2024.parquet"

# Left out: pres_vote, which only a voter has; ideology_numeric, which is ideology again.
COLUMNS = Columns(
    numeric=("year", "age", "therm_black", "therm_white"),
    onehot=(
        "state",
        "income",
        "education",
        "ideology",
        "pres_appr",
        "influence",
        "equality",
        "religion",
        "better_alone",
    ),
    passthrough=("sex", "race"),
    binned=True,
)


def read(files: Sequence[Path]) -> Table:
    """Respondents whose vote is known; a missing answer is a category of its own, as in `anes`."""
    wanted = ["voted", "region", *COLUMNS.numeric, *COLUMNS.onehot, *COLUMNS.passthrough]
    require(files[0], list(pl.read_parquet_schema(files[0])), wanted)
    raw = pl.read_parquet(files[0], columns=wanted).filter(pl.col("voted").is_not_null())
    return Table(
        features=raw.select(
            *COLUMNS.numeric,
            pl.col(COLUMNS.onehot).cast(pl.String).fill_null("no answer"),
            sex=(pl.col("sex") == "Male").fill_null(value=False).cast(pl.UInt8),
            race=(pl.col("race") == "White").fill_null(value=False).cast(pl.UInt8),
        ),
        y=(raw["voted"] == "Yes").to_numpy(),
        ood=(raw["region"].cast(pl.String) == "South").to_numpy(),
        time=raw["year"].cast(pl.Float64).to_numpy(),
    )


TASK = Task(
    name="anes_presidential",
    title="ANES turnout, presidential years",
    files=(FILE,),
    read=read,
    columns=COLUMNS,
    label="voted: voted is Yes",
    domain="region is South",
    time="year",
    stand_in="A stand-in for anes: presidential years from 1952 to 2024 only, 15 columns instead of 54, "
    "and respondents whose vote is unknown left out instead of counted as not voting.",
    fingerprint=Fingerprint(
        {
            "rows": 51_606,
            "train": 26_477,
            "validation": 3_310,
            "id_test": 3_310,
            "ood_validation": 1_851,
            "ood_test": 16_658,
            "positive train": 21_970,
            "positive ood_test": 12_549,
            "width": 101,
            "sum of |numbers|": near(448_090),
            "sum of codes": 1_709_968,
        }
    ),
    source=Source(
        page="https://github.com/PPBDS/primer.data",
        licence="ANES terms of use",
        terms="research and teaching; cite; no attempt to identify a person",
        steps=(
            "This is the table nes of the R package primer.data, 52,359 rows by 19 columns, written as "
            "parquet without any change.",
            "Where you can register with ANES, take anes instead: it is the real one.",
        ),
    ),
)
