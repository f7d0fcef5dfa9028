import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch

from ploc_lab.models import build
from ploc_lab.models.recipe import Recipe, find
from ploc_lab.models.training import Source, fit, fresh, loss

D = 9


def source(n=300, classes=2, dtype=torch.float32, d=D):
    rng = np.random.default_rng(5)
    x = torch.from_numpy(rng.normal(size=(n, d))).to(dtype)
    y = (
        rng.integers(0, classes, n)
        if classes > 2
        else (x[:, 0].numpy() + rng.normal(size=n) > 0.4).astype(int)
    )
    return Source(lambda index: x.index_select(0, index), y)


def made(recipe, seed, classes=2, dtype=torch.float32):
    member = fresh(lambda: build(recipe.network, D, classes), seed)
    member.net.to(dtype)
    return member


def alone(recipe, seeds, **kind):
    dtype, classes = kind.get("dtype", torch.float32), kind.get("classes", 2)
    return [fit([made(recipe, s, classes, dtype)], source(**kind), recipe)[0] for s in seeds]


def together(recipe, seeds, **kind):
    dtype, classes = kind.get("dtype", torch.float32), kind.get("classes", 2)
    return fit([made(recipe, s, classes, dtype) for s in seeds], source(**kind), recipe)


def weights(net):
    return torch.cat([p.flatten() for p in net.parameters()])


SHORT = {"epochs": 4, "batch": 64}  # 5 batches an epoch, the last of 44 rows


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", ["mlp", "tab_transformer", "ft_transformer"])
def test_lockstep_trains_what_training_alone_does(name, classes):
    # In float64: there the two orders of summation leave no room for a real difference to hide.
    recipe = replace(find(name), **SHORT)
    kind = {"classes": classes, "dtype": torch.float64}
    for one, other in zip(alone(recipe, (0, 3), **kind), together(recipe, (0, 3), **kind), strict=True):
        torch.testing.assert_close(weights(one), weights(other), rtol=1e-9, atol=1e-11)


def by_hand(seed, data, recipe):
    """The recipe as the textbook writes AdamW: decoupled decay, bias-corrected moments."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = build("mlp", D).double()
        theta = [p.detach().clone().requires_grad_() for p in net.parameters()]
        m = [torch.zeros_like(p) for p in theta]
        v = [torch.zeros_like(p) for p in theta]
        t, n = 0, len(data.y)
        y = torch.from_numpy(data.y).double()
        for _ in range(recipe.epochs):
            order = torch.randperm(n)
            for index in order.split(recipe.batch):
                t += 1
                h = data.rows(index)
                for weight, bias in zip(theta[:-2:2], theta[1:-2:2], strict=True):
                    h = (h @ weight.T + bias).clamp(min=0)
                z = (h @ theta[-2].T + theta[-1])[:, 0]
                p = torch.sigmoid(z)
                nll = -(y[index] * p.log() + (1 - y[index]) * (1 - p).log()).mean()
                for k, g in enumerate(torch.autograd.grad(nll, theta)):
                    m[k] = 0.9 * m[k] + 0.1 * g
                    v[k] = 0.999 * v[k] + 0.001 * g**2
                    step = (m[k] / (1 - 0.9**t)) / ((v[k] / (1 - 0.999**t)).sqrt() + 1e-8)
                    with torch.no_grad():
                        theta[k] -= recipe.lr * recipe.weight_decay * theta[k] + recipe.lr * step
    return torch.cat([p.detach().flatten() for p in theta])


def test_the_recipe_is_the_textbooks_adamw():
    recipe = replace(find("mlp"), **SHORT)
    (ours,) = alone(recipe, [2], dtype=torch.float64)
    theirs = by_hand(2, source(dtype=torch.float64), recipe)
    torch.testing.assert_close(weights(ours), theirs, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["mlp", "tab_transformer", "ft_transformer"])
def test_a_second_run_gives_the_same_bytes(name):
    recipe = replace(find(name), **SHORT)
    run = together if recipe.lockstep else alone
    for one, other in zip(run(recipe, range(5)), run(recipe, range(5)), strict=True):
        assert torch.equal(weights(one), weights(other))


def test_a_seed_decides_initialisation_and_shuffling_and_nothing_else_does():
    first = fresh(lambda: build("mlp", D), 7)
    torch.manual_seed(123)
    torch.rand(5)
    again = fresh(lambda: build("mlp", D), 7)
    assert torch.equal(weights(first.net), weights(again.net))
    draw = [torch.randperm(100, generator=member.shuffler) for member in (first, again)]
    assert torch.equal(*draw)
    other = fresh(lambda: build("mlp", D), 8)
    assert not torch.equal(weights(first.net), weights(other.net))


def test_threads_train_what_one_thread_does():
    recipe = replace(find("mlp"), **SHORT)
    expected = [weights(net) for net in alone(recipe, range(8))]
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda seed: weights(alone(recipe, [seed])[0]), range(8)))
    finally:
        sys.setswitchinterval(switching)
    assert [torch.equal(one, other) for one, other in zip(found, expected, strict=True)] == [True] * 8


def test_the_callers_generator_and_threads_are_left_alone():
    torch.manual_seed(11)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    alone(replace(find("mlp"), **SHORT), [0])
    assert torch.equal(before, torch.get_rng_state())
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled()


def test_what_comes_out_is_frozen():
    (net,) = alone(replace(find("mlp"), **SHORT), [0])
    assert not net.training
    assert not any(p.requires_grad for p in net.parameters())


def test_spared_parameters_do_not_decay():
    # lr * decay = 1 wipes a decayed parameter out before every step: only the last step of 0.1 is left of it.
    recipe = replace(find("ft_transformer"), epochs=3, batch=300, lr=0.1, weight_decay=10.0)
    (net,) = alone(recipe, [0])
    shown = {name: p.abs().max() for name, p in net.named_parameters() if not name.endswith(".bias")}
    spared = {"feature_tokenizer.weight", "ffn_normalization.weight", "head_normalization.weight"}
    assert {name for name, largest in shown.items() if largest > 0.11} == spared


def test_the_loss_is_the_mean_of_each_network_summed():
    z = torch.tensor([[[0.0], [2.0]], [[-1.0], [0.5]]])
    y = torch.tensor([[0, 1], [1, 1]])
    p = torch.sigmoid(z[..., 0])
    by_row = -torch.where(y == 1, p, 1 - p).log()
    torch.testing.assert_close(loss(z, y), by_row.mean(1).sum())
    as_two = torch.cat([torch.zeros_like(z), z], dim=-1)
    torch.testing.assert_close(loss(as_two, y), loss(z, y))


def test_the_image_recipe_learns_with_augmentation_and_its_schedule():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 96)
    x = torch.from_numpy((0.3 + 0.4 * y[:, None] + 0.05 * rng.normal(size=(96, 3072))).astype(np.float32))
    recipe = replace(find("cnn"), epochs=4, batch=24)
    nets = [
        fit(
            [fresh(lambda: build("cnn", 3072, 2, width=4), 1)],
            Source(lambda index: x.index_select(0, index), y),
            recipe,
        )[0]
        for _ in range(2)
    ]
    assert torch.equal(weights(nets[0]), weights(nets[1]))
    with torch.inference_mode():
        decided = nets[0](x)[:, 0] > 0
    assert (decided.numpy() == y).mean() > 0.95


def test_a_network_that_draws_noise_is_not_stacked():
    recipe = find("tab_transformer:categorical")
    group = [fresh(lambda: build("tab_transformer", D, categories=((0, 4),)), seed) for seed in (0, 1)]
    with pytest.raises(ValueError, match=r"Dropout.* draws noise .* one at a time"):
        fit(group, source(), recipe)


def test_an_empty_source_and_a_negative_seed_are_refused():
    with pytest.raises(ValueError, match="the source has no rows"):
        alone(Recipe("mlp", 8, 0.1, 0.0), [0], n=0)
    with pytest.raises(ValueError, match="not -1"):
        fresh(lambda: build("mlp", D), -1)


def test_every_epoch_ticks():
    ticks = []
    recipe = replace(find("mlp"), **SHORT)
    fit([made(recipe, 0)], source(), recipe, tick=lambda: ticks.append(1))
    assert len(ticks) == recipe.epochs
