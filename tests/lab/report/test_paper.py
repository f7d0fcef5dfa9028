"""The paper's numbers as typed, against each other: tables that say the same thing must agree."""

import re
from pathlib import Path

import pytest

from ploc_lab import methods
from ploc_lab.report import paper
from ploc_lab.study.cell import ORACLE

BACKBONES = ("mlp", "ft_transformer", "tab_transformer")


def test_tables_have_all_their_rows():
    assert all(len(paper.MAIN[backbone]) == 9 for backbone in BACKBONES)
    assert all(set(paper.DEFERRED[backbone]) == {"source", "ploc_deferred"} for backbone in BACKBONES)
    assert all(set(paper.PER_DATASET[backbone]) == set(paper.STREAMS) for backbone in BACKBONES)


def test_methods_go_by_the_names_of_the_registry():
    names = {*paper.ABLATION, *paper.VISION, *(name for rows in paper.MAIN.values() for name in rows)}
    assert names <= {*methods.names(), ORACLE}


@pytest.mark.parametrize("backbone", BACKBONES)
def test_table_2_repeats_the_source_rows_of_table_1(backbone):
    assert paper.DEFERRED[backbone]["source"] == paper.MAIN[backbone]["source"]


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("metric", ["accuracy", "f1", "auroc", "ece"])
def test_table_1_is_the_mean_of_tables_3_to_5(backbone, metric):
    """Five numbers rounded to three decimals: their mean is known to .0005, the printed one to .0005 more."""
    rows = [getattr(row, metric) for row in paper.PER_DATASET[backbone].values()]
    for side, method in ((0, "source"), (1, "ploc")):
        mean = sum(row[side] for row in rows) / len(rows)
        assert getattr(paper.MAIN[backbone][method], metric) == pytest.approx(mean, abs=0.00101)


def test_the_text_repeats_table_1():
    ours, ftat, source = (paper.MAIN["mlp"][name] for name in ("ploc", "ftat", "source"))
    assert paper.TEXT["ftat_accuracy_margin"].value == pytest.approx(ours.accuracy - ftat.accuracy)
    assert paper.TEXT["ftat_f1_margin"].value == pytest.approx(ours.f1 - ftat.f1)
    assert paper.TEXT["ece_reduction"].value == pytest.approx(1 - ours.ece / source.ece)


def test_every_number_has_its_place():
    assert all(printed.place and printed.says for printed in paper.TEXT.values())


# --- against the paper's own source, where it lies beside the checkout ------------------------------------

TEX = next(
    (path for root in Path(__file__).parents if (path := root / "shared" / "paper" / "ploc.tex").exists()),
    None,
)
BESIDE = pytest.mark.skipif(TEX is None, reason="the paper's source does not lie beside the checkout")
LABELS = {
    "Source": "source",
    "Tent": "tent",
    "EATA": "eata",
    "SAR": "sar",
    "LAME": "lame",
    "FTAT": "ftat",
    "PFT3A": "pft3a",
    "PLOC": "ploc",
    "PLOC-prob": "ploc_prob",
    "Deferred PLOC": "ploc_deferred",
    "PLOC (mean)": "ploc",
    "EMA, 0.01": "ploc_ema01",
    "EMA, 0.2": "ploc_ema20",
    "Window, 100": "ploc_window100",
    "Running z-score": "ploc_zscore",
    "Huber-clip, 2.5": "ploc_huber",
    "Oracle shift (uses labels)": ORACLE,
    "HELOC": "heloc",
    "Diabetes Readmission": "diabetes_readmission",
    "ASSISTments": "assistments",
    "ANES": "anes",
    "ACS Public Coverage": "acs_pubcov",
    "clean (control)": "clean",
    "gaussian noise s3": "gaussian_noise_s3",
    "contrast s5": "contrast_s5",
    "blur s3": "blur_s3",
    "shift 100, clean": "clean_rho100",
    "shift 100, noise s3": "gaussian_noise_s3_rho100",
}


def printed(label: str) -> list[tuple[str, list[float]]]:
    """The rows of a table of the paper: what its method or data set is called here, its numbers in order."""
    table = re.search(rf"\\label\{{{label}\}}.*?\\midrule(.*?)\\bottomrule", TEX.read_text(), re.DOTALL)
    rows = []
    for line in table[1].split(r"\\"):
        cells = line.replace(r"\midrule", "").split("&")
        words = re.sub(r"\\multirow\{\d+\}\{\*\}\{[^}]*\}|\^\\dagger", "", "&".join(cells))
        numbers = [float(n) for n in re.findall(r"[-+]?\d\.\d{3}\b|(?<=\$)0(?=\$)", words)]
        if not numbers:
            continue
        name = next(cell for cell in words.split("&") if re.search(r"[A-Za-z]", cell))
        for old, new in (
            (r"\\textbf\{([^}]*)\}", r"\1"),
            (r"\$\\?z\$", "z"),
            (r"\$\\?(alpha|w|tau|rho)\{=\}(.*?)\$", r"\2"),
        ):
            name = re.sub(old, new, name)
        rows.append((LABELS[" ".join(name.replace("$", "").split())], numbers))
    return rows


@BESIDE
def test_table_1_is_typed_as_printed():
    rows = iter(printed("tab:main"))
    for backbone in BACKBONES:
        for method, scores in paper.MAIN[backbone].items():
            assert next(rows) == (method, list(scores))
    assert next(rows, None) is None


@BESIDE
def test_table_2_is_typed_as_printed():
    rows = [(m, list(s)) for backbone in BACKBONES for m, s in paper.DEFERRED[backbone].items()]
    assert printed("tab:deferred") == rows


@BESIDE
@pytest.mark.parametrize(
    ("label", "backbone"),
    [("tab:perds", "mlp"), ("tab:perds_ft", "ft_transformer"), ("tab:perds_tabt", "tab_transformer")],
)
def test_tables_3_to_5_are_typed_as_printed(label, backbone):
    rows = [(d, [n for pair in row for n in pair]) for d, row in paper.PER_DATASET[backbone].items()]
    assert printed(label) == rows


@BESIDE
@pytest.mark.parametrize(("label", "typed"), [("tab:ablation", paper.ABLATION), ("tab:vision", paper.VISION)])
def test_tables_of_five_metrics_are_typed_as_printed(label, typed):
    assert printed(label) == [(method, list(scores)) for method, scores in typed.items()]


@BESIDE
def test_the_ten_class_table_is_typed_as_printed():
    rows = [
        (stream, [r.normalising, r.lame, *r.accuracy, *r.ece, *r.nll, 0.0, r.deferred_ovr])
        for stream, r in paper.VISION10.items()
    ]
    assert printed("tab:vision10") == rows


SENTENCES = {
    "ftat_accuracy_margin": r"absolute margin of $7.4\%$ accuracy",
    "ftat_f1_margin": r"and by $11.4$ F$_1$ points",
    "ece_reduction": r"62.5\% reduction in ECE",
    "deferred_gap": "matches PLOC within $0.002$ on every metric",
    "auroc_per_dataset": "within $0.001$ everywhere except ASSISTments with the TabTransformer",
    "auroc_assistments_tab": "where the change reaches $0.005$",
    "heloc_positive_source": r"labels only $16\%$ of applicants",
    "heloc_positive_ploc": r"from $16\%$ to $55\%$",
    "heloc_mu_mlp": "running logit mean of about $-0.81$",
    "mu_heloc": r"$\mu_T\approx-1.1$ on HELOC",
    "mu_acs_pubcov": "and $-0.6$ on ACS Public Coverage",
    "mu_anes": r"$\mu_T\approx+1.1$ on ANES and ASSISTments",
    "mu_assistments": r"$\mu_T\approx+1.1$ on ANES and ASSISTments",
    "f1_sd_heloc_source": "falls from $0.249$ (source)",
    "f1_sd_heloc_ftat": "and $0.223$ (FTAT)",
    "f1_sd_heloc_ploc": "to $0.021$ (PLOC)",
    "f1_sd_assistments_ftat": "FTAT's F$_1$ standard deviation is $0.189$",
    "f1_sd_assistments_ploc": "against PLOC's $0.009$",
    "f1_sd_mlp_source": "drops from $0.057$ to $0.012$ on the MLP",
    "f1_sd_mlp_ploc": "drops from $0.057$ to $0.012$ on the MLP",
    "f1_sd_tab_source": "from $0.071$ to $0.006$ on the TabTransformer",
    "f1_sd_tab_ploc": "from $0.071$ to $0.006$ on the TabTransformer",
    "p_accuracy": r"positive with $p<10^{-2}$",
    "p_f1": r"and $p<3\times10^{-3}$ on all three",
    "p_ece": "highly significant ($p<10^{-6}$",
    "ece_wins_least": "in $23$ to $25$ of the $25$",
    "auroc_sd_source": r"=0.000\pm0.001$",
    "p_auroc_least": r"$p\in[0.15,0.88]$",
    "p_auroc_most": r"$p\in[0.15,0.88]$",
    "auroc_over_ftat_least": r"\approx+0.07$ to $+0.09$",
    "auroc_over_ftat_most": r"\approx+0.07$ to $+0.09$",
    "p_auroc_ftat": "$p<10^{-2}$ on every backbone",
    "batch_source_auroc": "against source $0.707$",
    "batch_ftat_auroc_1": r"$0.677\!\to\!0.701$",
    "batch_ftat_auroc_1024": r"$0.677\!\to\!0.701$",
    "batch_lame_auroc_1": r"$0.70\!\to\!0.57$",
    "batch_lame_auroc_1024": r"$0.70\!\to\!0.57$",
    "batch_pft3a_recovers": r"source-level AUROC when the batch size $B\approx64$",
    "batch_pft3a_accuracy": "Accuracy/F$_1$ of $69.4/74.5$ against the published $69.3/74.2$",
    "batch_pft3a_f1": "Accuracy/F$_1$ of $69.4/74.5$ against the published $69.3/74.2$",
    "ablation_huber_ece": r"($0.047\to0.033$)",
    "ten_class_ovo": r"$|\Delta|\le 1.1\times10^{-8}$",
    "ten_class_ovr": "AUROC shifts by up to $0.07$",
    "ten_class_collapse_least": "accuracy between $0.087$ and $0.114$",
    "ten_class_collapse_most": "accuracy between $0.087$ and $0.114$",
}
MEANT = {"p_accuracy": "10^{-2}", "p_f1": r"3\times10^{-3}", "p_ece": "10^{-6}", "p_auroc_ftat": "10^{-2}",
         "ten_class_ovo": r"1.1\times10^{-8}"}  # fmt: skip
PERCENT = {"ftat_accuracy_margin", "ftat_f1_margin", "ece_reduction", "heloc_positive_source",
           "heloc_positive_ploc", "batch_pft3a_accuracy", "batch_pft3a_f1"}  # fmt: skip


@BESIDE
@pytest.mark.parametrize("key", paper.TEXT)
def test_numbers_of_the_text_stand_in_their_sentence(key):
    sentence = SENTENCES[key]
    assert sentence in TEX.read_text()
    value = paper.TEXT[key].value * (100 if key in PERCENT else 1)
    if key in MEANT:
        mantissa, _, exponent = MEANT[key].rpartition("10^{")
        typed = float(mantissa.replace(r"\times", "") or 1) * 10.0 ** int(exponent.rstrip("}"))
        assert value == pytest.approx(typed)
        assert MEANT[key] in sentence
    else:
        numbers = [float(n) for n in re.findall(r"-?\d+\.?\d*", sentence.replace("F$_1$", ""))]
        assert any(value == pytest.approx(n) for n in numbers), (value, numbers)


@BESIDE
def test_sizes_of_the_streams_are_typed_as_printed():
    sizes = ", ".join(f"${n}$" for n in list(paper.STREAMS.values())[:-1])
    assert f"target stream sizes are {sizes}, and ${paper.STREAMS['acs_pubcov']}$" in TEX.read_text()
