"""PLOC: one number of state between a frozen classifier and a shifted stream, row by row, no labels."""

from importlib.metadata import version as _version

from ploc import links, metrics, origin, theory
from ploc.center import PLOC, PLOCProb, deferred

__version__ = _version("ploc")
__all__ = ["PLOC", "PLOCProb", "deferred", "links", "metrics", "origin", "theory"]
