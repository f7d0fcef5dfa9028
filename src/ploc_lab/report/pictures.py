"""The streams of images as pictures: what the network meets, what it says of it, what PLOC-K says."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from rich.console import Console

from ploc_lab import data, methods, models
from ploc_lab.data.cifar10 import CLASSES
from ploc_lab.data.corruptions import PROFILES
from ploc_lab.data.images import ImageDataset
from ploc_lab.methods import OutputMethod, SourceInfo
from ploc_lab.report.figures import STYLE
from ploc_lab.report.vision import PROFILES as SAID
from ploc_lab.report.vision import stream as label
from ploc_lab.study import evaluate
from ploc_lab.study.experiments import vision
from ploc_lab.study.store import replace_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from ploc_lab.methods import Answer
    from ploc_lab.models import Checkpoint
    from ploc_lab.study.cell import Picture

WARM = 1_000  # images that PLOC-K has seen before the first that is shown
RIGHT, WRONG = "#0072b2", "#d55e00"


class Shown(NamedTuple):
    """One stream: an image of each class, its predictions, and the accuracies on the whole stream."""

    name: str
    images: NDArray[np.uint8]
    """(classes, 32, 32, 3), in the order of the classes."""
    source: NDArray[np.int64]
    ploc_k: NDArray[np.int64]
    accuracy: tuple[float, float]


def pictures(*, profile: str = vision.FITTED, seed: int = 0, out: Path = Path("results/figures")) -> None:
    """Draw the thirteen streams of a profile, an image of each class, with what source and PLOC-K say of it.

    Needs CIFAR-10 (`ploc-lab data fetch cifar10`); trains the checkpoint if it is not there yet.

    Parameters
    ----------
    profile
        Strengths of the corruptions: `paper`, fitted to the paper's source accuracies, or `cifar10c`.
    seed
        The checkpoint that answers.
    out
        Where `vision_pictures_<profile>.png` goes.
    """
    if profile not in PROFILES:
        raise ValueError(f"no profile is called {profile!r}; there are: {', '.join(PROFILES)}")
    ds = data.load(vision.DATASET)
    if not isinstance(ds, ImageDataset):
        raise TypeError(f"{ds.name} is no data set of images")
    checkpoint = models.checkpoints(ds, vision.BACKBONE, seeds=(seed,))[0]
    shown = [show(ds, checkpoint, picture) for picture in vision.streams(profile)]
    path = out / f"vision_pictures_{profile}.png"
    replace_file(path, png(draw(shown, profile, seed)))
    Console(stderr=True).print(f"{path}", highlight=False)


def show(ds: ImageDataset, checkpoint: Checkpoint, picture: Picture, warm: int = WARM) -> Shown:
    """Replay a stream, and take of each class the first image from row `warm` on, or the last before it."""
    corruption = picture.corrupt()
    stream = ds.stream(
        "split" if picture.rho is None else "permuted", picture.seed, corruption=corruption, rho=picture.rho
    )
    z = checkpoint.logits(ds, ds.pool(corruption))[stream.index]
    answers = [_replay(name, z, SourceInfo(ds.prior)) for name in ("source", "ploc_k")]
    y = evaluate.open_labels(stream, answers)
    said = [a.probs.argmax(axis=1) for a in answers]
    rows = []
    for k in range(z.shape[1]):
        of = np.flatnonzero(y == k)
        later = of[of >= warm]
        rows.append(int(later[0] if len(later) else of[-1]))
    pixels = np.rint(stream.rows(np.array(rows)) * 255).astype(np.uint8)
    images = pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    first, second = (float(np.mean(s == y)) for s in said)
    return Shown(picture.stream, images, said[0][rows], said[1][rows], (first, second))


def draw(shown: list[Shown], profile: str, seed: int) -> Figure:
    """A row a stream, a column a class; right and wrong by a sign, a colour and the class that is named."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(0.95 * len(CLASSES) + 1.8, 1.34 * len(shown) + 0.9))
        grid = figure.subplots(len(shown), len(CLASSES), squeeze=False)
        for axes, row in zip(grid, shown, strict=True):
            for k, axis in enumerate(axes):
                _tile(axis, row, k)
            before, after = row.accuracy
            axes[0].set_ylabel(
                f"{label(row.name, profile)}\naccuracy\n{before:.3f} → {after:.3f}",
                rotation=0, ha="right", va="center", fontsize=8,
            )  # fmt: skip
        for axis, name in zip(grid[0], CLASSES, strict=True):
            axis.set_title(name, fontsize=9)
        note = "; † fitted strength" if profile == vision.FITTED else ""
        figure.suptitle(
            f"CIFAR-10, {SAID[profile]}{note}; checkpoint {seed}.\n"
            f"Columns: the true class. Below each image: the source's answer and, after {WARM:,} images, "
            "PLOC-K's.\nOn the left: accuracy of source → PLOC-K over the whole stream.",
            fontsize=9,
        )
    return figure


def png(figure: Figure) -> bytes:
    """The figure's bytes, the same each time."""
    buffer = io.BytesIO()
    with mpl.rc_context(STYLE):
        figure.savefig(buffer, format="png", metadata={"Software": None}, dpi=100)
    return buffer.getvalue()


def _tile(axis: Axes, row: Shown, k: int) -> None:
    axis.imshow(row.images[k], interpolation="nearest")
    axis.set_xticks([])
    axis.set_yticks([])
    axis.grid(visible=False)
    for line, said in enumerate((int(row.source[k]), int(row.ploc_k[k]))):
        right = said == k
        axis.text(
            0.5, -0.04 - 0.19 * line, f"{'✓' if right else '✗'} {CLASSES[said]}", transform=axis.transAxes,
            ha="center", va="top", fontsize=7.5, color=RIGHT if right else WRONG,
            fontweight="bold" if line else "normal",
        )  # fmt: skip


def _replay(name: str, z: NDArray[np.float64], source: SourceInfo) -> Answer:
    method = methods.build(name, None, source)
    assert isinstance(method, OutputMethod)  # noqa: S101 - both need logits alone
    return method.replay(z)
