"""What a person reads about data sets: the overview, one in full, and the table of docs/data.md."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping

from rich.table import Table

from ploc_lab import data
from ploc_lab.data.schema import Expected, Task
from ploc_lab.data.status import Status

WIDE = 120
"""Columns of a terminal from which on the overview says what each data set is."""


def overview(found: Iterable[Status], width: int) -> Table:
    """A line a data set, stand-ins under a heading of their own; fits 80 columns."""
    heads = ["name", "rows", "target", "here", "right", "form", "licence", "what it is"]
    heads = heads if width >= WIDE else heads[:-1]
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    for head in heads:
        prose = head in {"licence", "what it is"}
        table.add_column(head, justify="right" if head in {"rows", "target"} else "left", no_wrap=not prose)
    lines = list(found)
    for stand_in in (False, True):
        some = [one for one in lines if bool(one.stand_in) == stand_in]
        if stand_in and some:
            table.add_row()
            table.add_row("stand-ins", style="bold")
        for one in some:
            sizes = (one.expected.get(key) for key in ("rows", "ood_test"))
            cells = [
                one.name,
                *("-" if size is None else f"{size:,}" for size in sizes),
                "yes" if one.here else "no",
                {None: "-", True: "yes", False: "NO"}[one.right],
                "yes" if one.form else "no",
                one.licence,
                one.title,
            ]
            table.add_row(*cells[: len(heads)])
    return table


def full(one: Status, width: int) -> str:
    """Everything that is known of a data set, a fact a line; addresses and paths stay whole."""
    task = data.task(one.name)
    lines = [f"{one.name}: {one.title}"]
    for fact, value in _facts(one, task):
        lines += textwrap.wrap(
            value,
            width,
            initial_indent=f"  {fact:<10}",
            subsequent_indent=" " * 12,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def _facts(one: Status, task: Task) -> Iterator[tuple[str, str]]:
    want = task.fingerprint.expected
    if task.stand_in:
        yield "stand-in", task.stand_in
    yield "positive", task.label
    yield "target", task.domain
    sizes = {key: _cell(want.get(key)) for key in ("rows", "train", "ood_test", "width")}
    yield "rows", f"{sizes['rows']}; train {sizes['train']}, target stream {sizes['ood_test']}"
    yield "rate", f"train {_rate(want, 'train')}, target stream {_rate(want, 'ood_test')}"
    yield "columns", sizes["width"]
    yield "time", task.time or "none, the order of the file is taken"
    yield "licence", f"{one.licence}: {one.terms}"
    yield "source", one.page
    if task.source.downloads:
        yield "get it", f"ploc-lab data fetch {one.name}"
    for number, step in enumerate(task.source.steps, 1):
        yield "get it" if number == 1 else "", f"{number}. {step}"
    yield "here", "yes" if one.here else f"no: {_first(one.missing)}"
    if one.right:
        yield "right", f"yes ({(one.fingerprint or '')[:12]})"
    for problem in one.problems:
        yield "WRONG", problem
    if task.note:
        yield "note", task.note


def verdict(one: Status) -> str:
    """One data set's part of `check`: a line, and a line for each difference."""
    if one.right:
        return f"{one.name}: right ({(one.fingerprint or '')[:12]})"
    if one.right is None and not one.problems:
        return f"{one.name}: not here ({_first(one.missing)}); ploc-lab data fetch {one.name}"
    remedy = f"ploc-lab data fetch {one.name} says where the right one comes from"
    return "\n  ".join([f"{one.name}: WRONG", *one.problems, remedy])


def markdown() -> str:
    """What the right file of each data set gives, as a Markdown table."""
    heads = ["name", "positive", "target", "rows", "train", "target stream"]
    heads += ["train rate", "target rate", "width", "time"]
    lines = [
        f"| {' | '.join(heads)} |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for name in data.names():
        task = data.task(name)
        want = task.fingerprint.expected
        rates = [_rate(want, split) for split in ("train", "ood_test")]
        sizes = [_cell(want.get(key)) for key in ("rows", "train", "ood_test")]
        cells = [f"`{name}`", task.label, task.domain, *sizes, *rates, _cell(want.get("width")), _time(task)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _rate(want: Mapping[str, Expected], split: str) -> str:
    """The share of positives: exact where the count is known, else the middle of the published range."""
    if "classes" in want:
        return f"{want['classes']} classes"
    match want.get(f"positive {split}"), want.get(split), want.get(f"rate {split}"):
        case int(count), int(size), _:
            return f"{count / size:.3f}"
        case _, _, (low, high):
            return f"about {(low + high) / 2:.3f}"
        case _:
            return "not published"


def _cell(number: Expected | None) -> str:
    match number:
        case None:
            return "not published"
        case (low, high):
            return f"{low:,} to {high:,}"
        case _:
            return f"{number:,}"


def _time(task: Task) -> str:
    return "none" if task.images else task.time or "raw row"


def _first(paths: list[str]) -> str:
    return f"{paths[0]} and {len(paths) - 1} more" if len(paths) > 1 else paths[0]
