"""Gradients of a stack as a straight list of tensor operations: traced once a shape, run without autograd.

At one row a step, what costs is not arithmetic but Python, `vmap` and autograd finding out again what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx.experimental.proxy_tensor import make_fx

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.fx import GraphModule, Node

    from ploc_lab.methods.stack import Params

aten = torch.ops.aten


class Outer(NamedTuple):
    """A gradient (N, o, i) left as its factors (N, o, B) and (N, B, i): most uses need no more."""

    left: Tensor
    right: Tensor

    def dense(self) -> Tensor:
        """The product, laid out."""
        return self.left * self.right if self.right.shape[1] == 1 else self.left @ self.right


Grads = list[Tensor | Outer]
Places = list[tuple[int, ...]]


class Gradient:
    """d(sum of losses)/d(parameters) of a stack, and whatever else the loss returns.

    `loss(params, *inputs)` gives one loss a network, (N,), then any tensors, returned detached. It must
    not branch on values: conditions are masks. `outer=True` leaves the gradients of linear maps as factors.

    >>> square = Gradient(lambda params, x: ((params["w"] * x) ** 2, x))
    >>> grads, (x,) = square({"w": torch.tensor([1.0, 2.0])}, torch.tensor(3.0))
    >>> grads
    [tensor([18., 36.])]
    """

    def __init__(self, loss: Callable[..., tuple[Tensor, ...]], *, outer: bool = False) -> None:
        self.loss = loss
        self.outer = outer
        self._graphs: dict[tuple[torch.Size, ...], tuple[GraphModule, Places]] = {}

    def __call__(self, params: Params, *inputs: Tensor) -> tuple[Grads, tuple[Tensor, ...]]:
        """Gradients in the order of `params`, and the loss's other tensors."""
        tensors = (*params.values(), *inputs)
        key = tuple(t.shape for t in inputs)
        if key not in self._graphs:
            self._graphs[key] = self._trace(list(params), tensors)
        graph, where = self._graphs[key]
        out = graph(*tensors)
        grads: Grads = [out[at[0]] if len(at) == 1 else Outer(out[at[0]], out[at[1]]) for at in where]
        return grads, tuple(out[where[-1][-1] + 1 :])

    def _trace(self, names: list[str], tensors: tuple[Tensor, ...]) -> tuple[GraphModule, Places]:
        def run(*given: Tensor) -> list[Tensor]:
            with torch.enable_grad():
                moving = [t.detach().requires_grad_() for t in given[: len(names)]]
                losses, *others = self.loss(dict(zip(names, moving, strict=True)), *given[len(names) :])
                grads = torch.autograd.grad(losses, moving, torch.ones_like(losses), materialize_grads=True)
            return [*grads, *(t.detach() for t in others)]

        graph = make_fx(run)(*tensors)
        _shorten(graph)
        where: Places = _factor(graph, len(names)) if self.outer else [(i,) for i in range(len(names))]
        graph.graph.eliminate_dead_code()
        graph.recompile()
        return graph, where


def traced(function: Callable[..., tuple[Tensor, ...]]) -> Callable[..., tuple[Tensor, ...]]:
    """A function of tensors, run as a straight list of operations that is traced once a shape."""
    graphs: dict[tuple[torch.Size, ...], GraphModule] = {}

    def run(*tensors: Tensor) -> tuple[Tensor, ...]:
        key = tuple(t.shape for t in tensors)
        if key not in graphs:
            graph = make_fx(function)(*tensors)
            _shorten(graph)
            graph.recompile()
            graphs[key] = graph
        return tuple(graphs[key](*tensors))

    return run


def _shorten(graph: GraphModule) -> None:
    _drop_idle(graph)
    _fold(graph)
    graph.graph.eliminate_dead_code()


def _fold(graph: GraphModule) -> None:
    """Compute once what depends on no input: views of fixed weights, the ones a backward pass starts from."""
    known: dict[Node, Tensor] = {}
    for node in list(graph.graph.nodes):
        if node.op == "get_attr":
            known[node] = getattr(graph, node.target)
        if node.op != "call_function" or any(_writes(n) for n in (node, *node.users)):
            continue
        if node.target in _FILLED:  # only the shape of what it is like matters
            like = torch.empty(_shape(node), dtype=node.meta["val"].dtype)
            value = node.target(like, *node.args[1:], **node.kwargs)
        elif all(n in known for n in node.all_input_nodes):
            args, kwargs = torch.fx.map_arg((node.args, node.kwargs), known.__getitem__)
            value = node.target(*args, **kwargs)
        else:
            continue
        if isinstance(value, Tensor):
            name = f"folded_{len(known)}"
            graph.register_buffer(name, value)
            with graph.graph.inserting_before(node):
                constant = graph.graph.get_attr(name)
            node.replace_all_uses_with(constant)
            known[constant] = value


def _writes(node: Node) -> bool:
    """Whether an operation changes its input in place."""
    return isinstance(node.target, OpOverload) and node.target._schema.is_mutable


_SCALING = {aten.mul.Scalar, aten.div.Scalar}
_FILLED = {aten.ones_like.default, aten.zeros_like.default}
_SHAPING = {aten.view.default, aten._unsafe_view.default, aten.expand.default, aten.detach.default}


def _drop_idle(graph: GraphModule) -> None:
    """Take out the operations that give back their input: they cost a dispatch each, and there are dozens."""
    for node in list(graph.graph.nodes):
        if _is_idle(node):
            node.replace_all_uses_with(node.args[0])
        elif _is_transpose(node) and _is_transpose(node.args[0]):
            node.replace_all_uses_with(node.args[0].args[0])


def _is_idle(node: Node) -> bool:
    if node.target in _SHAPING:
        return _shape(node) == _shape(node.args[0])
    return bool(node.target in _SCALING and node.args[1] == 1)


def _is_transpose(node: Any) -> bool:
    """Whether a node swaps the last two axes of a stack of matrices."""
    if getattr(node, "target", None) is not aten.transpose.int or len(_shape(node)) != 3:
        return False
    return {axis % 3 for axis in node.args[1:]} == {1, 2}


def _shape(node: Any) -> tuple[int, ...]:
    return tuple(node.meta["val"].shape)


def _factor(graph: GraphModule, n_grads: int) -> Places:
    """Return the factors of gradients that end in a product of matrices, and where each gradient now is."""
    output = next(node for node in graph.graph.nodes if node.op == "output")
    params = [node for node in graph.graph.nodes if node.op == "placeholder"][:n_grads]
    results, where = [], Places()
    for i, node in enumerate(output.args[0]):
        product = node.args[0] if _is_transpose(node) else node
        splits = getattr(product, "target", None) is aten.bmm.default and len(product.users) == 1
        # A factor that is itself a parameter would have moved by the time it is multiplied out.
        if i < n_grads and splits and not any(_seen(factor) in params for factor in product.args):
            factors = product.args
            if product is not node:
                with graph.graph.inserting_before(node):
                    factors = [
                        graph.graph.call_function(aten.transpose.int, (f, 1, 2)) for f in reversed(factors)
                    ]
            results.extend(factors)
        else:
            results.append(node)
        if i < n_grads:
            where.append(tuple(range(where[-1][-1] + 1 if where else 0, len(results))))
    output.args = (results,)
    return where


def _seen(node: Node) -> Node:
    """What a node looks at, through views: the node whose memory it shares."""
    while isinstance(node.target, OpOverload) and any(r.alias_info for r in node.target._schema.returns):
        node = cast("Node", node.args[0])
    return node
