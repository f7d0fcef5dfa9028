"""The product at work in seconds, on embedded data: once where it helps, once where it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table
from rich.text import Text
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ploc import links, randhie
from ploc.center import PLOC
from ploc.evidence import LOWER_IS_BETTER, NAMES, signed, weigh

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.console import Console

    Floats = NDArray[np.float64]

BARS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"


@dataclass(frozen=True)
class Task:
    """A shift inside the RAND table: who the model was trained on, and whom it meets."""

    title: str
    trained: str
    met: str
    domain: str  # the column that parts the two, so the model does not see it
    target: NDArray[np.bool_]


@dataclass(frozen=True)
class Run:
    """A stream that was answered row by row."""

    y: NDArray[np.int64]
    z: Floats
    probs: Floats
    shifts: Floats
    trained_rate: float


def show(console: Console) -> None:
    """Train, freeze, answer one row at a time before and after PLOC, and say what came of it."""
    table = randhie.load()
    often = table["mdvis"] > 2
    tasks = [
        Task(
            "1  Where it helps", "people without a physical limitation", "people with one",
            "physlm", table["physlm"] > 0.5,
        ),
        Task(
            "2  Where it does not", "people in excellent, fair or poor health", "people in good health",
            "hlthg", table["hlthg"] == 1,
        ),
    ]  # fmt: skip
    _say(
        console,
        "[b]PLOC[/b] keeps one number beside a frozen classifier, the mean of the logits it has answered, "
        "and takes it from the next logit. No labels, no training, nothing to tune.\n\n"
        f"The data: {len(often):,} person-years of the RAND Health Insurance Experiment. The question: more "
        "than two doctor's visits this year? The model: a logistic regression, trained on some people, then "
        "frozen. It meets others, one at a time.",
    )
    for task in tasks:
        run = answer(table, often, task)
        console.print()
        console.rule(f"[b]{task.title}[/b]", align="left", style="dim")
        _tell(console, task, run)
    console.print()
    _say(
        console,
        "[b]What to take home[/b]  PLOC puts the middle of a stream's logits at even odds. Where a shift has "
        "carried the stream there, a frozen model gets its threshold back for free. Where the base rate is "
        "far from even and the model fits it, leave the model alone. Some labelled rows tell you which it "
        "is:\n\n"
        "    ploc report rows.csv --logit z --label y -o report.html",
    )


def answer(table: randhie.Columns, often: NDArray[np.bool_], task: Task) -> Run:
    """Train on the source, freeze, and step through the target, one row at a time."""
    features = np.column_stack([v for name, v in table.items() if name not in ("mdvis", task.domain)])
    y = often.astype(np.int64)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    model.fit(features[~task.target], y[~task.target])

    center = PLOC()
    z, probs, shifts = [], [], []
    for row in features[task.target]:
        logit = float(model.decision_function(row[None])[0])  # the frozen model, as it is
        shifts.append(center.shift)
        probs.append(center.step(logit))  # the one line that PLOC adds
        z.append(logit)
    rate = float(y[~task.target].mean())
    return Run(y[task.target], np.array(z), np.array(probs), np.array(shifts), rate)


def _tell(console: Console, task: Task, run: Run) -> None:
    found = weigh(run.z, run.z - run.shifts, run.y)
    rate = run.y.mean()
    _say(
        console,
        f"Trained on {task.trained}: {run.trained_rate:.0%} go often. Meets {task.met}: {rate:.0%} do "
        f"({len(run.y):,} rows).",
    )
    console.print()
    grid = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for heading in ("", "frozen", "with PLOC", "change", ""):
        grid.add_column(heading, justify="left" if not heading else "right")
    for name, contrast in found.metrics.items():
        better = contrast.better()
        words = {1: ("better", "green"), -1: ("worse", "red"), 0: ("may be chance", "dim")}[better]
        label = NAMES[name] + (" (lower is better)" if name in LOWER_IS_BETTER else "")
        values = f"{contrast.before:.3f}", f"{contrast.after:.3f}", signed(contrast.change)
        grid.add_row(label, *values, Text(words[0], style=words[1]))
    before, after = links.sigmoid(run.z).mean(), run.probs.mean()
    grid.add_row(
        "said on average", f"{before:.0%}", f"{after:.0%}", "", Text(f"{rate:.0%} is true", style="dim")
    )
    said = (run.z >= 0).mean(), (run.probs >= 0.5).mean()
    grid.add_row("called positive", *(f"{s:.0%}" for s in said), "", "")
    console.print(grid)
    console.print()
    path = run.shifts[np.linspace(1, len(run.shifts) - 1, 60).astype(int)]
    _say(console, f"The origin, from the first row to the last: {run.shifts[-1]:+.2f} at the end")
    console.print(f"  {sparkline(path)}", style="cyan", highlight=False, soft_wrap=True)
    verdict = found.verdict
    word = {
        "helps": "[b green]PLOC helps here:[/]",
        "hurts": "[b red]PLOC hurts here:[/]",
        "no evidence": "[b]No evidence that PLOC helps or hurts here:[/]",
    }[verdict.word]
    console.print()
    _say(console, f"{word} {verdict.why}")


def sparkline(values: Floats) -> str:
    """A path in a line of text.

    >>> sparkline(np.array([0.0, 0.5, 1.0]))
    '▁▅█'
    """
    low, high = float(values.min()), float(values.max())
    if high == low:
        return BARS[0] * len(values)
    return "".join(BARS[round((value - low) / (high - low) * (len(BARS) - 1))] for value in values.tolist())


def _say(console: Console, words: str) -> None:
    console.print(words, highlight=False)
