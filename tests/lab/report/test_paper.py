"""The paper's numbers as typed, against each other: tables that say the same thing must agree."""

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
