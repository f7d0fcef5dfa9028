"""What every test may use: the folder of real data, where there is one."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def real_data() -> Callable[..., Path]:
    """`real_data("heloc/heloc_dataset_v1.csv")` is the root of the raw files, or skips if one isn't here."""
    root = Path(os.environ.get("PLOC_DATA") or BESIDE)

    def at(*files: str) -> Path:
        absent = [file for file in files if not (root / file).is_file()]
        if absent:
            pytest.skip(f"real data not here: {root / absent[0]} ($PLOC_DATA names another folder)")
        return root

    return at
