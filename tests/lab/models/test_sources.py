import itertools

import numpy as np
import pytest

from ploc_lab import data, models
from ploc_lab.models import checkpoint, sources, training
from ploc_lab.models.sources import one_hot_blocks

ROWS = 300


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    monkeypatch.setenv("PLOC_WORK", str(tmp_path))
    return tmp_path


@pytest.fixture
def ds():
    return data.load("rand_hie")


def content(found):
    """Every byte that makes the checkpoints what they are."""
    return [(c.folder / name).read_bytes() for c in found for name in (c.card["file"], "card.json")]


@pytest.mark.parametrize("backbone", ["mlp", "tab_transformer", "lightgbm", "hist_gradient_boosting"])
def test_the_bytes_of_a_seed_do_not_depend_on_its_companions(ds, work, monkeypatch, backbone):
    together = content(models.train(ds, backbone, (0, 1, 2), limit=ROWS))
    monkeypatch.setenv("PLOC_WORK", str(work / "other"))
    other = data.load("rand_hie")
    apart = [models.train(other, backbone, (seed,), limit=ROWS)[0] for seed in (2, 0, 1)]
    assert content([apart[1], apart[2], apart[0]]) == together
    assert len({c.sha for c in apart}) == 3


def test_what_is_there_is_not_trained_again(ds, monkeypatch):
    first = models.train(ds, "mlp", (0, 1), limit=ROWS)

    def never(*_args, **_kwargs):
        raise AssertionError("trained again")

    monkeypatch.setattr(training, "fit", never)
    assert [c.sha for c in models.checkpoints(ds, "mlp", (1, 0), limit=ROWS)] == [c.sha for c in first[::-1]]


def test_an_interrupted_training_goes_on_to_the_same_bytes(ds, work, monkeypatch):
    whole = content(models.train(ds, "mlp", (0, 1, 2), limit=ROWS))
    monkeypatch.setenv("PLOC_WORK", str(work / "other"))
    other = data.load("rand_hie")
    ticks = itertools.count()
    keep = training.fit

    def interrupted(group, source, recipe, tick, *rest):
        def counting():
            tick()
            if next(ticks) == 25:  # in the second seed's sixth epoch
                raise KeyboardInterrupt

        return keep(group, source, recipe, counting, *rest)

    monkeypatch.setattr(training, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        models.train(other, "mlp", (0, 1, 2), limit=ROWS)
    kept = [
        path.parent.name for path in (work / "other").rglob("card.json") if path.parent.name[:4] == "seed"
    ]
    assert kept == ["seed0"]
    assert content(models.train(other, "mlp", (0, 1, 2), limit=ROWS)) == whole


def test_the_card_says_what_made_the_checkpoint(ds):
    (found,) = models.train(ds, "ft_transformer", (4,), limit=ROWS)
    card = found.card
    assert (card["dataset"], card["backbone"], card["seed"], card["d"]) == (
        "rand_hie",
        "ft_transformer",
        4,
        8,
    )
    assert card["fingerprint"] == ds.fingerprint
    assert (card["source_rows"], card["source_rows_available"]) == (ROWS, len(ds.part("train")))
    assert (card["recipe"]["lr"], card["recipe"]["weight_decay"], card["recipe"]["epochs"]) == (
        1e-4,
        1e-5,
        20,
    )
    assert set(card["versions"]) == {"python", "numpy", "torch"}
    z = found.logits(ds, "validation")
    y = ds.part("validation").y
    assert card["validation"]["accuracy"] == pytest.approx(np.mean((z >= 0) == y))
    assert card["id_test"]["rows"] == len(ds.part("id_test"))


def test_data_recipe_and_limit_each_have_their_own_folder(ds):
    made = [
        models.train(ds, "mlp", (0,), limit=ROWS),
        models.train(ds, "mlp", (0,), limit=ROWS + 1),
        models.train(data.load("rand_hie_health"), "mlp", (0,), limit=ROWS),
        models.train(ds, "tab_transformer:batch_1024", (0,), limit=ROWS),
        models.train(ds, "tab_transformer", (0,), limit=ROWS),
    ]
    assert len({c.folder for (c,) in made}) == 5
    assert len({c.sha for (c,) in made}) == 5


def test_a_source_too_large_to_hold_trains_to_the_same_bytes(ds, work, monkeypatch):
    held = content(models.train(ds, "tab_transformer", (0,)))
    monkeypatch.setenv("PLOC_WORK", str(work / "other"))
    monkeypatch.setattr(sources, "HELD", 0)
    assert content(models.train(data.load("rand_hie"), "tab_transformer", (0,))) == held


def test_one_hot_blocks_cover_the_coded_columns(real_data):
    heloc = data.load("heloc", real_data("heloc/heloc_dataset_v1.csv"))
    blocks = one_hot_blocks(heloc)
    x = heloc.part("validation").rows()
    assert len(blocks) == 2
    assert blocks[0][0] == 20
    assert blocks[-1][1] == heloc.d
    for a, b in blocks:
        np.testing.assert_array_equal(x[:, a:b].sum(axis=1), 1)


def test_the_categorical_variant_needs_categories(ds):
    with pytest.raises(ValueError, match="rand_hie has no categorical columns"):
        models.train(ds, "tab_transformer:categorical", (0,))


def test_heloc_collapses_as_in_the_paper(real_data):
    """Table 4: the FT-Transformer's source rows are accuracy .431 and F1 0, with every seed."""
    heloc = data.load("heloc", real_data("heloc/heloc_dataset_v1.csv"))
    stream = heloc.stream()
    (found,) = models.train(heloc, "ft_transformer", (0,))
    decided = found.logits(heloc, "ood_test")[stream.index] >= 0
    y = stream.open(decided)
    assert not decided.any()
    assert np.mean(decided == y) == pytest.approx(0.431, abs=5e-4)


@pytest.mark.parametrize("limit", [0, -3])
def test_a_senseless_limit_is_refused(ds, limit):
    with pytest.raises(ValueError, match=f"at least one source row, got {limit}"):
        models.train(ds, "mlp", (0,), limit=limit)


def test_an_unknown_backbone_is_refused_with_the_known_ones(ds):
    with pytest.raises(ValueError, match="no backbone 'resnet'; there are mlp"):
        models.train(ds, "resnet")


@pytest.mark.parametrize("backbone", ["lightgbm", "hist_gradient_boosting"])
def test_trees_refuse_more_than_two_classes(ds, backbone):
    ds.prior = np.full(10, 0.1)
    with pytest.raises(ValueError, match=f"{backbone} tells two classes apart, rand_hie has 10"):
        models.train(ds, backbone, (0,), limit=ROWS)


def test_a_folder_without_a_card_is_no_checkpoint(ds):
    (found,) = models.train(ds, "mlp", (0,), limit=ROWS)
    (found.folder / checkpoint.CARD).unlink()
    assert not checkpoint.exists(found.folder)
    (again,) = models.train(ds, "mlp", (0,), limit=ROWS)
    assert again.sha == found.sha
