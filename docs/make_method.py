"""The pictures of method.md, from embedded data: where logits sit, and how soon the origin finds them."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ploc import PLOC, randhie

mpl.use("svg")
mpl.rcParams.update(
    {
        "svg.hashsalt": "ploc",  # the same bytes each time
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#e6e6e6",
        "axes.axisbelow": True,
        "figure.constrained_layout.use": True,
    }
)
BEFORE, AFTER, EDGE = "#0072b2", "#d55e00", "#444444"  # blue and vermilion: told apart by every eye


def save(figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def make(folder: Path) -> None:
    columns = randhie.load()
    y, target = columns["mdvis"] > 2, columns["physlm"] > 0.5
    features = np.column_stack([v for k, v in columns.items() if k not in ("mdvis", "physlm")])
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(features[~target], y[~target])
    z, y = model.decision_function(features[target]), y[target]
    centred = PLOC().replay(z, logits=True)
    mu = z - centred

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharex=True, sharey=True)
    bins = np.linspace(-3, 3, 49)
    for axis, scores, title in (
        (axes[0], z, "as the frozen model says"),
        (axes[1], centred, "centred by PLOC"),
    ):
        for label, colour, style in ((True, AFTER, "-"), (False, BEFORE, "--")):
            rows = scores[y == label]
            axis.hist(
                rows, bins, histtype="step", color=colour, linestyle=style, linewidth=1.8,
                label=f"went {'often' if label else 'seldom'}: {np.mean(rows >= 0):.0%} called so"
                if label else f"went seldom: {np.mean(rows < 0):.0%} called so",
            )  # fmt: skip
        axis.axvline(0, color=EDGE, linewidth=1)
        axis.set_title(f"{title}: {np.mean((scores >= 0) == y):.1%} right", fontsize=11)
        axis.set_xlabel("logit; the decision is at 0")
        axis.legend(frameon=False, fontsize=8, loc="upper left")
    axes[0].set_ylabel("rows")
    axes[0].set_ylim(top=axes[0].get_ylim()[1] * 1.25)
    save(figure, folder / "img" / "method-logits.svg")

    figure, axis = plt.subplots(figsize=(9, 2.8))
    t = np.arange(1, len(z) + 1)
    axis.plot(t, z, ".", color="#999999", markersize=2, alpha=0.6, label="logits z")
    axis.plot(t, mu, color=AFTER, linewidth=2, label="origin: the mean of the logits before")
    axis.axhline(0, color=EDGE, linewidth=1)
    axis.set_xscale("log")
    axis.set_ylim(-2.5, 2.5)
    axis.set_xlabel("row of the stream (logarithmic)")
    axis.set_ylabel("logit")
    axis.legend(frameon=False, fontsize=9, loc="upper left", ncols=2)
    save(figure, folder / "img" / "method-origin.svg")
