"""Training source networks: cross-entropy on the source, last epoch, no choice and no look at the target."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, stack_module_state
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from ploc_lab.models.network import Network
    from ploc_lab.models.recipe import Recipe

PLACES = 5
"""Seeds in one lockstep stack. A seed always trains in its own place of its own five, so that its bytes
do not depend on which others were asked for: a matrix product may round differently in another place."""

ALONE = threading.RLock()
"""torch's global generator, its threads and its kernels are the process's: one thread at a time sets them."""

Tick = Callable[[], None]


class Source(NamedTuple):
    """What to train on: rows by position, (B,) -> (B, d) float32, asked batch by batch; and all labels."""

    rows: Callable[[Tensor], Tensor]
    y: NDArray[np.integer[Any]]


class Fresh(NamedTuple):
    """A network as its seed initialised it, and the generator that goes on to shuffle its rows."""

    net: Network
    shuffler: torch.Generator


def fresh(make: Callable[[], Network], seed: int) -> Fresh:
    """Initialise one network from its seed and from nothing else."""
    if seed < 0:
        raise ValueError(f"a seed is a whole number from 0 on, not {seed}")
    with ALONE, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = make()
        shuffler = torch.Generator()
        shuffler.set_state(torch.get_rng_state())
    return Fresh(net, shuffler)


def fit(
    group: Sequence[Fresh],
    source: Source,
    recipe: Recipe,
    tick: Tick = lambda: None,
    device: str = "cpu",
) -> list[Network]:
    """Train the networks on the source and freeze them; `tick` is called after every epoch.

    A group of one trains as it is. A larger group trains as one stack: parameters gain a leading axis
    of networks, every network sees its own shuffle, and one optimiser steps them all. AdamW works
    number by number, so each network gets the updates that it would get alone.

    Initialisation and shuffles are the processor's on any `device`; only the arithmetic moves there.
    """
    with deterministic(), torch.random.fork_rng(devices=[]):
        for member in group:
            member.net.to(device)
        if len(group) == 1:
            _alone(group[0], source, recipe, tick)
        else:
            _stacked(group, source, recipe, tick)
    return [member.net.cpu().eval().requires_grad_(requires_grad=False) for member in group]


@contextmanager
def deterministic() -> Iterator[None]:
    """One thread and deterministic kernels: the number of threads decides how float sums are cut."""
    # cuBLAS is deterministic only with a workspace of its own.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    with ALONE:
        threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            torch.use_deterministic_algorithms(strict)


def _alone(member: Fresh, source: Source, recipe: Recipe, tick: Tick) -> None:
    net = member.net.train()
    if recipe.augment:  # images: a third faster in this layout
        net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    # Dropout and augmentation draw from the global generator; it goes on from where initialisation ended.
    torch.set_rng_state(member.shuffler.get_state())
    parameters = dict(net.named_parameters())
    descent = _Descent(parameters, source, recipe, [member.shuffler])
    descent.run(lambda x: net(x[0]).unsqueeze(0), tick)


def _stacked(group: Sequence[Fresh], source: Source, recipe: Recipe, tick: Tick) -> None:
    nets: list[nn.Module] = [member.net.train() for member in group]
    noisy = [m for m in nets[0].modules() if isinstance(m, nn.Dropout | nn.BatchNorm2d)]
    if noisy:
        raise ValueError(f"{noisy[0]} draws noise or keeps statistics: train such networks one at a time")
    parameters, _ = stack_module_state(nets)
    forward = torch.vmap(lambda p, x: functional_call(nets[0], p, (x,)))
    descent = _Descent(parameters, source, recipe, [member.shuffler for member in group])
    descent.run(lambda x: forward(parameters, x), tick)
    with torch.no_grad():
        for place, net in enumerate(nets):
            for name, parameter in net.named_parameters():
                parameter.copy_(parameters[name][place])


class _Descent:
    """The loop itself, over S networks: one shuffle a network, one optimiser for all."""

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        source: Source,
        recipe: Recipe,
        shufflers: Sequence[torch.Generator],
    ) -> None:
        if len(source.y) == 0:
            raise ValueError("the source has no rows: there is nothing to train on")
        self.source = source
        self.recipe = recipe
        self.shufflers = shufflers
        steps = recipe.epochs * -(-len(source.y) // recipe.batch)
        self.optimiser, self.after_step = _optimiser(parameters, recipe, steps)
        self.device = next(iter(parameters.values())).device

    def run(self, forward: Callable[[Tensor], Tensor], tick: Tick) -> None:
        """Every epoch of the recipe; `forward` takes (S, B, d) rows to (S, B, 1 or K) logits."""
        y = torch.from_numpy(np.asarray(self.source.y, dtype=np.int64))
        for _ in range(self.recipe.epochs):
            orders = torch.stack([torch.randperm(len(y), generator=g) for g in self.shufflers])
            for start in range(0, len(y), self.recipe.batch):  # the last batch is partial
                index = orders[:, start : start + self.recipe.batch]
                x = torch.stack([self.source.rows(one) for one in index]).to(self.device)
                x = _augmented(x) if self.recipe.augment else x
                self.optimiser.zero_grad()
                torch.autograd.backward(loss(forward(x), y[index].to(self.device)))
                self.optimiser.step()
                self.after_step()
            tick()


def loss(logits: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy, a mean over each network's batch and a sum over networks: (S, B, 1 or K), (S, B)."""
    if logits.shape[-1] == 1:
        each = functional.binary_cross_entropy_with_logits(
            logits[..., 0], y.to(logits.dtype), reduction="none"
        )
    else:
        each = functional.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none").view(y.shape)
    return each.mean(1).sum()


def _optimiser(
    parameters: Mapping[str, Tensor], recipe: Recipe, steps: int
) -> tuple[torch.optim.Optimizer, Callable[[], None]]:
    spared = [p for name, p in parameters.items() if any(part in name for part in recipe.no_decay)]
    decayed = [p for name, p in parameters.items() if not any(part in name for part in recipe.no_decay)]
    groups: list[dict[str, Any]] = [{"params": decayed}, {"params": spared, "weight_decay": 0.0}]
    if recipe.optimiser == "adamw":
        adamw = torch.optim.AdamW(groups, lr=recipe.lr, weight_decay=recipe.weight_decay, fused=True)
        return adamw, lambda: None
    sgd = torch.optim.SGD(groups, lr=recipe.lr, momentum=0.9, weight_decay=recipe.weight_decay, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        sgd, max_lr=recipe.lr, total_steps=steps, pct_start=0.25, cycle_momentum=False
    )
    return sgd, schedule.step


def _augmented(batch: Tensor, margin: int = 4) -> Tensor:
    """Flip and shift a batch of 3 x 32 x 32 images, all alike: one draw a batch, zeros beyond the border."""
    images = batch.view(-1, 3, 32, 32)
    flip, down, right = (int(torch.randint(high, ())) for high in (2, 2 * margin + 1, 2 * margin + 1))
    if flip:
        images = images.flip(3)
    images = functional.pad(images, (margin,) * 4)[:, :, down : down + 32, right : right + 32]
    return images.reshape(batch.shape)
