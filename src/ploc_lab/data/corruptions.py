"""Image corruptions: CIFAR-10-C's definitions in numpy and scipy, and two profiles of their severities."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["gaussian_noise", "brightness", "contrast", "gaussian_blur"]
KINDS: tuple[Kind, ...] = ("gaussian_noise", "brightness", "contrast", "gaussian_blur")
SEVERITIES = (3, 5)
CHUNK = 1_000  # images in float64 at once

# cifar10c is the published CIFAR-10-C. `paper` is FITTED: the parameters at which our own networks lose as
# much as the PLOC paper prints for noise 3, contrast 5 and blur 3; the others are extrapolated from these.
PROFILES: Mapping[str, Mapping[Kind, Mapping[int, float]]] = {
    "cifar10c": {
        "gaussian_noise": {3: 0.08, 5: 0.10},
        "brightness": {3: 0.15, 5: 0.30},
        "contrast": {3: 0.40, 5: 0.15},
        "gaussian_blur": {3: 0.7, 5: 1.0},
    },
    "paper": {
        "gaussian_noise": {3: 0.18, 5: 0.30},
        "brightness": {3: 0.30, 5: 0.50},
        "contrast": {3: 0.55, 5: 0.30},
        "gaussian_blur": {3: 1.5, 5: 2.5},
    },
}
FITTED = frozenset({"paper"})

Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Corruption:
    """One corruption at one strength: bytes in, bytes out, always the same bytes.

    >>> grey = np.full((1, 3072), 100, dtype=np.uint8)
    >>> int(Corruption("brightness", 0.2)(grey)[0, 0])
    151
    """

    kind: Kind
    amount: float

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"no corruption is called {self.kind!r}; there are: {', '.join(KINDS)}")
        if not 0 < self.amount < np.inf:
            raise ValueError(f"{self.kind} needs a positive amount, got {self.amount}")

    def __str__(self) -> str:
        return f"{self.kind}={self.amount:g}"

    def __call__(self, images: Bytes) -> Bytes:
        """Corrupt (n, 3072) images: values in [0, 1], clipped, times 255, cut off to whole bytes."""
        # One generator an application: image i of a pool meets the same noise whoever asks.
        generator = np.random.default_rng(NOISE_SEED)
        out = np.empty_like(images)
        for start in range(0, len(images), CHUNK):
            part = slice(start, start + CHUNK)
            x = images[part].reshape(-1, 3, 32, 32) / 255.0
            changed = _CHANGE[self.kind](x, self.amount, generator)
            # The published code multiplies and cuts off; 255 * (k / 255) is k again for every byte.
            out[part] = (np.clip(changed, 0, 1) * 255).astype(np.uint8).reshape(len(x), -1)
        return out


NOISE_SEED = 10


def find(kind: Kind, severity: int, profile: str) -> Corruption:
    """The corruption of a severity in a profile.

    >>> find("contrast", 5, "cifar10c")
    Corruption(kind='contrast', amount=0.15)
    """
    if profile not in PROFILES:
        raise ValueError(f"no profile is called {profile!r}; there are: {', '.join(PROFILES)}")
    if kind not in KINDS:
        raise ValueError(f"no corruption is called {kind!r}; there are: {', '.join(KINDS)}")
    if severity not in SEVERITIES:
        raise ValueError(f"severity must be one of {SEVERITIES}, got {severity}")
    return Corruption(kind, PROFILES[profile][kind][severity])


def gaussian_noise(x: Floats, sigma: float, generator: np.random.Generator) -> Floats:
    """Add independent normal noise to every value."""
    return x + generator.normal(scale=sigma, size=x.shape)


def brightness(x: Floats, c: float, _: np.random.Generator) -> Floats:
    """Raise the V of HSV by c, at most to 1; hue and saturation stay, since RGB is multiplied by V'/V."""
    v = x.max(axis=1, keepdims=True)
    raised = np.minimum(v + c, 1.0)
    lit: Floats = np.where(v > 0, x * (raised / np.where(v > 0, v, 1.0)), raised)  # black turns grey
    return lit


def contrast(x: Floats, c: float, _: np.random.Generator) -> Floats:
    """Shrink each channel towards its own mean over the image."""
    mean: Floats = x.mean(axis=(2, 3), keepdims=True)
    return (x - mean) * c + mean


def gaussian_blur(x: Floats, sigma: float, _: np.random.Generator) -> Floats:
    """Blur each channel; the edge is repeated beyond the border, the kernel ends at 4 sigma."""
    from scipy.ndimage import gaussian_filter  # noqa: PLC0415 - only a blur needs it

    blurred: Floats = gaussian_filter(x, (0, 0, sigma, sigma), mode="nearest", truncate=4.0)
    return blurred


_CHANGE: dict[Kind, Callable[[Floats, float, np.random.Generator], Floats]] = {
    "gaussian_noise": gaussian_noise,
    "brightness": brightness,
    "contrast": contrast,
    "gaussian_blur": gaussian_blur,
}
