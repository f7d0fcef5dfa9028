"""A stand-in for `anes`: a recoded extract of the cumulative file, 1952 to 2000."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from ploc_lab.data.schema import Columns, Fingerprint, Source, Table, Task, near, require

FILE = "anes/anes_1952_2000.parquet"
SOUTH = 3

# Left out of the 70 columns: what says how or whether one voted (regis, regisvote, presvote, presvote_2party,
# presvote_intent, rep_presvote, rep_pres_intent, vote.1, dvote, rvote), ids and weights, counties and
# districts, interview numbers, the domain (region, south), and recodes of a column that is kept.
COLUMNS = Columns(
    numeric=("year", "age", "dlikes", "rlikes", "dem_therm", "rep_therm", "ideo_feel"),
    onehot=(
        "urban",
        "income",
        "occup1",
        "union",
        "religion",
        "educ3",
        "martial_status",
        "partyid7",
        "partyid3",
        "str_partyid",
        "father_party",
        "mother_party",
        "ideo7",
        "ideo",
        "state",
        "presapprov",
        "perfin1",
        "perfin2",
        "perfin",
    ),
    passthrough=("gender", "race"),
    binned=True,
)


def read(files: Sequence[Path]) -> Table:
    """Respondents whose vote is known; a missing answer is a category of its own, as in `anes`."""
    wanted = ["vote", "region", *COLUMNS.numeric, *COLUMNS.onehot, *COLUMNS.passthrough]
    require(files[0], list(pl.read_parquet_schema(files[0])), wanted)
    raw = pl.read_parquet(files[0], columns=wanted).filter(pl.col("vote").is_not_null())
    return Table(
        features=raw.select(
            *COLUMNS.numeric,
            pl.col(COLUMNS.onehot).cast(pl.String).fill_null("no answer"),
            gender=(pl.col("gender") == 1).cast(pl.UInt8),
            race=(pl.col("race") == 1).cast(pl.UInt8),
        ),
        y=(raw["vote"] == 2).to_numpy(),
        ood=(raw["region"] == SOUTH).to_numpy(),
        time=raw["year"].cast(pl.Float64).to_numpy(),
    )


TASK = Task(
    name="anes_1952_2000",
    title="ANES turnout, extract 1952-2000",
    files=(FILE,),
    read=read,
    columns=COLUMNS,
    label="voted: vote is 2",
    domain="region is 3, the South",
    time="year",
    stand_in="A stand-in for anes: 1952 to 2000 instead of 1948 to 2020, 28 recoded columns instead of 54, "
    "and respondents whose vote is unknown left out instead of counted as not voting.",
    fingerprint=Fingerprint(
        {
            "rows": 33_140,
            "train": 17_884,
            "validation": 2_236,
            "id_test": 2_236,
            "ood_validation": 1_079,
            "ood_test": 9_705,
            "positive train": 13_578,
            "positive ood_test": 6_212,
            "width": 148,
            "sum of |numbers|": near(400_037),
            "sum of codes": 1_492_124,
        }
    ),
    source=Source(
        page="https://github.com/avehtari/ROS-Examples",
        licence="ANES terms of use",
        terms="research and teaching; cite; no attempt to identify a person",
        steps=(
            "This is the table of the R package of Regression and Other Stories (ROS-Examples, folder NES), "
            "34,908 rows by 70 columns, written as parquet without any change.",
            "Where you can register with ANES, take anes instead: it is the real one.",
        ),
    ),
)
