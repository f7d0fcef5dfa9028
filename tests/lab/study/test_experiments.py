import numpy as np
import polars as pl
import pytest

from ploc_lab import methods
from ploc_lab.study import experiments, frames
from ploc_lab.study.cell import SIMULATION, Cell, forward_only
from ploc_lab.study.evaluate import METRICS
from ploc_lab.study.experiments import (
    batch,
    beyond,
    deferred,
    main,
    prior_shift,
    significance,
    stability,
    theory,
)
from ploc_lab.study.grid import BACKBONES, IN_FULL, SLOW_LIMIT, Grid, paper_tasks
from ploc_lab.study.stats import paired


@pytest.fixture(scope="module")
def full() -> Grid:
    return Grid(("heloc", "diabetes_readmission", "anes_1952_2000", "acs_pubcov_2018", "rand_hie", "cifar10"))


@pytest.mark.parametrize("name", experiments.NAMES)
def test_cells_are_asked_for_once_by_known_names(name, full):
    cells = experiments.find(name).cells(full)
    assert cells
    known = {*methods.names(), "oracle_shift"}
    assert {cell.method for cell in cells} <= known
    assert len({cell.id for cell in cells}) == len(set(cells))


def test_every_method_named_by_an_experiment_is_in_the_registry():
    named = {*main.PAPER, *deferred.METHODS, *prior_shift.METHODS, *batch.METHODS, *significance.RIVALS,
             *beyond.ORDERED, *beyond.DRIFTED, *beyond.CONTROLS, *beyond.TREED}  # fmt: skip
    assert named <= {*methods.names(), "oracle_shift"}


def test_derived_tables_ask_for_no_cell_of_their_own(full):
    asked = set(experiments.find("main").cells(full))
    for name in ("deferred", "per_dataset", "tradeoff", "stability", "significance"):
        assert set(experiments.find(name).cells(full)) <= asked


def test_only_weight_updating_methods_are_cut_on_the_slow_backbone_and_variants_of_them(full):
    for cell in experiments.find("main").cells(full):
        slow = cell.backbone == "ft_transformer" or cell.method not in IN_FULL
        cut = slow and not forward_only(cell.method)
        assert (cell.limit == SLOW_LIMIT) if cut else (cell.limit in {None, SLOW_LIMIT})
    cut = {c for c in main.cells(full) if c.limit == SLOW_LIMIT and c.method == "source"}
    assert {c.dataset for c in cut} == set(full.tables), "each cut stream has its source at that length"


def test_the_sweep_is_the_papers(full):
    cells = batch.cells(full)
    assert {cell.batch for cell in cells} == {2**k for k in range(11)}
    assert {cell.seeds for cell in cells if cell.batch > 1} == {(0, 1, 2)}
    assert {cell for cell in cells if cell.batch == 1} <= set(main.cells(full))
    assert {cell.backbone for cell in cells} == {"mlp", "ft_transformer"}
    assert not {cell.dataset for cell in cells} & {"acs_pubcov", "acs_pubcov_2018"}


def test_prior_shift_is_the_papers(full):
    cells = prior_shift.cells(full)
    assert {cell.draw.rate for cell in cells} == {0.1, 0.3, 0.5, 0.7, 0.9}
    assert {cell.draw.seed for cell in cells} == {0, 1, 2}
    assert all(forward_only(cell.method) for cell in cells)


def test_a_stand_in_stands_in_only_where_the_original_is_not_here():
    assert paper_tasks(["anes_1952_2000", "heloc"])["anes"] == "anes_1952_2000"
    assert paper_tasks(["anes_1952_2000", "anes"])["anes"] == "anes"
    assert "assistments" not in paper_tasks(["heloc"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"datasets": ("helok",)}, "'helok'.*heloc"), ({"methods": ("plok",)}, "'plok'.*ploc")],
)
def test_a_grid_refuses_names_it_does_not_know(changes, message):
    with pytest.raises(ValueError, match=message):
        Grid(**{"datasets": ("heloc",)} | changes)


# The tables, from cells that were really run.


@pytest.fixture(scope="module")
def gathered(study) -> pl.DataFrame:
    """The small study, its data set called by a name of the paper's, so that the paper's tables have rows."""
    renamed = study.gathered.with_columns(pl.col("dataset").replace("rand_hie", "heloc"))
    assert set(renamed["dataset"]) == {"heloc", SIMULATION}
    return renamed


# The study of tables has no image: what `vision` makes of its own cells is in test_vision.py.
TABULAR = [name for name in experiments.NAMES if name != "vision"]


@pytest.mark.parametrize("name", TABULAR)
def test_every_experiment_sums_up_what_was_run(name, gathered):
    tables = experiments.find(name).tables(gathered)
    assert tables
    for title, table in tables.items():
        assert table.height, title
        assert "key" not in table.columns


def test_table_1_is_the_plain_mean(gathered):
    table = main.tables(gathered)["main"]
    rows = gathered.filter(
        pl.col("backbone") == "mlp",
        pl.col("method") == "ploc",
        pl.col("batch") == 1,
        pl.col("variant") == "",
        pl.col("n") == 120,
    )
    assert rows.height == 2
    row = table.filter(pl.col("backbone") == "mlp", pl.col("method") == "ploc").row(0, named=True)
    for name in METRICS:
        assert row[name] == pytest.approx(rows[name].mean())
    assert row["cells"] == 2
    assert table["method"].to_list()[: len(main.PAPER)] == list(main.PAPER)


def test_a_no_op_is_called_one_and_is_the_best_of_nothing(gathered):
    table = main.tables(gathered)["main"]
    ops = dict(table.filter(pl.col("backbone") == "mlp").select("method", "no_op").iter_rows())
    assert ops["tent"]
    assert ops["eata"]
    assert ops["sar"]
    assert ops["lame"]
    assert not ops["ploc"]
    assert not ops["ftat"]
    idle = table.filter(pl.col("no_op"), pl.col("method") != "source")
    assert set(idle["best"]) == {""}


def test_a_cut_stream_meets_its_source_at_its_own_length(gathered):
    rows = frames.against(frames.plain(gathered)).filter(
        pl.col("backbone") == "ft_transformer", pl.col("method") == "ftat"
    )
    source = frames.plain(gathered).filter(
        pl.col("backbone") == "ft_transformer", pl.col("method") == "source", pl.col("n") == 60
    )
    assert set(rows["n"]) == {60}
    assert sorted(rows["source_accuracy"]) == sorted(source["accuracy"])


def test_deferred_keeps_the_sources_auroc_exactly(gathered):
    assert deferred.tables(gathered)["deferred_gap"]["auroc_from_source"].to_list() == [0.0] * 3


def test_stability_is_the_sample_deviation(gathered):
    table = stability.tables(gathered)["stability"]
    rows = frames.plain(gathered).filter(
        pl.col("backbone") == "mlp", pl.col("method") == "source", pl.col("n") == 120
    )
    found = table.filter(
        pl.col("backbone") == "mlp", pl.col("method") == "source", pl.col("dataset") == "heloc"
    )
    assert found["f1"][0] == pytest.approx(np.std(rows["f1"].to_numpy(), ddof=1))


def test_significance_pairs_seed_with_seed(gathered):
    table = significance.tables(gathered)["significance"].filter(
        pl.col("over") == "all",
        pl.col("backbone") == "mlp",
        pl.col("rival") == "ftat",
        pl.col("metric") == "ece",
    )
    rows = frames.whole(frames.plain(gathered)).filter(pl.col("backbone") == "mlp").sort("seed")
    ours, theirs = (rows.filter(pl.col("method") == name)["ece"].to_numpy() for name in ("ploc", "ftat"))
    expected = paired(ours, theirs)
    assert table["mean"][0] == pytest.approx(expected.mean)
    assert table["p"][0] == pytest.approx(expected.p)
    assert table["p_holm"][0] >= table["p"][0]


def test_the_propositions_hold_on_every_stream(gathered):
    table = theory.tables(gathered)["propositions"]
    assert set(table["rank_changes"]) == {0}
    assert set(table["auroc_deferred_gap"]) == {0.0}
    assert table["bound_holds"].all()
    assert set(table["n"]) == {100, 120}
    assert set(table["backbone"]) == set(BACKBONES)


def test_the_mean_has_the_least_variance(gathered):
    table = theory.tables(gathered)["variance"]
    assert table.sort("times_least")["method"][0] == "ploc"


def test_ploc_does_not_depend_on_the_batch_size(gathered):
    rows = gathered.filter(pl.col("method") == "ploc", pl.col("variant") == "", pl.col("n") == 120)
    swept = rows.filter(pl.col("backbone").is_in(batch.BACKBONES))
    assert set(swept["batch"]) == {1, 8, 1024}
    spread = swept.group_by("backbone", "seed").agg(pl.col(name).n_unique() for name in METRICS)
    assert set(spread.select(METRICS).to_numpy().ravel().tolist()) == {1}


def test_a_redrawn_stream_has_the_rate_that_was_asked_for(gathered):
    rows = gathered.filter(pl.col("draw") == "prior")
    assert rows.height
    for rate, base, n in rows.select("rate", "base_rate", "n").iter_rows():
        assert abs(rate - base) <= 0.5 / n + 1e-12


def test_the_sorted_order_is_the_worst_for_the_running_mean(gathered):
    table = beyond.tables(gathered)["orders"].filter(pl.col("method") == "ploc")
    moved = dict(table.select("order", "d_auroc_max").iter_rows())
    assert moved["sorted"] == max(moved.values())


def test_trees_are_sources_like_others(gathered):
    table = beyond.tables(gathered)["trees"]
    assert set(table["backbone"]) == {"hist_gradient_boosting", "lightgbm"}
    assert set(table.filter(pl.col("method") == "ploc_deferred")["d_auroc"]) == {0.0}


def test_the_cost_of_a_row_is_measured_with_the_network(gathered):
    table = beyond.tables(gathered)["cost"]
    assert (table["us_per_row"] > 0).all()
    times = table.filter(pl.col("method") == "source")["times_source"]
    assert times.to_list() == pytest.approx([1.0] * len(times))
    assert table.filter(pl.col("method") == "ploc")["state"].max() <= 3


def test_a_cell_of_a_drifting_stream_tells_how_it_recovered(gathered):
    table = beyond.tables(gathered)["drift"]
    assert set(table["draw"]) == {"abrupt", "gradual", "recurring"}
    follows = pl.col("method").is_in(beyond.FOLLOWING)
    assert table.filter(follows)["recovered"].is_between(0, 1).all()
    assert (
        table.filter(~follows).select("recovery_rows", "recovered").null_count().row(0)
        == (table.filter(~follows).height,) * 2
    )


def test_a_quick_run_in_the_same_store_changes_no_table(gathered):
    """Cells of the same questions at a smaller limit, and prefixes that are the whole stream again."""
    drawn = pl.col("draw").is_not_null() & pl.col("draw").is_in(["prior", "abrupt", "gradual", "recurring"])
    quick = gathered.filter(drawn).with_columns(
        n=pl.col("n") // 2, limit=pl.col("n") // 2, accuracy=pl.lit(0.0), id=pl.lit("quick")
    )
    longer = gathered.filter(pl.col("measure") == "propositions").with_columns(
        limit=pl.lit(10**6, pl.Int64), id=pl.lit("longer")
    )
    both = pl.concat([quick, longer.with_columns(limit=pl.col("n")), gathered], how="diagonal_relaxed")
    for room, title in ((prior_shift, "prior_shift"), (beyond, "drift"), (theory, "propositions")):
        assert room.tables(both)[title].equals(room.tables(gathered)[title]), title


def test_a_difference_is_taken_between_answers_of_one_network(gathered):
    rows = frames.plain(gathered)
    stale = rows.filter(pl.col("method") == "source").with_columns(
        accuracy=pl.lit(0.0), checkpoint=pl.lit("of other weights")
    )
    both = pl.concat([stale, rows])
    kept = frames.against(both).filter(pl.col("checkpoint") != "of other weights")
    assert kept.equals(frames.against(rows))


def test_names_that_are_not_experiments_are_refused():
    with pytest.raises(ValueError, match=r"'tables'.*main"):
        experiments.find("tables")


def test_a_question_is_asked_once_however_many_experiments_ask_it(full):
    cells = experiments.cells(full, ["main", "deferred", "ablation"])
    assert len(cells) == len(set(cells))
    assert Cell(dataset="heloc", backbone="mlp", method="ploc") in cells


def test_a_limit_that_a_stream_does_not_reach_counts_its_rows_once():
    rows = pl.DataFrame(
        {
            "dataset": "a", "backbone": "mlp", "method": ["source"] * 3 + ["ftat"], "batch": 1,
            "variant": "", "measure": "metrics", "seed": 0, "n": [70, 70, 50, 50],
            "limit": [100, None, 50, 50],
        }
    )  # fmt: skip
    found = frames.whole(rows)
    assert found.select("method", "limit").rows() == [("source", None), ("ftat", 50)]
