"""Every method of the laboratory under one protocol: a file each, and one line each in the registry below."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Any

from torch import nn

from ploc_lab.methods.protocol import Answer, Card, Method, Needs, OutputMethod, SourceInfo, Validation

__all__ = [
    "Answer",
    "Card",
    "Method",
    "OutputMethod",
    "SourceInfo",
    "Spec",
    "Validation",
    "build",
    "names",
    "spec",
]


@dataclass(frozen=True)
class Spec:
    """A line of the registry: a name, the class it stands for (imported when asked for), its options.

    `needs` and `at_one` stand in for the card's where the options change them.
    """

    name: str
    where: str
    options: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    needs: Needs | None = None
    at_one: str | None = None

    @cached_property
    def cls(self) -> type[Method]:
        """The class, from its own module in this folder."""
        module, _, name = self.where.partition(":")
        cls: type[Method] = getattr(import_module(f"{__name__}.{module}"), name)
        return cls

    @property
    def card(self) -> Card:
        """What the method needs, changes and does at batch size one."""
        info = self.cls.info
        return replace(info, needs=self.needs or info.needs, at_one=self.at_one or info.at_one)


_PAST = "as at any batch size: the rows before it decide"

_REGISTRY = (
    Spec("source", "source:Source"),
    # The paper's own, its ablation, and what else the same code can do.
    Spec("ploc", "ploc:Ploc"),
    Spec("ploc_deferred", "ploc_deferred:PlocDeferred"),
    Spec("ploc_prob", "ploc_prob:PlocProb"),
    Spec("ploc_k", "ploc:PlocK"),
    Spec("ploc_ema01", "ploc:Ploc", {"origin": "ema", "alpha": 0.01}, "ablation: EMA of rate .01"),
    Spec("ploc_ema20", "ploc:Ploc", {"origin": "ema", "alpha": 0.2}, "ablation: EMA of rate .2"),
    Spec("ploc_window100", "ploc:Ploc", {"origin": "window", "rows": 100}, "ablation: the last 100 rows"),
    Spec("ploc_zscore", "ploc:Ploc", {"origin": "zscore"}, "ablation: divided by the running spread"),
    Spec("ploc_huber", "ploc:Ploc", {"origin": "huber", "tau": 2.5}, "ablation: steps clipped at 2.5"),
    Spec(
        "ploc_anchor",
        "ploc:Ploc",
        {"anchor": "source"},
        "variant: anchored at the source's mean logit",
        needs="source rows",
    ),
    Spec(
        "ploc_batch",
        "ploc:Ploc",
        {"by": "batch"},
        "variant: centred by the batches before, not the rows",
        at_one="PLOC; another method at each batch size",
    ),
    # Controls as cheap as PLOC.
    Spec("ploc_median", "ploc:Ploc", {"origin": "median"}, "control: half of the answers are positive"),
    Spec("prior_ratio", "prior_ratio:PriorRatio"),
    Spec("prior_threshold", "prior_ratio:PriorThreshold"),
    # Calibration on labelled source rows.
    Spec("temperature", "temperature:TemperatureScaling"),
    Spec("platt", "temperature:PlattScaling"),
    # Label shift, from the batch as published and from the past (ours).
    Spec("em", "em:EM"),
    Spec("em_bcts", "em:EM", {"bcts": True}, "variant: calibrated", needs="source labels"),
    Spec("em_prequential", "em:EM", {"prequential": True}, "control: from the past", at_one=_PAST),
    Spec(
        "em_bcts_prequential",
        "em:EM",
        {"prequential": True, "bcts": True},
        "variant: from the past, calibrated",
        needs="source labels",
        at_one=_PAST,
    ),
    Spec("bbse_hard", "bbse:BBSE"),
    Spec("bbse_soft", "bbse:BBSE", {"soft": True}, "variant: posteriors in place of decisions"),
    Spec("bbse_hard_prequential", "bbse:BBSE", {"prequential": True}, "variant: from the past", at_one=_PAST),
    Spec(
        "bbse_soft_prequential",
        "bbse:BBSE",
        {"prequential": True, "soft": True},
        "variant: posteriors, from the past",
        at_one=_PAST,
    ),
    Spec("rlls", "rlls:RLLS"),
    Spec("rlls_prequential", "rlls:RLLS", {"prequential": True}, "variant: from the past", at_one=_PAST),
    # Refinement of a batch's outputs, prototypes.
    Spec("lame", "lame:LAME"),
    Spec("lame_rbf", "lame:LAME", {"affinity": "rbf"}, "variant: Gaussian affinity, the released default"),
    Spec("lame_linear", "lame:LAME", {"affinity": "linear"}, "variant: cosines of all rows"),
    Spec("adaptable", "adaptable:AdapTable"),
    Spec("t3a", "t3a:T3A"),
    # Entropy on norm layers: their forward pass alone, as released, and with layer norms collected too.
    Spec("bn_stats", "bn_stats:BatchStatistics"),
    Spec("tent", "tent:Tent"),
    Spec("eata", "eata:EATA"),
    Spec("sar", "sar:SAR"),
    Spec("tent_ln", "tent:Tent", {"norm_types": ("bn2d", "ln")}, "variant: layer norms too"),
    Spec("eata_ln", "eata:EATA", {"norm_types": ("bn2d", "ln")}, "variant: layer norms too"),
    Spec("sar_ln", "sar:SAR", {"skip_top": False}, "variant: the layers that SAR skips too"),
    # All parameters.
    Spec("ftat", "ftat:FTAT"),
    Spec("ftat_lr512", "ftat:FTAT", {"scale": 1 / 512}, "variant: rates over the batch size they are for"),
    Spec("ftat_paper", "ftat:FTAT", {"loss": "paper"}, "variant: the paper's loss, a true entropy"),
    Spec("ftat_no_prior", "ftat:FTAT", {"prior": "none"}, "variant: no prior correction"),
    Spec("pft3a", "pft3a:PFT3A"),
    Spec("pft3a_lr1e4", "pft3a:PFT3A", {"lr": 1e-4}, "sensitivity: ten times the rate"),
    Spec("pft3a_lr1e3", "pft3a:PFT3A", {"lr": 1e-3}, "sensitivity: a hundred times the rate"),
    Spec("pft3a_code", "pft3a:PFT3A", {"entropy": "code"}, "variant: the released loss"),
    Spec(
        "pft3a_stream",
        "pft3a:PFT3A",
        {"stream_prior": True},
        "variant: first prior over the stream so far",
        at_one="the entropy step, and a prior from the stream so far",
    ),
    Spec("cotta", "cotta:CoTTA"),
    # Built around batch norm.
    Spec("dua", "dua:DUA"),
    Spec("note", "note:NOTE"),
    Spec("rotta", "rotta:RoTTA"),
)

_BY_NAME = {entry.name: entry for entry in _REGISTRY}


def names() -> tuple[str, ...]:
    """All methods, in the order of the registry."""
    return tuple(_BY_NAME)


def spec(name: str) -> Spec:
    """The registry's line for a name."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise ValueError(f"no method is called {name!r}; there are: {', '.join(_BY_NAME)}") from None


def build(name: str, model: nn.Module | None, source: SourceInfo, **options: Any) -> Method:
    """A fresh method for one stream and one checkpoint; `options` go before the registry's own.

    >>> import numpy as np
    >>> method = build("source", None, SourceInfo(prior=np.array([0.76, 0.24])))
    >>> method.replay(np.array([0.0, 2.0])).probs.round(3)
    array([0.5  , 0.881])
    """
    entry = spec(name)
    return entry.cls(model, source, **{**entry.options, **options})
