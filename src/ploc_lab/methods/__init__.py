"""Every method of the laboratory under one protocol: a file each, and one line each in the registry below."""

from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

from torch import nn

from ploc_lab.methods.protocol import Answer, Card, Method, OutputMethod, SourceInfo, Validation

__all__ = [
    "Answer",
    "Card",
    "Method",
    "OutputMethod",
    "SourceInfo",
    "Spec",
    "Validation",
    "build",
    "names",
    "spec",
]


@dataclass(frozen=True)
class Spec:
    """A line of the registry: a name, the class it stands for (imported when first asked for), its options."""

    name: str
    where: str
    options: dict[str, Any] = field(default_factory=dict)
    note: str = ""

    @cached_property
    def cls(self) -> type[Method]:
        """The class, from its own module in this folder."""
        module, _, name = self.where.partition(":")
        cls: type[Method] = getattr(import_module(f"{__name__}.{module}"), name)
        return cls

    @property
    def card(self) -> Card:
        """What the method needs, changes and does at batch size one."""
        return self.cls.info


_REGISTRY = (Spec("source", "source:Source"),)

_BY_NAME = {entry.name: entry for entry in _REGISTRY}


def names() -> tuple[str, ...]:
    """All methods, in the order of the registry."""
    return tuple(_BY_NAME)


def spec(name: str) -> Spec:
    """The registry's line for a name."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise ValueError(f"no method is called {name!r}; there are: {', '.join(_BY_NAME)}") from None


def build(name: str, model: nn.Module | None, source: SourceInfo, **options: Any) -> Method:
    """A fresh method for one stream and one checkpoint; `options` go before the registry's own.

    >>> import numpy as np
    >>> method = build("source", None, SourceInfo(prior=np.array([0.76, 0.24])))
    >>> method.replay(np.array([0.0, 2.0])).probs.round(3)
    array([0.5  , 0.881])
    """
    entry = spec(name)
    return entry.cls(model, source, **{**entry.options, **options})
