"""A stream's story on one self-contained HTML page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from ploc import evidence, links, metrics, theory
from ploc.center import PLOC
from ploc.evidence import NAMES, signed, weigh
from ploc.plots import STYLE, Chart, count, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from ploc.evidence import Contrast, Evidence

    Floats = NDArray[np.float64]

GROUPS = 20
"""Segments shown by name; the smaller ones share a line."""
BEFORE, AFTER = "source", "PLOC"


def html(
    z: ArrayLike,
    y: ArrayLike | None = None,
    groups: Sequence[str] | None = None,
    *,
    anchor: float = 0.0,
    title: str = "A stream",
    by: str = "segment",
    seed: int = 0,
) -> str:
    """Tell what PLOC does to a stream of relative logits `z`, in stream order, as one HTML page.

    With labels `y` (0 and 1) it measures and gives a verdict; without, it says what can be said. `groups`
    names a segment a row, `by` what the segments are. The page needs no network and no script.

    >>> page = html([0.5, -1.0, 2.0, 0.1], [1, 0, 1, 0])
    >>> page[:15], "<svg" in page
    ('<!doctype html>', True)
    """
    story = Story.of(z, y, groups, anchor, seed)
    sections = [
        _head(story, title),
        _verdict(story),
        _tiles(story),
        _section("Where the logits sit", _origin(story), _rates(story)),
        _section("What moves", _histogram(story, BEFORE), _histogram(story, AFTER)),
    ]
    if story.evidence is not None:
        sections += [
            _section(
                "Whether to believe the probabilities",
                _reliability(story, BEFORE),
                _reliability(story, AFTER),
            ),
            _section("What it costs in ranking", _roc(story), _guarantee(story)),
            _section("All metrics", _forest(story), _table(story)),
        ]
    else:
        sections.append(_section("What it can cost in ranking", _guarantee(story)))
    if groups is not None:
        sections.append(_section(f"One shift, many groups: {by}", *_groups(story)))
    sections.append(_protocol(story))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escape(title)} - PLOC</title>'
        f"<style>{PAGE}{STYLE}</style></head><body><main>{''.join(sections)}</main></body></html>\n"
    )


@dataclass(frozen=True)
class Story:
    """The numbers the page is told from."""

    z: Floats
    centred: Floats
    shifts: Floats
    y: NDArray[np.int64] | None
    groups: list[str] | None
    anchor: float
    evidence: Evidence | None
    why_not: str  # why there is no evidence, if there is none

    @classmethod
    def of(
        cls, z: ArrayLike, y: ArrayLike | None, groups: Sequence[str] | None, anchor: float, seed: int
    ) -> Story:
        """Replay the stream and weigh what came out."""
        logits = links.reals(z)
        if logits.ndim != 1 or len(logits) < 2:
            raise ValueError(
                f"a report needs a stream of 2 or more relative logits, got shape {logits.shape}"
            )
        if groups is not None and len(groups) != len(logits):
            raise ValueError(f"{len(groups)} groups do not go with {len(logits)} rows")
        centred = PLOC(anchor=anchor).replay(logits, logits=True)
        names = None if groups is None else _largest(groups)
        labels, found, why_not = None, None, "no labels were given"
        if y is not None:
            metrics.evaluate(links.sigmoid(logits), y)  # refuses labels that are none
            labels = np.asarray(y).astype(np.int64)
            if 0 < labels.sum() < len(labels):
                found = weigh(logits, centred, labels, names, seed=seed)
            else:
                why_not = f"every label is {labels[0]}"
        return cls(logits, centred, logits - centred, labels, names, anchor, found, why_not)

    def logits(self, who: str) -> Floats:
        """The source's logits, or the centred ones."""
        return self.z if who == BEFORE else self.centred

    def positive(self, who: str) -> float:
        """The share of rows that are called positive."""
        return float((self.logits(who) >= 0).mean())

    @property
    def rate(self) -> float | None:
        """The share of rows that are positive."""
        return None if self.y is None else float(self.y.mean())

    @property
    def flipped(self) -> float:
        """The share of rows that are decided otherwise."""
        return float(((self.z >= 0) != (self.centred >= 0)).mean())

    @property
    def settled(self) -> float:
        """How far the origin strayed from its last value in the stream's second half."""
        half = self.shifts[len(self.shifts) // 2 :]
        return float(np.abs(half - half[-1]).max())


# --- the parts of the page --------------------------------------------------------------------------------


def _head(story: Story, title: str) -> str:
    anchored = f", anchored at {story.anchor:g}" if story.anchor else ""
    labels = "with labels" if story.y is not None else "without labels"
    return (
        f"<header><p class=eyebrow>Prequential logit-origin centering</p><h1>{escape(title)}</h1>"
        f"<p class=dim>{len(story.z):,} rows in stream order{anchored}, {labels}. "
        f"{_key(BEFORE)} is the frozen model as it is; {_key(AFTER)} is the same model, each logit less "
        "the mean of the logits before it. Nothing was trained, and no answer saw a label.</p></header>"
    )


def _verdict(story: Story) -> str:
    if story.evidence is None:
        return (
            '<section class="verdict none"><h2>'
            "<span aria-hidden=true>?</span> Whether PLOC helps can't be told</h2>"
            f"<p>Because {story.why_not}. What can be said: PLOC moves the threshold by "
            f"{_num(story.shifts[-1])} logits and decides {percent(story.flipped)} of the rows otherwise. "
            "What can't: whether those decisions are better. Accuracy, calibration and the ROC curve need "
            "labelled rows of this stream, of both classes (<code>--label</code>).</p></section>"
        )
    verdict = story.evidence.verdict
    mark, heading, css = {
        "helps": ("\u25b2", "PLOC helps on this stream", "helps"),
        "hurts": ("\u25bc", "PLOC hurts on this stream", "hurts"),
        "no evidence": ("\u25a0", "No evidence that PLOC helps or hurts here", "none"),
    }[verdict.word]
    why = verdict.why[0].upper() + verdict.why[1:]
    return (
        f'<section class="verdict {css}"><h2><span aria-hidden=true>{mark}</span> {heading}</h2>'
        f"<p>{why} {_mechanism(story)}</p></section>"
    )


def _mechanism(story: Story) -> str:
    """Where the change comes from: what is said on average, against what is."""
    before, after = (float(links.sigmoid(story.logits(who)).mean()) for who in (BEFORE, AFTER))
    rate = story.rate or 0.0
    said = (
        f"{percent(rate)} of the rows are positive; on average the source says {percent(before)}, "
        f"PLOC {percent(after)}. "
    )
    if abs(after - rate) < abs(before - rate) - 0.01:
        said += "The source is miscentred on this stream, and the shift brings it nearer."
    elif abs(after - rate) > abs(before - rate) + 0.01:
        said += (
            "The source's probabilities fit this stream as they were; centring puts the middle of the stream "
            "at even odds, which is not where it sits."
        )
    else:
        said += "Both are about as far off."
    found = story.evidence
    if found is not None and found.metrics["auroc"].better() < 0:
        auroc = found.metrics["auroc"]
        said += f" The ranking pays {abs(auroc.change):.3f} of AUROC for an origin that was still on its way."
    if found is not None and found.verdict.word == "hurts":
        balanced = found.metrics["balanced_accuracy"]
        if balanced.better() > 0:
            said += (
                f" Balanced accuracy rises all the same, from {balanced.before:.3f} to {balanced.after:.3f}: "
                "where both classes weigh alike, that is the number to look at."
            )
    return said


def _tiles(story: Story) -> str:
    tiles = [
        ("rows", f"{len(story.z):,}", "in stream order"),
        (
            "origin at the end",
            _num(story.shifts[-1]),
            f"strayed at most {story.settled:.2f} in the second half",
        ),
        (
            "called positive",
            f"{percent(story.positive(BEFORE))} \u2192 {percent(story.positive(AFTER))}",
            "truth unknown" if story.rate is None else f"{percent(story.rate)} are",
        ),
        ("decisions changed", percent(story.flipped), f"{round(story.flipped * len(story.z)):,} rows"),
    ]
    if story.evidence is not None:
        for name in evidence.DECIDING:
            c = story.evidence.metrics[name]
            tiles.append((NAMES[name], f"{c.before:.3f} \u2192 {c.after:.3f}", signed(c.change)))
    cells = "".join(f"<div><dt>{a}</dt><dd>{b}</dd><dd class=dim>{c}</dd></div>" for a, b, c in tiles)
    return f"<dl class=tiles>{cells}</dl>"


def _origin(story: Story) -> str:
    rows = len(story.z)
    at = np.unique(np.linspace(0, rows - 1, 600).astype(int))
    bins = _bins(rows, 40)
    local = np.array([story.z[a:b].mean() for a, b in bins])
    calm = story.shifts[min(rows - 1, max(10, rows // 100)) :]
    ends = _padded([*calm, *np.quantile(local, [0.02, 0.98]), 0.0])

    def draw(width: int) -> str:
        chart = Chart("The path of the origin", (1, rows), ends, "row", "logit", width, xformat=count)
        chart.rule(y=0.0)
        for (a, b), mean in zip(bins, local, strict=True):
            chart.dot((a + b) / 2, mean, "truth", 2.2, f"rows {a + 1:,} to {b:,}: mean logit {mean:.3f}")
        return chart.line(at + 1, story.shifts[at], "ploc").svg()

    side = "below 0: the source leans to no here" if story.shifts[-1] < 0 else "above 0: it leans to yes here"
    return _figure(
        "The origin's path",
        f"{_key(AFTER)} subtracts this from each row; "
        f"{_key('mean of ' + count(bins[0][1]) + ' rows', 'truth')} shows where the logits sat "
        f"meanwhile. It ends at {_num(story.shifts[-1])}, {side}. "
        "Dots that leave the line for good are a stream that moves; a forgetting origin would follow it.",
        _responsive(draw),
    )


def _rates(story: Story) -> str:
    rows = len(story.z)
    bins = _bins(rows, 24)
    middle = [(a + b) / 2 for a, b in bins]

    def share(values: NDArray[np.bool_]) -> Floats:
        return np.array([values[a:b].mean() for a, b in bins])

    before, after = share(story.z >= 0), share(story.centred >= 0)
    truth = None if story.y is None else share(story.y == 1)

    def draw(width: int) -> str:
        chart = Chart(
            "Share called positive over the stream", (1, rows), (0, 1), "row", "called positive", width,
            xformat=count, yformat=percent,
        )  # fmt: skip
        chart.line(middle, before, "source").line(middle, after, "ploc")
        for x, value in zip(middle, truth if truth is not None else [], strict=truth is not None):
            chart.dot(x, value, "truth", 2.6, f"{percent(value)} positive")
        return chart.svg()

    known = f", and {_key('are positive', 'truth')}" if truth is not None else "; how many are, nobody said"
    return _figure(
        "Called positive, over time",
        f"Share of rows that {_key(BEFORE)} and {_key(AFTER)} call positive{known}. "
        f"Each point is about {count(bins[0][1])} rows.",
        _responsive(draw),
    )


def _histogram(story: Story, who: str) -> str:
    low, high = np.quantile(np.concatenate([story.z, story.centred]), [0.002, 0.998])
    low, high = _padded([low, high, 0.0])
    edges = np.linspace(low, high, 41)
    parts = {"": np.ones(len(story.z), dtype=bool)}
    if story.y is not None and story.evidence is not None:
        parts = {"": story.y == 1, " negative": story.y == 0}
    heights = {
        who_: {
            part: np.histogram(np.clip(story.logits(who_)[mask], low, high), edges)[0] / len(story.z)
            for part, mask in parts.items()
        }
        for who_ in (BEFORE, AFTER)
    }
    top = max(h.max() for both in heights.values() for h in both.values())
    role = who.lower()

    def draw(width: int) -> str:
        chart = Chart(
            f"Histogram of the logits, {who}", (low, high), (0, 1.12 * top), "logit", "share of rows", width,
            yformat=_share,
        )  # fmt: skip
        for part, tall in heights[who].items():
            chart.steps(edges, tall, role + part)
        room = chart.px(high) - chart.px(0.0) > 120
        words = "\u00a0called positive \u2192" if room else "\u2190 called negative\u00a0"
        return chart.rule(x=0.0).text(0.0, 1.12 * top, words, "start" if room else "end", dy=12).svg()

    legend = (
        f"{_key('positive rows', role + ' fill')} and {_key('negative rows', 'outline')}. "
        if len(parts) > 1
        else ""
    )
    said = f"{percent(story.positive(who))} of the rows lie right of the threshold."
    heading = "Before: the source's logits" if who == BEFORE else "After: the same, centred"
    return _figure(heading, legend + said, _responsive(draw))


def _reliability(story: Story, who: str) -> str:
    if story.y is None or story.evidence is None:
        raise ValueError("a reliability diagram needs labels of both classes")
    y, probs, role = story.y, links.sigmoid(story.logits(who)), who.lower()
    place = np.minimum((probs * 10).astype(int), 9)
    cells = [place == k for k in range(10) if (place == k).any()]
    points = [(float(probs[cell].mean()), float(y[cell].mean()), int(cell.sum())) for cell in cells]

    def draw(width: int) -> str:
        chart = Chart(
            f"Reliability, {who}", (0, 1), (0, 1), "said: chance of positive", "seen: share positive",
            width, 300, xformat=percent, yformat=percent,
        )  # fmt: skip
        chart.segment((0, 1), (0, 1), "ref")
        for said, seen, n in points:
            chart.segment((said, said), _wilson(seen, n), f"{role} whisker")
            tip = f"{n:,} rows: said {said:.2f}, seen {seen:.2f}"
            chart.dot(said, seen, role, 2.5 + 6 * (n / len(probs)) ** 0.5, tip)
        return chart.line([p[0] for p in points], [p[1] for p in points], f"{role} thin").svg()

    ece = story.evidence.metrics["ece"]
    low, high = ece.interval("before" if who == BEFORE else "after")
    value = ece.before if who == BEFORE else ece.after
    off = float(y.mean() - probs.mean())
    return _figure(
        f"{'Before' if who == BEFORE else 'After'}: reliability of {who}",
        f"ECE {value:.3f} ({low:.3f} to {high:.3f}). On the diagonal, what is said is what is seen; "
        f"on the whole the points lie {abs(off):.3f} {'above' if off > 0 else 'below'} it. "
        "Whiskers: 95% intervals (Wilson); larger points hold more rows.",
        _responsive(draw),
    )


def _roc(story: Story) -> str:
    if story.y is None or story.evidence is None:
        raise ValueError("a ROC curve needs labels of both classes")
    y = story.y

    def draw(width: int) -> str:
        chart = Chart(
            "ROC", (0, 1), (0, 1), "false positive rate", "true positive rate", width, 320,
            xformat=percent, yformat=percent,
        )  # fmt: skip
        chart.segment((0, 1), (0, 1), "ref")
        for who in (AFTER, BEFORE):
            fpr, tpr = metrics.roc_curve(story.logits(who), y)
            at = np.unique(np.linspace(0, len(fpr) - 1, 300).astype(int))
            chart.line(fpr[at], tpr[at], who.lower())
        for who in (AFTER, BEFORE):
            said = story.logits(who) >= 0
            chart.dot(
                float(said[y == 0].mean()),
                float(said[y == 1].mean()),
                who.lower(),
                5.5,
                f"{who} decides here",
            )
        return chart.svg()

    c = story.evidence.metrics["auroc"]
    return _figure(
        "ROC",
        f"AUROC {_key(BEFORE)} {c.before:.4f}, {_key(AFTER)} {c.after:.4f}. The points are where each one "
        "decides: centring moves along the curve. The curve itself moves only by rows that were answered "
        "while the origin was still on its way.",
        _responsive(draw),
    )


def _guarantee(story: Story) -> str:
    """What is proven about the ranking, and what this stream did with it."""
    final = float(np.mean(story.z)) - story.anchor
    moved = theory.reordered(story.z, story.z - final)
    exact = (
        "in this stream not one neighbour in the ranking moved"
        if not moved
        else f"in this stream {moved:,} neighbours closer together than a float's rounding were tied"
    )
    words = [
        f"<p><b>Exact.</b> <i>Deferred</i> PLOC takes one number, {_num(final)}, from every logit. So it "
        f"ranks as the source does and has its ROC curve (Proposition 1); {exact}.</p>"
    ]
    only = (
        "<i>Prequential</i> PLOC, which answers at once, can reorder only pairs whose logits lie no further "
        "apart than the origins they were centred by:"
    )
    if story.y is not None and story.evidence is not None:
        drift = theory.drift_bound(story.z, story.y)
        pairs = int(story.y.sum()) * int((story.y == 0).sum())
        words.append(
            f"<p><b>Bounded.</b> {only} {drift.pairs:,} of {pairs:,} pairs here. So AUROC can't have moved "
            f"by more than {drift.bound:.4f} (Proposition 2); it moved by {signed(drift.drift, 4)}"
            f"{', both without the anchor' if story.anchor else ''}.</p>"
        )
    else:
        free = theory.label_free_bound(story.z)
        half, tenth = (free.bound(max(1, round(free.rows * share))) for share in (0.5, 0.1))
        words.append(
            f"<p><b>Bounded, without labels.</b> {only} {free.pairs:,} of "
            f"{free.rows * (free.rows - 1) // 2:,} pairs of rows here. Whatever the labels are, AUROC can't "
            f"have moved by more than {half:.4f} if half of the rows are positive, "
            f"or {tenth:.4f} if a tenth are (Proposition 2).</p>"
        )
    return f"<div class=prose>{''.join(words)}</div>"


def _forest(story: Story) -> str:
    if story.evidence is None:
        raise ValueError("intervals need labels")
    found = story.evidence.metrics
    return _figure(
        "What changes, and how sure that is",
        "PLOC less source with 95% intervals, signs turned so that right is better: "
        f"{_key('better', 'ploc')}, {_key('worse', 'source')}, {_key('may be chance', 'truth')}.",
        _changes("Change of each metric", {NAMES[name]: contrast for name, contrast in found.items()}),
    )


def _table(story: Story) -> str:
    if story.evidence is None or story.y is None:
        raise ValueError("metrics need labels")
    final = story.z - (float(np.mean(story.z)) - story.anchor)
    deferred = metrics.evaluate(links.sigmoid(final), story.y, final).asdict()
    rows = []
    for name, c in story.evidence.metrics.items():
        low, high = c.interval("change")
        mark, css = {1: ("\u25b2 ", "up"), -1: ("\u25bc ", "down"), 0: ("", "same")}[c.better()]
        way = "lower" if name in evidence.LOWER_IS_BETTER else "higher"
        rows.append(
            f"<tr><th scope=row>{NAMES[name]}<small>{way} is better</small></th>"
            f"<td>{_with(c.before, c.interval('before'))}</td><td>{_with(c.after, c.interval('after'))}</td>"
            f"<td class={css}>{mark}{signed(c.change)}<small>{signed(low)} to {signed(high)}</small></td>"
            f"<td class=wideonly>{deferred[name]:.3f}</td></tr>"
        )
    heads = "<th></th><th>source</th><th>PLOC</th><th>change</th><th class=wideonly>deferred</th>"
    return _tabular(heads, rows)


def _groups(story: Story) -> list[str]:
    """What one shift does to each group: the largest ones by name."""
    names = sorted(dict.fromkeys(story.groups or ()), key=lambda name: (name == _OTHERS, name))
    member = np.array(story.groups)
    masks = {name: member == name for name in names}
    said = {name: ((story.z >= 0)[m].mean(), (story.centred >= 0)[m].mean()) for name, m in masks.items()}
    truth = {} if story.y is None else {name: float(story.y[m].mean()) for name, m in masks.items()}
    found = {} if story.evidence is None else {name: story.evidence.groups[name] for name in names}

    def draw(width: int) -> str:
        chart = _categories(
            "Called positive in each group", names, (-0.02, 1.02), "called positive", width, xformat=percent
        )
        for place, name in enumerate(reversed(names)):
            a, b = said[name]
            chart.segment((a, b), (place, place), "truth whisker")
            if name in truth:
                chart.segment((truth[name], truth[name]), (place - 0.3, place + 0.3), "truth thick")
            chart.dot(a, place, "source", 5.5, f"{name}: source {percent(a)}")
            chart.dot(b, place, "ploc", 5.5, f"{name}: PLOC {percent(b)}")
        return chart.svg()

    tick = f"; the upright tick is {_key('what is', 'truth')}" if truth else ""
    parts = [
        _figure(
            "Called positive, group by group",
            f"{_key(BEFORE)} and {_key(AFTER)}{tick}. All groups share one origin here; "
            "<code>ploc score --by</code> gives each its own.",
            _responsive(draw),
        )
    ]
    if found:
        worse = [name for name, c in found.items() if c.better() < 0]
        better = [name for name, c in found.items() if c.better() > 0]
        which = f" ({escape(', '.join(worse[:6]))}{', ...' if len(worse) > 6 else ''})" if worse else ""
        parts.append(
            _figure(
                "Accuracy, group by group",
                f"PLOC less source with 95% intervals: {_key('better', 'ploc')} in {len(better)}, "
                f"{_key('worse', 'source')} in {len(worse)}{which}, "
                f"{_key('may be chance', 'truth')} in {len(found) - len(better) - len(worse)}.",
                _changes("Change of accuracy in each group", found),
            )
        )
    rows = []
    for name in names:
        a, b = said[name]
        cells = [f"{a:.1%} \u2192 {b:.1%}"]
        if truth:
            cells.append(f"{truth[name]:.1%}")
        if found:
            c = found[name]
            low, high = c.interval("change")
            change = f"{signed(c.change)} ({signed(low)} to {signed(high)})"
            cells.append(f"{c.before:.3f} \u2192 {c.after:.3f}<small>{change}</small>")
        size = f"<small>{int(masks[name].sum()):,} rows</small>"
        data = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f"<tr><th scope=row>{escape(name)}{size}</th>{data}</tr>")
    heads = ["called positive", *(["are"] if truth else []), *(["accuracy"] if found else [])]
    parts.append(_tabular("<th></th>" + "".join(f"<th>{head}</th>" for head in heads), rows, "span"))
    return parts


def _changes(name: str, contrasts: dict[str, Contrast]) -> str:
    """Changes with their intervals, one below the other, better to the right."""
    signs = [-1 if c.name in evidence.LOWER_IS_BETTER else 1 for c in contrasts.values()]
    spans = [
        sorted(sign * end for end in c.interval("change"))
        for sign, c in zip(signs, contrasts.values(), strict=True)
    ]
    reach = 1.15 * max([1e-3, *(abs(end) for span in spans for end in span if np.isfinite(end))])

    def draw(width: int) -> str:
        words = "\u2190 worse \u00a0\u00a0 change \u00a0\u00a0 better \u2192"
        chart = _categories(name, list(contrasts), (-reach, reach), words, width).rule(x=0.0)
        order = list(zip(signs, spans, contrasts.items(), strict=True))[::-1]
        for place, (sign, (low, high), (label, c)) in enumerate(order):
            role = {1: "ploc", -1: "source", 0: "truth"}[c.better()]
            if np.isfinite(low) and np.isfinite(high):
                chart.segment((low, high), (place, place), f"{role} thick")
            chart.dot(sign * c.change, place, role, 5, f"{label}: {signed(c.change)}")
        return chart.svg()

    return _responsive(draw)


def _categories(
    name: str,
    labels: list[str],
    x: tuple[float, float],
    xlabel: str,
    width: int,
    *,
    xformat: Callable[[float], str] | None = None,
) -> Chart:
    """A chart with a line for each label, the first one on top."""

    def label(place: float) -> str:
        words = labels[len(labels) - 1 - int(place)]
        return words if len(words) <= 17 else words[:16] + "\u2026"

    return Chart(
        name, x, (-0.6, len(labels) - 0.4), xlabel, width=width, height=64 + 30 * len(labels), left=132,
        xformat=xformat, yformat=label, yticks=list(range(len(labels))),
    )  # fmt: skip


def _protocol(story: Story) -> str:
    said = [
        "Row t is centred by the mean of the logits of rows 1 to t\u22121; row 1 is answered as it came. "
        "Called positive means p \u2265 1/2.",
        "ECE has 15 equal bins of confidence; NLL clips probabilities at 1e-6; AUROC ranks by logits.",
    ]
    if story.evidence is not None:
        said.append(
            f"Intervals: {story.evidence.replicates:,} paired bootstrap streams of circular blocks of "
            f"{story.evidence.block} neighbouring rows, the answers held as they were given. The verdict "
            "looks at accuracy and NLL, at 97.5% each, so that the two hold together at 95%; PLOC helps if "
            "one is better and none worse, hurts if one is worse and none better."
        )
    return f"<footer><h2>How this was made</h2>{''.join(f'<p>{s}</p>' for s in said)}</footer>"


# --- small things -----------------------------------------------------------------------------------------

_OTHERS = "all other groups"


def _largest(groups: Sequence[str]) -> list[str]:
    shown = {name for name, _ in Counter(groups).most_common(GROUPS)}
    return [name if name in shown else _OTHERS for name in groups]


def _bins(rows: int, most: int) -> list[tuple[int, int]]:
    """Ranges of rows, alike in length to a row, with ten rows or more where there are so many."""
    edges = np.linspace(0, rows, max(1, min(most, rows // 10)) + 1).astype(int)
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def _padded(values: Sequence[float]) -> tuple[float, float]:
    low, high = float(min(values)), float(max(values))
    pad = 0.06 * (high - low) or 0.5
    return low - pad, high + pad


def _wilson(share: float, n: int) -> tuple[float, float]:
    q = 1.959964
    middle = (share + q * q / (2 * n)) / (1 + q * q / n)
    half = q / (1 + q * q / n) * (share * (1 - share) / n + q * q / (4 * n * n)) ** 0.5
    return middle - half, middle + half


def _num(value: float) -> str:
    return f"{value:.2f}".replace("-", "\N{MINUS SIGN}")


def _share(value: float) -> str:
    return f"{100 * value:g}%"


def _with(value: float, interval: tuple[float, float]) -> str:
    return f"{value:.3f}<small>{interval[0]:.3f}\u2013{interval[1]:.3f}</small>"


def _key(words: str, role: str = "") -> str:
    return f'<span class="key {role or words.lower()}">{words}</span>'


def _figure(heading: str, caption: str, picture: str) -> str:
    return f"<figure><h3>{heading}</h3>{picture}<figcaption>{caption}</figcaption></figure>"


def _tabular(heads: str, rows: list[str], css: str = "") -> str:
    body = "".join(rows)
    return (
        f'<div class="scroll {css}"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _section(heading: str, *parts: str) -> str:
    return f"<section><h2>{escape(heading)}</h2><div class=grid>{''.join(parts)}</div></section>"


def _responsive(draw: Callable[[int], str]) -> str:
    """A picture drawn for a wide column and again for a narrow one, so that its words keep their size."""
    return f"<div class=wide>{draw(540)}</div><div class=narrow>{draw(380)}</div>"


PAGE = """
:root{color-scheme:light dark;--paper:#fff;--card:#f6f7f9;--ink:#16191d;--dim:#565f6a;--line:#e1e5ea;
--source:#c2570c;--ploc:#0b66b5;--truth:#30363d}
@media (prefers-color-scheme:dark){:root{--paper:#121518;--card:#1b1f24;--ink:#e9ecef;--dim:#a2acb7;
--line:#2e343b;--source:#f59e4b;--ploc:#62b5f5;--truth:#d5dae0}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,sans-serif}
main{max-width:1160px;margin:0 auto;padding:28px 20px 48px}
h1{font-size:1.9rem;line-height:1.15;margin:.1em 0 .3em;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:0 0 .6em}
h3{font-size:1rem;margin:0 0 .4em}
p{margin:.3em 0;max-width:84ch}
.eyebrow{color:var(--ploc);font-size:.8rem;font-weight:600;letter-spacing:.06em;text-transform:uppercase}
.dim{color:var(--dim)}
section,footer{margin-top:30px}
section>h2,footer>h2{border-top:1px solid var(--line);padding-top:14px}
.verdict{border-left:6px solid var(--dim);background:var(--card);padding:16px 18px;margin-top:18px;
border-radius:0 8px 8px 0}
.verdict h2{border:0;padding:0;margin:0 0 .3em;font-size:1.45rem;line-height:1.25}
.verdict.helps{border-color:var(--ploc)}.verdict.helps span{color:var(--ploc)}
.verdict.hurts{border-color:var(--source)}.verdict.hurts span{color:var(--source)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(165px,1fr));gap:10px;margin:18px 0 0}
.tiles div{background:var(--card);border-radius:8px;padding:10px 13px}
.tiles dt{color:var(--dim);font-size:.82rem}
.tiles dd{margin:0;font-size:1.12rem;font-weight:600;font-variant-numeric:tabular-nums;white-space:nowrap}
.tiles dd.dim{font-size:.8rem;font-weight:400;white-space:normal}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(420px,100%),1fr));gap:26px 36px;
align-items:start}
.span{grid-column:1/-1}
figure{margin:0;min-width:0;break-inside:avoid}
figcaption,.prose{color:var(--dim);font-size:.9rem}
.prose p{margin:0 0 .8em}.prose b{color:var(--ink)}
.narrow{display:none}
.key{white-space:nowrap;color:var(--ink);font-weight:600}
.key::before{content:"";display:inline-block;width:18px;margin-right:5px;vertical-align:middle;
border-top:3px solid}
.key.source::before{border-top-style:dashed;color:var(--source)}
.key.ploc::before{color:var(--ploc)}
.key.truth::before{width:8px;height:8px;border:0;border-radius:50%;background:var(--truth)}
.key.fill::before{width:12px;height:10px;border:1px solid;background:currentColor}
.key.outline::before{width:12px;height:10px;border:1.5px solid var(--ink)}
svg.chart .line.thin{stroke-width:1.25;stroke-dasharray:none;opacity:.6}
svg.chart .thick{stroke-width:3}
.scroll{overflow-x:auto;min-width:0}
table{border-collapse:collapse;width:100%;font-size:.92rem;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:6px 0 6px 10px;border-bottom:1px solid var(--line);vertical-align:top;
font-weight:400}
th:first-child{text-align:left;padding-left:0;overflow-wrap:anywhere}
thead th{color:var(--dim);font-size:.85rem}
tbody th{font-weight:600}
small{display:block;color:var(--dim);font-size:.74rem;font-weight:400}
td small{white-space:nowrap}
td.up{color:var(--ploc)}td.down{color:var(--source)}
code{font:.9em ui-monospace,monospace;background:var(--card);padding:0 .25em;border-radius:3px}
footer p{color:var(--dim);font-size:.88rem}
@media (max-width:520px){.wide,.wideonly{display:none}.narrow{display:block}main{padding:18px 14px 40px}
h1{font-size:1.5rem}.verdict h2{font-size:1.2rem}table{font-size:.85rem}small{font-size:.68rem}
.tiles{grid-template-columns:1fr 1fr}th,td{padding-left:6px}td small{white-space:normal}}
@page{margin:14mm}
@media print{:root{color-scheme:light;--paper:#fff;--card:#f6f7f9;--ink:#16191d;--dim:#565f6a;--line:#d5dae0;
--source:#c2570c;--ploc:#0b66b5;--truth:#30363d}body{font-size:11.5px}main{max-width:none;padding:0}
.grid{grid-template-columns:1fr 1fr;gap:14px 22px}.wide{display:block}.narrow{display:none}
section{margin-top:16px}*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""
