"""American National Election Studies, 1948-2020: who voted, learned elsewhere and met in the South."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from ploc_lab.data.schema import Columns, Fingerprint, Source, Table, Task, WrongDataError, require

FILE = "anes/anes_timeseries_cdf_csv_20220916.csv"
STATE = "VCF0901b"
SOUTH = 3

COLUMNS = Columns(
    # Year, two party thermometers, two of the president and vice-president, age.
    numeric=("VCF0004", "VCF0218", "VCF0224", "VCF0428", "VCF0429", "VCF0101"),
    onehot=(
        STATE,
        *(f"VCF{n}" for n in ("0301", "0302", "9008", "9010", "9011", "9201", "9202", "9203", "9204")),
        *(f"VCF{n}" for n in ("9205", "9206", "0521", "0523", "0875", "9052", "0809", "0839", "0822")),
        *(f"VCF{n}" for n in ("0870", "0843", "9045", "0838", "9239", "0803", "0846", "0601", "0606")),
        *(f"VCF{n}" for n in ("0612", "0615", "0616", "0617", "0310", "0743", "0717", "0718", "0720")),
        *(f"VCF{n}" for n in ("0721", "0701", "0675", "0724", "0725", "0726", "0745", "0115", "0140a")),
    ),
    passthrough=("VCF0104", "VCF0105a"),
    binned=True,
)
THERMOMETERS = ("VCF0428", "VCF0429")


def read(files: Sequence[Path]) -> Table:
    """All years of the cumulative file; 'don't know' counts as not voted, a blank answer as its own category.

    The negative codes of VCF9201 and its like stay categories: the benchmark declares them missing as
    numbers, but meets them as text, so that its declaration does nothing.
    """
    wanted = ["VCF0702", "VCF0112", *COLUMNS.numeric, *COLUMNS.onehot, *COLUMNS.passthrough]
    header = pl.read_csv(files[0], n_rows=0, infer_schema=False).columns
    require(files[0], header, wanted)
    raw = pl.read_csv(files[0], columns=wanted, infer_schema=False)
    raw = raw.with_columns(pl.all().str.strip_chars().replace("", None))
    try:
        raw = raw.with_columns(pl.exclude(STATE).cast(pl.Float64))
    except pl.exceptions.InvalidOperationError as error:
        raise WrongDataError(f"{files[0]}: a code is not a number: {error}") from error
    raw = raw.filter(pl.col("VCF0702").is_not_null())
    features = raw.select(
        *COLUMNS.numeric,
        pl.col(COLUMNS.onehot).cast(pl.String).fill_null("no answer"),
        *((pl.col(name) == 1).fill_null(value=False).cast(pl.UInt8) for name in COLUMNS.passthrough),
    ).with_columns(
        pl.when(pl.col(name).is_in([98.0, 99.0])).then(None).otherwise(pl.col(name)).alias(name)
        for name in THERMOMETERS
    )
    return Table(
        features=features,
        y=(raw["VCF0702"] == 2).to_numpy(),
        ood=(raw["VCF0112"] == SOUTH).fill_null(value=False).to_numpy(),
        time=raw["VCF0004"].to_numpy(),
    )


TASK = Task(
    name="anes",
    title="ANES turnout, 1948-2020",
    files=(FILE,),
    read=read,
    columns=COLUMNS,
    label="voted: VCF0702 is 2",
    domain="VCF0112 is 3, the South",
    time="VCF0004",
    fingerprint=Fingerprint(
        {
            "train": (34_561, 34_816),
            "ood_validation": 2_359,
            "ood_test": 21_231,
            "rate train": (0.6905, 0.6915),
            "width": 365,
        }
    ),
    source=Source(
        page="https://electionstudies.org/data-center/anes-time-series-cumulative-data-file/",
        licence="ANES terms of use",
        terms="research and teaching; cite; no attempt to identify a person",
        steps=(
            "Register at https://electionstudies.org and open the Time Series Cumulative Data File.",
            "Take the CSV release of 16 September 2022, unpack anes_timeseries_cdf_csv_20220916.csv. "
            "Other releases hold other rows and are refused; so is a selection of years.",
        ),
    ),
    note="published benchmark numbers are of 2020 alone and not comparable",
)
