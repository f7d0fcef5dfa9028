import numpy as np
import pytest
import torch

from ploc_lab import models
from ploc_lab.methods import OutputMethod, SourceInfo, Validation, build, lockstep, names, protocol, spec
from ploc_lab.methods.adapting import Adapting

GRADIENT = [name for name in names() if issubclass(spec(name).cls, Adapting)]
ROWS = np.random.default_rng(0).normal(0, 1.5, (45, 16)).astype(np.float32)
SOURCES = [SourceInfo(np.array([p, 1 - p])) for p in (0.7, 0.6, 0.8)]


def networks(backbone, sharp=6.0):
    nets = []
    for seed in range(3):
        torch.manual_seed(seed)
        net = models.build(backbone, 16).eval()
        with torch.no_grad():
            net.head.weight.mul_(sharp)
            z = net(torch.from_numpy(ROWS))[:, 0].sort().values
            # Between two rows: at 0 the released loss has a kink, and rounding would choose the side.
            net.head.bias.sub_((z[21] + z[22]) / 2)
        nets.append(net)
    return nets


DEEP = ("tent_ln", "eata_ln", "sar", "ftat", "ftat_paper", "pft3a_code", "pft3a_stream", "cotta")
CASES = [(name, "ft_transformer") for name in DEEP] + [(name, "tab_transformer") for name in GRADIENT]
CASES += [(name, "mlp") for name in ("ftat", "pft3a", "cotta")]


@pytest.mark.parametrize(("name", "backbone"), CASES)
def test_in_lockstep_each_checkpoint_answers_as_it_would_alone(name, backbone):
    nets, parts = networks(backbone)[:2], [*np.split(ROWS[:4], 4), ROWS[4:24], ROWS[24:28]]
    before = [{k: v.clone() for k, v in net.state_dict().items()} for net in nets]
    together = lockstep.run(name, nets, SOURCES[:2], parts)
    for net, source, (answer, report) in zip(nets, SOURCES, together, strict=False):
        alone = build(name, net, source)
        answers = [alone.respond(part) for part in parts]
        np.testing.assert_allclose(answer.scores, np.concatenate([p.scores for p in answers]), atol=2e-4)
        np.testing.assert_allclose(answer.probs, np.concatenate([p.probs for p in answers]), atol=5e-5)
        assert alone.report() == report
        assert answer.probs.dtype == np.float64
    for net, state in zip(nets, before, strict=True):
        assert all(torch.equal(v, state[k]) for k, v in net.state_dict().items()), "the given model moved"


@pytest.mark.parametrize("name", [n for n in names() if issubclass(spec(n).cls, OutputMethod)])
def test_methods_of_outputs_run_too(name):
    nets = networks("mlp")[:1]
    z = protocol.outputs(nets[0], ROWS)[0]
    source = SourceInfo(SOURCES[0].prior, Validation(ROWS, (np.arange(len(z)) % 3 > 0).astype(int), z))
    (answer, report), = lockstep.run(name, nets, source, ROWS, 10)  # fmt: skip
    assert answer.probs.shape == (len(ROWS),)
    assert report["nan"] == 0


@pytest.mark.parametrize("name", ["tent", "eata", "sar", "cotta", "bn_stats"])
def test_many_classes_and_convolutions(name):
    nets = []
    for seed in range(2):
        torch.manual_seed(seed)
        nets.append(models.build("cnn", 3072, classes=10, width=4).eval())
    x = np.random.default_rng(1).uniform(size=(5, 3, 32, 32)).astype(np.float32)
    source = SourceInfo(np.full(10, 0.1))
    options = {"views": 2} if name == "cotta" else {}
    for net, (answer, report) in zip(nets, lockstep.run(name, nets, source, x, 2, **options), strict=True):
        alone = build(name, net, source, **options)
        parts = [alone.respond(x[i : i + 2]).probs for i in (0, 2, 4)]
        np.testing.assert_allclose(answer.probs, np.concatenate(parts), atol=1e-4)
        np.testing.assert_allclose(answer.probs.sum(1), 1)
        assert answer.probs.shape == (5, 10)
        assert (report["n_adapted"] > 0) == (name != "bn_stats")


def test_a_sequence_of_batches_is_a_stream():
    nets = networks("mlp")
    cut = lockstep.run("ftat", nets, SOURCES, ROWS, 20)
    given = lockstep.run("ftat", nets, SOURCES, [ROWS[:20], ROWS[20:40], ROWS[40:]])
    for (a, _), (b, _) in zip(cut, given, strict=True):
        assert np.array_equal(a.scores, b.scores)


def test_a_method_that_moves_nothing_answers_the_cached_logits_to_the_bit():
    nets = networks("mlp")
    cached = [protocol.outputs(net, ROWS)[0] for net in nets]
    for (answer, report), z in zip(
        lockstep.run("sar", nets, SOURCES, ROWS, 7, logits=cached), cached, strict=True
    ):
        assert np.array_equal(answer.scores, z)
        assert report["n_adapted"] == 0
        assert report["skipped"] == {"no adaptable parameter": 7}


def test_progress_counts_every_row():
    seen = []
    lockstep.run("pft3a", networks("mlp"), SOURCES, ROWS, 20, progress=seen.append)
    assert seen == [20, 20, 5]


@pytest.mark.parametrize("name", ["ftat", "pft3a", "cotta"])
def test_a_rate_of_zero_is_the_source(name):
    nets = networks("ft_transformer")
    options = {
        "ftat": {"lrs": (0.0,), "prior": "none"},
        "pft3a": {"lr": 0.0},
        "cotta": {"lr": 0.0, "confidence": 0.0},
    }
    for net, (answer, _) in zip(nets, lockstep.run(name, nets, SOURCES, ROWS, **options[name]), strict=True):
        np.testing.assert_allclose(answer.scores, protocol.outputs(net, ROWS)[0], atol=1e-5)


def test_weights_that_burst_are_answered_by_the_source_and_counted():
    nets = networks("mlp")
    (answer, report), *_ = lockstep.run("pft3a", nets, SOURCES, ROWS, lr=1e38)
    z = protocol.outputs(nets[0], ROWS)[0]
    assert report["nan"] > 0
    assert np.isfinite(answer.probs).all()
    np.testing.assert_allclose(answer.scores[-1], z[-1], atol=1e-5)


@pytest.mark.parametrize(("place", "value"), [((7, 3), np.nan), ((0, 0), np.inf)])
def test_rows_that_are_not_finite_are_refused_before_anything_moves(place, value):
    x = ROWS.copy()
    x[place] = value
    with pytest.raises(ValueError, match=f"row {place[0]} "):
        lockstep.run("ftat", networks("mlp"), SOURCES, x)
    method = build("ftat", networks("mlp")[0], SOURCES[0])
    before = method.stack.memory.clone()
    with pytest.raises(ValueError, match="not finite"):
        method.respond(x[place[0] : place[0] + 1])
    assert torch.equal(method.stack.memory, before)


def test_mixed_architectures_sources_and_training_mode_are_refused():
    with pytest.raises(ValueError, match="one architecture"):
        lockstep.run(
            "ftat", [models.build("mlp", 16).eval(), models.build("mlp", 17).eval()], SOURCES[:2], ROWS
        )
    for name in ("ftat", "ploc"):
        with pytest.raises(ValueError, match="3 networks came with 2 sources"):
            lockstep.run(name, networks("mlp"), SOURCES[:2], ROWS)
    with pytest.raises(ValueError, match="training mode"):
        build("ftat", models.build("mlp", 16), SOURCES[0])
