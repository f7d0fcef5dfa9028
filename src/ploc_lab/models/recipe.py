"""How each backbone is trained: the benchmark's recipes and their named variants, as values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal


@dataclass(frozen=True)
class Recipe:
    """Everything but data and seed that decides a trained network.

    `no_decay` lists parts of parameter names whose parameters the weight decay spares. `lockstep` says
    that five seeds train as one stack (see `training`); it is set where that was measured to be faster.
    `categorical` hands the network the one-hot blocks of its rows.
    """

    network: str
    batch: int
    lr: float
    weight_decay: float
    epochs: int = 20
    optimiser: Literal["adamw", "sgd_one_cycle"] = "adamw"
    no_decay: tuple[str, ...] = ()
    lockstep: bool = False
    augment: bool = False
    categorical: bool = False

    def asdict(self) -> dict[str, Any]:
        """The recipe as JSON-safe values."""
        return {**asdict(self), "no_decay": list(self.no_decay)}


_MLP = Recipe("mlp", batch=1024, lr=0.01, weight_decay=0.01)
_TAB = Recipe("tab_transformer", batch=256, lr=0.01, weight_decay=0.01, lockstep=True)
_FT = Recipe(
    "ft_transformer",
    batch=1024,
    lr=1e-4,
    weight_decay=1e-5,
    no_decay=("feature_tokenizer", "normalization", ".bias"),
)
_CNN = Recipe("cnn", batch=128, lr=0.2, weight_decay=5e-4, epochs=6, optimiser="sgd_one_cycle", augment=True)

RECIPES: dict[str, Recipe] = {
    "mlp": _MLP,
    "tab_transformer": _TAB,
    "ft_transformer": _FT,
    "cnn": _CNN,
    # The paper's text states one batch size and one optimiser for all; these two are that text to the letter.
    "tab_transformer:batch_1024": replace(_TAB, batch=1024),
    # Twenty epochs overfit it on readmission; the paper's row there looks like fewer.
    "tab_transformer:epochs_5": replace(_TAB, epochs=5),
    "ft_transformer:paper_text": replace(_FT, lr=0.01, weight_decay=0.01, no_decay=()),
    # The published TabTransformer: one-hot blocks go through its transformer, whose dropout draws noise.
    "tab_transformer:categorical": replace(_TAB, lockstep=False, categorical=True),
}


def find(backbone: str) -> Recipe:
    """The recipe of a backbone, `network` or `network:variant`.

    >>> find("ft_transformer").lr, find("ft_transformer:paper_text").lr
    (0.0001, 0.01)
    """
    if backbone not in RECIPES:
        raise ValueError(f"no backbone {backbone!r}; there are {', '.join(RECIPES)}")
    return RECIPES[backbone]
