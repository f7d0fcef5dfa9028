"""Which normalisation layers a method may touch, and batch norm that listens to the batch alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

New = TypeVar("New", bound=nn.Module)

KINDS: dict[str, type[nn.Module]] = {
    "bn1d": nn.BatchNorm1d,
    "bn2d": nn.BatchNorm2d,
    "ln": nn.LayerNorm,
    "gn": nn.GroupNorm,
}


def affine(
    net: nn.Module, kinds: Iterable[str], skip: Callable[[str], bool] = lambda _name: False
) -> list[str]:
    """Names of the scales and offsets of a network's norm layers of these kinds, less the skipped layers.

    >>> affine(nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3)), ["ln"])
    ['1.weight', '1.bias']
    """
    unknown = set(kinds) - set(KINDS)
    if unknown:
        raise ValueError(f"no norm layer is called {sorted(unknown)}; there are {', '.join(KINDS)}")
    types = tuple(KINDS[kind] for kind in kinds)
    return [
        f"{layer}.{name}" if layer else name
        for layer, module in net.named_modules()
        if isinstance(module, types) and not skip(layer)
        for name in ("weight", "bias")
        if getattr(module, name) is not None
    ]


def forget_running_statistics(net: nn.Module) -> bool:
    """Make each BatchNorm2d normalise by its batch, in eval mode too; True if there was one."""
    found = False
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.track_running_stats = False
            module.running_mean = module.running_var = module.num_batches_tracked = None
            found = True
    return found


def replace(net: nn.Module, kinds: Sequence[str], make: Callable[[Any], New]) -> list[New]:
    """Put a layer of one's own in the place of each norm layer of these kinds, and list them."""
    types = tuple(KINDS[kind] for kind in kinds)
    made = []
    for parent in list(net.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, types):
                made.append(make(child))
                setattr(parent, name, made[-1])
    return made
