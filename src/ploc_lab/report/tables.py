"""Every table of the study: the paper's with its printed numbers beside ours, and those the paper has not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from ploc_lab import data
from ploc_lab.report import names, paper, protocol, vision
from ploc_lab.report.table import Number, Row, Table
from ploc_lab.study import experiments, frames
from ploc_lab.study.cell import ORACLE
from ploc_lab.study.experiments import ablation as origins
from ploc_lab.study.experiments import batch as sweep
from ploc_lab.study.experiments import main
from ploc_lab.study.experiments.stability import MEAN
from ploc_lab.study.grid import BACKBONES, PAPER_TASKS, paper_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ploc_lab.report.table import Item

METRICS = tuple(names.METRICS)
HEADS = tuple(names.metric(metric) for metric in METRICS)
PRINTED = paper.PerDataset._fields
"""The four metrics of the paper's Tables 3 to 5."""
BOLD = (
    "Bold is the best of a backbone among methods on all its data sets; for AUROC the closest to the source; "
    "a no-op is the best of nothing. "
    "Δ is against the source on the same rows, also where a method's stream is cut"
)


def build(cells: pl.DataFrame) -> list[Table]:
    """All tables that these cells can fill, the paper's first; what has no row is left out."""
    return [table for make in ALL for table in make(cells) if table.rows]


def find(tables: Iterable[Table], name: str) -> Table | None:
    """A table by name."""
    return next((table for table in tables if table.name == name), None)


# --- the paper's ------------------------------------------------------------------------------------------


def comparison(cells: pl.DataFrame) -> list[Table]:
    """Table 1, our further methods, and Table 1 on the exact data sets alone."""
    plain = frames.plain(cells)
    ours = plain.filter(pl.col("method").is_in(main.PAPER))
    over = frames.paper_only(plain)
    found = []
    if over.height:
        found = [
            _means(
                "main",
                "Table 1: every method of the paper, one row at a time",
                frames.paper_only(ours),
                main.PAPER,
                paper.MAIN,
            ),
            _means(
                "main_more",
                "Further methods, controls and variants, one row at a time",
                over,
                _more(over),
                {},
            ),
        ]
        exact = over.filter(pl.col("dataset").is_in(list(paper.STREAMS)))
        if exact.height and exact["dataset"].n_unique() < over["dataset"].n_unique():
            found.append(
                _means(
                    "main_exact",
                    "Table 1 on the data sets that are exactly the paper's",
                    exact,
                    main.PAPER,
                    _mean_of_printed(exact["dataset"].unique()),
                    [
                        "The paper's means over these data sets are taken from its Tables 3 to 5, which have "
                        "source and PLOC in four metrics"
                    ],
                )
            )
    rest = plain.filter(~pl.col("dataset").is_in(over["dataset"].unique().to_list()))
    if rest.height:
        found.append(
            _means(
                "main_other", "Data sets that are not the paper's, one row at a time", rest, _all(rest), {}
            )
        )
    return found


def _all(rows: pl.DataFrame) -> list[str]:
    return rows["method"].unique(maintain_order=True).to_list()


def _more(rows: pl.DataFrame) -> list[str]:
    """What the paper's table does not have, beside source and PLOC."""
    return ["source", "ploc", *(m for m in _all(rows) if m not in main.PAPER)]


def _means(  # noqa: PLR0917 - what a table is made of, in the order it is read
    name: str,
    title: str,
    rows: pl.DataFrame,
    methods: Sequence[str],
    printed: Mapping[str, Mapping[str, paper.Scores | _Some]],
    notes: Sequence[str] = (),
) -> Table:
    """Means over data sets and checkpoints, in the order of the paper's rows, with what each method did."""
    rows = rows.filter(pl.col("method").is_in(list(methods)))
    summary = main.tables(rows)["main_all"]
    # Nothing is won by what sees labels, or has not answered every data set that others have.
    whole = summary.filter(pl.col("datasets") == pl.col("datasets").max().over("backbone"))
    whole = whole.filter(pl.col("method") != ORACLE)
    fair = main.tables(rows.join(whole, on=["backbone", "method"], how="semi"))["main_all"]
    best = {(r["backbone"], r["method"]): r["best"] for r in fair.to_dicts()}
    spread = _spread(rows)
    most = {b: max(group["datasets"].to_list()) for (b,), group in summary.group_by("backbone")}
    made = [
        Row(
            (
                names.method(row["method"]),
                *_numbers(
                    row,
                    METRICS,
                    spread.get((row["backbone"], row["method"]), {}),
                    _of(printed.get(row["backbone"], {}).get(row["method"])),
                    (best.get((row["backbone"], row["method"])) or "").split(),
                ),
                Number(row["d_accuracy"], signed=True),
                Number(row["d_auroc"], 4, signed=True),
                _remarks(row, most[row["backbone"]]),
            ),
            names.backbone(row["backbone"]),
        )
        for row in summary.to_dicts()
    ]
    here = rows["dataset"].unique().to_list()
    said = [_over(rows), *notes, BOLD, *stand_ins(here), *_absent(rows)]
    return Table(name, title, ("Method", *HEADS, "Δ Acc", "Δ AUROC", "remarks"), made, said)


def deferred(cells: pl.DataFrame) -> list[Table]:
    """Table 2, and how far deferred PLOC is from PLOC and from its source's ranking at worst."""
    found = experiments.find("deferred").tables(cells)
    plain = frames.plain(cells)
    rows = frames.paper_only(plain)
    spread = _spread(rows.filter(pl.col("method").is_in(["source", "ploc", "ploc_deferred"])))
    made = []
    for row in found["deferred"].to_dicts():
        beside = paper.DEFERRED.get(row["backbone"], {}) | {"ploc": paper.MAIN[row["backbone"]]["ploc"]}
        numbers = _numbers(
            row, METRICS, spread.get((row["backbone"], row["method"]), {}), _of(beside.get(row["method"]))
        )
        made.append(Row((names.method(row["method"]), *numbers), names.backbone(row["backbone"])))
    table = Table(
        "deferred",
        "Table 2: deferred PLOC, the offline reference",
        ("Method", *HEADS),
        made,
        [_over(rows), *stand_ins(rows["dataset"].unique()), *_absent(rows)],
    )
    gap = _simple(
        found["deferred_gap"],
        "deferred_gap",
        "Deferred PLOC beside PLOC: the largest distance of a checkpoint",
        {m: (names.METRICS[m], 4, False) for m in METRICS}
        | {"auroc_from_source": ("AUROC to source", -1, False)},
    )
    return [table, gap]


def per_dataset(cells: pl.DataFrame) -> list[Table]:
    """Tables 3 to 5: source and PLOC, a data set a row, the paper's that are not here named as missing."""
    rows = frames.whole(frames.plain(cells.filter(pl.col("method").is_in(["source", "ploc"]))))
    if not rows.height:
        return []
    table = experiments.find("per_dataset").tables(rows)["per_dataset"]
    by = {(r["backbone"], r["dataset"], r["method"]): r for r in table.to_dicts()}
    here = [d for d in data.names() if d in set(rows["dataset"].unique())]
    heads = tuple(f"{names.METRICS[m]} {side}" for m in PRINTED for side in ("source", "PLOC"))
    found = []
    for number, backbone in enumerate(BACKBONES, start=3):
        if not any((backbone, d, "ploc") in by for d in here):
            continue
        made = []
        for dataset in dict.fromkeys((*paper.STREAMS, *here)):
            printed = paper.PER_DATASET[backbone].get(dataset)
            numbers: list[Item] = []
            for metric in PRINTED:
                for side in ("source", "ploc"):
                    row = by.get((backbone, dataset, side), {})
                    beside = getattr(getattr(printed, metric), side) if printed else None
                    numbers.append(_number(row, metric, row, beside, suffix="_sd"))
            ours = by.get((backbone, dataset, "ploc"))
            size = f"{ours['n']:,}" if ours else "not here"
            made.append(Row((names.dataset(dataset), *numbers, size)))
        found.append(
            Table(
                f"per_dataset_{backbone}",
                f"Table {number}: {names.backbone(backbone)}, source and PLOC, data set by data set",
                ("Data set", *heads, "rows"),
                made,
                [f"Means over {_checkpoints(rows)}", *stand_ins(here)],
            )
        )
    return found


def stability(cells: pl.DataFrame) -> list[Table]:
    """Standard deviations over checkpoints: F1 and accuracy of source, FTAT and PLOC."""
    table = experiments.find("stability").tables(cells)["stability"]
    by = {(r["backbone"], r["dataset"], r["method"]): r for r in table.to_dicts()}
    methods = ("source", "ftat", "ploc")
    said = {
        ("mlp", "heloc"): "heloc",
        ("ft_transformer", "assistments"): "assistments",
        ("mlp", MEAN): "mlp",
        ("tab_transformer", MEAN): "tab",
    }
    made = []
    for backbone in BACKBONES:
        for dataset in dict.fromkeys(table.filter(pl.col("backbone") == backbone)["dataset"].to_list()):
            key = said.get((backbone, dataset), "")
            numbers: list[Item] = []
            for metric in ("f1", "accuracy"):
                for method in methods:
                    row = by.get((backbone, dataset, method), {})
                    printed = paper.TEXT.get(f"f1_sd_{key}_{method}") if metric == "f1" else None
                    numbers.append(Number(row.get(metric), paper=printed.value if printed else None))
            label = "mean over the paper's tasks" if dataset == MEAN else names.dataset(dataset)
            made.append(Row((label, *numbers), names.backbone(backbone)))
    heads = tuple(f"{names.METRICS[m]} {names.method(n)}" for m in ("f1", "accuracy") for n in methods)
    here = [d for d in table["dataset"].unique() if d != MEAN]
    return [
        Table(
            "stability",
            "Checkpoint stability: standard deviations over independently trained sources",
            ("Data set", *heads),
            made,
            [*_absent(cells), *stand_ins(here)],
        )
    ]


TESTED = ("source", "tent", "sar", "ftat", "pft3a", "ploc_prob", "prior_ratio", "em_prequential")


def significance(cells: pl.DataFrame) -> list[Table]:
    """PLOC minus each rival, paired over data sets and checkpoints."""
    if not frames.plain(cells).height:
        return []
    table = experiments.find("significance").tables(cells)["significance"]
    if not table.height:
        return []
    found = []
    for over, name in (("paper's tasks", "significance"), ("all", "significance_all")):
        rows = table.filter(pl.col("over") == over, pl.col("rival").is_in(list(TESTED)))
        made = [
            Row(
                (
                    names.method(row["rival"]),
                    names.METRICS[row["metric"]],
                    Number(row["mean"], 4, signed=True, spread=row["sd"]),
                    _wins(row),
                    Number(row["p"], -1),
                    Number(row["p_holm"], -1),
                    Number(row["effect"], 2, signed=True),
                ),
                names.backbone(row["backbone"]),
            )
            for row in rows.to_dicts()
        ]
        used = frames.plain(cells)
        used = frames.paper_only(used) if name == "significance" else used
        found.append(
            Table(
                name,
                f"Paired tests of PLOC minus a rival, over {over if over != 'all' else 'all data sets'}",
                ("Rival", "Metric", "mean difference", "better", "p", "p, Holm", "effect"),
                made,
                [
                    "Two-sided Wilcoxon signed-rank tests over data sets and checkpoints; Holm's correction "
                    "over all tests of a backbone; effect: matched-pairs rank-biserial correlation; better: "
                    "pairs in PLOC's favour of those that differ",
                    _over(used),
                    *stand_ins(used["dataset"].unique()),
                ],
            )
        )
    return found if found[0].rows else found[1:]


def ablation(cells: pl.DataFrame) -> list[Table]:
    """Table 6 as the paper has it, and over all checkpoints and backbones."""
    found = experiments.find("ablation").tables(cells)
    metrics = paper.Origin._fields
    every = frames.paper_only(frames.plain(cells))
    first = every.filter(pl.col("seed") == 0, pl.col("backbone").is_in(origins.PAPER_BACKBONES))
    heads = ("Origin", *(names.metric(m) for m in metrics), *(names.metric(m) for m in ("nll", "brier")))
    tables = []
    for name, title, printed, rows in (
        ("ablation", "Table 6: origins, seed 0, MLP and FT-Transformer", paper.ABLATION, first),
        ("ablation_all", "Origins over all checkpoints and backbones", {}, every),
    ):
        made = [
            Row(
                (
                    names.method(r["method"]),
                    *_numbers(r, (*metrics, "nll", "brier"), {}, _of(printed.get(r["method"]))),
                )
            )
            for r in found[name].to_dicts()
        ]
        one = ["One checkpoint, as in the paper: each row is to be read against the plain mean"]
        said = [_over(rows), *stand_ins(rows["dataset"].unique()), *_absent(rows)]
        tables.append(Table(name, title, heads, made, [*(one if printed else []), *said]))
    return tables


def batch(cells: pl.DataFrame) -> list[Table]:
    """The sweep of batch sizes: AUROC's change against the source, accuracy, F1 and ECE."""
    found = experiments.find("batch").tables(cells)
    columns = {
        "batch": ("B", 0, False),
        "d_auroc": ("Δ AUROC", 4, True),
        "auroc": ("AUROC", 3, False),
        "accuracy": ("Acc", 3, False),
        "balanced_accuracy": ("BAcc", 3, False),
        "f1": ("F1", 3, False),
        "ece": ("ECE", 3, False),
    }
    rows = cells.filter(
        pl.col("dataset").is_in(found["batch_by_dataset"]["dataset"].unique().to_list()),
        pl.col("backbone").is_in(sweep.BACKBONES),
        pl.col("seed").is_in(sweep.SEEDS),
        pl.col("variant") == "",
    )
    over = frames.paper_only(rows) if found["batch"].height else rows
    backbones = " and ".join(map(names.backbone, sweep.BACKBONES))
    said = [
        f"{_over(over)}, {backbones}",
        *stand_ins(over["dataset"].unique()),
        *_absent(over, but=("acs_pubcov",)),
    ]
    table = _simple(
        found["batch"],
        "batch",
        "Batch sizes: means over the paper's tasks but ACS",
        columns,
        ("method",),
        said,
    )
    by = _simple(
        found["batch_by_dataset"],
        "batch_by_dataset",
        "Batch sizes, data set by data set",
        columns,
        ("backbone", "dataset", "method"),
        stand_ins(rows["dataset"].unique()),
    )
    return [table, by]


def prior_shift(cells: pl.DataFrame) -> list[Table]:
    """Redrawn streams at five positive rates."""
    found = experiments.find("prior_shift").tables(cells)
    columns = {
        m: (names.metric(m), 3, False) for m in ("balanced_accuracy", "accuracy", "ece", "nll", "auroc")
    }
    rows = cells.filter(pl.col("draw") == "prior")
    over = frames.paper_only(rows)
    said = [_over(over), *stand_ins(over["dataset"].unique())]
    return [
        _simple(
            _rated(found["prior_shift"]),
            "prior_shift",
            "Controlled prior shift: means at each positive rate",
            columns,
            ("positive rate",),
            said,
            label="method",
        ),
        _simple(
            _rated(found["prior_shift_by_dataset"]),
            "prior_shift_by_dataset",
            "Controlled prior shift, data set by data set",
            columns,
            ("dataset", "backbone", "positive rate"),
            stand_ins(rows["dataset"].unique()),
            label="method",
        ),
    ]


# --- theory, measured, and beyond the paper ---------------------------------------------------------------


def theory(cells: pl.DataFrame) -> list[Table]:
    """The propositions on every stream and prefix; the simulated variances; the mean logit and the gain."""
    found = experiments.find("theory").tables(cells)
    here = stand_ins(cells["dataset"].unique())
    tables = [
        _simple(
            found["self_modulation"],
            "self_modulation",
            "Self-modulation: the mean logit and what PLOC changes",
            {
                "mu": ("μ", 2, True),
                "mu_sd": ("± over seeds", 2, False),
                "base_rate": ("positive", 3, False),
                "source_positive_rate": ("source says", 3, False),
                "positive_rate": ("PLOC says", 3, False),
                "d_accuracy": ("Δ Acc", 3, True),
                "d_balanced_accuracy": ("Δ BAcc", 3, True),
                "d_f1": ("Δ F1", 3, True),
                "d_auroc": ("Δ AUROC", 4, True),
                "d_ece": ("Δ ECE", 3, True),
                "d_nll": ("Δ NLL", 3, True),
            },
            ("backbone",),
            here,
        )
    ]
    if "propositions" in found:
        tables.append(
            _simple(
                found["propositions"],
                "propositions",
                "Propositions 1 and 2 on growing prefixes",
                {
                    "n": ("rows", 0, False),
                    "rank_changes": ("ranks moved by deferred", 0, False),
                    "auroc_deferred_gap": ("Δ AUROC deferred", -1, False),
                    "drift": ("drift of PLOC", 5, False),
                    "drift_max": ("at most", 5, False),
                    "drift_bound": ("bound", 4, False),
                },
                ("dataset", "backbone"),
                ["Means over checkpoints unless it says at most", *here],
            )
        )
    if "variance" in found:
        tables.append(
            _simple(
                found["variance"],
                "variance",
                "Proposition 3 simulated: variance of an origin after 400 rows",
                {
                    "times_least": ("over the least", 2, False),
                    "variance": ("variance", 5, False),
                    "variance_promised": ("of its weights", 5, False),
                    "bias": ("bias", 4, True),
                },
                (),
                label="method",
            )
        )
    return tables


def beyond(cells: pl.DataFrame) -> list[Table]:
    """Orders, drift, tree ensembles, controls, the anchor, cost; recipes that the paper leaves open."""
    found = experiments.find("beyond").tables(cells) | experiments.find("sensitivity").tables(cells)
    seven = {m: (names.metric(m), 3, False) for m in METRICS}
    changes = {"d_accuracy": ("Δ Acc", 3, True), "d_auroc": ("Δ AUROC", 4, True)}
    anchor = (
        _rated(found["anchor"].with_columns(pl.col("rate").cast(pl.Float64)))
        if found["anchor"].height
        else None
    )
    plans: list[tuple[str, pl.DataFrame | None, str, dict[str, Any], tuple[str, ...], str]] = [
        (
            "orders",
            found["orders"],
            "Orders of the stream: the split's, by time, shuffled, sorted by score",
            {
                "accuracy": seven["accuracy"],
                "balanced_accuracy": seven["balanced_accuracy"],
                "ece": seven["ece"],
                "auroc": seven["auroc"],
                **changes,
                "d_auroc_max": ("Δ AUROC at most", 4, False),
            },
            ("dataset", "order"),
            "method",
        ),
        (
            "drift",
            found.get("drift"),
            "Streams that drift from the source's domain to the target's",
            {
                "accuracy": seven["accuracy"],
                "balanced_accuracy": seven["balanced_accuracy"],
                "ece": seven["ece"],
                "after_balanced_accuracy": ("BAcc, 200 rows after", 3, False),
                "after_ece": ("ECE after", 3, False),
                "recovery_rows": ("rows to recover", 0, False),
                "recovered": ("recovered", 2, False),
            },
            ("draw", "dataset"),
            "method",
        ),
        (
            "trees",
            found["trees"],
            "Tree ensembles as frozen sources",
            seven | changes,
            ("dataset", "backbone"),
            "method",
        ),
        (
            "controls",
            found["controls"],
            "Controls as cheap as PLOC: is the gain a prior correction?",
            {m: seven[m] for m in ("accuracy", "balanced_accuracy", "f1", "ece", "nll")}
            | {
                "base_rate": ("positive", 3, False),
                "positive_rate": ("says", 3, False),
                "ploc_ahead_accuracy": ("PLOC ahead, Acc", 3, True),
                "ploc_ahead_balanced_accuracy": ("PLOC ahead, BAcc", 3, True),
            },
            ("dataset", "backbone"),
            "method",
        ),
        (
            "anchor",
            anchor,
            "The anchor: PLOC at zero and at the source's mean logit",
            {m: seven[m] for m in ("accuracy", "balanced_accuracy", "f1", "ece", "nll")}
            | {"base_rate": ("positive", 3, False), "positive_rate": ("says", 3, False)},
            ("dataset", "positive rate"),
            "method",
        ),
        (
            "cost",
            found.get("cost"),
            "What a row costs at batch size one, network and all",
            {
                "us_per_row": ("μs per row", 0, False),
                "times_source": ("over source", 2, False),
                "state": ("numbers carried", 0, False),
                "n_adapted": ("weights moved", 0, False),
            },
            ("dataset", "backbone"),
            "method",
        ),
        (
            "sensitivity",
            found["sensitivity"],
            "Recipes that the paper's text states, beside those used",
            seven,
            ("dataset", "backbone"),
            "method",
        ),
    ]
    return [
        _simple(frame, name, title, columns, by, stand_ins(frame["dataset"].unique()), label=label)
        for name, frame, title, columns, by, label in plans
        if frame is not None and frame.height
    ]


def streams(cells: pl.DataFrame) -> list[Table]:
    """The data sets at hand: rows of the target stream beside the paper's, positives, which are exact."""
    rows = frames.whole(frames.plain(cells, sorted(cells["backbone"].unique())))
    rows = rows.filter(pl.col("method") == "source", pl.col("limit").is_null())
    by = {
        r["dataset"]: r
        for r in rows.group_by("dataset")
        .agg(
            pl.col("n").max(), pl.col("base_rate").first(), pl.col("seed").n_unique(), pl.col("data").first()
        )
        .to_dicts()
    }
    here = set(cells["dataset"].unique()) & set(data.names())
    made = []
    for name in data.names():
        if name not in here and name not in paper.STREAMS:
            continue
        row = by.get(name, {})
        if name not in here:
            what = "not here"
        elif names.stand_in(name):
            what = "stand-in"
        else:
            what = "exact" if name in paper.STREAMS else "not the paper's"
        made.append(
            Row(
                (
                    names.dataset(name),
                    what,
                    Number(row.get("n"), 0, paper=paper.STREAMS.get(name)),
                    Number(row.get("base_rate")),
                    Number(row.get("seed"), 0),
                    (row.get("data") or "")[:12],
                )
            )
        )
    return [
        Table(
            "streams",
            "The target streams",
            ("Data set", "which", "rows", "positive", "checkpoints", "data"),
            made,
            ["data: the first digits of the hash of content and encoding", *stand_ins(here)],
        )
    ]


ALL: tuple[Callable[[pl.DataFrame], list[Table]], ...] = (
    streams,
    comparison,
    deferred,
    per_dataset,
    stability,
    significance,
    batch,
    prior_shift,
    ablation,
    theory,
    beyond,
    vision.tables,
    protocol.tables,
)


# --- what they share --------------------------------------------------------------------------------------


class Standing(NamedTuple):
    """A data set that stands for one of the paper's, and in what it differs."""

    name: str
    words: str


def stand_ins(datasets: Iterable[Any]) -> list[str]:
    """A sentence for each data set that is a stand-in, in the order of the registry."""
    here = set(datasets)
    found = [Standing(n, w) for n in data.names() if n in here and (w := names.stand_in(n))]
    return [f"{names.dataset(s.name)}: {s.words[0].lower()}{s.words[1:].rstrip('.')}" for s in found]


def _absent(cells: pl.DataFrame, but: Sequence[str] = ()) -> list[str]:
    """Which of the paper's tasks, but for some that it leaves out itself, no data set here stands for."""
    tasks = paper_tasks(cells["dataset"].unique())
    asked = [task for task in PAPER_TASKS if task not in but]
    missing = [names.dataset(task) for task in asked if task not in tasks]
    over = "its four but ACS" if but else "all five"
    return [f"Not here: {', '.join(missing)}; the paper's means are over {over}"] if missing and tasks else []


def _over(rows: pl.DataFrame) -> str:
    here = [name for name in data.names() if name in set(rows["dataset"].unique())]
    listed = ", ".join(names.dataset(name) for name in here) or "nothing"
    return f"Means over {listed} and {_checkpoints(rows)}"


def _checkpoints(rows: pl.DataFrame) -> str:
    return names.checkpoints(rows["seed"].n_unique() if rows.height else 0)


def _spread(rows: pl.DataFrame) -> dict[tuple[str, str], dict[str, float]]:
    """The standard deviation over checkpoints of each mean over data sets, by backbone and method."""
    once = frames.whole(rows)
    seeds = once.group_by("backbone", "method", "seed").agg(pl.col(m).mean() for m in METRICS)
    table = seeds.group_by("backbone", "method").agg(
        *(pl.col(m).std(ddof=1) for m in METRICS), pl.len().alias("seeds")
    )
    return {(r["backbone"], r["method"]): r for r in table.to_dicts() if r["seeds"] > 1}


def _numbers(
    row: dict[str, Any],
    metrics: Iterable[str],
    spread: dict[str, Any],
    printed: dict[str, float],
    best: Sequence[str] = (),
) -> list[Item]:
    return [_number(row, m, spread, printed.get(m), best=m in best) for m in metrics]


def _number(
    row: dict[str, Any],
    metric: str,
    spread: dict[str, Any],
    printed: float | None,
    *,
    best: bool = False,
    suffix: str = "",
) -> Number:
    return Number(row.get(metric), spread=spread.get(metric + suffix), paper=printed, best=best)


def _of(printed: paper.Scores | paper.Origin | _Some | None) -> dict[str, float]:
    return printed._asdict() if printed else {}


def _mean_of_printed(datasets: Iterable[str]) -> dict[str, dict[str, _Some]]:
    """The paper's Tables 3 to 5 averaged over some data sets: what it prints there, nothing for the rest."""
    chosen = list(datasets)
    found: dict[str, dict[str, _Some]] = {}
    for backbone, rows in paper.PER_DATASET.items():
        found[backbone] = {
            side: _Some(
                **{m: sum(getattr(getattr(rows[d], m), side) for d in chosen) / len(chosen) for m in PRINTED}
            )
            for side in ("source", "ploc")
        }
    return found


class _Some(NamedTuple):
    """The four metrics of the paper's tables by data set."""

    accuracy: float
    f1: float
    auroc: float
    ece: float


def _remarks(row: dict[str, Any], datasets: int) -> str:
    """What a method did: moved nothing, moved weights, was cut short, met NaN, lacks a data set."""
    words = []
    if row["no_op"] and row["method"] != "source":
        words.append("no-op" if not row["n_adapted"] else "unchanged")
    elif row["n_adapted"]:
        words.append(f"{row['n_adapted']:,} weights")
    if row["limit"]:
        words.append(f"longer streams cut to {row['limit']:,} rows")
    if row["n_nan"]:
        words.append(f"{row['n_nan']:,} NaN answers replaced by the source's")
    if row["datasets"] < datasets:
        words.append(f"{row['datasets']} of {datasets} data sets")
    return "; ".join(words)


def _wins(row: dict[str, Any]) -> str:
    better = row["negative"] if row["metric"] in names.LOWER else row["positive"]
    return f"{better} of {row['positive'] + row['negative']}"


def _rated(frame: pl.DataFrame) -> pl.DataFrame:
    """A positive rate as words; the stream's own where it was not redrawn."""
    if not frame.height:
        return frame.with_columns(pl.lit("").alias("positive rate"))
    words = pl.col("rate").map_elements(
        lambda r: f"positive rate {r:g}", return_dtype=pl.String, skip_nulls=True
    )
    return frame.with_columns(words.fill_null("as it is").alias("positive rate"))


_NAMED: dict[str, Callable[[str], str]] = {
    "method": names.method,
    "backbone": names.backbone,
    "dataset": names.dataset,
}
_HEADS = {"method": "Method", "dataset": "Data set", "backbone": "Backbone"}


def _simple(  # noqa: PLR0917 - what a table is made of, in the order it is read
    frame: pl.DataFrame,
    name: str,
    title: str,
    columns: dict[str, tuple[str, int, bool]],
    group: tuple[str, ...] = ("backbone",),
    notes: Sequence[str] = (),
    label: str = "",
) -> Table:
    """A table straight from a frame: grouped by some columns, one label, the rest numbers."""
    if not frame.height:
        return Table(name, title, ("",), [])
    label = label or next(
        (c for c in ("dataset", "method", "backbone") if c in frame and c not in group), group[-1]
    )
    by = tuple(c for c in group if c != label)
    made = [
        Row(
            (
                _NAMED.get(label, str)(row[label]),
                *(Number(row[c], digits, signed=signed) for c, (_, digits, signed) in columns.items()),
            ),
            ", ".join(_NAMED.get(c, str)(row[c]) for c in by),
        )
        for row in frame.to_dicts()
    ]
    return Table(
        name, title, (_HEADS.get(label, ""), *(head for head, _, _ in columns.values())), made, notes
    )
