import copy
import io
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from ploc import PLOC, deferred
from ploc.torch import PLOCModule

HEADS = {"(B,)": (1, lambda z: z[:, 0]), "(B, 1)": (1, lambda z: z), "(B, 2)": (2, None), "(B, 5)": (5, None)}
rows = st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=40)


class Given(nn.Module):
    """A module whose logits are its input's first columns."""

    def __init__(self, width=1, shape=None, dtype=torch.float32):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1, dtype=dtype))
        self.width, self.shape = width, shape or (lambda z: z)

    def forward(self, x):
        return self.shape(x[:, : self.width] * self.scale)


def stream(width, n=50, seed=0):
    return torch.randn(n, width, generator=torch.Generator().manual_seed(seed)) + 1.5


@pytest.mark.parametrize("head", HEADS)
def test_the_answers_are_those_of_ploc_to_the_last_bit_and_shaped_like_the_heads(head):
    width, shape = HEADS[head]
    x = stream(width)
    net = Given(width, shape)
    model = PLOCModule(net, width)
    got = model(x)
    z = x.double().numpy()
    expected = PLOC(None if width == 1 else width).replay(z[:, 0] if width == 1 else z, logits=True)
    assert got.shape == net(x).shape
    assert got.dtype == torch.float64
    np.testing.assert_array_equal(got.numpy().ravel(), expected.ravel())


@given(rows, st.data())
@settings(max_examples=60, deadline=None)
def test_the_answers_do_not_depend_on_the_batch_size(z, data):
    x = torch.tensor(z)[:, None]
    whole, cut = PLOCModule(Given()), PLOCModule(Given())
    bounds = sorted(data.draw(st.lists(st.integers(0, len(z)), max_size=4)))
    parts = torch.tensor_split(x, bounds)
    assert torch.equal(whole(x), torch.cat([cut(part) for part in parts]))
    assert torch.equal(whole.state, cut.state)


def test_batches_that_cross_a_block_of_65536_rows():
    x = stream(1, 70_000)
    model = PLOCModule(Given())
    got = torch.cat([model(part) for part in x.split(9_001)])
    center = PLOC()
    np.testing.assert_array_equal(
        got[:, 0].numpy(), center.replay(x[:, 0].numpy().astype(float), logits=True)
    )
    assert model.shift.item() == center.shift
    assert model.count == 70_000


def test_predict_is_pure_and_observe_then_predict_is_deferred():
    x = stream(3)
    model = PLOCModule(Given(3), 3)
    assert torch.equal(model.predict(x), x.double())
    model.observe(x)
    before = model.state.clone()
    expected, mu = deferred(x.double().numpy())
    np.testing.assert_array_equal(model.predict(x).softmax(-1).numpy().argmax(1), expected.argmax(1))
    np.testing.assert_array_equal(model.shift.numpy(), mu)
    assert torch.equal(model.state, before)


def test_the_state_survives_a_state_dict_and_a_deepcopy_to_the_bit():
    x, later = stream(2), stream(2, seed=1)
    model = PLOCModule(Given(2), 2)
    model(x)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    restored = PLOCModule(Given(2), 2)
    restored.load_state_dict(torch.load(file, weights_only=True))
    assert model.state_dict()["state"].dtype == torch.float64
    twin = copy.deepcopy(model)
    expected = model(later)
    assert torch.equal(twin(later), expected)
    assert torch.equal(restored(later), expected)


@pytest.mark.parametrize(
    "cast", [nn.Module.half, nn.Module.bfloat16, nn.Module.float, lambda m: m.to(torch.float16)]
)
def test_casting_the_module_leaves_the_sums_in_float64(cast):
    model = PLOCModule(Given())
    model(torch.tensor([[0.1], [0.2]]))
    before = model.state.clone()
    cast(model)
    assert torch.equal(model.state, before)
    assert model.state.dtype == torch.float64
    assert cast(Given()).scale.dtype == model.module.scale.dtype


def test_no_gradients_and_the_wrapped_module_stays_in_eval_mode():
    net = nn.Sequential(Given(), nn.Dropout(0.9))
    model = PLOCModule(net).train()
    x = stream(1).requires_grad_()
    assert not model(x).requires_grad
    assert not any(p.requires_grad for p in model.parameters())
    assert model.training
    assert not any(module.training for module in net.modules())


def test_it_runs_under_inference_mode_and_deterministic_algorithms():
    x = stream(1)
    torch.use_deterministic_algorithms(True)
    try:
        with torch.inference_mode():
            model = PLOCModule(Given())
            first = model(x)
            model.reset()
            assert torch.equal(model(x), first)
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("logits", [1, 3])
def test_the_stream_goes_on_from_inference_mode_to_outside_and_back(logits):
    x, net, want = stream(logits), Given(logits), PLOCModule(Given(logits), logits)
    want(x)
    with torch.inference_mode():
        model = PLOCModule(net, logits)
        model(x[:3])
    model(x[3:5])
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    model.reset()
    assert model.count == 0
    model.load_state_dict(kept)
    with torch.inference_mode():
        model(x[5:])
    assert torch.equal(model.state, want.state)


def test_sums_loaded_in_float32_go_on_in_float64():
    model = PLOCModule(Given())
    model.load_state_dict({name: value.float() for name, value in model.state_dict().items()}, assign=True)
    model(stream(1))
    want = PLOCModule(Given())
    want(stream(1))
    assert torch.equal(model.state, want.state)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_a_logit_that_is_no_number_is_refused_and_the_state_is_as_before(bad):
    model = PLOCModule(Given())
    model(stream(1))
    before = model.state.clone()
    x = stream(1)
    x[7] = bad
    for verb in (model, model.predict, model.observe):
        with pytest.raises(ValueError, match=r"row 7"):
            verb(x)
    assert torch.equal(model.state, before)


@pytest.mark.parametrize(("width", "logits"), [(2, 1), (1, 2), (3, 2)])
def test_a_head_of_another_width_is_refused(width, logits):
    with pytest.raises(ValueError, match=rf"shape \(50, {width}\)"):
        PLOCModule(Given(width), logits)(stream(width))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda x: (x, x), "answered a tuple, not a tensor; wrap it"),
        (lambda x: {"logits": x}, "answered a dict, not a tensor"),
        (lambda x: x > 0, "must be real numbers, the module answered torch.bool"),
        (lambda x: x + 0j, "must be real numbers, the module answered torch.complex64"),
    ],
)
def test_a_module_that_answers_no_logits_is_refused(answer, message):
    class Other(nn.Module):
        def forward(self, x):
            return answer(x)

    with pytest.raises(TypeError, match=message):
        PLOCModule(Other())(stream(1))


@pytest.mark.parametrize("logits", [0, -1, 2.0, True])
def test_a_number_of_logits_that_is_none_is_refused(logits):
    with pytest.raises(ValueError, match=r"logits is .*; it is how many logits"):
        PLOCModule(Given(), logits)


@pytest.mark.parametrize("count", [torch.nan, -1.0, 1.5])
def test_a_state_that_no_stream_leaves_is_refused(count):
    model = PLOCModule(Given(2), 2)
    model.load_state_dict({**model.state_dict(), "state": torch.tensor([[count] * 2, [0.0] * 2, [0.0] * 2])})
    with pytest.raises(ValueError, match="which no stream leaves; load what PLOCModule saved"):
        model(stream(2))


def test_anchor_moves_every_row_but_the_first():
    z = [1.0, 3.0, 2.0]
    model = PLOCModule(Given(), anchor=0.5)
    got = model(torch.tensor(z)[:, None]).flatten().tolist()
    assert got == PLOC(anchor=0.5).replay(z, logits=True).tolist() == [1.0, 2.5, 0.5]
    with pytest.raises(ValueError, match="anchor"):
        PLOCModule(Given(), anchor=float("nan"))


def test_importing_ploc_imports_no_host():
    script = (
        "import sys, ploc; hosts = {'torch', 'sklearn', 'river', 'onnx', 'pandas', 'narwhals'};"
        "print(*hosts & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
