"""The tables of choosing.md: PLOC and its anchor where it helps and where it hurts, on embedded data.

Frozen logistic regressions of scikit-learn; the streams are the target rows in the order of their file.
"""

from pathlib import Path

import numpy as np
from docs.pages import markdown, replace
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ploc import PLOC, links, metrics, randhie

SHOWN = ("accuracy", "balanced_accuracy", "f1", "auroc", "ece", "nll")


def frozen(features, y, target):
    """Logits of the target rows and of held-out source rows, by a model of the other source rows."""
    x_train, x_held, y_train, _ = train_test_split(
        features[~target], y[~target], test_size=0.2, random_state=0, stratify=y[~target]
    )
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(x_train, y_train)
    return model.decision_function(features[target]), model.decision_function(x_held)


def rows(z, held, y, source_rate):
    """One line a way of answering, with the metrics of the stream."""
    ways = {
        "source, as it is": None,
        "PLOC": PLOC(),
        f"PLOC anchored at the source's mean logit, {held.mean():+.2f}": PLOC(anchor=float(held.mean())),
        f"PLOC anchored at the source rate's log-odds, {links.logit(source_rate):+.2f}": PLOC(
            anchor=links.logit(source_rate)
        ),
        f"PLOC anchored at the log-odds of the target's true rate, {links.logit(float(y.mean())):+.2f}": PLOC(
            anchor=links.logit(float(y.mean()))
        ),
    }
    for name, center in ways.items():
        scores = z if center is None else center.replay(z, logits=True)
        found = metrics.evaluate(links.sigmoid(scores), y, scores).asdict()
        yield [name, *(f"{found[metric]:.3f}" for metric in SHOWN), f"{np.mean(scores >= 0):.0%}"]


def table(features, y, target):
    """The Markdown table of one shift and a line of its facts."""
    z, held = frozen(features, y, target)
    rate = float(y[~target].mean())
    facts = (
        f"Source rate {rate:.1%}, target rate {y[target].mean():.1%}, {target.sum():,} target rows; "
        f"mean logit {held.mean():+.2f} on held-out source rows, {z.mean():+.2f} on the target."
    )
    header = ["", *(name.replace("_", " ") for name in SHOWN), "called positive"]
    return facts + "\n\n" + markdown(header, list(rows(z, held, y[target], rate)))


def make(folder: Path) -> None:
    columns = randhie.load()
    y = (columns["mdvis"] > 2).astype(int)
    for name, domain, target in (
        ("limited", "physlm", columns["physlm"] > 0.5),
        ("health", "hlthg", columns["hlthg"] == 1),
    ):
        features = np.column_stack([v for k, v in columns.items() if k not in ("mdvis", domain)])
        replace(folder / "choosing.md", name, table(features, y, target))

    rare = (columns["mdvis"] > 12).astype(int)
    target = columns["physlm"] > 0.5
    features = np.column_stack([v for k, v in columns.items() if k not in ("mdvis", "physlm")])
    replace(folder / "choosing.md", "rare", table(features, rare, target))
