"""From raw file to float32 rows of all five parts: `data.load` against pandas and scikit-learn, one thread.

Both do the same work and the benchmark checks it: the same columns up to their order, fitted on the same
train rows. Without the readmission archive the embedded RAND table is measured alone.
"""

import os
import tempfile
import time
import zipfile

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ploc_lab import data, paths
from ploc_lab.data import splits

ROUNDS = 3


def readmission(path):
    """The task of the paper the plain way: pandas, ColumnTransformer."""
    with zipfile.ZipFile(path) as archive, archive.open("dataset_diabetes/diabetic_data.csv") as file:
        raw = pd.read_csv(file, na_values="?", keep_default_na=False, low_memory=False)
    raw = raw[raw["race"].notna()].reset_index(drop=True)
    columns = data.task("diabetes_readmission").columns
    x = raw[[*columns.numeric, *columns.onehot]].copy()
    x["race"] = raw["race"].eq("Caucasian").astype(int)
    x["gender"] = raw["gender"].eq("Male").astype(int)
    for name in columns.onehot:
        x[name] = x[name].astype(object).where(x[name].notna(), "nan").astype(str).astype(object)
    ood = raw["admission_source_id"].eq(7).to_numpy()
    return _encoded(x, columns, ood)


def rand_hie(path):
    raw = pd.read_csv(path)
    columns = data.task("rand_hie").columns
    return _encoded(raw, columns, raw["physlm"].gt(0.5).to_numpy())


def _encoded(x, columns, ood):
    parts = splits.split(ood)
    encoder = ColumnTransformer(
        [
            ("numeric", StandardScaler(), list(columns.numeric)),
            (
                "onehot",
                OneHotEncoder(
                    categories=[x[name].unique() for name in columns.onehot],
                    min_frequency=columns.min_frequency or None,
                    handle_unknown="infrequent_if_exist" if columns.min_frequency else "ignore",
                    sparse_output=False,
                    dtype=np.float32,
                ),
                list(columns.onehot),
            ),
            ("passthrough", "passthrough", list(columns.passthrough)),
        ]
    )
    encoder.fit(x.iloc[parts["train"]])
    return {name: encoder.transform(x.iloc[index]).astype(np.float32) for name, index in parts.items()}


def ours(name, work):
    before = os.environ.get("PLOC_WORK")
    os.environ["PLOC_WORK"] = str(work)
    try:
        ds = data.load(name)
        return {split: ds.part(split).rows() for split in ds.splits}
    finally:
        if before is None:
            del os.environ["PLOC_WORK"]
        else:
            os.environ["PLOC_WORK"] = before


def same(mine, theirs):
    """Same rows and, column by column, the same sums: only the order inside one-hot blocks may differ."""
    for split in mine:
        np.testing.assert_allclose(
            np.sort(mine[split].sum(0, dtype=np.float64)),
            np.sort(theirs[split].sum(0, dtype=np.float64)),
            rtol=1e-4,
            atol=0.05,
        )


def timed(work):
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def run():
    """Rows of (data set, who, seconds, times faster than plain): the best of interleaved rounds."""
    tasks = {"diabetes_readmission": readmission, "rand_hie": rand_hie}
    rows = []
    for name, plain in tasks.items():
        if data.missing(name):
            continue
        path = paths.data_root() / data.task(name).files[0]
        best = {
            "pandas + scikit-learn": float("inf"),
            "first load": float("inf"),
            "cached load": float("inf"),
        }
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory() as work:
                spent, theirs = timed(lambda plain=plain, path=path: plain(path))
                best["pandas + scikit-learn"] = min(best["pandas + scikit-learn"], spent)
                for kind in ("first load", "cached load"):
                    spent, mine = timed(lambda name=name, work=work: ours(name, work))
                    best[kind] = min(best[kind], spent)
            same(mine, theirs)
        rows += [(name, who, spent, best["pandas + scikit-learn"] / spent) for who, spent in best.items()]
    return rows


def main():
    table = Table(
        "data set", "who", "seconds", "times faster", title="raw file to float32 rows of every part"
    )
    for name, who, spent, ratio in run():
        table.add_row(name, who, f"{spent:.3f}", f"{ratio:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
