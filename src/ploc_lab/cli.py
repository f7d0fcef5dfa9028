"""The command `ploc-lab`: data, source models, methods, the study and its report."""

from __future__ import annotations

import sys

import polars as pl
from cyclopts import App
from rich.console import Console

app = App(
    name="ploc-lab",
    help="The laboratory of PLOC: every claim, on real data, against every rival.",
    error_console=Console(stderr=True),
    # Or an interruption would end in silence, before main() can say that the same command goes on.
    suppress_keyboard_interrupt=False,
)

app.command("ploc_lab.data.commands:app", name="data")
app.command("ploc_lab.models.commands:train", name="train")
app.command("ploc_lab.models.commands:compare", name="compare")
app.command("ploc_lab.methods.commands:methods", name="methods")
app.command("ploc_lab.study.commands:run", name="run")
app.command("ploc_lab.study.commands:status", name="status")
app.command("ploc_lab.report.commands:report", name="report")
app.command("ploc_lab.report.commands:claims", name="claims")
app.command("ploc_lab.report.pictures:pictures", name="pictures")
app.command("ploc_lab.demo:demo", name="demo")


def main() -> None:
    """Run the command line; a refusal is one line on stderr and exit code 2."""
    try:
        app()
    except (ValueError, OSError) as error:
        print(f"ploc-lab: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    except pl.exceptions.PolarsError as error:  # its message has many lines, the first says what is wrong
        print(f"ploc-lab: {str(error).partition(chr(10))[0]}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    except KeyboardInterrupt:
        print("ploc-lab: interrupted; the same command goes on from what was done", file=sys.stderr)  # noqa: T201
        sys.exit(130)
