"""ASSISTments 2012-13: does a pupil answer correctly, learned in most schools and met in ten others."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from ploc_lab.data.schema import Columns, Fingerprint, Source, Table, Task, require

FILE = "assistments/2012-2013-data-with-predictions-4-final.csv"
SCHOOLS = (5040.0, 11502.0, 11318.0, 11976.0, 12421.0, 12379.0, 11791.0, 8359.0, 12406.0, 7594.0)

COLUMNS = Columns(
    numeric=(
        "Average_confidence(BORED)",
        "Average_confidence(CONCENTRATING)",
        "Average_confidence(CONFUSED)",
        "Average_confidence(FRUSTRATED)",
        "attempt_count",
        "hint_count",
        "ms_first_response",
        "position",
        "overlap_time",
    ),
    onehot=("problem_type", "tutor_mode", "type"),
    # As they are, unscaled: skill_id runs to 1,641 and outweighs every other input, in the benchmark too.
    passthrough=("skill_id", "bottom_hint", "first_action"),
)


def read(files: Sequence[Path]) -> Table:
    """Answers that are right or wrong, without the rows where a number is missing."""
    numbers = ["correct", "school_id", "problem_log_id", *COLUMNS.numeric, *COLUMNS.passthrough]
    wanted = [*numbers, *COLUMNS.onehot]
    raw = pl.scan_csv(files[0], infer_schema=False)
    require(files[0], raw.collect_schema().names(), wanted)
    rows = (
        raw.select(wanted)
        .with_columns(pl.col(numbers).cast(pl.Float64))
        .filter(pl.col("correct").is_in([0.0, 1.0]))
        .drop_nulls(numbers)
        .with_columns(pl.col(COLUMNS.onehot).cast(pl.Categorical))
        .collect(engine="streaming")
    )
    return Table(
        features=rows.select(*COLUMNS.numeric, *COLUMNS.onehot, *COLUMNS.passthrough),
        y=(rows["correct"] == 1).to_numpy(),
        ood=rows["school_id"].is_in(SCHOOLS).to_numpy(),
        time=rows["problem_log_id"].to_numpy(),
    )


TASK = Task(
    name="assistments",
    title="ASSISTments 2012-13 with affect",
    files=(FILE,),
    read=read,
    columns=COLUMNS,
    label="answered correctly: correct is 1",
    domain="school_id is one of ten schools",
    time="problem_log_id",
    fingerprint=Fingerprint(
        {
            "rows": 2_667_776,
            "train": 2_132_526,
            "validation": 266_566,
            "id_test": 266_566,
            "ood_validation": 212,
            "ood_test": 1_906,
            "rate train": (0.6935, 0.6945),
            "rate ood_test": (0.435, 0.439),
            "width": 26,
        }
    ),
    source=Source(
        page="https://sites.google.com/site/assistmentsdata/datasets/2012-13-school-data-with-affect",
        licence="ASSISTments terms of use",
        terms="research; cite; a form asks who you are",
        steps=(
            "Open https://sites.google.com/site/assistmentsdata/datasets/2012-13-school-data-with-affect "
            "and ask for the data; accept the terms.",
            "Unpack 2012-2013-data-with-predictions-4-final.csv. The skill-builder file of 2009-10, which "
            "the benchmark names, is another table and is refused.",
        ),
    ),
    note="hint and attempt counts describe the very answer that is predicted",
)
