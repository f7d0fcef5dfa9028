"""A checkpoint: one frozen source model with the card that says what made it, and its cached outputs."""

from __future__ import annotations

import hashlib
import io
import json
import logging
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import safetensors.torch
import torch

from ploc_lab.files import whole
from ploc_lab.models.backbones import build
from ploc_lab.models.network import Network
from ploc_lab.models.training import deterministic, fresh
from ploc_lab.models.trees import ENSEMBLES, Trees
from ploc_lab.study.code import digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from ploc_lab.data import Dataset

CARD = "card.json"
WEIGHTS = "weights.safetensors"
ROWS, IMAGES = 8192, 256
"""Rows of one forward pass: enough to keep the processor busy, few enough for any memory."""
WIDE = 1024
"""From so many columns on, rows are images."""
SEAL = hashlib.sha256().digest_size
"""Bytes at the end of a cached array's file: the hash of those before them."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, repr=False)
class Checkpoint:
    """A trained model, frozen, beside the card it was stored with; `load` reads it back and verifies it."""

    folder: Path
    card: dict[str, Any]
    model: Network | Trees

    def __repr__(self) -> str:
        return f"Checkpoint({self.dataset!r}, {self.backbone!r}, seed={self.seed}, sha={self.sha[:12]!r})"

    @property
    def net(self) -> Network | None:
        """The network in evaluation mode; None for tree ensembles, which have no gradients or features."""
        return self.model if isinstance(self.model, Network) else None

    @property
    def dataset(self) -> str:
        """The data set it was trained on."""
        return str(self.card["dataset"])

    @property
    def backbone(self) -> str:
        """The backbone and, after a colon, its variant."""
        return str(self.card["backbone"])

    @property
    def seed(self) -> int:
        """What initialised the model and shuffled its rows."""
        return int(self.card["seed"])

    @property
    def sha(self) -> str:
        """The hash of the model's file."""
        return str(self.card["sha256"])

    def logits(self, ds: Dataset, split: str) -> NDArray[np.float64]:
        """Frozen logits of a split in its own order, (n,) relative logits or (n, K); cached."""
        return cast("NDArray[np.float64]", self._cached(ds, split, "logits", self.margins))

    def features(self, ds: Dataset, split: str) -> NDArray[np.float32]:
        """Frozen inputs of the last linear layer on a split, (n, h); computed once and cached."""
        net = self.net
        if net is None:
            raise ValueError(f"{self.backbone} has no penultimate features: only networks have")
        return cast(
            "NDArray[np.float32]", self._cached(ds, split, "features", lambda x: forward(net.features, x))
        )

    def margins(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """Logits of rows: (n,) relative logits or (n, K)."""
        if isinstance(self.model, Trees):
            return self.model.margins(x)
        z = forward(self.model, x).astype(np.float64)
        return z[:, 0] if z.shape[1] == 1 else z

    def _cached(
        self,
        ds: Dataset,
        split: str,
        what: Literal["logits", "features"],
        compute: Callable[[NDArray[np.float32]], NDArray[Any]],
    ) -> NDArray[Any]:
        if ds.fingerprint != self.card["fingerprint"]:
            raise ValueError(
                f"this checkpoint was trained on {self.dataset} with fingerprint {self.card['fingerprint']}, "
                f"not on {ds.name} with fingerprint {ds.fingerprint}: train one on the data at hand"
            )
        part = ds.part(split)
        code = _code(type(self.model).__module__)
        path = self.folder / f"{what}-{split}-{self.sha[:12]}-{code[:12]}.npy"
        if (kept := _read(path)) is not None:
            return kept
        starts = range(0, len(part), ROWS)
        values = np.concatenate([compute(part.rows(slice(start, start + ROWS))) for start in starts])
        bad = np.argwhere(~np.isfinite(values))
        if len(bad):
            row = int(bad[0][0])
            raise ValueError(
                f"{what} of row {row} of {ds.name}/{split} are {values[row]}: the model is no use"
            )
        _write(path, values)
        return values


def forward(of: Callable[[torch.Tensor], torch.Tensor], x: NDArray[np.float32]) -> NDArray[np.float32]:
    """A frozen pass over rows, a batch at a time, on one thread and without gradients."""
    rows, size = torch.from_numpy(np.ascontiguousarray(x)), ROWS if x.shape[1] < WIDE else IMAGES
    with deterministic(), torch.inference_mode():
        passes = [of(rows[start : start + size]) for start in range(0, max(len(x), 1), size)]
        return torch.cat(passes).numpy()


def save(folder: Path, model: Network | Trees, card: dict[str, Any]) -> Checkpoint:
    """Write the model's file and then its card; until the card is there, there is no checkpoint."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(model, Trees):
        name, content = model.file, model.dump()
    else:
        state = {key: value.contiguous() for key, value in model.state_dict().items()}
        name, content = WEIGHTS, safetensors.torch.save(state)
    card = {**card, "file": name, "sha256": hashlib.sha256(content).hexdigest()}
    card["card_sha256"] = _digest(card)
    with whole(folder / name) as temporary:
        temporary.write_bytes(content)
    with whole(folder / CARD) as temporary:
        temporary.write_text(json.dumps(card, indent=2, sort_keys=True) + "\n")
    return Checkpoint(folder, card, model)


def load(folder: Path) -> Checkpoint:
    """Read a checkpoint back, frozen; a file that is not the one that was written is refused."""
    remedy = f"delete {folder} and train again"
    try:
        card = json.loads((folder / CARD).read_text())
        content = (folder / card["file"]).read_bytes()
    except (KeyError, TypeError, ValueError, FileNotFoundError) as error:
        raise ValueError(f"no checkpoint can be read from {folder} ({error!r}): {remedy}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != card.get("sha256"):
        raise ValueError(
            f"{folder / card['file']} has sha256 {found}, its card says {card.get('sha256')}: {remedy}"
        )
    stated = card.get("card_sha256")
    if (actual := _digest(card)) != stated:
        raise ValueError(f"{folder / CARD} says that its own sha256 is {stated}, it is {actual}: {remedy}")
    if card["network"] in ENSEMBLES:
        return Checkpoint(folder, card, ENSEMBLES[card["network"]].load(content))
    # Made as if to be trained: a bare `build` would draw from the generator that another thread has seeded.
    net = fresh(lambda: build(card["network"], card["d"], card["classes"], **card["options"]), 0).net
    net.load_state_dict(safetensors.torch.load(content))
    return Checkpoint(folder, card, net.eval().requires_grad_(requires_grad=False))


def exists(folder: Path) -> bool:
    """Whether a whole checkpoint was written here."""
    return (folder / CARD).exists()


def _digest(card: dict[str, Any]) -> str:
    bare = {key: value for key, value in card.items() if key != "card_sha256"}
    return hashlib.sha256(json.dumps(bare, sort_keys=True).encode()).hexdigest()


@cache
def _code(module: str) -> str:
    """A hash of what turns weights into outputs: the network's code and the versions that run it."""
    stated = f"{digest(module)} numpy {np.__version__} torch {torch.__version__}"
    return hashlib.sha256(stated.encode()).hexdigest()


def _write(path: Path, values: NDArray[Any]) -> None:
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    content = buffer.getvalue()
    with whole(path) as temporary:
        temporary.write_bytes(content + hashlib.sha256(content).digest())


def _read(path: Path) -> NDArray[Any] | None:
    """A cached array; None where there is none, or where the bytes are not those that were written."""
    if not path.exists():
        return None
    kept = path.read_bytes()
    content, seal = kept[:-SEAL], kept[-SEAL:]
    if hashlib.sha256(content).digest() != seal:
        _log.warning("%s is damaged: its bytes are not those that were written; it is computed anew", path)
        return None
    array: NDArray[Any] = np.load(io.BytesIO(content), allow_pickle=False)
    return array
