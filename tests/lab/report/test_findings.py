"""What the page says in sentences: each number is the cells', and what they cannot fill is not said."""

import polars as pl
import pytest

from ploc_lab.report import findings, protocol


def heads(cells: pl.DataFrame) -> list[str]:
    return [line.head for line in findings.find(cells)]


def test_cells_as_the_paper_prints_them_reproduce_it(world):
    assert "120 of 120 printed means reproduced" in heads(world)


def test_a_mean_that_is_off_is_counted(world):
    off = (pl.col("method") == "source") & (pl.col("dataset") == "heloc") & (pl.col("backbone") == "mlp")
    moved = world.with_columns(pl.when(off).then(pl.col("ece") + 0.1).otherwise("ece").alias("ece"))
    assert "119 of 120 printed means reproduced" in heads(moved)


def test_stand_ins_reproduce_nothing(world):
    assert not any("reproduced" in head for head in heads(world.with_columns(stand_in=pl.lit(True))))


def test_gains_are_counted_cell_by_cell(world):
    ours = world.filter(pl.col("method") == "ploc", pl.col("variant") == "", pl.col("batch") == 1)
    source = world.filter(pl.col("method") == "source", pl.col("variant") == "", pl.col("batch") == 1)
    pairs = ours.join(source, on=["dataset", "backbone", "seed"])
    up = (pairs["accuracy"] > pairs["accuracy_right"]).sum()
    assert f"PLOC gains accuracy in {up} of 75 cells" in heads(world)


def test_where_it_loses_is_said_with_the_rates(world):
    line = next(x for x in findings.find(world) if x.head.startswith("PLOC costs accuracy on"))
    assert line.head == "PLOC costs accuracy on 2 of 15 streams and backbones"  # ANES: -.001 and -.013
    assert "ANES, TabTransformer -0.013 (positive 50%, PLOC says 55%" in line.words


def test_no_ops_are_named_and_movers_are_measured(world):
    line = next(x for x in findings.find(world) if "rivals do nothing" in x.head)
    assert line.head.startswith("3 of 6")
    assert line.words.startswith("Tent, EATA, LAME answered as the source")
    assert "FTAT -0.030 of accuracy, -0.081 of AUROC" in line.words


def test_the_small_study_says_what_became_of_orders_and_drift(study):
    said = heads(study.gathered)
    assert any(head.startswith("Sorted by score") for head in said)
    assert any(head.startswith("After a change of domain") for head in said)
    assert "Deferred PLOC moves no AUROC at all" in said


@pytest.mark.parametrize("asked", [{"method": ["source"]}, {"method": ["ploc"]}, {"dataset": ["simulation"]}])
def test_what_cannot_be_filled_is_not_said(world, study, asked):
    for cells in (world, study.gathered):
        part = cells.filter(pl.all_horizontal(pl.col(c).is_in(v) for c, v in asked.items()))
        for line in findings.find(part):
            assert "None" not in line.words
            assert "nan" not in line.words


def test_the_protocol_names_seeds_batches_orders_and_versions(study):
    facts = dict(protocol.facts(study.gathered))
    assert facts["checkpoints"].startswith("seeds 0, 1;")
    assert facts["batch size"].endswith("1, 8, 1024")
    assert facts["order of the stream"].startswith("split, time, permuted, sorted")
    assert "numpy" in facts["versions"]
    assert "torch" in facts["versions"]
    assert facts["answers that were not a number"].startswith("0 of ")
