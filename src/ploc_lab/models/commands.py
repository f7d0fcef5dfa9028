"""`ploc-lab train` and `ploc-lab compare`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter, validators
from rich.console import Console

Names = Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")]
Seeds = Annotated[int, Parameter(validator=validators.Number(gte=1))]


def train(
    *,
    only: Names = None,
    backbone: Names = None,
    seeds: Seeds = 5,
    limit: int | None = None,
    device: str = "cpu",
) -> None:
    """Train the frozen source models; what is there already is verified and kept.

    Parameters
    ----------
    only
        Data sets; all whose files are here unless given.
    backbone
        Backbones, variants after a colon; mlp, tab_transformer and ft_transformer unless given.
    seeds
        Checkpoints a backbone: seeds 0, 1, 2, ...
    limit
        Train on at most so many source rows, a fixed sample that the card states.
    device
        Where networks are trained, e.g. `cuda`; the card states it.
    """
    from rich.table import Table  # noqa: PLC0415

    from ploc_lab import data, models  # noqa: PLC0415

    heads = ("data set", "backbone", "seed", "rows", "acc", "AUROC", "ECE", "sha256")
    table = Table(*heads, box=None, collapse_padding=True, pad_edge=False)
    stand_ins = []
    for name in only or here():
        ds = data.load(name)
        stand_ins += [name] if ds.stand_in else []
        for one in backbone or TABULAR:
            for checkpoint in models.train(ds, one, range(seeds), limit=limit, device=device):
                card = checkpoint.card
                shown = (_three(card["id_test"][metric]) for metric in ("accuracy", "auroc", "ece"))
                row = (name, one, str(checkpoint.seed), f"{card['source_rows']:,}")
                table.add_row(*row, *shown, checkpoint.sha[:8])
    console = Console()
    console.print(table)
    console.print("rows: trained on; acc, AUROC and ECE: on the source's held-out id_test.")
    if stand_ins:
        console.print(f"Stand-ins, not the paper's data: {', '.join(stand_ins)}.")


def compare(*, only: Names = None, backbone: Names = None, seeds: Seeds = 5, markdown: bool = False) -> None:
    """Source and PLOC on our checkpoints beside the paper's per-dataset tables.

    Parameters
    ----------
    only
        Data sets; those of the paper whose files are here unless given.
    backbone
        Backbones, variants after a colon; mlp, ft_transformer and tab_transformer unless given.
    seeds
        Checkpoints a backbone: seeds 0, 1, 2, ...
    markdown
        Print a Markdown table.
    """
    from ploc_lab.models import comparison  # noqa: PLC0415
    from ploc_lab.report import paper  # noqa: PLC0415

    chosen = only or [name for name in here() if name in paper.PER_DATASET["mlp"]]
    rows = comparison.rows(chosen, backbone or TABULAR, range(seeds))
    if markdown:
        print(comparison.markdown(rows))  # noqa: T201
    else:
        Console().print(comparison.table(rows))


TABULAR = ["mlp", "ft_transformer", "tab_transformer"]


def here() -> list[str]:
    """Data sets of tables whose raw files are on this machine."""
    from ploc_lab import data  # noqa: PLC0415

    return [name for name in data.names() if name != "cifar10" and not data.missing(name)]


def _three(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
