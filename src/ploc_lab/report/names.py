"""What things are called where people read: methods, backbones, data sets, metrics."""

from ploc_lab import data
from ploc_lab.study.cell import ORACLE

METRICS = {
    "accuracy": "Acc",
    "balanced_accuracy": "BAcc",
    "f1": "F1",
    "auroc": "AUROC",
    "ece": "ECE",
    "nll": "NLL",
    "brier": "Brier",
}
LOWER = frozenset({"ece", "nll", "brier"})

_BACKBONES = {
    "mlp": "MLP",
    "ft_transformer": "FT-Transformer",
    "tab_transformer": "TabTransformer",
    "hist_gradient_boosting": "Histogram boosting",
    "lightgbm": "LightGBM",
    "cnn": "CNN",
}
_RECIPES = {"batch_1024": "batch 1024", "paper_text": "the text's optimiser", "categorical": "categorical"}
_DATASETS = {
    "heloc": "HELOC",
    "diabetes_readmission": "Diabetes Readmission",
    "assistments": "ASSISTments",
    "anes": "ANES",
    "acs_pubcov": "ACS Public Coverage",
    "anes_1952_2000": "ANES 1952-2000",
    "anes_presidential": "ANES presidential",
    "acs_pubcov_2018": "ACS Public Coverage 2018",
    "rand_hie": "RAND HIE, limitation",
    "rand_hie_health": "RAND HIE, good health",
    "simulation": "simulated noise",
}
_METHODS = {
    "source": "Source",
    "ploc": "PLOC",
    "ploc_deferred": "Deferred PLOC",
    "ploc_prob": "PLOC-prob",
    "ploc_k": "PLOC-K",
    "ploc_ema01": "PLOC, EMA .01",
    "ploc_ema20": "PLOC, EMA .2",
    "ploc_window100": "PLOC, window 100",
    "ploc_zscore": "PLOC, z-score",
    "ploc_huber": "PLOC, Huber 2.5",
    "ploc_median": "PLOC, median",
    "ploc_anchor": "PLOC, anchored",
    "ploc_batch": "PLOC by batch",
    ORACLE: "Oracle shift (labels)",
    "prior_ratio": "Prior ratio",
    "prior_threshold": "Prior threshold",
    "temperature": "Temperature scaling",
    "platt": "Platt scaling",
    "em": "EM",
    "em_bcts": "EM, calibrated",
    "em_prequential": "EM, prequential",
    "em_bcts_prequential": "EM, calibrated, prequential",
    "bbse_hard": "BBSE, hard",
    "bbse_soft": "BBSE, soft",
    "bbse_hard_prequential": "BBSE, hard, prequential",
    "bbse_soft_prequential": "BBSE, soft, prequential",
    "rlls": "RLLS",
    "rlls_prequential": "RLLS, prequential",
    "lame": "LAME",
    "lame_rbf": "LAME, rbf",
    "lame_linear": "LAME, linear",
    "adaptable": "AdapTable",
    "t3a": "T3A",
    "bn_stats": "Batch statistics",
    "tent": "Tent",
    "eata": "EATA",
    "sar": "SAR",
    "tent_ln": "Tent, layer norms",
    "eata_ln": "EATA, layer norms",
    "sar_ln": "SAR, all norms",
    "ftat": "FTAT",
    "ftat_lr512": "FTAT, rate / 512",
    "ftat_paper": "FTAT, entropy loss",
    "ftat_no_prior": "FTAT, no prior",
    "pft3a": "PFT3A, guarded",
    "pft3a_lr1e4": "PFT3A, rate 1e-4",
    "pft3a_lr1e3": "PFT3A, rate 1e-3",
    "pft3a_code": "PFT3A, released loss",
    "pft3a_stream": "PFT3A, stream prior",
    "cotta": "CoTTA",
    "dua": "DUA",
    "note": "NOTE",
    "rotta": "RoTTA",
}


def method(name: str) -> str:
    """A method's label; a method that has none goes by its name."""
    return _METHODS.get(name, name)


def backbone(name: str) -> str:
    """A backbone's label, its variant after a comma.

    >>> backbone("tab_transformer:batch_1024")
    'TabTransformer, batch 1024'
    """
    family, _, recipe = name.partition(":")
    words = [_BACKBONES.get(family, family), _RECIPES.get(recipe, recipe)]
    return ", ".join(word for word in words if word)


def dataset(name: str) -> str:
    """A data set's label; a stand-in is called one wherever it is named.

    >>> dataset("heloc"), dataset("anes_1952_2000")
    ('HELOC', 'ANES 1952-2000 (stand-in)')
    """
    label = _DATASETS.get(name, name)
    return f"{label} (stand-in)" if stand_in(name) else label


def stand_in(name: str) -> str | None:
    """In what a data set differs from the paper's that it stands for; None for all others."""
    return data.task(name).stand_in if name in data.names() else None


def metric(name: str) -> str:
    """A metric's label with the direction in which it is better."""
    return METRICS[name] + (" ↓" if name in LOWER else " ↑")


def checkpoints(number: int) -> str:
    """So many checkpoints, in words.

    >>> checkpoints(1), checkpoints(5)
    ('1 checkpoint', '5 checkpoints')
    """
    return f"{number} checkpoint{'' if number == 1 else 's'}"
