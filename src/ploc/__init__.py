"""PLOC: one number of state between a frozen classifier and a shifted stream, row by row, no labels."""

from ploc import links, metrics, origin, theory
from ploc.center import PLOC, PLOCProb, deferred

__all__ = ["PLOC", "PLOCProb", "deferred", "links", "metrics", "origin", "theory"]


def __getattr__(name: str) -> str:
    if (
        name == "__version__"
    ):  # asked for rarely, and its answer's own imports cost more than the rest of ours
        from importlib.metadata import version  # noqa: PLC0415

        return version("ploc")
    raise AttributeError(f"module 'ploc' has no attribute {name!r}")
