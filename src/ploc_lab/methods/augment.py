"""Random views of images, as the vision methods ask for them."""

from __future__ import annotations

import math
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
    picture = _pictures(image[None])[0]
    padded = functional.pad(picture, (4, 4, 4, 4))
    height, width = picture.shape[1:]
    found = []
    for top, left, flip, quarter in torch.randint(0, 1 << 30, (count, 4), generator=chance).tolist():
        view = padded[:, top % 9 : top % 9 + height, left % 9 : left % 9 + width]
        view = view.flip(-1) if flip % 2 else view
        found.append(view.rot90(quarter % 4, (1, 2)) if turn else view)
    stacked = torch.stack(found)
    return stacked.flatten(1) if flat else stacked


def strong(images: Tensor, chance: torch.Generator) -> Tensor:
    """Images in [0, 1] with one draw of colours, turn, shift, scale and flip for all, and noise for each.

    After RoTTA's transforms for CIFAR (CoTTA's, too), without their hue and their blur of half a pixel.

    >>> strong(torch.full((2, 192), 0.5), torch.Generator().manual_seed(0)).shape
    torch.Size([2, 192])
    """
    draw = torch.rand(8, generator=chance).tolist()
    order = torch.randperm(4, generator=chance).tolist()
    x = _pictures(images).clamp(0, 1)
    for which in order:
        x = _colour(x, which, draw[which])
    angle, scale = math.radians(30 * draw[4] - 15), 0.9 + 0.2 * draw[5]
    (c, s), shift = (math.cos(angle) / scale, math.sin(angle) / scale), [(u - 0.5) / 4 for u in draw[6:]]
    where = torch.tensor([[c, -s, shift[0]], [s, c, shift[1]]]).expand(len(x), 2, 3)
    grid = functional.affine_grid(where, list(x.shape), align_corners=False)
    x = functional.grid_sample(x, grid, padding_mode="border", align_corners=False)
    if torch.rand(1, generator=chance).item() < 0.5:
        x = x.flip(-1)
    return (x + 0.005 * torch.randn(x.shape, generator=chance)).clamp(0, 1).view(images.shape)


def _colour(x: Tensor, which: int, draw: float) -> Tensor:
    grey = (x * torch.tensor([0.299, 0.587, 0.114]).view(3, 1, 1)).sum(1, keepdim=True)
    match which:
        case 0:  # brightness
            return (x * (0.6 + 0.8 * draw)).clamp(0, 1)
        case 1:  # contrast
            return grey.mean((2, 3), keepdim=True).lerp(x, 0.7 + 0.6 * draw).clamp(0, 1)
        case 2:  # saturation
            return grey.lerp(x, 0.5 + draw).clamp(0, 1)
        case _:  # gamma
            return x.clamp(1e-8, 1) ** (0.7 + 0.6 * draw)


def _pictures(images: Tensor) -> Tensor:
    """Rows of 3 square channels as (B, 3, H, W)."""
    side = round((images[0].numel() / 3) ** 0.5)
    return images.view(-1, 3, side, side) if images.ndim == 2 else images
