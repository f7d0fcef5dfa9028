"""The commands `ploc-lab data list`, `check` and `fetch`."""

import json
from collections.abc import Mapping
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from ploc_lab import data, paths
from ploc_lab.data.fetch import fetch as download
from ploc_lab.data.schema import Expected
from ploc_lab.data.status import Status, status

app = App(name="data", help="The data sets: what they are, whether they are here, and how to get them.")


@app.command(name="list")
def list_(*, markdown: Annotated[bool, Parameter(negative=())] = False) -> int:
    """Show every data set: what it is, its size, licence and source, whether it is here and the right one.

    Parameters
    ----------
    markdown
        Print the table of docs/data.md instead: what is published of each, whatever is here.
    """
    if markdown:
        _say(facts())
        return 0
    table = Table(title=f"Data sets, raw files under {paths.data_root()}", show_lines=True)
    for heading in (
        "name",
        "what it is",
        "rows, target",
        "licence and terms",
        "source",
        "form",
        "here",
        "right",
    ):
        table.add_column(heading, justify="right" if heading.startswith("rows") else "left", overflow="fold")
    for one in map(status, data.names()):
        sizes = [one.expected.get(key) for key in ("rows", "ood_test")]
        table.add_row(
            one.name,
            "\n".join(filter(None, [one.title, one.stand_in])),
            "\n".join("not published" if size is None else f"{size:,}" for size in sizes),
            f"{one.licence}\n{one.terms}",
            one.page,
            "yes" if one.form else "no",
            "yes" if one.here else "no",
            {None: "-", True: "yes", False: "NO"}[one.right],
        )
    Console().print(table)
    return 0


@app.command
def check(*names: str, as_json: Annotated[bool, Parameter(name="--json", negative=())] = False) -> int:
    """Read the data sets that are here and compare them with their fingerprints.

    Parameters
    ----------
    names
        Data sets to check; all without any. One that is named must be here.
    as_json
        Print JSON for programs instead of lines.
    """
    found = [status(name) for name in names or data.names()]
    if as_json:
        print(json.dumps([one.asdict() for one in found], indent=1))  # noqa: T201
    else:
        console = Console()
        for one in found:
            console.print(f"{one.name}: {_verdict(one)}", markup=False, highlight=False, soft_wrap=True)
    wrong = any(one.right is False or (names and not one.here) for one in found)
    return 1 if wrong else 0


@app.command
def fetch(*names: str) -> int:
    """Download the raw files that may be downloaded; print the steps for those that need a person.

    Parameters
    ----------
    names
        Data sets to fetch; each by its name.
    """
    if not names:
        raise ValueError(f"name the data sets to fetch: {', '.join(data.names())}")
    tasks = [data.task(name) for name in names]
    absent = 0
    for task in tasks:
        missing = data.missing(task.name)
        if task.source.downloads:
            root = paths.data_root()
            new = task.fetch(root, _say) if task.fetch else download(task, root)
            _say(f"{task.name}: {f'{len(new)} file(s) fetched' if new else 'already here'}")
        elif not missing:
            _say(f"{task.name}: already here")
        else:
            absent += 1
            _say(f"{task.name}: no program may fetch this. {task.source.terms.capitalize()}.")
            for number, step in enumerate(task.source.steps, 1):
                _say(f"  {number}. {step}")
            _say(f"  {len(task.source.steps) + 1}. Put it here: {', '.join(map(str, missing))}")
            _say(f"  {len(task.source.steps) + 2}. Run: ploc-lab data check {task.name}")
    return 2 if absent else 0


def facts() -> str:
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
        cells = [f"`{name}`", task.label, task.domain, *sizes, *rates, _cell(want.get("width"))]
        order = "none" if task.images else task.time or "raw row"
        lines.append(f"| {' | '.join([*cells, order])} |")
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


def _verdict(one: Status) -> str:
    if not one.here:
        more = f" and {len(one.missing) - 1} more" if len(one.missing) > 1 else ""
        return f"not here ({one.missing[0]}{more}); ploc-lab data fetch {one.name}"
    if one.right:
        return f"right ({one.fingerprint[:12] if one.fingerprint else ''})"
    return f"WRONG: {'; '.join(one.problems)}"


def _say(line: str) -> None:
    print(line)  # noqa: T201
