"""Diabetes 130-US hospitals: is a patient readmitted, learned elsewhere and met in the emergency room."""

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from ploc_lab.data.schema import (
    Columns,
    Download,
    Fingerprint,
    Source,
    Table,
    Task,
    WrongDataError,
    near,
    require,
)

FILE = "diabetes_readmission/dataset_diabetes.zip"
MEMBER = "dataset_diabetes/diabetic_data.csv"
EMERGENCY_ROOM = 7

COLUMNS = Columns(
    # The three admission codes are names, but the benchmark declares two of them as numbers.
    numeric=(
        "admission_type_id",
        "discharge_disposition_id",
        "time_in_hospital",
        "num_lab_procedures",
        "num_procedures",
        "num_medications",
        "number_outpatient",
        "number_emergency",
        "number_inpatient",
        "number_diagnoses",
    ),
    onehot=(
        "age",
        "weight",
        "payer_code",
        "medical_specialty",
        "diag_1",
        "diag_2",
        "diag_3",
        "max_glu_serum",
        "A1Cresult",
        "metformin",
        "repaglinide",
        "nateglinide",
        "chlorpropamide",
        "glimepiride",
        "acetohexamide",
        "glipizide",
        "glyburide",
        "tolbutamide",
        "pioglitazone",
        "rosiglitazone",
        "acarbose",
        "miglitol",
        "troglitazone",
        "tolazamide",
        "examide",
        "citoglipton",
        "insulin",
        "glyburide-metformin",
        "glipizide-metformin",
        "glimepiride-pioglitazone",
        "metformin-rosiglitazone",
        "metformin-pioglitazone",
        "change",
        "diabetesMed",
    ),
    passthrough=("race", "gender"),
    min_frequency=0.01,
)


def read(files: Sequence[Path]) -> Table:
    """The archive's table without the rows whose race is not known; any readmission counts, early or late."""
    raw = pl.read_csv(io.BytesIO(_member(files[0])), null_values="?", infer_schema_length=None)
    wanted = [*COLUMNS.numeric, *COLUMNS.onehot, *COLUMNS.passthrough]
    require(files[0], raw.columns, [*wanted, "readmitted", "admission_source_id", "encounter_id"])
    raw = raw.filter(pl.col("race").is_not_null())
    return Table(
        features=raw.select(*COLUMNS.numeric, *COLUMNS.onehot).with_columns(
            race=(raw["race"] == "Caucasian").cast(pl.UInt8),
            gender=(raw["gender"] == "Male").cast(pl.UInt8),
        ),
        y=(raw["readmitted"] != "NO").to_numpy(),
        ood=(raw["admission_source_id"] == EMERGENCY_ROOM).to_numpy(),
        time=raw["encounter_id"].cast(pl.Float64).to_numpy(),
    )


def _member(path: Path) -> bytes:
    """The table inside the archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.read(MEMBER)
    except (zipfile.BadZipFile, KeyError) as error:
        raise WrongDataError(f"{path} is not the expected archive with {MEMBER} in it: {error}") from error


TASK = Task(
    name="diabetes_readmission",
    title="Diabetes readmission, 130 US hospitals",
    files=(FILE,),
    read=read,
    columns=COLUMNS,
    label="readmitted at any time",
    domain="admission_source_id is 7, the emergency room",
    time="encounter_id",
    fingerprint=Fingerprint(
        {
            "rows": 99_493,
            "train": 34_288,
            "validation": 4_286,
            "id_test": 4_287,
            "ood_validation": 5_664,
            "ood_test": 50_968,
            "positive train": 14_546,
            "positive ood_test": 25_170,
            "width": 183,
            "sum of |numbers|": near(733_027.080203),
            "sum of codes": 5_445_285,
        }
    ),
    source=Source(
        page="https://archive.ics.uci.edu/dataset/296/diabetes+130-us+hospitals+for+years+1999-2008",
        licence="CC BY 4.0",
        terms="cite Strack et al. (2014), doi 10.1155/2014/781670",
        downloads=(
            Download(
                url="https://archive.ics.uci.edu/ml/machine-learning-databases/00296/dataset_diabetes.zip",
                path=FILE,
                sha256="3a17a3b55b6dd4a1926703185c0ad8e2ed30bc8e2f9b927cdd1000b733d1de8e",
            ),
        ),
    ),
)
