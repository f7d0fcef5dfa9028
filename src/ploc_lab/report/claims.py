"""The ledger: sentences of the paper as checks: a number, a threshold stated beforehand, a verdict."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import partial
from itertools import starmap
from typing import TYPE_CHECKING

from ploc_lab.report import checks, names, vision
from ploc_lab.report.checks import ROUNDING, CannotTestError, Evidence
from ploc_lab.study.grid import BACKBONES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import polars as pl

    from ploc_lab.report.checks import Finding

HOLDS, FAILS, UNTESTABLE = "holds", "does not hold", "cannot be tested here"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper: where it stands, what it says, its number, and what would make it hold."""

    id: str
    place: str
    claim: str
    paper: str
    threshold: str
    check: Callable[[Evidence], Finding]


@dataclass(frozen=True)
class Entry:
    """A line of the ledger."""

    id: str
    place: str
    claim: str
    threshold: str
    paper: str
    ours: str
    verdict: str
    reason: str


def ledger(cells: pl.DataFrame, claims: Iterable[Claim] | None = None) -> list[Entry]:
    """Every claim with its verdict on these cells."""
    evidence = Evidence(cells)
    return [_enter(claim, evidence) for claim in (CLAIMS if claims is None else claims)]


def as_json(entries: Iterable[Entry]) -> str:
    """The ledger as data, one object a claim."""
    return json.dumps([asdict(entry) for entry in entries], indent=1, ensure_ascii=False) + "\n"


def count(entries: Iterable[Entry]) -> dict[str, int]:
    """How many claims got which verdict, the three always named."""
    found = [entry.verdict for entry in entries]
    return {verdict: found.count(verdict) for verdict in (HOLDS, FAILS, UNTESTABLE)}


def _enter(claim: Claim, evidence: Evidence) -> Entry:
    try:
        found = claim.check(evidence)
        verdict, ours, reason = (HOLDS if found.holds else FAILS), found.ours, found.reason
    except CannotTestError as missing:
        verdict, ours, reason = UNTESTABLE, "-", str(missing)
    return Entry(claim.id, claim.place, claim.claim, claim.threshold, claim.paper, ours, verdict, reason)


_THEORY = "Theoretical analysis"
_MODULATION = "Theoretical analysis, Self-modulation"
_MAIN = "Results, Main comparison"
_TRADE = "Results, The AUROC-accuracy tradeoff"
_WHERE = "Results, Where the gains come from"
_EACH = "Results, Per-dataset results"
_STABLE = "Results, Checkpoint stability"
_TESTS = "Results, Statistical significance"
_BATCH = "Batch size confirms a distinct regime"
_PRIOR = "Behavior under controlled prior shift"
_ABLATION = "Design ablations"

_ROWS = (
    "each mean of accuracy, F1, AUROC and ECE, of source and PLOC, within 2 standard deviations over our "
    "seeds, and rounding, of the printed one; where that reaches to 0, the number can't tell"
)
_FIVE_METRICS = "accuracy, balanced accuracy, F1, ECE and NLL better on each of three backbones: 15 of 15"


def _all_rows(dataset: str, label: str) -> Claim:
    return Claim(
        f"rows-{dataset}",
        "Tables 3 to 5",
        f"{label}: the rows of source and PLOC, three backbones.",
        "24 numbers",
        _ROWS,
        partial(checks.printed_rows, dataset, BACKBONES),
    )


def _rows(dataset: str, label: str, backbone: str, table: int) -> Claim:
    return Claim(
        f"table{table}-{dataset}",
        f"Table {table}",
        f"{label} with the {names.backbone(backbone)}: the row of source and PLOC.",
        "8 numbers",
        _ROWS,
        partial(checks.printed_rows, dataset, (backbone,)),
    )


CLAIMS: tuple[Claim, ...] = (
    # --- theory: any stream will do ---------------------------------------------------------------------
    Claim(
        "deferred-auroc",
        f"{_THEORY}, Proposition 1; Contributions",
        "Deferred PLOC preserves the source's AUROC exactly, in every data set, backbone and checkpoint.",
        "0",
        "largest change of AUROC at most 1e-8, the paper's numerical noise, on every stream and prefix",
        checks.deferred_auroc,
    ),
    Claim(
        "drift-bound",
        f"{_THEORY}, Proposition 2",
        "PLOC's change of AUROC is at most the share of pairs that the moving origin can reorder.",
        "drift ≤ bound",
        "no stream or prefix breaks it",
        checks.drift_bound,
    ),
    Claim(
        "bound-vanishes",
        f"{_THEORY}, Proposition 2",
        "Along a growing stream the bound goes to zero.",
        "→ 0",
        "smaller on the longest prefix than on the shortest, on every stream",
        checks.bound_vanishes,
    ),
    Claim(
        "least-variance",
        f"{_THEORY}, Proposition 3",
        "Of unbiased causal linear estimates of a stationary origin the mean has the smallest variance.",
        "1 / (t - 1)",
        "within a tenth of the least possible variance, and below EMA and window",
        checks.least_variance,
    ),
    # --- what becomes of the others at batch size one ---------------------------------------------------
    Claim(
        "tent-eata-unchanged",
        _MAIN,
        "Tent and EATA return the source's predictions unchanged.",
        "equal to three decimals",
        "no mean of any metric moves by more than 0.0005, on every stream at hand",
        partial(checks.unchanged, ("tent", "eata"), ROUNDING, True),
    ),
    Claim(
        "sar-nearly-unchanged",
        _MAIN,
        "SAR returns the source's predictions unchanged or nearly so.",
        "at most 0.004 (F1, FT-Transformer)",
        "no mean of any metric moves by more than 0.005",
        partial(checks.unchanged, ("sar",), 0.005, False),
    ),
    Claim(
        "lame-identity",
        _BATCH,
        "At B = 1 LAME returns the source's predictions exactly unchanged.",
        "0",
        "no metric moves by more than 1e-8, on every stream at hand",
        partial(checks.untouched, "lame"),
    ),
    Claim(
        "batch-terms-degenerate",
        "Introduction; Batch size confirms a distinct regime",
        "At B = 1 the covariance of PFT3A does not exist and FTAT's prior can't be estimated.",
        "undefined",
        "PFT3A's subspace term and FTAT's prior are skipped on every row, on every stream at hand",
        checks.degenerate,
    ),
    # --- the main comparison ----------------------------------------------------------------------------
    Claim(
        "beats-source",
        f"Abstract; {_MAIN}",
        "PLOC improves accuracy, balanced accuracy, F1, calibration and likelihood over the source.",
        "15 of 15 means of Table 1",
        _FIVE_METRICS,
        partial(checks.beats, "source"),
    ),
    Claim(
        "beats-ftat",
        "Contributions; Conclusion",
        "PLOC improves accuracy, balanced accuracy, F1, calibration and likelihood over FTAT.",
        "15 of 15 means of Table 1",
        _FIVE_METRICS,
        partial(checks.beats, "ftat"),
    ),
    Claim(
        "ftat-margin",
        _MAIN,
        "With the MLP, PLOC is ahead of FTAT by 7.4 points of accuracy and 11.4 of F1.",
        "+0.074, +0.114",
        "both within 0.02, over the same five data sets",
        checks.ftat_margin,
    ),
    Claim(
        "table-1",
        "Table 1",
        "The means over five data sets and five checkpoints.",
        "189 numbers",
        "each within 0.02, over the same five data sets",
        checks.table_1,
    ),
    Claim(
        "ftat-loses-ranking",
        _MAIN,
        "FTAT trades away ranking at B = 1.",
        "-0.073, -0.079, -0.092",
        "AUROC below the source's by 0.036 or more (half the least printed) on every backbone",
        partial(checks.loses_rank, "ftat", 0.036),
    ),
    Claim(
        "pft3a-loses-ranking",
        _MAIN,
        "PFT3A, guarded, trades away ranking at B = 1.",
        "-0.026, -0.149, -0.075",
        "AUROC below the source's by 0.013 or more (half the least printed) on every backbone",
        partial(checks.loses_rank, "pft3a", 0.013),
    ),
    Claim(
        "lose-on-both-axes",
        f"{_TRADE}, caption of the figure",
        "FTAT and PFT3A lose accuracy and AUROC against the source.",
        "6 of 6 points",
        "both mean changes negative, on every backbone",
        checks.both_axes,
    ),
    Claim(
        "prob-close",
        _MAIN,
        "PLOC-prob has nearly the same calibration as PLOC.",
        "at most 0.004 of ECE",
        "mean ECE within 0.01 of PLOC's on every backbone",
        checks.prob_close,
    ),
    Claim(
        "deferred-close",
        "Table 2, caption",
        "Deferred PLOC matches PLOC within 0.002 on every metric.",
        "0.002",
        "every mean of the seven metrics within 0.0025, on every backbone",
        checks.deferred_close,
    ),
    # --- data set by data set ---------------------------------------------------------------------------
    Claim(
        "auroc-kept",
        _EACH,
        "PLOC's AUROC is within 0.001 of the source's everywhere but ASSISTments with the TabTransformer.",
        "0.001",
        "every mean over checkpoints within 0.0015",
        checks.auroc_kept,
    ),
    _rows("heloc", "HELOC", "mlp", 3),
    _rows("heloc", "HELOC", "ft_transformer", 4),
    _rows("heloc", "HELOC", "tab_transformer", 5),
    _rows("diabetes_readmission", "Diabetes Readmission", "mlp", 3),
    _rows("diabetes_readmission", "Diabetes Readmission", "ft_transformer", 4),
    _rows("diabetes_readmission", "Diabetes Readmission", "tab_transformer", 5),
    _all_rows("assistments", "ASSISTments"),
    _all_rows("anes", "ANES"),
    _all_rows("acs_pubcov", "ACS Public Coverage"),
    Claim(
        "heloc-underpredicts",
        _WHERE,
        "With the MLP the source labels only 16 % of HELOC's applicants as likely to repay.",
        "0.16",
        "within 2 standard deviations over seeds, and rounding; it can't tell where that reaches to 0",
        partial(checks.text_number, "heloc", ("mlp",), "source", "positive_rate", "heloc_positive_source"),
    ),
    Claim(
        "heloc-recentred",
        _WHERE,
        "PLOC raises that to 55 %.",
        "0.55",
        "within 2 standard deviations over seeds, and rounding; it can't tell where that reaches to 0",
        partial(checks.text_number, "heloc", ("mlp",), "ploc", "positive_rate", "heloc_positive_ploc"),
    ),
    Claim(
        "heloc-mean-logit-mlp",
        _WHERE,
        "PLOC observes a running logit mean of about -0.81 on HELOC with the MLP.",
        "-0.81",
        "within 2 standard deviations over seeds, and rounding; it can't tell where that reaches to 0",
        partial(checks.text_number, "heloc", ("mlp",), "ploc", "mu", "heloc_mu_mlp"),
    ),
    Claim(
        "heloc-mean-logit",
        _MODULATION,
        "The mean logit is about -1.1 on HELOC (over the backbones, we take it).",
        "-1.1",
        "within 2 standard deviations over seeds, and rounding; it can't tell where that reaches to 0",
        partial(checks.text_number, "heloc", BACKBONES, "ploc", "mu", "mu_heloc"),
    ),
    Claim(
        "acs-mean-logit",
        _MODULATION,
        "The mean logit is about -0.6 on ACS Public Coverage.",
        "-0.6",
        "within 2 standard deviations over seeds, and rounding; it can't tell where that reaches to 0",
        partial(checks.text_number, "acs_pubcov", BACKBONES, "ploc", "mu", "mu_acs_pubcov"),
    ),
    Claim(
        "heloc-single-class",
        _WHERE,
        "On HELOC the FT-Transformer predicts a single class (F1 = 0), which PLOC restores.",
        "0.000 → 0.569",
        "F1 of every source at most 0.0005, mean F1 of PLOC at least 0.5",
        checks.collapse,
    ),
    Claim(
        "anes-neutral",
        _WHERE,
        "On ANES PLOC has a negligible impact on accuracy.",
        "-0.001, +0.013, -0.013",
        "mean change of accuracy within 0.015",
        checks.neutral_on_anes,
    ),
    Claim(
        "gains-concentrate",
        _EACH,
        "Accuracy improves most on the miscentered streams (HELOC, ACS), little on the others.",
        "HELOC +0.129, +0.115, +0.160",
        "the gain on HELOC and ACS above that on readmission and ANES, on every backbone",
        checks.concentrate,
    ),
    # --- stability and significance ---------------------------------------------------------------------
    Claim(
        "heloc-stability",
        _STABLE,
        "With the MLP on HELOC the F1 standard deviation over checkpoints falls tenfold.",
        "0.249 → 0.021",
        "falls fivefold or more (a standard deviation of five numbers is itself uncertain by a third)",
        checks.heloc_stability,
    ),
    Claim(
        "mean-stability",
        _STABLE,
        "Over the data sets the standard deviation of F1 drops, MLP and TabTransformer.",
        "0.057 → 0.012; 0.071 → 0.006",
        "halves or better on both",
        checks.mean_stability,
    ),
    Claim(
        "significant-accuracy-f1",
        _TESTS,
        "Accuracy and F1 gain over the source, significantly, on all three backbones.",
        "p < 1e-2, p < 3e-3",
        "mean positive and two-sided signed-rank p below the paper's, uncorrected as in the paper",
        partial(checks.significant, "source", {"accuracy": 1e-2, "f1": 3e-3}),
    ),
    Claim(
        "significant-ece",
        _TESTS,
        "The reduction of ECE against the source is highly significant.",
        "p < 1e-6",
        "mean negative and two-sided signed-rank p < 1e-6 on every backbone",
        partial(checks.significant, "source", {"ece": 1e-6}),
    ),
    Claim(
        "ece-wins",
        _TESTS,
        "ECE improves in 23 to 25 of 25 combinations of data set and checkpoint.",
        "23 of 25",
        "in 92 % of the combinations or more, on every backbone",
        checks.ece_wins,
    ),
    Claim(
        "auroc-indistinguishable",
        _TESTS,
        "The difference of AUROC to the source is statistically indistinguishable from zero.",
        "0.000 ± 0.001, p ≥ 0.15",
        "mean within 0.001 and p at least 0.05 on every backbone",
        checks.auroc_equal,
    ),
    Claim(
        "auroc-over-ftat",
        _TESTS,
        "PLOC's AUROC is significantly higher than FTAT's on every backbone.",
        "p < 1e-2",
        "mean positive and p < 1e-2 on every backbone",
        partial(checks.significant, "ftat", {"auroc": 1e-2}),
    ),
    # --- batch size -------------------------------------------------------------------------------------
    Claim(
        "batch-ploc-stable",
        _BATCH,
        "PLOC's AUROC holds at the source's value over the whole range of batch sizes.",
        "0",
        "mean change within 0.0015 at every size from 1 to 1024",
        checks.ploc_stable,
    ),
    Claim(
        "batch-ftat-recovers",
        _BATCH,
        "FTAT's ranking damage shrinks monotonically with the batch and nearly closes by 1024.",
        "0.677 → 0.701 (source 0.707)",
        "no size worse than the one before by 0.002; at 1024 within 0.01 or a quarter of the damage at 1",
        checks.ftat_recovers,
    ),
    Claim(
        "batch-pft3a-recovers",
        _BATCH,
        "PFT3A is least stable at B = 4 and 8 and back at the source's AUROC by 64.",
        "64",
        "the largest loss of AUROC above B = 1 at 4 or 8; from 64 on within 0.01 of the source's, either way",
        checks.pft3a_recovers,
    ),
    Claim(
        "batch-pft3a-published",
        _BATCH,
        "At B ≥ 512 PFT3A meets its published accuracy and F1 on the shared data sets.",
        "0.694 / 0.745",
        "both within 0.01",
        checks.pft3a_published,
    ),
    Claim(
        "batch-lame-destroys",
        _BATCH,
        "LAME destroys ranking as the batch grows.",
        "0.70 → 0.57",
        "no change at 1, AUROC lower by half of the printed loss or more at 1024",
        checks.lame_destroys,
    ),
    # --- prior shift ------------------------------------------------------------------------------------
    Claim(
        "prior-balanced-accuracy",
        _PRIOR,
        "At every positive rate PLOC and deferred PLOC track or beat the source on balanced accuracy.",
        "a figure",
        "no mean more than 0.005 below the source's",
        partial(checks.prior_tracks, "balanced_accuracy"),
    ),
    Claim(
        "prior-ece",
        _PRIOR,
        "At every positive rate PLOC and deferred PLOC track or beat the source on ECE.",
        "a figure",
        "no mean more than 0.005 above the source's",
        partial(checks.prior_tracks, "ece"),
    ),
    Claim(
        "prior-accuracy",
        _PRIOR,
        "At a positive rate of 0.1 they lose plain accuracy.",
        "a figure",
        "mean accuracy below the source's, both variants",
        checks.prior_accuracy,
    ),
    Claim(
        "prior-auroc",
        _PRIOR,
        "Deferred PLOC preserves AUROC at every prior.",
        "0",
        "largest change at most 1e-8, on every redrawn stream",
        checks.prior_auroc,
    ),
    # --- ablation ---------------------------------------------------------------------------------------
    Claim(
        "ablation-mean",
        _ABLATION,
        "No other origin improves on the plain mean consistently across the metrics.",
        "none",
        "none is better on some of the five metrics, by 0.0005, and worse on none",
        checks.none_better,
    ),
    Claim(
        "ablation-fast-ema",
        f"{_ABLATION}, Table 6",
        "A fast moving average damages ranking and calibration.",
        "AUROC -0.015, ECE +0.011",
        "AUROC lower by 0.005 or more, ECE higher",
        partial(checks.origin_change, "ploc_ema20", {"auroc": (-1.0, -0.005), "ece": (0.0, 1.0)}),
    ),
    Claim(
        "ablation-window",
        f"{_ABLATION}, Table 6",
        "A window of 100 logits is indistinguishable from the mean.",
        "at most 0.002",
        "each of five metrics within 0.003",
        partial(
            checks.origin_change,
            "ploc_window100",
            dict.fromkeys(("accuracy", "balanced_accuracy", "f1", "auroc", "ece"), (-0.003, 0.003)),
        ),
    ),
    Claim(
        "ablation-zscore",
        f"{_ABLATION}, Table 6",
        "Dividing by the running deviation leaves accuracy untouched and worsens calibration.",
        "0.000, ECE +0.031",
        "accuracy within 0.0005, ECE higher by 0.0005 or more",
        partial(
            checks.origin_change, "ploc_zscore", {"accuracy": (-ROUNDING, ROUNDING), "ece": (ROUNDING, 1.0)}
        ),
    ),
    Claim(
        "ablation-huber",
        f"{_ABLATION}, Table 6",
        "The Huber-clipped mean lowers ECE at the cost of F1.",
        "ECE -0.014, F1 -0.010",
        "ECE lower and F1 lower, by 0.0005 or more",
        partial(checks.origin_change, "ploc_huber", {"ece": (-1.0, -ROUNDING), "f1": (-1.0, -ROUNDING)}),
    ),
    Claim(
        "ablation-oracle",
        f"{_ABLATION}, Table 6",
        "The best shift by labels improves on PLOC only marginally.",
        "F1 +0.009, ECE -0.020",
        "F1 higher by at most 0.02, ECE lower by at most 0.03",
        partial(checks.origin_change, "oracle_shift", {"f1": (-1.0, 0.02), "ece": (-0.03, 1.0)}),
    ),
    # --- the probe with images ---------------------------------------------------------------------------
    *starmap(Claim, vision.CLAIMS),
)
