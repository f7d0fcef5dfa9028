"""The vision probe: what it asks for, and a run of it on made images against the closed forms."""

import doctest
import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl
import pytest
import torch
from torch.nn import functional

from ploc import links
from ploc_lab import data, models
from ploc_lab.data import cifar10
from ploc_lab.study import runner, work
from ploc_lab.study.cell import Cell, Picture, forward_only
from ploc_lab.study.experiments import vision
from ploc_lab.study.grid import Grid
from ploc_lab.study.store import Store

FULL = Grid(("cifar10",))
TEST = 60
LEARNED = ("clean", "contrast_s5")  # streams on which the made study runs the methods that step


# --- what is asked for ------------------------------------------------------------------------------------


def test_a_profile_has_the_papers_thirteen_streams():
    for profile in vision.PROFILES:
        names = [picture.stream for picture in vision.streams(profile)]
        assert len(set(names)) == 13
        kinds = ("gaussian_noise", "brightness", "contrast", "blur")
        corrupted = {f"{kind}_s{severity}" for kind in kinds for severity in (3, 5)}
        tails = {f"{name}_rho{rho}" for name in ("clean", "gaussian_noise_s3") for rho in (10, 100)}
        assert set(names) == {"clean"} | corrupted | tails
        assert all(p.profile in {None, profile} for p in vision.streams(profile))


@pytest.mark.parametrize("method", [*vision.FORWARD, *vision.NORMALISING])
def test_every_method_meets_39_runs(method):
    cells = [c for c in vision.cells(FULL) if c.dataset == "cifar10" and c.method == method and c.batch == 1]
    for profile in vision.PROFILES:
        wanted = {str(picture) for picture in vision.streams(profile)}
        runs = {(str(c.draw), seed) for c in cells for seed in c.seeds if str(c.draw) in wanted}
        assert len(runs) == 39


def test_no_stream_is_cut_unless_the_whole_grid_is():
    assert {cell.limit for cell in vision.cells(FULL)} == {None}
    assert len(set(vision.cells(FULL))) == len(vision.cells(FULL))


def test_a_smaller_grid_asks_for_less():
    assert vision.cells(Grid(("heloc",))) == []
    cells = vision.cells(Grid(("cifar10",), seeds=(0,), methods=("source", "ploc_k"), limit=100))
    assert {c.method for c in cells} == {"source", "ploc_k"}
    assert {c.seeds for c in cells} == {(0,)}
    assert {c.limit for c in cells} == {100}


def test_any_pair_and_corruption_makes_a_two_class_stream():
    cells = vision.pair_cells(FULL, "cifar10_deer_ship", Picture("contrast", 5, "cifar10c"))
    assert {c.dataset for c in cells} == {"cifar10_deer_ship"}
    assert {c.method for c in cells} == set(vision.PAIR_METHODS)
    assert {"ploc_prob", "ploc", "ploc_deferred", "lame", "tent", "eata", "sar"} <= set(vision.PAIR_METHODS)


def test_the_margin_is_that_of_eata_and_sar():
    # 0.4 ln K in both papers and in both methods' options.
    assert pytest.approx(0.4 * np.log(10)) == vision.MARGIN


# --- a run on made images ---------------------------------------------------------------------------------


def made(n: int, seed: int) -> np.ndarray:
    """n official records, classes in turn: a colour a class under noise."""
    rng = np.random.default_rng(seed)
    label = np.arange(n) % 10
    colour = np.random.default_rng(0).integers(40, 216, size=(10, 3))[label]
    pixels = np.repeat(colour, 1024, axis=1) + rng.normal(0, 40, (n, 3072))
    return np.concatenate([label[:, None], pixels.clip(0, 255)], axis=1).astype(np.uint8)


@pytest.fixture(scope="module")
def small(tmp_path_factory, quiet):
    """The probe's cells on sixty made images by three checkpoints; methods that step on two streams only."""
    folder = tmp_path_factory.mktemp("vision")
    files = {f"data_batch_{k}.bin": made(40, k) for k in range(1, 6)} | {"test_batch.bin": made(TEST, 9)}
    (folder / cifar10.FOLDER).mkdir(parents=True)
    for name, records in files.items():
        (folder / cifar10.FOLDER / name).write_bytes(records.tobytes())
    any_size = data.Fingerprint({"width": 3072})
    two_class = cifar10.two_class
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLOC_DATA", str(folder))
        patch.setenv("PLOC_WORK", str(folder / "work"))
        sums = {name: hashlib.sha256(records.tobytes()).hexdigest() for name, records in files.items()}
        patch.setattr(cifar10, "SHA256", sums)
        patch.setattr(cifar10, "TASK", replace(cifar10.TASK, fingerprint=any_size))
        patch.setattr(cifar10, "two_class", lambda name: replace(two_class(name), fingerprint=any_size))
        work._bench.cache_clear()
        store = Store(folder / "work" / "cells")
        with ThreadPoolExecutor(1) as one:
            outcome = runner.run(filter(telling, vision.cells(FULL)), store, runner.given(one, 1), quiet)
        assert outcome.ok, outcome.failures[0].error
        yield store.gather(outcome.keys)
        work._bench.cache_clear()


def telling(cell: Cell) -> bool:
    """Forward-only cells, and those of methods that step on few streams."""
    if forward_only(cell.method):
        return True
    if cell.dataset != "cifar10":
        return cell.dataset == vision.PAIRS[0] and cell.draw.profile == vision.FITTED
    return cell.draw.stream in LEARNED and cell.draw.profile != "cifar10c"


def logits(seed: int, picture: Picture) -> tuple[np.ndarray, np.ndarray]:
    """A checkpoint's logits and the labels of a stream of all test images, in order."""
    ds = data.load("cifar10")
    z = models.checkpoints(ds, "cnn", seeds=(seed,))[0].logits(ds, ds.pool(picture.corrupt()))
    return z, np.arange(TEST) % 10


def row(cells: pl.DataFrame, picture: Picture, method: str, seed: int) -> dict:
    found = vision.runs(cells).filter(
        pl.col("stream") == picture.stream,
        pl.col("profile") == (picture.profile or vision.FITTED),
        pl.col("method") == method,
        pl.col("seed") == seed,
        pl.col("batch") == 1,
    )
    assert found.height == 1
    return found.row(0, named=True)


NOISY = Picture("gaussian_noise", 3, "cifar10c")


@pytest.mark.parametrize("seed", [0, 2])
def test_ploc_k_centres_each_logit_by_the_mean_of_those_before(small, seed):
    z, y = logits(seed, NOISY)
    before = np.concatenate([np.zeros((1, 10)), np.cumsum(z, axis=0)[:-1] / np.arange(1, TEST)[:, None]])
    said = (z - before).argmax(axis=1)
    assert row(small, NOISY, "ploc_k", seed)["accuracy"] == pytest.approx(np.mean(said == y))
    assert row(small, NOISY, "source", seed)["accuracy"] == pytest.approx(np.mean(z.argmax(1) == y))


def test_deferred_changes_no_pair_of_classes_and_one_vs_one_is_counted_in_pairs(small):
    z, y = logits(1, NOISY)
    areas = []
    for j, k in combinations(range(10), 2):
        d = z[:, k] - z[:, j]
        areas.append(np.mean([(a > b) + 0.5 * (a == b) for a in d[y == k] for b in d[y == j]]))
    for method in ("source", "ploc_deferred"):
        assert row(small, NOISY, method, 1)["auroc"] == pytest.approx(np.mean(areas), abs=1e-12)
    delta = vision.changes(vision.runs(small))
    assert delta.height == 2 * 39
    assert delta["d_ovo"].abs().max() < 1e-8
    assert delta["d_ovr"].abs().max() > 0  # which nothing protects


def test_columns_of_other_measures_do_not_get_in_the_way(small):
    """Cells are gathered with those of the theory, which bring a column of the source's AUROC."""
    beside = small.with_columns(pl.lit(None, pl.Float64).alias("auroc_source"))
    assert vision.measured(beside) == vision.measured(small)


def test_lame_is_the_source_to_the_bit_on_every_run(small):
    for profile in vision.PROFILES:
        assert vision.measured(small, profile).lame_difference == 0
        assert vision.measured(small, profile).runs == 39


def test_the_control_is_instance_normalisation(small):
    """All images in one batch, each normalised by itself: the B = 1 answers without a loop."""
    ds = data.load("cifar10")
    net = models.checkpoints(ds, "cnn", seeds=(0,))[0].net
    x = torch.from_numpy(ds.stream().rows()).view(-1, 3, 32, 32)
    with torch.no_grad():
        h = (x - net.get_buffer("mean")) / net.get_buffer("std")
        for layer in net.blocks:
            if isinstance(layer, torch.nn.BatchNorm2d):
                h = functional.instance_norm(h, weight=layer.weight, bias=layer.bias, eps=layer.eps)
            else:
                h = layer(h)
        p = links.softmax(net.head(h.mean((2, 3))).double().numpy())
    y = np.arange(TEST) % 10
    found = row(small, Picture(), "bn_stats", 0)
    assert found["nll"] == pytest.approx(-np.log(p[np.arange(TEST), y]).mean(), rel=1e-4)
    assert found["entropy_least"] == pytest.approx((-p * np.log(p)).sum(1).min(), rel=1e-4)
    assert found["top_share"] == pytest.approx(np.bincount(p.argmax(1)).max() / TEST)


def test_who_chooses_no_image_is_the_control_and_tent_always_steps(small):
    rows = vision.one_class(vision.runs(small).filter(pl.col("profile") == vision.FITTED))
    assert set(rows["stream"]) == set(LEARNED)
    control = rows.filter(pl.col("method") == "bn_stats")
    sure = {(r["stream"], r["seed"]): r["entropy_least"] for r in control.to_dicts()}
    assert set(control["steps"]) == {0}
    for r in rows.filter(pl.col("method") != "bn_stats").to_dicts():
        if r["method"] == "tent":
            assert r["steps"] == TEST
        elif sure[r["stream"], r["seed"]] > vision.MARGIN + 1e-3:
            assert r["steps"] == 0
            assert r["d_control"] < 1e-5


def test_the_tables_are_means_of_the_runs(small):
    ten = vision.runs(small)
    table = vision.tables(small)["vision10"]
    assert table.height == 26
    r = table.filter(pl.col("profile") == "cifar10c", pl.col("stream") == NOISY.stream).row(0, named=True)
    for name, method in (("ece_source", "source"), ("ece_ploc_k", "ploc_k"), ("lame", "lame")):
        metric = "accuracy" if name == "lame" else "ece"
        assert r[name] == pytest.approx(np.mean([row(small, NOISY, method, s)[metric] for s in range(3)]))
    assert r["paper_lame"] is None  # the paper has no such profile
    methods = vision.tables(small)["vision10_methods"]
    assert set(methods["method"]) == {*vision.FORWARD, *vision.BATCHED, *vision.NORMALISING}
    assert ten.select("profile", "stream").n_unique() == 26


def test_the_two_class_table_has_every_method_and_the_papers_numbers(small):
    table = vision.tables(small)["vision"]
    first = table.filter(pl.col("dataset") == vision.PAIRS[0], pl.col("variant").str.contains("paper"))
    assert first["method"].to_list() == list(vision.PAIR_METHODS)
    assert set(first["n"]) == {TEST // 5}
    source, lame = (first.filter(pl.col("method") == m).row(0, named=True) for m in ("source", "lame"))
    assert source["paper_accuracy"] == 0.765
    assert lame["nll"] == source["nll"]


def test_without_all_runs_there_is_nothing_to_claim(small):
    assert vision.collapse(small) is None  # two streams of thirteen
    assert vision.measured(small.filter(pl.col("seed") != 1)) is None
    assert vision.tables(small.filter(pl.col("dataset") == "heloc")) == {}


def test_the_examples_run():
    result = doctest.testmod(vision)
    assert result.attempted
    assert not result.failed
