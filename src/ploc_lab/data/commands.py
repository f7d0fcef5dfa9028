"""The commands `ploc-lab data list`, `check` and `fetch`."""

import json
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console

from ploc_lab import data, paths
from ploc_lab.data import listing
from ploc_lab.data.fetch import fetch as download
from ploc_lab.data.status import status

app = App(name="data", help="The data sets: what they are, whether they are here, and how to get them.")


@app.command(name="list")
def list_(
    *names: str,
    long: Annotated[bool, Parameter(negative=())] = False,
    markdown: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Show every data set: its size and licence, whether it needs a form, is here, and is the right one.

    Parameters
    ----------
    names
        Data sets to show in full: what each is, its terms, where it comes from and how to get it.
    long
        Show all of them in full.
    markdown
        Print the table of docs/data.md instead: what is published of each, whatever is here.
    """
    if markdown:
        _say(listing.markdown())
        return 0
    console = Console()
    found = [status(name) for name in names or data.names()]
    if names or long:
        _say("\n\n".join(listing.full(one, console.width) for one in found))
        return 0
    console.print(listing.overview(found, console.width))
    _say(f"Raw files are looked for under {paths.data_root()}.")
    _say("One in full: ploc-lab data list NAME. To get it: ploc-lab data fetch NAME.")
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
        _say(json.dumps([one.asdict() for one in found], indent=1))
    else:
        _say("\n".join(map(listing.verdict, found)))
    return 1 if any(one.problems or (names and not one.here) for one in found) else 0


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
        if task.source.downloads:
            root = paths.data_root()
            new = task.fetch(root, _say) if task.fetch else download(task, root)
            _say(f"{task.name}: {f'{len(new)} file(s) fetched' if new else 'already here'}")
            continue
        found = status(task.name)
        if found.right:
            _say(f"{task.name}: already here")
            continue
        absent += 1
        _say(f"{task.name}: no program may fetch this. {task.source.terms.capitalize()}.")
        for problem in found.problems:
            _say(f"  What is here is not the one: {problem}")
        where = ", ".join(str(paths.data_root() / file) for file in task.files)
        steps = [*task.source.steps, f"Put it here: {where}", f"Run: ploc-lab data check {task.name}"]
        for number, step in enumerate(steps, 1):
            _say(f"  {number}. {step}")
    return 2 if absent else 0


def _say(line: str) -> None:
    print(line)  # noqa: T201
