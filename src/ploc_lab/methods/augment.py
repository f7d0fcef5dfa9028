"""Random crops and flips of images, as the vision methods ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor


def views(image: Tensor, count: int, chance: torch.Generator, *, turn: bool = True) -> Tensor:
    """`count` crops of a padded image, half of them flipped and, with `turn`, turned by right angles.

    The image is (C, H, W), or flat with 3 square channels; the views have its shape, (count, *shape).

    >>> views(torch.ones(3, 8, 8), 5, torch.Generator().manual_seed(0)).shape
    torch.Size([5, 3, 8, 8])
    """
    flat = image.ndim == 1
    side = round((image.numel() / 3) ** 0.5)
    picture = image.view(3, side, side) if flat else image
    padded = functional.pad(picture, (4, 4, 4, 4))
    height, width = picture.shape[1:]
    found = []
    for top, left, flip, quarter in torch.randint(0, 1 << 30, (count, 4), generator=chance).tolist():
        view = padded[:, top % 9 : top % 9 + height, left % 9 : left % 9 + width]
        view = view.flip(-1) if flip % 2 else view
        found.append(view.rot90(quarter % 4, (1, 2)) if turn else view)
    stacked = torch.stack(found)
    return stacked.flatten(1) if flat else stacked
