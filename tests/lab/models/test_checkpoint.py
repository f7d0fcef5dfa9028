import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from ploc_lab import data, models
from ploc_lab.models import checkpoint, load


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLOC_WORK", str(tmp_path_factory.mktemp("data")))
        yield data.load("rand_hie")


@pytest.fixture
def trained(ds, tmp_path, monkeypatch):
    monkeypatch.setenv("PLOC_WORK", str(tmp_path))
    return lambda backbone: models.train(ds, backbone, (0,), limit=200)[0]


BACKBONES = ("mlp", "tab_transformer", "ft_transformer", "lightgbm", "hist_gradient_boosting")


@pytest.mark.parametrize("backbone", BACKBONES)
def test_cached_logits_are_those_of_one_row_at_a_time(ds, trained, backbone):
    found = trained(backbone)
    z = found.logits(ds, "ood_test")
    assert z.dtype == np.float64
    assert z.shape == (len(ds.part("ood_test")),)
    for row in (0, 17, len(z) - 1):
        one = found.margins(ds.part("ood_test").rows(slice(row, row + 1)))
        np.testing.assert_allclose(one, z[row], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_a_loaded_checkpoint_answers_as_the_trained_one(ds, trained, backbone):
    found = trained(backbone)
    again = load(found.folder)
    assert (again.sha, again.seed, again.backbone, again.card) == (found.sha, 0, backbone, found.card)
    x = ds.part("validation").rows()
    np.testing.assert_array_equal(again.margins(x), found.margins(x))


def test_logits_are_computed_once(ds, trained, monkeypatch):
    found = trained("mlp")
    first = found.logits(ds, "id_test")
    (cached,) = found.folder.glob("logits-id_test-*.npy")
    assert found.sha[:12] in cached.name

    def never(*_args):
        raise AssertionError("computed again")

    monkeypatch.setattr(models.Checkpoint, "margins", never)
    np.testing.assert_array_equal(found.logits(ds, "id_test"), first)


def test_the_head_turns_features_into_logits(ds, trained):
    found = trained("ft_transformer")
    features = found.features(ds, "id_test")
    assert features.shape == (len(ds.part("id_test")), 64)
    with torch.inference_mode():
        z = found.net.head(torch.from_numpy(features))[:, 0].numpy()
    np.testing.assert_allclose(z, found.logits(ds, "id_test"), rtol=1e-5, atol=1e-6)


def test_loading_draws_nothing_from_the_generator_of_others(trained):
    found = trained("mlp")
    before = torch.get_rng_state()
    load(found.folder)
    assert torch.equal(torch.get_rng_state(), before)


def test_trees_have_neither_net_nor_features(ds, trained):
    found = trained("lightgbm")
    assert found.net is None
    with pytest.raises(ValueError, match="lightgbm has no penultimate features"):
        found.features(ds, "id_test")


def test_a_network_is_frozen(trained):
    net = trained("mlp").net
    assert not net.training
    assert not any(p.requires_grad for p in net.parameters())


def test_another_data_set_is_refused(trained):
    with pytest.raises(ValueError, match=r"trained on rand_hie with fingerprint .* not on rand_hie_health"):
        trained("mlp").logits(data.load("rand_hie_health"), "ood_test")


def test_a_changed_weight_is_refused(trained):
    found = trained("mlp")
    path = found.folder / found.card["file"]
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"weights\.safetensors has sha256 .* its card says .* train again"):
        load(found.folder)


@pytest.mark.parametrize("key", ["seed", "fingerprint", "validation"])
def test_a_changed_card_is_refused(trained, key):
    found = trained("mlp")
    path = found.folder / "card.json"
    path.write_text(json.dumps({**found.card, key: "changed"}))
    with pytest.raises(ValueError, match=r"card\.json says that its own sha256 is"):
        load(found.folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_half_a_card_is_refused(trained, text):
    found = trained("mlp")
    (found.folder / "card.json").write_text(text)
    with pytest.raises(ValueError, match=r"no checkpoint can be read from .* delete .* and train again"):
        load(found.folder)


@pytest.mark.parametrize("damage", ["empty", "truncated", "ones"])
def test_a_damaged_cache_is_said_and_computed_anew(ds, trained, damage, caplog):
    found = trained("mlp")
    z = found.logits(ds, "id_test")
    (cached,) = found.folder.glob("logits-id_test-*.npy")
    whole = cached.read_bytes()
    if damage == "ones":
        np.save(cached, np.ones(len(z)))
    else:
        cached.write_bytes(whole[: len(whole) // 2 if damage == "truncated" else 0])
    np.testing.assert_array_equal(found.logits(ds, "id_test"), z)
    assert f"{cached} is damaged" in caplog.text
    assert cached.read_bytes() == whole


@pytest.mark.parametrize("what", ["digest", "numpy"])
def test_other_code_or_versions_do_not_take_over_the_cache(ds, trained, what, monkeypatch):
    found = trained("mlp")
    found.features(ds, "id_test")
    checkpoint._code.cache_clear()
    if what == "digest":
        monkeypatch.setattr(checkpoint, "digest", lambda module: f"{module}, edited")
    else:
        monkeypatch.setattr(np, "__version__", "another")
    found.features(ds, "id_test")
    checkpoint._code.cache_clear()
    assert len(list(found.folder.glob("features-id_test-*.npy"))) == 2


def test_threads_may_cache_the_same_at_once(ds, trained, monkeypatch):
    found, both = trained("mlp"), threading.Barrier(2)
    write_bytes = Path.write_bytes

    def together(path: Path, content: bytes) -> int:
        written = write_bytes(path, content)
        both.wait(10)
        return written

    monkeypatch.setattr(Path, "write_bytes", together)
    with ThreadPoolExecutor(2) as threads:
        one, two = threads.map(lambda _: found.logits(ds, "id_test"), range(2))
    np.testing.assert_array_equal(one, two)


def test_nothing_unfinished_is_left_behind(ds, trained):
    found = trained("mlp")
    found.logits(ds, "id_test")
    names = sorted(path.name.split("-")[0] for path in found.folder.iterdir())
    assert names == ["card.json", "logits", "weights.safetensors"]
