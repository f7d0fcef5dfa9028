"""What tests a claim: evidence from the gathered cells, and one function a kind of sentence."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from ploc_lab import data
from ploc_lab.report import names, paper
from ploc_lab.study import experiments, frames
from ploc_lab.study.grid import BACKBONES, PAPER_TASKS

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUNDING = 0.0005  # what a number printed with three decimals leaves open
SPREAD = 2.0  # standard deviations over seeds within which two means of five checkpoints agree
NOISE = 1e-8  # what the paper calls numerical noise (1.1e-8, remark on the multi-class case)
FIVE = tuple(paper.STREAMS)
GAINS = {"accuracy": 1, "balanced_accuracy": 1, "f1": 1, "ece": -1, "nll": -1}
"""What the paper says that PLOC improves, and in which direction."""
ALTERNATIVES = ("ploc_ema01", "ploc_ema20", "ploc_window100", "ploc_zscore", "ploc_huber")


class CannotTestError(Exception):
    """A check has nothing to go by; the message says what is missing."""


@dataclass(frozen=True)
class Finding:
    """What a check found: whether the claim holds, our number, and on what it rests."""

    holds: bool
    ours: str
    reason: str


class Evidence:
    """The gathered cells as checks see them.

    What the paper says of its data is tested on `exact`, the data sets that are the paper's own: a
    stand-in is no evidence for it. What the paper proves or says of any stream is tested on `every` stream.
    """

    def __init__(self, cells: pl.DataFrame) -> None:
        self.every = cells
        self.exact = cells.filter(pl.col("dataset").is_in(FIVE), ~pl.col("stand_in").fill_null(value=False))
        self._tables: dict[tuple[str, bool], dict[str, pl.DataFrame]] = {}
        self._tests: dict[str, pl.DataFrame] = {}

    def table(self, experiment: str, title: str, *, every: bool = False) -> pl.DataFrame:
        """A table of the study, made from the exact data sets, or from every stream."""
        key = experiment, every
        if key not in self._tables:
            cells = self.every if every else self.exact
            if not frames.plain(cells).height:
                raise CannotTestError(f"no cells of {'any stream' if every else 'a data set of the paper'}")
            self._tables[key] = experiments.find(experiment).tables(cells)
        return self._tables[key].get(title, pl.DataFrame())

    def tests(self, rival: str) -> pl.DataFrame:
        """The paired tests of PLOC minus a rival on the exact data sets, one a backbone and metric."""
        if rival not in self._tests:
            both = self.exact.filter(pl.col("method").is_in(["ploc", rival]))
            if not frames.plain(both).height:
                raise CannotTestError(f"no cells of {names.method(rival)} on a data set of the paper")
            found = experiments.find("significance").tables(both)["significance"]
            self._tests[rival] = found.filter(pl.col("over") == "paper's tasks") if found.height else found
        return self._tests[rival]

    def plain(self, *methods: str, every: bool = False) -> pl.DataFrame:
        """Cells of these methods under the plain protocol, each on its longest stream."""
        rows = frames.plain(self.every if every else self.exact)
        return frames.whole(rows.filter(pl.col("method").is_in(methods)))

    def pairs(self, method: str, reference: str, *, every: bool = False) -> pl.DataFrame:
        """A method beside another, on the same rows and checkpoints, with its differences `d_<metric>`."""
        rows = frames.plain(self.every if every else self.exact)
        rows = frames.whole(frames.against(rows, reference).filter(pl.col("method") == method))
        return self.all_three(rows, f"{names.method(method)} beside {names.method(reference)}")

    def all_three(self, rows: pl.DataFrame, what: str, backbones: Sequence[str] = BACKBONES) -> pl.DataFrame:
        """The rows, if every backbone that a claim is about is among them."""
        if not rows.height:
            raise CannotTestError(f"no cells of {what} on a data set of the paper")
        absent = [names.backbone(b) for b in backbones if b not in rows["backbone"].unique()]
        if absent:
            raise CannotTestError(f"no cells of {what} for {', '.join(absent)}")
        return rows.filter(pl.col("backbone").is_in(list(backbones)))

    def scope(self, rows: pl.DataFrame) -> str:
        """On what a finding rests, and which of the paper's data sets are not in it."""
        here = list(dict.fromkeys(rows.sort("dataset")["dataset"]))
        listed = ", ".join(names.dataset(name) for name in here)
        words = f"over {listed}; {names.checkpoints(rows['seed'].n_unique())}"
        short = frames.once(rows)["limit"].drop_nulls()
        if len(short):
            words += f"; some streams cut to {max(short.to_list()):,} rows"
        absent = [names.dataset(name) for name in FIVE if name not in here]
        return words + (f"; without {', '.join(absent)}" if absent else "")

    def whole_paper(self, what: str) -> None:
        """Refuse an average over the paper's five data sets where not all five are here."""
        here = set(self.exact["dataset"].unique())
        absent = [name for name in FIVE if name not in here]
        if absent:
            raise CannotTestError(
                f"{what} is over five data sets; not here in full: {', '.join(map(names.dataset, absent))}"
            )


# --- the checks -------------------------------------------------------------------------------------------


def deferred_auroc(e: Evidence) -> Finding:
    """The largest change of AUROC by one constant shift, on every stream and prefix."""
    rows = _some(e.table("theory", "propositions", every=True), "propositions")
    gap, moved = float(_top(rows, "auroc_deferred_gap")), int(_top(rows, "rank_changes"))
    return Finding(
        gap <= NOISE,
        f"largest gap {_tiny(gap)}",
        f"{rows.height} (data set, backbone, prefix) groups; at most {moved} rows changed their rank "
        "by rounding",
    )


def drift_bound(e: Evidence) -> Finding:
    """How many streams break the bound of Proposition 2."""
    rows = _some(e.table("theory", "propositions", every=True), "propositions")
    broken = rows.filter(~pl.col("bound_holds")).height
    return Finding(
        broken == 0,
        f"{broken} of {rows.height} groups break it",
        f"largest drift {_top(rows, 'drift_max'):.4f}, on every stream and prefix at hand",
    )


def bound_vanishes(e: Evidence) -> Finding:
    """Whether the bound is smaller on the longest prefix of a stream than on the shortest."""
    rows = _some(e.table("theory", "propositions", every=True), "propositions")
    by = rows.sort("n").group_by("dataset", "backbone", maintain_order=True)
    ends = by.agg(
        pl.col("drift_bound").first().alias("first"),
        pl.col("drift_bound").last().alias("last"),
        pl.len().alias("prefixes"),
    ).filter(pl.col("prefixes") > 1)
    _some(ends, "propositions on two prefixes of a stream")
    smaller = ends.filter(pl.col("last") < pl.col("first")).height
    return Finding(
        smaller == ends.height,
        f"smaller on {smaller} of {ends.height} streams",
        f"mean bound {_mean(ends, 'first'):.3f} on the shortest prefix, "
        f"{_mean(ends, 'last'):.3f} on the longest",
    )


def least_variance(e: Evidence) -> Finding:
    """The simulated variance of the mean over the least possible one, beside the other linear estimates."""
    table = e.table("theory", "variance", every=True)
    rows = {row["method"]: row["times_least"] for row in table.to_dicts()}
    linear = [name for name in ("ploc_ema01", "ploc_ema20", "ploc_window100") if name in rows]
    if "ploc" not in rows or not linear:
        raise CannotTestError("no simulated variances")
    least = min(rows[name] for name in linear)
    return Finding(
        rows["ploc"] <= 1.1 and rows["ploc"] < least,
        f"mean {rows['ploc']:.2f} times the least possible, next best {least:.2f}",
        "simulated streams of unit noise; " + ", ".join(f"{names.method(m)} {rows[m]:.1f}" for m in linear),
    )


def untouched(method: str, e: Evidence) -> Finding:
    """The largest change of any metric on any stream by any checkpoint."""
    rows = e.pairs(method, "source", every=True)
    worst = max(float(rows[f"d_{metric}"].abs().max() or 0.0) for metric in names.METRICS)  # type: ignore[arg-type]
    return Finding(worst <= NOISE, _tiny(worst), f"{rows.height} pairs; {e.scope(rows)}")


def unchanged(methods: Sequence[str], most: float, every: bool, e: Evidence) -> Finding:
    """The largest mean change of any metric, backbone by backbone."""
    found, over = [], []
    for name in methods:
        rows = e.pairs(name, "source", every=every)
        over.append(rows)
        means = rows.group_by("backbone").agg(pl.col(f"d_{m}").mean().abs() for m in names.METRICS)
        found += [
            (row[f"d_{metric}"], name, row["backbone"], metric)
            for row in means.to_dicts()
            for metric in names.METRICS
            if row[f"d_{metric}"] is not None  # a metric that a stream leaves undefined
        ]
    value, name, backbone, metric = max(found)
    seen = f"{names.method(name)}, {names.backbone(backbone)}, {names.METRICS[metric]}"
    reason = f"largest change: {seen}; {e.scope(pl.concat(over, how='diagonal'))}"
    return Finding(value <= most, f"{value:.4f}" if value > NOISE else "0", reason)


def beats(reference: str, e: Evidence) -> Finding:
    """In how many of the five means on three backbones PLOC is ahead of another method."""
    rows = e.pairs("ploc", reference)
    means = {r["backbone"]: r for r in rows.group_by("backbone").agg(pl.col("^d_.*$").mean()).to_dicts()}
    lost = [
        f"{names.METRICS[metric]} on {names.backbone(b)} ({means[b][f'd_{metric}']:+.3f})"
        for b in BACKBONES
        for metric, sign in GAINS.items()
        if sign * means[b][f"d_{metric}"] <= 0
    ]
    won = len(BACKBONES) * len(GAINS) - len(lost)
    gains = ", ".join(f"{names.METRICS[m]} {_mean(rows, f'd_{m}'):+.3f}" for m in GAINS)
    reason = f"mean {gains}; {'not: ' + ', '.join(lost) + '; ' if lost else ''}{e.scope(rows)}"
    return Finding(not lost, f"{won} of {len(BACKBONES) * len(GAINS)}", reason)


def table_1(e: Evidence) -> Finding:
    """How many printed means of Table 1 ours meet, where all five data sets are here."""
    e.whole_paper("Table 1")
    table = e.table("main", "main")
    off, compared = [], 0
    for row in table.to_dicts():
        printed = paper.MAIN.get(row["backbone"], {}).get(row["method"])
        for metric in names.METRICS if printed and row["datasets"] == len(FIVE) else ():
            compared += 1
            if abs(row[metric] - getattr(printed, metric)) > 0.02:
                off.append(f"{names.backbone(row['backbone'])} {names.method(row['method'])} {metric}")
    wanted = len(names.METRICS) * sum(map(len, paper.MAIN.values()))
    if compared < wanted:
        raise CannotTestError(f"of Table 1 only {compared} of {wanted} means over five data sets are here")
    return Finding(not off, f"{compared - len(off)} of {compared}", f"off: {', '.join(off) or 'none'}")


def printed_rows(dataset: str, backbones: Sequence[str], e: Evidence) -> Finding:
    """Source and PLOC of one data set beside Tables 3 to 5: four metrics, two sides, each backbone."""
    rows = _dataset(e, dataset).filter(pl.col("method").is_in(["source", "ploc"]))
    rows = e.all_three(frames.whole(frames.plain(rows)), names.dataset(dataset), backbones)
    off, loose, most, compared = [], [], 0.0, 0
    for (backbone, method), group in rows.group_by("backbone", "method", maintain_order=True):
        if group["seed"].n_unique() < 3:
            raise CannotTestError(
                f"a spread needs 3 checkpoints or more, {names.backbone(str(backbone))} has "
                f"{group['seed'].n_unique()}"
            )
        printed = paper.PER_DATASET[str(backbone)][dataset]
        for metric in printed._fields:
            value = getattr(getattr(printed, metric), str(method))
            mean, sd = _mean(group, metric), float(group[metric].std() or 0.0)  # type: ignore[arg-type]
            if value and SPREAD * sd >= value:
                loose.append(f"{names.method(str(method))} {names.METRICS[metric]} {mean:.3f}±{sd:.3f}")
                continue
            compared += 1
            most = max(most, abs(mean - value))
            if abs(mean - value) > SPREAD * sd + ROUNDING:
                off.append(
                    f"{names.backbone(str(backbone))} {names.method(str(method))} {names.METRICS[metric]} "
                    f"{mean:.3f}±{sd:.3f} for {value:.3f}"
                )
    scattered = f"; too scattered to tell: {'; '.join(loose)}" if loose else ""
    return Finding(
        not off,
        f"{compared - len(off)} of {compared} agree",
        f"largest difference {most:.3f}; off: {'; '.join(off) or 'none'}{scattered}",
    )


def auroc_kept(e: Evidence) -> Finding:
    """The largest mean change of AUROC by PLOC over data sets and backbones, but for the one it excepts."""
    rows = e.pairs("ploc", "source").filter(
        (pl.col("dataset") != "assistments") | (pl.col("backbone") != "tab_transformer")
    )
    means = rows.group_by("dataset", "backbone").agg(pl.col("d_auroc").mean())
    worst = means.sort(pl.col("d_auroc").abs()).to_dicts()[-1]
    limit = paper.TEXT["auroc_per_dataset"].value + ROUNDING
    return Finding(
        abs(worst["d_auroc"]) <= limit,
        f"largest {worst['d_auroc']:+.4f}",
        f"{names.dataset(worst['dataset'])}, {names.backbone(worst['backbone'])}; {e.scope(rows)}",
    )


def text_number(  # noqa: PLR0917 - bound by name in the ledger, all but the last
    dataset: str, backbones: Sequence[str], method: str, column: str, key: str, e: Evidence
) -> Finding:
    """A mean over checkpoints beside a number of the text: SPREAD standard deviations and its rounding."""
    printed = paper.TEXT[key].value
    rows = _dataset(e, dataset).filter(pl.col("method") == method)
    rows = e.all_three(frames.whole(frames.plain(rows)), names.dataset(dataset), backbones)
    seeds = rows.group_by("seed").agg(pl.col(column).mean())
    if seeds.height < 3:
        raise CannotTestError(f"a spread needs 3 checkpoints or more, there are {seeds.height}")
    mean, sd = _mean(seeds, column), float(seeds[column].std() or 0.0)  # type: ignore[arg-type]
    allowed = SPREAD * sd + 0.5 * 10.0 ** -len(f"{printed:g}".partition(".")[2])
    if allowed >= abs(printed):
        raise CannotTestError(
            f"our checkpoints scatter too much to tell: {mean:.3f} ± {sd:.3f} would allow {allowed:.3f}"
        )
    return Finding(
        abs(mean - printed) <= allowed,
        f"{mean:.3f} ± {sd:.3f}",
        f"{abs(mean - printed):.3f} away, {allowed:.3f} allowed; {names.checkpoints(seeds.height)}",
    )


def collapse(e: Evidence) -> Finding:
    """Whether the FT-Transformer never says yes on HELOC, and PLOC brings its F1 back."""
    rows = _dataset(e, "heloc").filter(pl.col("method").is_in(["source", "ploc"]))
    rows = e.all_three(frames.whole(frames.plain(rows)), "HELOC", ["ft_transformer"])
    by = {str(m): g for (m,), g in rows.group_by("method")}
    if set(by) != {"source", "ploc"}:
        raise CannotTestError("no cells of source and PLOC on HELOC with the FT-Transformer")
    most, mean = float(_top(by["source"], "f1")), _mean(by["ploc"], "f1")
    return Finding(
        most <= ROUNDING and mean >= 0.5,
        f"source F1 at most {most:.3f}, PLOC {mean:.3f}",
        names.checkpoints(by["source"].height),
    )


def neutral_on_anes(e: Evidence) -> Finding:
    """The mean change of accuracy on ANES."""
    rows = _dataset(e, "anes")
    rows = frames.whole(frames.against(frames.plain(rows)).filter(pl.col("method") == "ploc"))
    rows = e.all_three(rows, "PLOC on ANES")
    change = _mean(rows, "d_accuracy")
    return Finding(abs(change) <= 0.015, f"{change:+.3f}", e.scope(rows))


def concentrate(e: Evidence) -> Finding:
    """Whether the miscentred data sets gain more accuracy than the centred ones, on every backbone."""
    rows = e.pairs("ploc", "source")
    means = {
        (r["dataset"], r["backbone"]): r["d_accuracy"]
        for r in rows.group_by("dataset", "backbone").agg(pl.col("d_accuracy").mean()).to_dicts()
    }
    far, near = (
        [name for name in group if all((name, b) in means for b in BACKBONES)]
        for group in (("heloc", "acs_pubcov"), ("diabetes_readmission", "anes"))
    )
    if not far or not near:
        raise CannotTestError(
            "needs a miscentred and a centred data set of the paper's, three backbones each"
        )
    wrong = [
        f"{names.dataset(a)} < {names.dataset(b)} on {names.backbone(backbone)}"
        for backbone in BACKBONES
        for a in far
        for b in near
        if means[a, backbone] <= means[b, backbone]
    ]
    gains = "; ".join(
        f"{names.dataset(name)} " + ", ".join(f"{means[name, b]:+.3f}" for b in BACKBONES)
        for name in (*far, *near)
    )
    return Finding(
        not wrong, gains, f"gain in accuracy by backbone; against it: {', '.join(wrong) or 'none'}"
    )


def _sd(dataset: str, backbone: str, method: str, e: Evidence) -> float:
    table = e.table("stability", "stability").filter(
        pl.col("dataset") == dataset, pl.col("backbone") == backbone, pl.col("method") == method
    )
    if not table.height or table["f1"][0] is None:
        raise CannotTestError(
            f"no spread of F1 of {names.method(method)} on {names.dataset(dataset)}, "
            f"{names.backbone(backbone)}"
        )
    return float(table["f1"][0])


def heloc_stability(e: Evidence) -> Finding:
    """How many times smaller the spread of F1 over checkpoints is, MLP on HELOC."""
    source, ploc = (_sd("heloc", "mlp", method, e) for method in ("source", "ploc"))
    return Finding(
        source >= 5 * ploc,
        f"{source:.3f} → {ploc:.3f}",
        f"{source / ploc if ploc else float('inf'):.1f} times smaller, on our own checkpoints",
    )


def mean_stability(e: Evidence) -> Finding:
    """The mean spread of F1 over checkpoints, source and PLOC, two backbones."""
    from ploc_lab.study.experiments.stability import MEAN  # noqa: PLC0415 - one name of one experiment

    pairs = {b: [_sd(MEAN, b, m, e) for m in ("source", "ploc")] for b in ("mlp", "tab_transformer")}
    return Finding(
        all(2 * ploc <= source for source, ploc in pairs.values()),
        "; ".join(f"{names.backbone(b)} {s:.3f} → {p:.3f}" for b, (s, p) in pairs.items()),
        e.scope(e.plain("ploc")),
    )


def _tests(rival: str, metric: str, e: Evidence) -> list[dict[str, float]]:
    """The paired tests of PLOC minus a rival, a backbone each."""
    table = e.tests(rival)
    if table.height:
        table = table.filter(pl.col("rival") == rival, pl.col("metric") == metric)
    return e.all_three(table, f"PLOC beside {names.method(rival)}").to_dicts()


def significant(rival: str, limits: dict[str, float], e: Evidence) -> Finding:
    """Whether each difference has the sign that is better and a p below its limit on every backbone."""
    shown, wrong, pairs = [], [], 0
    for metric, limit in limits.items():
        sign = -1 if metric in names.LOWER else 1
        for row in _tests(rival, metric, e):
            pairs = int(row["n"])
            if 2.0 ** (1 - pairs) >= limit:
                raise CannotTestError(
                    f"with {pairs} pairs no signed-rank test can give p < {limit:g} (the least is "
                    f"{2.0 ** (1 - pairs):.1g}); {_wins(row, sign)} of {pairs} pairs are in favour"
                )
            shown.append(row["p"])
            if sign * row["mean"] <= 0 or row["p"] >= limit:
                wrong.append(
                    f"{names.METRICS[metric]} on {names.backbone(str(row['backbone']))} "
                    f"({row['mean']:+.3f}, p = {row['p']:.2g})"
                )
    return Finding(
        not wrong,
        f"largest p {max(shown):.2g}",
        f"not: {'; '.join(wrong) or 'none'}; {pairs} pairs a backbone; {e.scope(e.pairs('ploc', rival))}",
    )


def ece_wins(e: Evidence) -> Finding:
    """In how many pairs PLOC has the smaller ECE, backbone by backbone."""
    rows = _tests("source", "ece", e)
    share = paper.TEXT["ece_wins_least"].value / 25
    return Finding(
        all(row["negative"] >= share * row["n"] for row in rows),
        ", ".join(f"{row['negative']} of {row['n']}" for row in rows),
        f"MLP, FT-Transformer, TabTransformer; {e.scope(e.plain('ploc'))}",
    )


def auroc_equal(e: Evidence) -> Finding:
    """Whether PLOC's AUROC can be told from the source's by a paired test."""
    rows = _tests("source", "auroc", e)
    return Finding(
        all(abs(row["mean"]) <= 2 * ROUNDING and row["p"] >= 0.05 for row in rows),
        ", ".join(f"{row['mean']:+.4f} (p = {row['p']:.2g})" for row in rows),
        f"{rows[0]['n']} pairs a backbone; {e.scope(e.plain('ploc'))}",
    )


def ftat_margin(e: Evidence) -> Finding:
    """PLOC's margin over FTAT with the MLP; a test of the printed one needs all five data sets."""
    try:
        rows = e.pairs("ploc", "ftat").filter(pl.col("backbone") == "mlp")
        seen = f"; here {_mean(rows, 'd_accuracy'):+.3f} and {_mean(rows, 'd_f1'):+.3f} {e.scope(rows)}"
    except CannotTestError as missing:
        seen = f"; {missing}"
    try:
        e.whole_paper("the margin")
    except CannotTestError as missing:
        raise CannotTestError(f"{missing}{seen}") from None
    if rows["dataset"].n_unique() < len(FIVE):
        raise CannotTestError(f"the margin is over five data sets{seen}")
    accuracy, f1 = _mean(rows, "d_accuracy"), _mean(rows, "d_f1")
    near = abs(accuracy - paper.TEXT["ftat_accuracy_margin"].value) <= 0.02
    return Finding(
        near and abs(f1 - paper.TEXT["ftat_f1_margin"].value) <= 0.02, f"{accuracy:+.3f}, {f1:+.3f}", seen[2:]
    )


def deferred_close(e: Evidence) -> Finding:
    """The largest mean distance of deferred PLOC from PLOC over metrics and backbones."""
    rows = e.pairs("ploc_deferred", "ploc")
    means = rows.group_by("backbone").agg(pl.col(f"d_{m}").mean() for m in names.METRICS).to_dicts()
    value, metric, backbone = max((abs(r[f"d_{m}"]), m, r["backbone"]) for r in means for m in names.METRICS)
    return Finding(
        value <= paper.TEXT["deferred_gap"].value + ROUNDING,
        f"largest {value:.4f}",
        f"{names.METRICS[metric]}, {names.backbone(backbone)}; {e.scope(rows)}",
    )


def prob_close(e: Evidence) -> Finding:
    """The largest mean distance of PLOC-prob's ECE from PLOC's."""
    rows = e.pairs("ploc_prob", "ploc")
    means = rows.group_by("backbone").agg(pl.col("d_ece").mean()).to_dicts()
    worst = max(means, key=lambda r: abs(r["d_ece"]))
    return Finding(
        abs(worst["d_ece"]) <= 0.01,
        f"largest {worst['d_ece']:+.4f}",
        f"{names.backbone(worst['backbone'])}; {e.scope(rows)}",
    )


def loses_rank(method: str, drop: float, e: Evidence) -> Finding:
    """Whether a method's mean AUROC is below its source's by a drop, on every backbone."""
    rows = e.pairs(method, "source")
    means = {
        r["backbone"]: r["d_auroc"]
        for r in rows.group_by("backbone").agg(pl.col("d_auroc").mean()).to_dicts()
    }
    return Finding(
        all(value <= -drop for value in means.values()),
        ", ".join(f"{names.backbone(b)} {means[b]:+.3f}" for b in BACKBONES),
        e.scope(rows),
    )


def both_axes(e: Evidence) -> Finding:
    """Whether FTAT and PFT3A lose accuracy and AUROC, on every backbone."""
    found, lost = [], []
    for name in ("ftat", "pft3a"):
        rows = e.pairs(name, "source")
        means = rows.group_by("backbone").agg(pl.col("d_accuracy", "d_auroc").mean())
        for row in frames.in_order(means, backbone=BACKBONES).to_dicts():
            found.append(row["d_accuracy"] < 0 and row["d_auroc"] < 0)
            if not found[-1]:
                lost.append(
                    f"{names.method(name)} on {names.backbone(row['backbone'])} "
                    f"({row['d_accuracy']:+.3f}, {row['d_auroc']:+.3f})"
                )
    return Finding(
        all(found),
        f"{sum(found)} of {len(found)} points",
        f"not: {', '.join(lost) or 'none'}; {e.scope(rows)}",
    )


def degenerate(e: Evidence) -> Finding:
    """Whether at batch size one the batch's quantities are skipped on every row."""
    wanted = {"pft3a": "too few rows for the subspace term", "ftat": "prior frozen"}
    found = []
    for name, why in wanted.items():
        rows = frames.plain(e.every).filter(pl.col("method") == name)
        _some(rows, names.method(name))
        for row in rows.select("n", "skipped").to_dicts():
            reasons = json.loads(row["skipped"] or "{}")
            found.append((name, sum(k for words, k in reasons.items() if words.startswith(why)) / row["n"]))
    least = {name: min(share for n, share in found if n == name) for name in wanted}
    return Finding(
        all(share == 1 for share in least.values()),
        ", ".join(f"{names.method(n)} {share:.0%}" for n, share in least.items()),
        "least share of rows, over every stream at hand: PFT3A's subspace term, FTAT's prior",
    )


def _sweep(e: Evidence, method: str) -> dict[int, dict[str, float]]:
    table = e.table("batch", "batch")
    table = table.filter(pl.col("method") == method) if table.height else table
    rows = {row["batch"]: row for row in table.to_dicts()}
    if not {1, 1024} <= set(rows):
        raise CannotTestError(f"no sweep of {names.method(method)} from 1 to 1024 on a data set of the paper")
    return rows


def ploc_stable(e: Evidence) -> Finding:
    """The largest mean change of PLOC's AUROC at any batch size."""
    rows = _sweep(e, "ploc")
    worst = max((row["d_auroc"] for row in rows.values()), key=abs)
    return Finding(abs(worst) <= 0.001 + ROUNDING, f"largest {worst:+.4f}", _sizes(rows))


def ftat_recovers(e: Evidence) -> Finding:
    """Whether FTAT's loss of AUROC shrinks as the batch grows, and closes."""
    rows = _sweep(e, "ftat")
    damage = {size: -rows[size]["d_auroc"] for size in sorted(rows)}
    steps = list(damage.values())
    monotone = all(b <= a + 0.002 for a, b in pairwise(steps))
    return Finding(
        monotone and damage[1] > 0 and damage[1024] <= max(0.01, damage[1] / 4),
        f"{damage[1]:+.3f} at 1, {damage[1024]:+.3f} at 1024",
        f"AUROC lost by batch size: {', '.join(f'{v:.3f}' for v in steps)}; {_sizes(rows)}",
    )


def pft3a_recovers(e: Evidence) -> Finding:
    """At which batch size above one PFT3A loses most AUROC, and whether it is back by 64."""
    rows = _sweep(e, "pft3a")
    change = {size: rows[size]["d_auroc"] for size in sorted(rows) if size > 1}
    worst = min(change, key=lambda size: change[size])
    if 64 not in change or not {4, 8} & set(change):
        raise CannotTestError("the sweep of PFT3A has no B = 4, 8 and 64")
    return Finding(
        worst in {4, 8}
        and change[worst] < 0
        and all(abs(v) <= 0.01 for size, v in change.items() if size >= 64),
        f"worst at B = {worst} ({change[worst]:+.3f}), {change[64]:+.3f} at 64",
        _sizes(rows),
    )


def pft3a_published(e: Evidence) -> Finding:
    """PFT3A's accuracy and F1 at large batches; the paper's own mean is over sets it does not name."""
    _sweep(e, "pft3a")
    mlp = e.table("batch", "batch_by_dataset").filter(
        pl.col("method") == "pft3a", pl.col("backbone") == "mlp", pl.col("batch") == 512
    )
    seen = ", ".join(
        f"{names.dataset(r['dataset'])} {r['accuracy']:.3f} / {r['f1']:.3f}"
        for r in frames.in_order(mlp, dataset=data.names()).to_dicts()
    )
    raise CannotTestError(
        "the paper does not name the data sets that its mean of .694 / .745 is over; ours of accuracy and F1 "
        f"at B = 512, MLP: {seen}"
    )


def lame_destroys(e: Evidence) -> Finding:
    """LAME's change of AUROC at the ends of the sweep."""
    rows = _sweep(e, "lame")
    change = {size: rows[size]["d_auroc"] for size in sorted(rows)}
    printed = paper.TEXT["batch_lame_auroc_1"].value - paper.TEXT["batch_lame_auroc_1024"].value
    return Finding(
        abs(change[1]) <= NOISE and change[1024] <= -printed / 2,
        f"{change[1]:+.3f} at 1, {change[1024]:+.3f} at 1024",
        _sizes(rows),
    )


def _prior(e: Evidence) -> dict[tuple[float, str], dict[str, float]]:
    table = e.table("prior_shift", "prior_shift")
    rows = {(row["rate"], row["method"]): row for row in table.to_dicts()} if table.height else {}
    needed = [(rate, m) for rate in (0.1, 0.3, 0.5, 0.7, 0.9) for m in ("source", "ploc", "ploc_deferred")]
    if any(key not in rows for key in needed):
        raise CannotTestError("no redrawn streams at all five positive rates on a data set of the paper")
    return rows


def prior_tracks(metric: str, e: Evidence) -> Finding:
    """The worst gain over the source in a metric, over positive rates, PLOC and deferred PLOC."""
    rows = _prior(e)
    sign = -1 if metric in names.LOWER else 1
    gains = {
        (rate, m): sign * (row[metric] - rows[rate, "source"][metric])
        for (rate, m), row in rows.items()
        if m in {"ploc", "ploc_deferred"}
    }
    worst = min(gains, key=lambda key: gains[key])
    ours = ", ".join(f"{gains[rate, 'ploc']:+.3f}" for rate in (0.1, 0.3, 0.5, 0.7, 0.9))
    return Finding(
        gains[worst] >= -0.005,
        f"{ours} at .1 to .9",
        f"how much better than the source; worst {gains[worst]:+.3f} "
        f"({names.method(worst[1])} at {worst[0]:g}); {e.scope(_redrawn(e))}",
    )


def prior_accuracy(e: Evidence) -> Finding:
    """The change of accuracy where one row in ten is positive."""
    rows = _prior(e)
    change = {
        m: rows[0.1, m]["accuracy"] - rows[0.1, "source"]["accuracy"] for m in ("ploc", "ploc_deferred")
    }
    return Finding(
        all(value < 0 for value in change.values()),
        f"{change['ploc']:+.3f}, deferred {change['ploc_deferred']:+.3f}",
        e.scope(_redrawn(e)),
    )


def prior_auroc(e: Evidence) -> Finding:
    """The largest change of AUROC by deferred PLOC on redrawn streams."""
    rows = e.every.filter(pl.col("draw") == "prior")
    rows = frames.against(rows, metrics=["auroc"]).filter(pl.col("method") == "ploc_deferred")
    _some(rows, "deferred PLOC on redrawn streams")
    worst = float(rows["d_auroc"].abs().max())  # type: ignore[arg-type]
    return Finding(
        worst <= NOISE, f"largest {_tiny(worst)}", f"{rows.height} redrawn streams, all data sets at hand"
    )


def _origins(e: Evidence, *methods: str) -> dict[str, dict[str, float]]:
    table = e.table("ablation", "ablation")
    rows = {row["method"]: row for row in table.to_dicts()} if table.height else {}
    absent = [names.method(m) for m in (*methods, "ploc") if m not in rows]
    if absent:
        raise CannotTestError(f"no cells of {', '.join(absent)} with seed 0 on a data set of the paper")
    return rows


def _ablated(e: Evidence) -> str:
    rows = e.plain("ploc").filter(pl.col("seed") == 0, pl.col("backbone").is_in(["mlp", "ft_transformer"]))
    return f"seed 0, MLP and FT-Transformer; {e.scope(rows)}"


def none_better(e: Evidence) -> Finding:
    """Which other origin is better than the mean in some of the five metrics and worse in none."""
    rows = _origins(e, *ALTERNATIVES)
    better = {
        name: [m for m in paper.Origin._fields if (rows[name][m] - rows["ploc"][m]) * _sign(m) > ROUNDING]
        for name in ALTERNATIVES
    }
    worse = {
        name: [m for m in paper.Origin._fields if (rows[name][m] - rows["ploc"][m]) * _sign(m) < -ROUNDING]
        for name in ALTERNATIVES
    }
    winners = [names.method(n) for n in ALTERNATIVES if better[n] and not worse[n]]
    ours = ", ".join(
        f"{names.method(n).removeprefix('PLOC, ')} {len(better[n])}/{len(worse[n])}" for n in ALTERNATIVES
    )
    return Finding(
        not winners,
        f"better/worse metrics: {ours}",
        f"better throughout: {', '.join(winners) or 'none'}; {_ablated(e)}",
    )


def origin_change(method: str, wanted: dict[str, tuple[float, float]], e: Evidence) -> Finding:
    """Changes of metrics against the plain mean, each wanted between two ends."""
    rows = _origins(e, method)
    change = {metric: rows[method][metric] - rows["ploc"][metric] for metric in wanted}
    return Finding(
        all(low <= change[metric] <= high for metric, (low, high) in wanted.items()),
        ", ".join(f"{names.METRICS[m]} {v:+.3f}" for m, v in change.items()),
        f"{names.method(method)} against the plain mean; {_ablated(e)}",
    )


# --- small things -----------------------------------------------------------------------------------------


def _dataset(e: Evidence, name: str) -> pl.DataFrame:
    """The cells of one of the paper's data sets; where a stand-in is all there is, that is said."""
    rows = e.exact.filter(pl.col("dataset") == name)
    if rows.height:
        return rows
    here = [n for n in PAPER_TASKS[name][1:] if n in set(e.every["dataset"].unique())]
    seen = f"; {names.dataset(here[0])} is no evidence for its numbers" if here else ""
    raise CannotTestError(f"no cells of {names.dataset(name)}: its file is not here{seen}")


def _redrawn(e: Evidence) -> pl.DataFrame:
    return e.exact.filter(pl.col("draw") == "prior").with_columns(pl.lit(None, pl.Int64).alias("limit"))


def _some(rows: pl.DataFrame, what: str) -> pl.DataFrame:
    if not rows.height:
        raise CannotTestError(f"no cells of {what}")
    return rows


def _mean(rows: pl.DataFrame, column: str) -> float:
    if (mean := rows[column].mean()) is None:
        raise CannotTestError(f"{column} is undefined on all {rows.height} streams that it is asked of")
    return float(mean)  # type: ignore[arg-type]


def _top(rows: pl.DataFrame, column: str) -> float:
    return float(rows[column].max())  # type: ignore[arg-type]


def _tiny(value: float) -> str:
    return f"{value:.1e}" if value else "0"


def _sign(metric: str) -> int:
    return -1 if metric in names.LOWER else 1


def _wins(row: dict[str, float], sign: int) -> int:
    return int(row["positive"] if sign > 0 else row["negative"])


def _sizes(rows: dict[int, dict[str, float]]) -> str:
    first = rows[min(rows)]
    return (
        f"B = {', '.join(str(size) for size in sorted(rows))}; mean over {first['datasets']} of the paper's "
        "four data sets, MLP and FT-Transformer where their cells are here"
    )
