"""The small grid, every method and backbone, against what must come out of it, written down beforehand.

Trained weights differ from machine to machine, and so do most numbers. These do not: how long a stream is
and how many positives it has, how many parameters a method may move on which network, who answers as the
source does.
"""

import polars as pl
import pytest

from ploc_lab import methods
from ploc_lab.study.cell import forward_only
from ploc_lab.study.evaluate import METRICS
from ploc_lab.study.grid import BACKBONES

ROWS, PREFIX, POSITIVE = 120, 60, {120: 66, 60: 34}  # counted with scikit-learn's splitter on the raw table

# d = 8 columns: 256 d + 66,305; 128 d + 29,505; with l = d // 8 = 1, 2 d + 4 (d + 1) + 2 * 5 + 3.
EVERYTHING = {"mlp": 68_353, "ft_transformer": 30_529, "tab_transformer": 65}
# Two layer norms of 64 in the FT-Transformer; one over the columns, called `norm`, in the TabTransformer.
LAYER_NORMS = {"mlp": 0, "ft_transformer": 256, "tab_transformer": 16}
SKIPPING_NORM = {"mlp": 0, "ft_transformer": 256, "tab_transformer": 0}
NOTHING = dict.fromkeys(BACKBONES, 0)
MOVES = {
    "tent": NOTHING, "eata": NOTHING, "dua": NOTHING, "note": NOTHING, "rotta": NOTHING, "bn_stats": NOTHING,
    "sar": SKIPPING_NORM, "tent_ln": LAYER_NORMS, "eata_ln": LAYER_NORMS, "sar_ln": LAYER_NORMS,
    "cotta": EVERYTHING,
    **{name: EVERYTHING for name in methods.names() if name.startswith(("ftat", "pft3a"))},
}  # fmt: skip
OWN_PASS = {"dua", "note", "rotta", "bn_stats"}


@pytest.fixture(scope="module")
def plain(study) -> pl.DataFrame:
    """The small study's cells under the plain protocol."""
    rows = study.gathered
    return rows.filter(
        pl.col("batch") == 1, pl.col("variant") == "", pl.col("dataset") == "rand_hie",
        pl.col("backbone").is_in(list(BACKBONES)),
    )  # fmt: skip


def test_every_cell_of_the_grid_is_there(study, plain):
    assert study.outcome.ok
    asked = {(cell.backbone, cell.method) for cell in study.cells if cell.backbone in BACKBONES}
    assert {(b, m) for b in BACKBONES for m in study.grid.methods} <= asked
    for backbone, method in ((b, m) for b in BACKBONES for m in study.grid.methods):
        here = plain.filter(pl.col("backbone") == backbone, pl.col("method") == method)
        assert here["seed"].unique().sort().to_list() == [0, 1], (backbone, method)


def test_streams_have_the_rows_and_the_positives_of_the_split(plain):
    assert set(plain["n"]) == {ROWS, PREFIX}
    for n, positives in POSITIVE.items():
        rates = plain.filter(pl.col("n") == n)["base_rate"].unique().to_list()
        assert rates == [positives / n]


def test_no_answer_is_lost(plain):
    assert plain["n_nan"].sum() == 0
    assert plain.select(pl.col(METRICS).is_not_null().all()).row(0) == (True,) * len(METRICS)


@pytest.mark.parametrize("name", methods.names())
def test_a_method_may_move_as_many_parameters_as_its_card_promises(name, plain, study):
    if name not in study.grid.methods:
        assert forward_only(name)
        return
    rows = plain.filter(pl.col("method") == name)
    expected = NOTHING if forward_only(name) else MOVES[name]
    found = {b: set(rows.filter(pl.col("backbone") == b)["n_adapted"]) for b in BACKBONES}
    assert found == {backbone: {n} for backbone, n in expected.items()}


LAMES = ("lame", "lame_rbf", "lame_linear")  # a row alone has no neighbours, whatever the affinity


@pytest.mark.parametrize("name", [*LAMES, *(m for m, moves in MOVES.items() if not all(moves.values()))])
def test_who_can_move_nothing_answers_as_the_source(name, plain):
    """To the bit from cached logits; to rounding where a method makes a pass of its own, row by row."""
    still = [b for b in BACKBONES if name in LAMES or not MOVES[name][b]]
    rows = plain.filter(pl.col("method") == name, pl.col("backbone").is_in(still))
    source = plain.filter(pl.col("method") == "source")
    both = rows.join(source, on=["backbone", "seed", "n"], suffix="_of_source")
    assert both.height == rows.height > 0
    rounding = 1e-6 if name in OWN_PASS else 0.0
    for metric in METRICS:
        expected = pytest.approx(both[f"{metric}_of_source"].to_list(), abs=rounding, rel=0)
        assert both[metric].to_list() == expected, metric


def test_deferred_ploc_keeps_the_auroc_to_the_bit(plain):
    """Proposition 1, with logits that are not within rounding of each other."""
    both = plain.filter(pl.col("method") == "ploc_deferred").join(
        plain.filter(pl.col("method") == "source"), on=["backbone", "seed", "n"], suffix="_of_source"
    )
    assert both["auroc"].to_list() == both["auroc_of_source"].to_list()
