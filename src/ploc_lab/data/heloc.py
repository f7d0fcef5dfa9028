"""FICO HELOC: will a home equity line be repaid, learned on weak credit scores and met on strong ones."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from ploc_lab.data.schema import Columns, Fingerprint, Source, Table, Task, WrongDataError, near, require

FILE = "heloc/heloc_dataset_v1.csv"

COLUMNS = Columns(
    numeric=(
        "MSinceOldestTradeOpen",
        "MSinceMostRecentTradeOpen",
        "AverageMInFile",
        "NumSatisfactoryTrades",
        "NumTrades60Ever2DerogPubRec",
        "NumTrades90Ever2DerogPubRec",
        "PercentTradesNeverDelq",
        "MSinceMostRecentDelq",
        "NumTotalTrades",
        "NumTradesOpeninLast12M",
        "PercentInstallTrades",
        "MSinceMostRecentInqexcl7days",
        "NumInqLast6M",
        "NumInqLast6Mexcl7days",
        "NetFractionRevolvingBurden",
        "NetFractionInstallBurden",
        "NumRevolvingTradesWBalance",
        "NumInstallTradesWBalance",
        "NumBank2NatlTradesWHighUtilization",
        "PercentTradesWBalance",
    ),
    onehot=("MaxDelq2PublicRecLast12M", "MaxDelqEver"),
)


def read(files: Sequence[Path]) -> Table:
    """The table of the challenge; the special codes -7, -8 and -9 stay numbers, as the benchmark has them."""
    raw = pl.read_csv(files[0], infer_schema_length=None)
    features = [*COLUMNS.numeric, *COLUMNS.onehot]
    require(files[0], raw.columns, ["RiskPerformance", "ExternalRiskEstimate", *features])
    odd = set(raw["RiskPerformance"].unique().to_list()) - {"Good", "Bad"}
    if odd:
        raise WrongDataError(
            f"{files[0]}: RiskPerformance must be Good or Bad, found {sorted(map(str, odd))}"
        )
    return Table(
        features=raw.select(features),
        y=(raw["RiskPerformance"] == "Good").to_numpy(),
        ood=(raw["ExternalRiskEstimate"].cast(pl.Int64) > 63).to_numpy(),
    )


TASK = Task(
    name="heloc",
    title="FICO HELOC credit lines",
    files=(FILE,),
    read=read,
    columns=COLUMNS,
    label="repaid: RiskPerformance is Good",
    domain="ExternalRiskEstimate > 63, the better risks",
    fingerprint=Fingerprint(
        {
            "rows": 10_459,
            "train": 2_220,
            "validation": 278,
            "id_test": 278,
            "ood_validation": 769,
            "ood_test": 6_914,
            "positive train": 535,
            "positive ood_test": 3_934,
            "width": 38,
            "sum of |numbers|": near(136_268.598975),
            "sum of codes": 50_187,
        }
    ),
    source=Source(
        page="https://community.fico.com/s/explainable-machine-learning-challenge",
        licence="FICO data agreement",
        terms="research on explainability; no redistribution",
        steps=(
            "Open https://community.fico.com/s/explainable-machine-learning-challenge and ask for the data.",
            "FICO sends a link to heloc_dataset_v1.csv: 10,459 rows by 24 columns. Copies with 9,871 rows "
            "lack the 588 applicants whose every column is -9, and are refused.",
        ),
    ),
)
