"""What every registered method promises, whatever it computes."""

import inspect
import json

import numpy as np
import pytest
import torch
from torch import nn

from ploc_lab import models
from ploc_lab.methods import Card, Method, OutputMethod, SourceInfo, Validation, build, names, spec
from ploc_lab.methods.adapting import frozen
from ploc_lab.methods.protocol import outputs
from ploc_lab.report.names import method as label

D = 8
WHOLE_STREAM = {"ploc_deferred"}
ON_BATCH_NORM = ("bn_stats", "tent", "eata", "sar", "cotta", "dua", "note", "rotta", "ftat", "pft3a")


class Table(nn.Module):
    """A normed network of a table's row, with every place that a method may touch there."""

    def __init__(self):
        super().__init__()
        self.top = nn.LayerNorm(D)
        self.hidden = nn.Linear(D, 16)
        self.head = nn.Linear(16, 1)

    def features(self, x):
        return self.hidden(self.top(x)).relu()

    def forward(self, x):
        return self.head(self.features(x))


class Picture(nn.Module):
    """A batch-normed network of 3 x 8 x 8 images."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU())
        self.head = nn.Linear(6, 1)

    def features(self, x):
        return self.blocks(x).mean((2, 3))

    def forward(self, x):
        return self.head(self.features(x))


def made(kind):
    torch.manual_seed(4)
    net = kind()
    x = stream(kind, 64, seed=0)
    with torch.no_grad():
        for _ in range(20):  # batch norm gets to know the source
            net.train()(torch.from_numpy(x))
        net.eval()
        net.head.weight.mul_(8)
        net.head.bias.sub_(net(torch.from_numpy(x)).mean())
    return net


def stream(kind, n, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    if kind is Picture:
        return (scale * rng.uniform(size=(n, 3, 8, 8))).astype(np.float32)
    return (scale * rng.normal(size=(n, D))).astype(np.float32)


def know(kind, net):
    x = stream(kind, 80, seed=1)
    z, f = outputs(net, x, features=True)
    y = (z + np.random.default_rng(2).normal(0, 2, 80) > 0).astype(int)
    return SourceInfo(np.bincount(y) / 80, Validation(x, y, z, f))


NETS = {kind: made(kind) for kind in (Table, Picture)}
SOURCES = {kind: know(kind, net) for kind, net in NETS.items()}
CASES = [(name, Table) for name in names()] + [(name, Picture) for name in ON_BATCH_NORM]


def fresh(name, kind, net=None):
    # A memory of 4 rows, so that it is learnt from within these streams.
    options = {"every": 4} if name in {"note", "rotta"} else {}
    options |= {"capacity": 4} if name == "rotta" else {}
    return build(name, net or NETS[kind], SOURCES[kind], **options)


def cut(name, x):
    """Batches of a stream, one of a single row, the last one partial; a method of whole streams gets one."""
    return [x] if name in WHOLE_STREAM else np.split(x, [4, 8, 9])


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_stream_in_batches(name, kind):
    """Shapes and types, a network as it was, no state shared, bad rows refused, a report to write down."""
    net = NETS[kind]
    before = {k: v.clone() for k, v in net.state_dict().items()}
    asked = [(p.requires_grad, p.grad) for p in net.parameters()]
    x = stream(kind, 11, seed=3)
    method, again, other = (fresh(name, kind) for _ in range(3))
    other.respond(stream(kind, 4, seed=9, scale=3))  # another stream, in the meantime
    answers = [method.respond(part) for part in cut(name, x)]
    for i, (part, answer) in enumerate(zip(cut(name, x), answers, strict=True)):
        assert answer.probs.shape == answer.scores.shape == (len(part),)
        assert answer.probs.dtype == answer.scores.dtype == np.float64
        assert np.isfinite(answer.scores).all()
        assert np.all((answer.probs >= 0) & (answer.probs <= 1))
        if i < 2:
            bad = part.copy()
            bad.reshape(len(part), -1)[3, 2] = (np.nan, -np.inf)[i]
            with pytest.raises(ValueError, match=r"row 3|not finite"):
                again.respond(bad)
        repeated = again.respond(part)
        assert np.array_equal(repeated.probs, answer.probs)
        assert np.array_equal(repeated.scores, answer.scores)
    assert not net.training
    assert [(p.requires_grad, p.grad) for p in net.parameters()] == asked
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    report = json.loads(json.dumps(method.report()))
    assert report["nan"] == 0
    assert report == json.loads(json.dumps(again.report()))
    assert set(report) >= {"n_adapted", "steps", "skipped", "nan", "state", "options"}


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_no_finite_row_is_answered_by_nan(name, kind):
    flat = np.ones_like(stream(kind, 4, seed=0))
    rows = [flat, 0 * flat, stream(kind, 4, seed=6, scale=1e4), 1e-30 * flat, stream(kind, 4, seed=7)]
    method = fresh(name, kind)
    for part in [np.concatenate(rows)] if name in WHOLE_STREAM else rows:
        answer = method.respond(part)
        assert np.isfinite(answer.probs).all()
        assert np.isfinite(answer.scores).all()


@pytest.mark.parametrize("name", names())
def test_there_is_no_place_for_a_label(name):
    cls = spec(name).cls
    verbs = [
        getattr(cls, verb) for verb in ("predict", "respond", "replay", "respond_all") if hasattr(cls, verb)
    ]
    for verb in verbs:
        found = inspect.signature(verb).parameters
        assert not {"y", "label", "labels", "target", "targets", "gt"} & set(found)
        assert all(p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in found.values())


@pytest.mark.parametrize("name", names())
def test_the_card_is_complete_and_the_label_is_there(name):
    card = spec(name).card
    assert isinstance(card, Card)
    assert issubclass(spec(name).cls, Method)
    for text in (card.title, card.needs, card.changes, card.at_one):
        assert text == text.strip() != ""
        assert "\n" not in text
    assert issubclass(spec(name).cls, OutputMethod) == (card.needs not in {"network", "gradients"})
    assert label(name) != name, "tables would print the registry's name"


@pytest.mark.parametrize("name", names())
def test_what_a_method_needs_is_what_it_cannot_do_without(name):
    needs = spec(name).card.needs
    bare = SourceInfo(SOURCES[Table].prior)
    if needs in {"source rows", "source labels"}:
        with pytest.raises(ValueError, match="source rows"):
            build(name, NETS[Table], bare).respond(stream(Table, 4, seed=1))
        return
    build(name, NETS[Table], bare).respond(stream(Table, 4, seed=1))
    if needs in {"logits", "source rates"}:
        assert build(name, None, bare).replay(np.array([0.5, -1.0])).probs.shape == (2,)


def test_names_are_distinct_and_unknown_ones_are_refused():
    assert len(set(names())) == len(names())
    with pytest.raises(ValueError, match="no method is called 'tnet'; there are: source, ploc"):
        build("tnet", None, SOURCES[Table])


@pytest.mark.parametrize("backbone", ["mlp", "ft_transformer", "tab_transformer"])
@pytest.mark.parametrize("name", ["tent", "eata", "bn_stats", "dua", "note", "rotta"])
def test_without_batch_norm_there_is_nothing_to_do_and_it_is_said(name, backbone):
    net = models.build(backbone, 16).eval()
    x = np.random.default_rng(0).normal(size=(9, 16)).astype(np.float32)
    method = build(name, net, SOURCES[Table])
    for part in (x[:8], x[8:]):
        assert np.array_equal(method.respond(part).scores, frozen(net, torch.from_numpy(part)))
    report = method.report()
    assert report["n_adapted"] == report["steps"] == 0
    assert set(report["skipped"]) == {"no adaptable parameter"}


RATE_ZERO = {
    "tent": {"lr": 0.0, "norm_types": ("ln",)},
    "eata": {"lr": 0.0, "norm_types": ("ln",), "margin": 1.0},
    "sar": {"lr": 0.0, "margin": 1.0},
    "ftat": {"lrs": (0.0,) * 3, "prior": "none"},
    "pft3a_stream": {"lr": 0.0},
    "cotta": {"lr": 0.0, "confidence": 0.0},
}


@pytest.mark.parametrize("name", RATE_ZERO)
def test_a_rate_of_zero_moves_no_weight(name):
    method = build(name, NETS[Table], SOURCES[Table], **RATE_ZERO[name])
    before = method.stack.memory.clone()
    for part in cut(name, stream(Table, 11, seed=3)):
        z = frozen(NETS[Table], torch.from_numpy(part))
        found = method.respond(part).scores
        if name != "pft3a_stream":  # its prior moves without the weights
            np.testing.assert_allclose(found, z, atol=1e-5)
    assert method.report()["steps"] > 0
    assert torch.equal(method.stack.memory, before)
