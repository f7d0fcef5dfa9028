"""Source models: the paper's networks and tree ensembles, trained, frozen and kept with what made them."""

from ploc_lab.models.backbones import BACKBONES, build
from ploc_lab.models.checkpoint import Checkpoint, load
from ploc_lab.models.network import Network
from ploc_lab.models.sources import SEEDS, checkpoints, names, train

__all__ = ["BACKBONES", "SEEDS", "Checkpoint", "Network", "build", "checkpoints", "load", "names", "train"]
