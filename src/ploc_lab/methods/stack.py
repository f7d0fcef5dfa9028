"""Many networks of one architecture as one: every tensor carries the networks on a leading axis."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from ploc_lab.methods.traced import Outer, traced

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from ploc_lab.methods.traced import Grads

Params = dict[str, Tensor]


class Stack:
    """N copies of networks, evaluated in one pass; `moving` names the parameters that a method may move.

    The moving parameters are views of one flat `memory`, (N, *shape) each, so that a whole stack is saved,
    restored or averaged by one operation. All else is `fixed`; the networks given stay as they are.

    >>> stack = Stack([nn.Linear(2, 1).eval() for _ in range(3)], ["weight", "bias"], copies=2)
    >>> stack(stack.params, torch.zeros(5, 2))[1].shape, stack.scalars
    (torch.Size([6, 5, 1]), 3)
    """

    def __init__(self, nets: Sequence[nn.Module], moving: Iterable[str], copies: int = 1) -> None:
        rows = [_tensors(net) for net in nets for _ in range(copies)]
        shapes = {name: tensor.shape for name, tensor in rows[0].items()}
        for row in rows[1:]:
            if {name: tensor.shape for name, tensor in row.items()} != shapes:
                raise ValueError("the networks of a stack must be of one architecture, these differ in shape")
        moving = list(moving)
        self.count = len(rows)
        self.net = _WithFeatures(deepcopy(nets[0]).eval().requires_grad_(False))
        self.shapes = {name: shapes[name] for name in moving}
        self.memory = torch.cat(
            [torch.stack([row[name] for row in rows]).flatten() for name in moving] or [torch.empty(0)]
        )
        self.params = self.views(self.memory)
        fixed = {name: torch.stack([row[name] for row in rows]) for name in shapes if name not in self.shapes}
        # What all networks share (means of the input, column numbers) isn't given a leading axis.
        self.shared = {
            name: t[0]
            for name, t in fixed.items()
            if name not in dict(nets[0].named_parameters()) and bool((t == t[0]).all())
        }
        self._logits = traced(lambda x, *tensors: (self(dict(zip(self.shapes, tensors, strict=True)), x)[1],))
        self.fixed = {name: t for name, t in fixed.items() if name not in self.shared}

    @property
    def scalars(self) -> int:
        """How many numbers of one network can move."""
        return sum(shape.numel() for shape in self.shapes.values())

    def views(self, memory: Tensor) -> Params:
        """The parameters that a flat memory holds, by name."""
        sizes = [self.count * shape.numel() for shape in self.shapes.values()]
        parts = zip(self.shapes.items(), torch.split(memory, sizes) if sizes else (), strict=True)
        return {name: part.view(self.count, *shape) for (name, shape), part in parts}

    def places(self, positions: NDArray[np.int64]) -> Tensor:
        """Where in the memory the numbers at these positions (R,) of each network are, (N R,)."""
        sizes = np.array([shape.numel() for shape in self.shapes.values()])
        starts = np.cumsum(sizes) - sizes
        tensor = np.searchsorted(starts, positions, side="right") - 1
        within = (self.count - 1) * starts[tensor] + positions  # N starts + (position - start)
        return torch.from_numpy((np.arange(self.count)[:, None] * sizes[tensor] + within).ravel())

    def logits(self, params: Params, x: Tensor) -> Tensor:
        """Logits alone, without gradients, as a straight list of operations."""
        return self._logits(x, *params.values())[0]

    def __call__(self, params: Params, x: Tensor) -> tuple[Tensor, Tensor]:
        """Features (N, B, h) and logits (N, B, 1 or K) of the same rows x (B, ...) by all networks."""
        if self.count == 1:  # vmap of one is the same numbers through slower kernels
            one = {name: t[0] for name, t in (self.fixed | params).items()}
            features, logits = functional_call(self.net, _inner(one | self.shared), (x,))
            return features[None], logits[None]

        def one_of(row: Params) -> tuple[Tensor, Tensor]:
            return cast("tuple[Tensor, Tensor]", functional_call(self.net, _inner(row | self.shared), (x,)))

        return vmap(one_of)(self.fixed | params)

    def descend(self, optimizer: torch.optim.Optimizer, grads: Grads) -> None:
        """A step of one of torch's optimisers, which must treat every number by itself."""
        for p, g in zip(self.params.values(), grads, strict=True):
            # In the parameter's own layout: fused Adam reads memory in order, whatever the strides say.
            p.grad = (g.dense() if isinstance(g, Outer) else g).contiguous()
        optimizer.step()


class _WithFeatures(nn.Module):
    """A network that gives its features beside its logits; one without features gives its logits twice."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(B, ...) -> (B, h), (B, 1 or K)."""
        net = cast("Any", self.net)
        if not hasattr(net, "features"):
            logits = net(x)
            return logits, logits
        features = net.features(x)
        return features, net.head(features)


def _inner(tensors: Params) -> Params:
    return {f"net.{name}": tensor for name, tensor in tensors.items()}


def _tensors(net: nn.Module) -> Params:
    if net.training:
        raise ValueError("the network is in training mode: call .eval() on it before it meets a stream")
    named = [*net.named_parameters(), *net.named_buffers()]
    return {name: tensor.detach() for name, tensor in named}
