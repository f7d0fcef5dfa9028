"""Images as a data set: bytes on disk, values in [0, 1] when asked, the test images as the target."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ploc_lab.data import long_tail
from ploc_lab.data.corruptions import Bytes, Corruption
from ploc_lab.data.dataset import Dataset, Part
from ploc_lab.data.encode import Index
from ploc_lab.data.schema import Task
from ploc_lab.data.stream import Order, Stream

HELD_OUT = 0.05


class Pixels:
    """Images as bytes, (n, d) uint8, with the face of an encoded table: `rows` are float32 in [0, 1]."""

    def __init__(self, values: Bytes) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    @property
    def d(self) -> int:
        """Values of one image."""
        return int(self.values.shape[1])

    @property
    def columns(self) -> tuple[str, ...]:
        """A name a value: its place in the image."""
        return tuple(f"pixel {j}" for j in range(self.d))

    def __getitem__(self, part: slice) -> "Pixels":
        return Pixels(self.values[part])

    def rows(self, index: Index | None = None) -> NDArray[np.float32]:
        """Rows of X as the network sees them: bytes over 255."""
        chosen = self.values[slice(None) if index is None else index]
        return chosen.astype(np.float32) / np.float32(255)


class ImageDataset(Dataset):
    """Train images in file order, 90 % train, 5 % validation, 5 % id_test; the test images are `ood_test`.

    The target comes in pools: `ood_test` as it is, and one more for each corruption that is asked for.
    """

    def __init__(self, task: Task, train: Bytes, test: Bytes, y: NDArray[np.uint8], digest: str) -> None:
        held = int(HELD_OUT * len(train))
        arrays: dict[str, NDArray[Any]] = {
            "sizes": np.array([len(train) - 2 * held, held, held, 0, len(test)]),
            "y": y,
            "position": np.arange(len(y)),
            "time_order": np.arange(len(test)),
        }
        super().__init__(task, Pixels(np.concatenate([train, test])), arrays, digest)
        self._pools = {"ood_test": Pixels(test)}
        self._names: dict[Corruption, str] = {}

    def pool(self, corruption: Corruption | None = None) -> str:
        """The part that holds the target's images so corrupted, named after its bytes too."""
        if corruption is None:
            return "ood_test"
        if corruption not in self._names:
            values = corruption(self._pools["ood_test"].values)
            name = f"{corruption}-{hashlib.sha256(values.data).hexdigest()[:8]}"
            self._pools[name] = Pixels(values)
            self._names[corruption] = name
        return self._names[corruption]

    def part(self, split: str) -> Part:
        """One of the five parts, or a pool by the name that `pool` gave."""
        if split in self._pools:
            return Part(self.name, split, self._pools[split], None)
        return super().part(split)

    def stream(
        self,
        order: Order = "split",
        seed: int = 0,
        limit: int | None = None,
        *,
        positive_rate: float | None = None,
        replace: bool = False,
        corruption: Corruption | None = None,
        rho: float | None = None,
    ) -> Stream:
        """The target's images, corrupted or not, in one order, or drawn with a long tail of classes.

        With `rho` the stream is a sample in which the first class is `rho` times as frequent as the last,
        drawn and shuffled by `seed`; otherwise `order` is as for tables.
        """
        if positive_rate is not None and len(self.prior) > 2:
            raise ValueError(f"{self.name} has {len(self.prior)} classes: draw a long tail by rho instead")
        plain = super().stream(order, seed, limit, positive_rate=positive_rate, replace=replace)
        index, drawn = plain.index, plain.order
        if rho is not None:
            if order != "permuted" or positive_rate is not None:
                raise ValueError(
                    f"a long tail is drawn at random, by rho alone: order must be 'permuted', got {order!r}"
                )
            index = long_tail.draw(self._labels(), rho, seed)[:limit]
        return Stream(self.name, self._pools[self.pool(corruption)], self._labels, index, drawn)
