"""ACS public coverage: who is publicly insured, learned without and met with a disability, 2014-2018."""

import io
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.progress import track

from ploc_lab.data.schema import (
    Columns,
    Download,
    Fingerprint,
    Source,
    Table,
    Task,
    WrongDataError,
    require,
)

YEARS = (2014, 2015, 2016, 2017, 2018)
# Division by division, so that a state's code gives its division: the person files of early years lack it.
DIVISIONS = {
    0: (72,),
    1: (9, 23, 25, 33, 44, 50),
    2: (34, 36, 42),
    3: (17, 18, 26, 39, 55),
    4: (19, 20, 27, 29, 31, 38, 46),
    5: (10, 12, 13, 24, 37, 45, 51, 54),
    6: (1, 21, 28, 47),
    7: (5, 22, 40, 48),
    8: (4, 8, 16, 30, 32, 35, 49, 56),
    9: (2, 6, 15, 41, 53),
}
# By full name, without the District of Columbia: the order of states is the order of rows, and so the split.
STATES = (
    "al", "ak", "az", "ar", "ca", "co", "ct", "de", "fl", "ga", "hi", "id", "il",
    "in", "ia", "ks", "ky", "la", "me", "md", "ma", "mi", "mn", "ms", "mo", "mt",
    "ne", "nv", "nh", "nj", "nm", "ny", "nc", "nd", "oh", "ok", "or", "pa", "ri",
    "sc", "sd", "tn", "tx", "ut", "vt", "va", "wa", "wv", "wi", "wy", "pr",
)  # fmt: skip

_DIVISION_OF = {state: division for division, states in DIVISIONS.items() for state in states}

ONEHOT = (
    "ESP",
    "MIG",
    "ANC",
    "NATIVITY",
    "DEAR",
    "DEYE",
    "DREM",
    "ESR",
    "FER",
    "ST",
    "MAR",
    "CIT",
    "SCHL",
    "DIVISION",
)
COLUMNS = Columns(numeric=("PINCP", "AGEP", "ACS_YEAR"), onehot=ONEHOT, passthrough=("SEX", "RAC1P"))
_RAW = ("PUBCOV", "DIS", "PINCP", "AGEP", "SEX", "RAC1P", *(name for name in ONEHOT if name != "DIVISION"))


def read(files: Sequence[Path]) -> Table:
    """The person files, year by year and state by state; blanks are 0, filtered as the files are read."""
    console, quiet = Console(stderr=True), not sys.stderr.isatty()
    states = track(files, "reading the census files", console=console, disable=quiet, transient=True)
    return table(pl.concat([_state(path) for path in states]))


def table(people: pl.DataFrame, white: int = 1) -> Table:
    """Labels, domain and the two group indicators of people already filtered."""
    return Table(
        features=people.select(
            *(name for name in (*COLUMNS.numeric, *ONEHOT) if name in people.columns),
            SEX=(pl.col("SEX") == 1).cast(pl.UInt8),
            RAC1P=(pl.col("RAC1P") == white).cast(pl.UInt8),
        ),
        y=(people["PUBCOV"] == 1).to_numpy(),
        ood=(people["DIS"] == 1).to_numpy(),
        time=people["ACS_YEAR"].cast(pl.Float64).to_numpy() if "ACS_YEAR" in people.columns else None,
    )


def _state(path: Path) -> pl.DataFrame:
    """One state in one year: people under 65 with an income of at most 30,000 dollars, in small integers."""
    try:
        with zipfile.ZipFile(path) as archive:
            tables = [name for name in archive.namelist() if name.lower().endswith(".csv")]
            if len(tables) != 1:
                raise WrongDataError(f"{path} must hold one person file, it has {archive.namelist()}")
            content = archive.read(tables[0])
    except zipfile.BadZipFile as error:
        raise WrongDataError(f"{path} is not a zip archive: {error}") from error
    require(path, content[: content.index(b"\n")].decode("ascii").strip().replace('"', "").split(","), _RAW)
    # Unparsed at first: of some 280 columns 19 are wanted, and a bad cell is to be named with its file.
    people = pl.read_csv(io.BytesIO(content), columns=list(_RAW), infer_schema=False)
    try:
        people = people.with_columns(pl.col(_RAW).str.strip_chars().replace("", None).cast(pl.Int32))
    except pl.exceptions.InvalidOperationError as error:
        raise WrongDataError(f"{path}: a code is not a number: {error}") from error
    return (
        people.filter((pl.col("AGEP") < 65) & (pl.col("PINCP") <= 30_000))
        .with_columns(pl.col(_RAW).fill_null(0))
        .with_columns(
            pl.exclude("PINCP").cast(pl.UInt8),
            DIVISION=pl.col("ST").replace_strict(_DIVISION_OF, return_dtype=pl.UInt8),
            ACS_YEAR=pl.lit(int(path.parent.name), dtype=pl.Int16),
        )
    )


def _path(year: int, state: str) -> str:
    return f"acs_pubcov/{year}/csv_p{state}.zip"


TASK = Task(
    name="acs_pubcov",
    title="ACS public health coverage, 2014-2018",
    files=tuple(_path(year, state) for year in YEARS for state in STATES),
    read=read,
    columns=COLUMNS,
    label="publicly insured: PUBCOV is 1",
    domain="DIS is 1, people with a disability",
    time="ACS_YEAR",
    fingerprint=Fingerprint(
        {
            "rows": 5_916_565,
            "train": 4_006_249,
            "validation": 500_781,
            "id_test": 500_782,
            "ood_validation": 90_876,
            "ood_test": 817_877,
            "rate train": (0.2235, 0.2245),
            "width": (134, 135),
        }
    ),
    source=Source(
        page="https://www.census.gov/programs-surveys/acs/microdata.html",
        licence="US government work, public",
        terms="no attempt to identify a person; name the Census Bureau as the source",
        downloads=tuple(
            Download(
                url=f"https://www2.census.gov/programs-surveys/acs/data/pums/{year}/1-Year/csv_p{state}.zip",
                path=_path(year, state),
            )
            for year in YEARS
            for state in STATES
        ),
    ),
)
