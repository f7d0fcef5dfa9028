"""The numbers that the paper prints, typed once from its tables; nothing is tuned to them."""

from __future__ import annotations

from typing import NamedTuple


class Change(NamedTuple):
    """A metric without adaptation and with PLOC."""

    source: float
    ploc: float


class PerDataset(NamedTuple):
    """A row of Tables 3 to 5: means over five checkpoints."""

    accuracy: Change
    f1: Change
    auroc: Change
    ece: Change


def _row(*printed: tuple[float, float]) -> PerDataset:
    return PerDataset(*(Change(*pair) for pair in printed))


PER_DATASET: dict[str, dict[str, PerDataset]] = {
    "mlp": {  # Table 3, tab:perds
        "heloc": _row((0.512, 0.641), (0.277, 0.677), (0.684, 0.684), (0.200, 0.047)),
        "diabetes_readmission": _row((0.588, 0.592), (0.507, 0.569), (0.627, 0.627), (0.123, 0.104)),
        "assistments": _row((0.538, 0.581), (0.654, 0.650), (0.684, 0.683), (0.316, 0.092)),
        "anes": _row((0.786, 0.785), (0.835, 0.823), (0.859, 0.859), (0.061, 0.040)),
        "acs_pubcov": _row((0.637, 0.717), (0.629, 0.753), (0.809, 0.809), (0.103, 0.015)),
    },
    "ft_transformer": {  # Table 4, tab:perds_ft
        "heloc": _row((0.431, 0.546), (0.000, 0.569), (0.561, 0.561), (0.327, 0.041)),
        "diabetes_readmission": _row((0.607, 0.615), (0.513, 0.594), (0.658, 0.658), (0.039, 0.015)),
        "assistments": _row((0.582, 0.587), (0.675, 0.666), (0.690, 0.691), (0.316, 0.187)),
        "anes": _row((0.777, 0.790), (0.833, 0.822), (0.866, 0.866), (0.043, 0.024)),
        "acs_pubcov": _row((0.667, 0.722), (0.675, 0.760), (0.813, 0.813), (0.073, 0.014)),
    },
    "tab_transformer": {  # Table 5, tab:perds_tabt
        "heloc": _row((0.488, 0.648), (0.216, 0.684), (0.693, 0.693), (0.229, 0.028)),
        "diabetes_readmission": _row((0.566, 0.566), (0.306, 0.632), (0.595, 0.595), (0.063, 0.027)),
        "assistments": _row((0.438, 0.443), (0.608, 0.604), (0.516, 0.511), (0.260, 0.062)),
        "anes": _row((0.793, 0.780), (0.840, 0.807), (0.864, 0.864), (0.052, 0.039)),
        "acs_pubcov": _row((0.579, 0.709), (0.530, 0.751), (0.786, 0.786), (0.182, 0.039)),
    },
}
