"""Every figure of the study as SVG and PNG: one style, the same bytes, no colour that carries alone."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from ploc_lab import data
from ploc_lab.report import names, paper, vision
from ploc_lab.study import experiments, frames
from ploc_lab.study.experiments import batch as sweep
from ploc_lab.study.experiments import prior_shift
from ploc_lab.study.grid import BACKBONES
from ploc_lab.study.store import replace_file
from ploc_lab.study.streams import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

STYLE: dict[Any, Any] = {
    "svg.hashsalt": "ploc",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.labelcolor": "#333333",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e8e8e8",
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
}


class Look(NamedTuple):
    """How a method is drawn: a colour that every eye can tell, and a shape that tells it without colour."""

    colour: str
    marker: str
    line: str = "-"


LOOKS = {
    "source": Look("#444444", "s", "--"),
    "ploc": Look("#0072b2", "o"),
    "ploc_deferred": Look("#56b4e9", "D", "-."),
    "ploc_prob": Look("#009e73", "^", "-"),
    "ploc_anchor": Look("#009e73", "v", ":"),
    "ploc_median": Look("#b39b00", "P", ":"),
    "ploc_batch": Look("#56b4e9", "h", ":"),
    "prior_ratio": Look("#5b4a9e", "H", "--"),
    "em_prequential": Look("#882255", "<", "--"),
    "bbse_soft_prequential": Look("#999999", ">", ":"),
    "em": Look("#882255", "<", "--"),
    "bbse_soft": Look("#999999", ">", ":"),
    "adaptable": Look("#b39b00", "P", ":"),
    "lame": Look("#e69f00", "X", "-"),
    "lame_rbf": Look("#e69f00", "1", "--"),
    "lame_linear": Look("#e69f00", "2", ":"),
    "ftat": Look("#d55e00", "v", "-"),
    "pft3a": Look("#cc79a7", "d", "-"),
    "sar": Look("#882255", "*", ":"),
    "cotta": Look("#999999", "p", ":"),
    "t3a": Look("#b39b00", "P", ":"),
}
BACKBONE_LOOKS = {
    "mlp": Look("#0072b2", "o"),
    "ft_transformer": Look("#d55e00", "s"),
    "tab_transformer": Look("#009e73", "^"),
    "hist_gradient_boosting": Look("#e69f00", "D"),
    "lightgbm": Look("#cc79a7", "v"),
}
OTHER = Look("#999999", ".", ":")


def draw(cells: pl.DataFrame) -> dict[str, Figure]:
    """All figures that these cells can fill, by name."""
    with mpl.rc_context(STYLE):
        made = {name: figure for name, make in ALL.items() if (figure := make(cells)) is not None}
        for figure in made.values():  # laid out once: a layout done again starts where the last one ended
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
    return made


def save(figures: dict[str, Figure], folder: Path) -> list[Path]:
    """Write each figure as SVG and PNG, whole or not at all; the same figure gives the same bytes."""
    written = []
    for name, figure in figures.items():
        for suffix, content in (("svg", svg(figure).encode()), ("png", _bytes(figure, "png"))):
            written.append(folder / f"{name}.{suffix}")
            replace_file(written[-1], content)
    return written


def svg(figure: Figure) -> str:
    """A figure as SVG text without date or maker."""
    return _bytes(figure, "svg").decode()


def _bytes(figure: Figure, kind: str) -> bytes:
    buffer = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    with mpl.rc_context(STYLE):
        figure.savefig(buffer, format=kind, metadata=metadata, dpi=160)
    return buffer.getvalue()


# --- the paper's figures ----------------------------------------------------------------------------------

COMPARED = ("ploc", "ploc_deferred", "ploc_prob", "ftat", "pft3a", "lame", "sar", "t3a", "cotta",
            "prior_ratio", "em_prequential")  # fmt: skip


def tradeoff(cells: pl.DataFrame) -> Figure | None:
    """What each method gains in accuracy and pays in AUROC against the source, beside the paper's points."""
    table = experiments.find("tradeoff").tables(cells)["tradeoff"]
    over = "paper's tasks" if "paper's tasks" in table["over"].unique() else "all"
    table = table.filter(pl.col("over") == over, pl.col("method").is_in(COMPARED))
    backbones = _known(table, "backbone", BACKBONES)
    if not backbones:
        return None
    figure = Figure(figsize=(max(4.8, 3.1 * len(backbones) + 0.6), 3.9))
    axes = figure.subplots(1, len(backbones), sharex=True, sharey=True, squeeze=False)[0]
    for axis, backbone in zip(axes, backbones, strict=True):
        axis.axhline(0, color="#888888", linewidth=1)
        axis.axvline(0, color="#888888", linewidth=1)
        rows = {r["method"]: r for r in table.filter(pl.col("backbone") == backbone).to_dicts()}
        for method in COMPARED:
            if method in rows:
                look = LOOKS[method]
                axis.plot(rows[method]["d_auroc"], rows[method]["d_accuracy"], look.marker, color=look.colour,
                          markersize=9 if method == "ploc" else 7, label=names.method(method))  # fmt: skip
            printed = paper.MAIN[backbone].get(method)
            if printed and over != "all":
                source = paper.MAIN[backbone]["source"]
                axis.plot(printed.auroc - source.auroc, printed.accuracy - source.accuracy,
                          LOOKS[method].marker, color=LOOKS[method].colour, markersize=7,
                          markerfacecolor="none", alpha=0.75)  # fmt: skip
        axis.set_title(names.backbone(backbone))
        axis.set_xlabel("change of AUROC")
        axis.xaxis.set_major_locator(MaxNLocator(4))
    axes[0].set_ylabel("change of accuracy")
    _below(figure, axes, 4)
    if over != "all":
        figure.suptitle(
            "Filled: ours. Hollow: the paper's Table 1, over its own five data sets.", fontsize=8.5
        )
    return figure


def by_dataset(cells: pl.DataFrame) -> Figure | None:
    """F1 of source and PLOC, data set by data set, with the paper's where the data is its own."""
    table = experiments.find("per_dataset").tables(cells)["per_dataset"]
    backbones, datasets = _known(table, "backbone", BACKBONES), _known(table, "dataset", data.names())
    if not backbones:
        return None
    figure = Figure(figsize=(3.1 * len(backbones) + 1.4, 0.42 * len(datasets) + 1.7))
    axes = figure.subplots(1, len(backbones), sharex=True, sharey=True, squeeze=False)[0]
    rows = {(r["backbone"], r["dataset"], r["method"]): r for r in table.to_dicts()}
    for axis, backbone in zip(axes, backbones, strict=True):
        for place, dataset in enumerate(reversed(datasets)):
            pair = [rows.get((backbone, dataset, method)) for method in ("source", "ploc")]
            if pair[0] is None or pair[1] is None:
                continue
            a, b = pair[0], pair[1]
            axis.plot([a["f1"], b["f1"]], [place, place], color="#cccccc", linewidth=3, zorder=1)
            for row, method in ((a, "source"), (b, "ploc")):
                look = LOOKS[method]
                axis.errorbar(row["f1"], place, xerr=row["f1_sd"] or 0.0, fmt=look.marker, color=look.colour,
                              elinewidth=1.2, capsize=2.5, markersize=6)  # fmt: skip
                printed = paper.PER_DATASET[backbone].get(dataset)
                if printed:
                    axis.plot(getattr(printed.f1, method), place - 0.28, look.marker, color=look.colour,
                              markersize=5, markerfacecolor="none")  # fmt: skip
        axis.set_title(names.backbone(backbone))
        axis.set_xlabel("F1")
        axis.set_ylim(-0.6, len(datasets) - 0.4)
        axis.set_xlim(-0.03, 1.0)
    axes[0].set_yticks(range(len(datasets)), [names.dataset(d) for d in reversed(datasets)])
    for method, fill, label in (
        ("source", None, "Source"), ("ploc", None, "PLOC"),
        ("source", "none", "Source, paper"), ("ploc", "none", "PLOC, paper"),
    ):  # fmt: skip
        axes[0].plot([], [], LOOKS[method].marker, color=LOOKS[method].colour, label=label,
                     markerfacecolor=fill or LOOKS[method].colour)  # fmt: skip
    _below(figure, axes, 4)
    return figure


def differences(cells: pl.DataFrame) -> Figure | None:
    """Ours less the paper's printed means, source and PLOC, where the data is the paper's own."""
    exact = cells.filter(pl.col("dataset").is_in(list(paper.STREAMS)), ~pl.col("stand_in"))
    table = experiments.find("per_dataset").tables(exact)["per_dataset"]
    datasets, backbones = _known(table, "dataset", data.names()), _known(table, "backbone", BACKBONES)
    if not datasets:
        return None
    rows = {(r["backbone"], r["dataset"], r["method"]): r for r in table.to_dicts()}
    lines = [(b, m) for b in backbones for m in paper.PerDataset._fields]
    figure = Figure(figsize=(3.4 * len(datasets) + 2.2, 0.26 * len(lines) + 1.5))
    axes = figure.subplots(1, len(datasets), sharey=True, sharex=True, squeeze=False)[0]
    for axis, dataset in zip(axes, datasets, strict=True):
        axis.axvline(0, color="#888888", linewidth=1)
        for place, (backbone, metric) in enumerate(reversed(lines)):
            printed = getattr(paper.PER_DATASET[backbone][dataset], metric)
            for method, off in (("source", 0.15), ("ploc", -0.15)):
                row, look = rows.get((backbone, dataset, method)), LOOKS[method]
                if row is not None:
                    axis.errorbar(row[metric] - getattr(printed, method), place + off,
                                  xerr=2 * (row[f"{metric}_sd"] or 0.0), fmt=look.marker, color=look.colour,
                                  elinewidth=1.1, capsize=2, markersize=4.5)  # fmt: skip
        axis.set_title(names.dataset(dataset))
        axis.set_xlabel("ours less the paper's")
        for edge in range(len(paper.PerDataset._fields), len(lines), len(paper.PerDataset._fields)):
            axis.axhline(edge - 0.5, color="#bbbbbb", linewidth=0.8)
    words = [f"{names.backbone(b)}, {names.METRICS[m]}" for b, m in reversed(lines)]
    axes[0].set_yticks(range(len(lines)), words, fontsize=8)
    for method in ("source", "ploc"):
        look = LOOKS[method]
        axes[0].plot([], [], look.marker, color=look.colour, label=names.method(method))
    _below(figure, axes, 2)
    return figure


GAINS = ("accuracy", "balanced_accuracy", "f1", "auroc", "ece", "nll")


def gains(cells: pl.DataFrame) -> Figure | None:
    """PLOC less source in six metrics, one point a checkpoint; better is always to the right."""
    rows = frames.against(frames.plain(cells)).filter(pl.col("method") == "ploc")
    rows = frames.whole(rows)
    datasets, backbones = _known(rows, "dataset", data.names()), _known(rows, "backbone", BACKBONES)
    if not datasets:
        return None
    figure = Figure(figsize=(9.6, 0.62 * len(datasets) + 2.2))
    axes = figure.subplots(2, 3, sharey=True)
    for axis, metric in zip(axes.ravel(), GAINS, strict=True):
        lower = metric in names.LOWER
        axis.axvline(0, color="#888888", linewidth=1)
        for k, backbone in enumerate(backbones):
            here, look = rows.filter(pl.col("backbone") == backbone), BACKBONE_LOOKS[backbone]
            change = here[f"d_{metric}"] * (-1 if lower else 1)
            places = [len(datasets) - 1 - datasets.index(d) + 0.22 * (1 - k) for d in here["dataset"]]
            axis.plot(change, places, look.marker, color=look.colour, markersize=4, alpha=0.75,
                      label=names.backbone(backbone))  # fmt: skip
        axis.set_title(names.METRICS[metric] + (" (source less PLOC)" if lower else ""))
        axis.xaxis.set_major_locator(MaxNLocator(4))
        axis.set_ylim(-0.6, len(datasets) - 0.4)
    for axis in axes[:, 0]:
        axis.set_yticks(range(len(datasets)), [names.dataset(d) for d in reversed(datasets)], fontsize=8)
    _below(figure, axes.ravel()[:1], 3)
    return figure


def batch_sizes(cells: pl.DataFrame) -> Figure | None:
    """The change of AUROC against the source by batch size."""
    found = experiments.find("batch").tables(cells)
    table = found["batch"] if found["batch"].height else _over(found["batch_by_dataset"], ["method", "batch"])
    table = table.filter(pl.col("method") != "source")
    methods = [m for m in _known(table, "method", sweep.METHODS) if m not in {"ploc_deferred", "ploc_batch"}]
    if not methods or table["batch"].n_unique() < 2:
        return None
    figure = Figure(figsize=(7.2, 3.9))
    axes = figure.subplots(1, 2)
    for axis, column, label in zip(
        axes, ("d_auroc", "d_accuracy"), ("change of AUROC", "change of accuracy"), strict=True
    ):
        axis.axhline(
            0,
            **_line("source"),
            linewidth=1.2,
            label="Source, deferred PLOC" if column == "d_auroc" else None,
        )
        for method in methods:
            rows = table.filter(pl.col("method") == method).sort("batch")
            _curve(axis, method, rows["batch"], rows[column])
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set_xlabel("batch size")
        axis.set_ylabel(label)
    _below(figure, axes[:1], 4)
    return figure


def prior_rates(cells: pl.DataFrame) -> Figure | None:
    """Balanced accuracy, accuracy and ECE at five positive rates."""
    found = experiments.find("prior_shift").tables(cells)
    table = found["prior_shift"]
    table = table if table.height else _over(found["prior_shift_by_dataset"], ["rate", "method"])
    if not table.height or table["rate"].n_unique() < 2:
        return None
    figure = Figure(figsize=(9.6, 3.9))
    axes = figure.subplots(1, 3, sharex=True)
    for axis, metric in zip(axes, ("balanced_accuracy", "accuracy", "ece"), strict=True):
        for method in _known(table, "method", prior_shift.METHODS):
            rows = table.filter(pl.col("method") == method).sort("rate")
            _curve(axis, method, rows["rate"], rows[metric])
        axis.set_title(names.metric(metric).replace("BAcc", "balanced accuracy").replace("Acc", "accuracy"))
        axis.set_xticks(list(prior_shift.RATES))
        axis.set_xlabel("share of positive rows")
    _below(figure, axes[:1], 5)
    return figure


# --- theory and what the paper has not --------------------------------------------------------------------


def drift_bound(cells: pl.DataFrame) -> Figure | None:
    """Proposition 2 on growing prefixes: the bound, and the drift that happened."""
    table = experiments.find("theory").tables(cells).get("propositions")
    if table is None or not table.height or table["n"].n_unique() < 2:
        return None
    datasets, backbones = _known(table, "dataset", data.names()), _known(table, "backbone", BACKBONES)
    wide = min(3, len(datasets))
    tall = -(-len(datasets) // wide)
    figure = Figure(figsize=(3.1 * wide + 0.5, 2.5 * tall + 0.7))
    grid = figure.subplots(tall, wide, sharex=True, sharey=True, squeeze=False).ravel()
    floor = 1e-6
    for axis, dataset in zip(grid, datasets, strict=False):
        for backbone in backbones:
            rows = table.filter(pl.col("dataset") == dataset, pl.col("backbone") == backbone).sort("n")
            look = BACKBONE_LOOKS[backbone]
            label = names.backbone(backbone)
            axis.plot(rows["n"], rows["drift_bound"].clip(floor), "-", marker=look.marker, color=look.colour,
                      label=f"{label}: bound")  # fmt: skip
            axis.plot(rows["n"], rows["drift"].clip(floor), ":", marker=look.marker, color=look.colour,
                      markerfacecolor="white", label=f"{label}: drift")  # fmt: skip
        axis.set_xscale("log")
        axis.set_yscale("log")
        # Plain numbers: the exponent of a power of ten is too small to read.
        axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        for side in (axis.xaxis, axis.yaxis):
            side.set_minor_formatter(NullFormatter())
        axis.set_title(names.dataset(dataset))
    for axis in grid[len(datasets) :]:
        axis.set_axis_off()
    for axis in grid[: len(datasets)]:
        axis.set_xlabel("rows of the stream")
        axis.xaxis.set_tick_params(labelbottom=True)
    figure.supylabel("share of pairs, change of AUROC", fontsize=9)
    _below(figure, grid[:1], 3)
    return figure


def recovery(cells: pl.DataFrame) -> Figure | None:
    """Streams that change their domain: balanced accuracy in the 200 rows after, origin by origin."""
    table = experiments.find("beyond").tables(cells).get("drift")
    if table is None or not table.height:
        return None
    table = _over(table, ["draw", "method"], ("after_balanced_accuracy", "recovery_rows", "recovered"))
    kinds = _known(table, "draw", KINDS)
    base = {
        r["draw"]: r["after_balanced_accuracy"] for r in table.filter(pl.col("method") == "source").to_dicts()
    }
    methods = [m for m in dict.fromkeys(table["method"].to_list()) if m != "source"]
    figure = Figure(figsize=(3.0 * len(kinds) + 1.2, 0.3 * len(methods) + 1.5))
    axes = figure.subplots(1, len(kinds), sharey=True, sharex=True, squeeze=False)[0]
    for axis, kind in zip(axes, kinds, strict=True):
        axis.axvline(0, **_line("source"), linewidth=1.2)
        for place, method in enumerate(reversed(methods)):
            row = table.filter(pl.col("draw") == kind, pl.col("method") == method).to_dicts()
            if not row or kind not in base:
                continue
            look = LOOKS.get(method, Look("#0072b2", "o"))
            gain = row[0]["after_balanced_accuracy"] - base[kind]
            axis.plot([0, gain], [place, place], color="#bbbbbb", linewidth=2)
            axis.plot(gain, place, look.marker, color=look.colour, markersize=7)
            if (share := row[0]["recovered"]) is not None:
                words = f"{row[0]['recovery_rows']:,.0f} rows" if share >= 0.5 else f"{share:.1%}"
                axis.annotate(words, (1.0, place), xycoords=("axes fraction", "data"), fontsize=7.5,
                              ha="right", va="center", color="#555555")  # fmt: skip
        axis.set_title(kind)
        axis.set_xlabel("balanced accuracy after a change,\nagainst the source")
        axis.margins(x=0.5)
        axis.xaxis.set_major_locator(MaxNLocator(5))
    axes[0].set_yticks(range(len(methods)), [names.method(m) for m in reversed(methods)])
    figure.suptitle(
        "On the right: rows until the origin is within a tenth of the way of the new mean logit;\n"
        "where it seldom gets there, the share of changes at which it does.",
        fontsize=8.5,
    )
    return figure


def cost(cells: pl.DataFrame) -> Figure | None:
    """What a row costs at batch size one, over its frozen source."""
    table = experiments.find("beyond").tables(cells).get("cost")
    if table is None or not table.height:
        return None
    table = _over(table.filter(pl.col("method") != "source"), ["backbone", "method"], ("times_source",))
    backbones = _known(table, "backbone", (*BACKBONES, "hist_gradient_boosting", "lightgbm"))
    methods = table.group_by("method").agg(pl.col("times_source").median()).sort("times_source", "method")
    listed = methods["method"].to_list()
    if not listed:
        return None
    figure = Figure(figsize=(6.8, 0.22 * len(listed) + 1.5))
    axis: Axes = figure.subplots()
    axis.axvline(1, color="#444444", linestyle="--", linewidth=1.2)
    for backbone in backbones:
        rows = table.filter(pl.col("backbone") == backbone).to_dicts()
        look = BACKBONE_LOOKS[backbone]
        places = [len(listed) - 1 - listed.index(r["method"]) for r in rows]
        axis.plot([r["times_source"] for r in rows], places, look.marker, color=look.colour, markersize=5,
                  alpha=0.85, label=names.backbone(backbone))  # fmt: skip
    axis.set_yticks(range(len(listed)), [names.method(m) for m in reversed(listed)], fontsize=8)
    axis.set_ylim(-0.7, len(listed) - 0.3)
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(10, (1.0, 2.0, 5.0)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel("time of one row over the frozen source's, network and all")
    _below(figure, [axis], 3)
    return figure


ALL: dict[str, Callable[[pl.DataFrame], Figure | None]] = {
    "tradeoff": tradeoff,
    "f1_by_dataset": by_dataset,
    "differences": differences,
    "gains": gains,
    "batch_sizes": batch_sizes,
    "prior_shift": prior_rates,
    "drift_bound": drift_bound,
    "recovery": recovery,
    "cost": cost,
    "vision_accuracy": vision.accuracy,
}
CAPTIONS = {
    "tradeoff": "What each method gains in accuracy and pays in ranking, against the source on its rows.",
    "f1_by_dataset": "F1 of source and PLOC, data set by data set; bars are standard deviations over "
    "checkpoints.",
    "differences": "Ours less the paper's Tables 3 to 5, where the data are exactly the paper's; bars are "
    "two standard deviations over our checkpoints.",
    "gains": "PLOC less source, one point a checkpoint: right of the line is better, left is worse.",
    "batch_sizes": "Batch sizes from 1 to 1024: change against the source on the same rows.",
    "prior_shift": "Streams redrawn at five positive rates: means over data sets, backbones, checkpoints and "
    "samples.",
    "drift_bound": "Proposition 2 on growing prefixes: the bound on PLOC's change of AUROC, and the change.",
    "recovery": "Streams that leave the source's domain at once, bit by bit or by turns, and the origins "
    "that follow.",
    "cost": "What one row costs at batch size one, over the frozen source on the same machine.",
    "vision_accuracy": "CIFAR-10, one image at a time: accuracy of source and PLOC-K, stream by stream; "
    "hollow is the paper. † In profile paper the strength is fitted to the paper's source accuracy.",
}


# --- what they share --------------------------------------------------------------------------------------


def _known(table: pl.DataFrame, column: str, order: Iterable[str]) -> list[str]:
    here = set(table[column].unique())
    return [name for name in order if name in here]


def _over(table: pl.DataFrame, by: Sequence[str], columns: Sequence[str] = ()) -> pl.DataFrame:
    """Means over what a table has beyond `by`, in order of appearance."""
    chosen = columns or [c for c in (*names.METRICS, "d_auroc", "d_accuracy") if c in table.columns]
    return table.group_by(by, maintain_order=True).agg(pl.col(c).mean() for c in chosen)


def _line(method: str) -> dict[str, Any]:
    look = LOOKS.get(method, OTHER)
    return {"color": look.colour, "linestyle": look.line}


def _curve(axis: Axes, method: str, x: pl.Series, y: pl.Series) -> None:
    marker = LOOKS.get(method, OTHER).marker
    axis.plot(x, y, marker=marker, label=names.method(method), **_line(method),
              linewidth=2.6 if method == "ploc" else 1.5, zorder=3 if method == "ploc" else 2)  # fmt: skip


def _below(figure: Figure, axes: Iterable[Axes], columns: int) -> None:
    """One legend for all panels, below them, each label once, in as many columns as fit."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    for number in range(columns, 0, -1):
        legend = figure.legend(
            found.values(), found.keys(), loc="outside lower center", ncols=number, fontsize=8
        )
        if number == 1 or legend.get_window_extent().width < 0.98 * figure.bbox.width:
            return
        legend.remove()
