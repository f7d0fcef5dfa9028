"""The numbers that the paper prints, typed once from its tables and text; nothing is tuned to them."""

from __future__ import annotations

from typing import NamedTuple


class Scores(NamedTuple):
    """A row of Tables 1 and 2, in the order of their columns."""

    accuracy: float
    balanced_accuracy: float
    f1: float
    auroc: float
    ece: float
    nll: float
    brier: float


class Origin(NamedTuple):
    """A row of Table 6, and of the two-class probe: five metrics."""

    accuracy: float
    balanced_accuracy: float
    f1: float
    auroc: float
    ece: float


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

# Table 1, tab:main: batch size one, means over five data sets and five checkpoints.
MAIN: dict[str, dict[str, Scores]] = {
    "mlp": {
        "source": Scores(0.612, 0.638, 0.580, 0.733, 0.160, 0.732, 0.252),
        "tent": Scores(0.612, 0.638, 0.580, 0.733, 0.160, 0.732, 0.252),
        "eata": Scores(0.612, 0.638, 0.580, 0.733, 0.160, 0.732, 0.252),
        "sar": Scores(0.612, 0.638, 0.580, 0.733, 0.160, 0.732, 0.252),
        "lame": Scores(0.612, 0.638, 0.580, 0.733, 0.160, 0.732, 0.252),
        "ftat": Scores(0.589, 0.604, 0.580, 0.660, 0.066, 0.656, 0.232),
        "pft3a": Scores(0.576, 0.606, 0.463, 0.707, 0.214, 1.014, 0.296),
        "ploc": Scores(0.663, 0.670, 0.694, 0.732, 0.060, 0.611, 0.210),
        "ploc_prob": Scores(0.659, 0.669, 0.683, 0.732, 0.056, 0.646, 0.209),
    },
    "ft_transformer": {
        "source": Scores(0.613, 0.637, 0.539, 0.718, 0.160, 0.734, 0.258),
        "tent": Scores(0.613, 0.637, 0.539, 0.718, 0.160, 0.734, 0.258),
        "eata": Scores(0.613, 0.637, 0.539, 0.718, 0.160, 0.734, 0.258),
        "sar": Scores(0.610, 0.637, 0.535, 0.717, 0.162, 0.736, 0.259),
        "lame": Scores(0.613, 0.637, 0.539, 0.718, 0.160, 0.734, 0.258),
        "ftat": Scores(0.593, 0.595, 0.561, 0.639, 0.098, 0.678, 0.243),
        "pft3a": Scores(0.583, 0.552, 0.605, 0.569, 0.162, 0.928, 0.279),
        "ploc": Scores(0.652, 0.662, 0.682, 0.718, 0.056, 0.605, 0.212),
        "ploc_prob": Scores(0.651, 0.661, 0.680, 0.718, 0.058, 0.610, 0.209),
    },
    "tab_transformer": {
        "source": Scores(0.573, 0.605, 0.500, 0.691, 0.157, 0.731, 0.257),
        "tent": Scores(0.573, 0.605, 0.500, 0.691, 0.157, 0.731, 0.257),
        "eata": Scores(0.573, 0.605, 0.500, 0.691, 0.157, 0.731, 0.257),
        "sar": Scores(0.573, 0.605, 0.500, 0.691, 0.157, 0.731, 0.257),
        "lame": Scores(0.573, 0.605, 0.500, 0.691, 0.157, 0.731, 0.257),
        "ftat": Scores(0.526, 0.546, 0.454, 0.599, 0.113, 0.721, 0.260),
        "pft3a": Scores(0.533, 0.566, 0.425, 0.616, 0.250, 2.278, 0.328),
        "ploc": Scores(0.629, 0.642, 0.696, 0.690, 0.039, 0.614, 0.213),
        "ploc_prob": Scores(0.636, 0.644, 0.659, 0.691, 0.037, 0.624, 0.213),
    },
}

# Table 2, tab:deferred.
DEFERRED: dict[str, dict[str, Scores]] = {
    "mlp": {
        "source": Scores(0.612, 0.638, 0.580, 0.733, 0.160, 0.732, 0.252),
        "ploc_deferred": Scores(0.662, 0.670, 0.695, 0.733, 0.061, 0.612, 0.211),
    },
    "ft_transformer": {
        "source": Scores(0.613, 0.637, 0.539, 0.718, 0.160, 0.734, 0.258),
        "ploc_deferred": Scores(0.653, 0.662, 0.684, 0.718, 0.058, 0.607, 0.213),
    },
    "tab_transformer": {
        "source": Scores(0.573, 0.605, 0.500, 0.691, 0.157, 0.731, 0.257),
        "ploc_deferred": Scores(0.628, 0.642, 0.697, 0.691, 0.040, 0.614, 0.213),
    },
}

# Table 6, tab:ablation: seed 0, MLP and FT-Transformer, means over five data sets.
ABLATION: dict[str, Origin] = {
    "source": Origin(0.625, 0.649, 0.588, 0.733, 0.149),
    "ploc": Origin(0.660, 0.670, 0.692, 0.733, 0.047),
    "ploc_ema01": Origin(0.659, 0.670, 0.691, 0.732, 0.050),
    "ploc_ema20": Origin(0.654, 0.660, 0.679, 0.718, 0.058),
    "ploc_window100": Origin(0.660, 0.669, 0.692, 0.731, 0.048),
    "ploc_zscore": Origin(0.660, 0.670, 0.692, 0.733, 0.078),
    "ploc_huber": Origin(0.665, 0.670, 0.682, 0.733, 0.033),
    "oracle_shift": Origin(0.681, 0.658, 0.701, 0.733, 0.027),
}

# The two-class probe, tab:vision: one checkpoint, a corrupted CIFAR-10 stream.
VISION: dict[str, Origin] = {
    "source": Origin(0.765, 0.765, 0.733, 0.902, 0.125),
    "tent": Origin(0.502, 0.502, 0.239, 0.504, 0.298),
    "eata": Origin(0.500, 0.500, 0.000, 0.660, 0.177),
    "sar": Origin(0.500, 0.500, 0.000, 0.661, 0.177),
    "lame": Origin(0.764, 0.764, 0.734, 0.900, 0.126),
    "ploc": Origin(0.831, 0.831, 0.831, 0.902, 0.048),
    "ploc_deferred": Origin(0.831, 0.831, 0.831, 0.902, 0.048),
    "ploc_prob": Origin(0.810, 0.810, 0.821, 0.895, 0.054),
}


class TenClass(NamedTuple):
    """A row of the ten-class probe, tab:vision10: means over three checkpoints."""

    normalising: float
    """Accuracy of Tent, EATA and SAR, which coincide."""
    lame: float
    accuracy: Change
    ece: Change
    nll: Change
    deferred_ovr: float
    """Change of one-vs-rest AUROC; that of one-vs-one is printed as 0."""


VISION10: dict[str, TenClass] = {
    "clean": TenClass(0.100, 0.836, Change(0.836, 0.834), Change(0.034, 0.038), Change(0.501, 0.514), -0.000),
    "gaussian_noise_s3": TenClass(
        0.100, 0.175, Change(0.175, 0.332), Change(0.517, 0.076), Change(3.681, 1.860), 0.043
    ),
    "contrast_s5": TenClass(
        0.100, 0.418, Change(0.418, 0.581), Change(0.212, 0.027), Change(2.008, 1.216), 0.020
    ),
    "blur_s3": TenClass(
        0.100, 0.254, Change(0.254, 0.401), Change(0.368, 0.052), Change(3.053, 1.676), 0.027
    ),
    "clean_rho100": TenClass(
        0.087, 0.821, Change(0.821, 0.662), Change(0.046, 0.141), Change(0.526, 1.119), -0.009
    ),
    "gaussian_noise_s3_rho100": TenClass(
        0.087, 0.085, Change(0.085, 0.224), Change(0.607, 0.181), Change(4.576, 2.114), 0.049
    ),
}

# Sizes of the target streams, section Experimental setup.
STREAMS = {
    "heloc": 6_914,
    "diabetes_readmission": 50_968,
    "assistments": 1_906,
    "anes": 21_231,
    "acs_pubcov": 817_877,
}


class Printed(NamedTuple):
    """A number of the running text: where it stands, what it says."""

    place: str
    value: float
    says: str


_TO = "section Results, Main comparison"
_WHERE = "section Results, Where the gains come from"
_STABLE = "section Results, Checkpoint stability"
_SIGNED = "section Results, Statistical significance"
_BATCH = "section Batch size confirms a distinct regime"
_MODULE = "section Theoretical analysis, Self-modulation"
_ABLATE = "section Design ablations"
_PROBE = "section A generalization probe beyond tabular data"

TEXT: dict[str, Printed] = {
    "ftat_accuracy_margin": Printed(_TO, 0.074, "PLOC over FTAT in accuracy, MLP"),
    "ftat_f1_margin": Printed(_TO, 0.114, "PLOC over FTAT in F1, MLP"),
    "ece_reduction": Printed(_TO, 0.625, "relative reduction of ECE by PLOC, MLP"),
    "deferred_gap": Printed(
        "caption of tab:deferred", 0.002, "deferred PLOC is within this of PLOC everywhere"
    ),
    "auroc_per_dataset": Printed(
        "section Results, Per-dataset results", 0.001, "change of AUROC but for one"
    ),
    "auroc_assistments_tab": Printed(
        "section Results, Per-dataset results", 0.005, "ASSISTments, TabTransformer"
    ),
    "heloc_positive_source": Printed(_WHERE, 0.16, "HELOC applicants labelled positive by the source, MLP"),
    "heloc_positive_ploc": Printed(_WHERE, 0.55, "HELOC applicants labelled positive by PLOC, MLP"),
    "heloc_mu_mlp": Printed(_WHERE, -0.81, "running logit mean on HELOC, MLP"),
    "mu_heloc": Printed(_MODULE, -1.1, "mean logit on HELOC"),
    "mu_acs_pubcov": Printed(_MODULE, -0.6, "mean logit on ACS Public Coverage"),
    "mu_anes": Printed(_MODULE, 1.1, "mean logit on ANES"),
    "mu_assistments": Printed(_MODULE, 1.1, "mean logit on ASSISTments"),
    "f1_sd_heloc_source": Printed(_STABLE, 0.249, "SD of F1 over seeds, HELOC, MLP, source"),
    "f1_sd_heloc_ftat": Printed(_STABLE, 0.223, "SD of F1 over seeds, HELOC, MLP, FTAT"),
    "f1_sd_heloc_ploc": Printed(_STABLE, 0.021, "SD of F1 over seeds, HELOC, MLP, PLOC"),
    "f1_sd_assistments_ftat": Printed(_STABLE, 0.189, "SD of F1, ASSISTments, FT-Transformer, FTAT"),
    "f1_sd_assistments_ploc": Printed(_STABLE, 0.009, "SD of F1, ASSISTments, FT-Transformer, PLOC"),
    "f1_sd_mlp_source": Printed(_STABLE, 0.057, "mean SD of F1 over data sets, MLP, source"),
    "f1_sd_mlp_ploc": Printed(_STABLE, 0.012, "mean SD of F1 over data sets, MLP, PLOC"),
    "f1_sd_tab_source": Printed(_STABLE, 0.071, "mean SD of F1 over data sets, TabTransformer, source"),
    "f1_sd_tab_ploc": Printed(_STABLE, 0.006, "mean SD of F1 over data sets, TabTransformer, PLOC"),
    "p_accuracy": Printed(_SIGNED, 1e-2, "p of the accuracy gain over the source, below, every backbone"),
    "p_f1": Printed(_SIGNED, 3e-3, "p of the F1 gain over the source, below, every backbone"),
    "p_ece": Printed(_SIGNED, 1e-6, "p of the ECE reduction, below"),
    "ece_wins_least": Printed(_SIGNED, 23, "combinations of 25 in which ECE improves, at least"),
    "auroc_sd_source": Printed(
        _SIGNED, 0.001, "SD of the AUROC difference to the source, whose mean is 0.000"
    ),
    "p_auroc_least": Printed(_SIGNED, 0.15, "p of the AUROC difference to the source, at least"),
    "p_auroc_most": Printed(_SIGNED, 0.88, "p of the AUROC difference to the source, at most"),
    "auroc_over_ftat_least": Printed(_SIGNED, 0.07, "AUROC over FTAT, at least"),
    "auroc_over_ftat_most": Printed(_SIGNED, 0.09, "AUROC over FTAT, at most"),
    "p_auroc_ftat": Printed(_SIGNED, 1e-2, "p of the AUROC difference to FTAT, below"),
    "batch_source_auroc": Printed(_BATCH, 0.707, "source AUROC in the sweep"),
    "batch_ftat_auroc_1": Printed(_BATCH, 0.677, "FTAT AUROC at B = 1"),
    "batch_ftat_auroc_1024": Printed(_BATCH, 0.701, "FTAT AUROC at B = 1024"),
    "batch_lame_auroc_1": Printed(_BATCH, 0.70, "LAME AUROC at B = 1"),
    "batch_lame_auroc_1024": Printed(_BATCH, 0.57, "LAME AUROC at B = 1024"),
    "batch_pft3a_recovers": Printed(_BATCH, 64, "batch size at which PFT3A is back at the source's AUROC"),
    "batch_pft3a_accuracy": Printed(_BATCH, 0.694, "PFT3A accuracy at B >= 512, MLP (published .693)"),
    "batch_pft3a_f1": Printed(_BATCH, 0.745, "PFT3A F1 at B >= 512, MLP (published .742)"),
    "ablation_huber_ece": Printed(_ABLATE, 0.033, "ECE of the Huber-clipped mean, against 0.047"),
    "ten_class_ovo": Printed("remark The multi-class case", 1.1e-8, "largest change of one-vs-one AUROC"),
    "ten_class_ovr": Printed("remark The multi-class case", 0.07, "largest change of one-vs-rest AUROC"),
    "ten_class_collapse_least": Printed(_PROBE, 0.087, "accuracy of Tent, EATA and SAR, at least"),
    "ten_class_collapse_most": Printed(_PROBE, 0.114, "accuracy of Tent, EATA and SAR, at most"),
}
