"""The command `ploc`: score a file, answer a stream, tell a stream's story, see it work."""

# A command imports what it needs itself: `ploc stream` starts without polars.
# ruff: noqa: PLC0415

from __future__ import annotations

import signal
import sys
from pathlib import Path  # noqa: TC003 - cyclopts reads the signatures at run time
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console

if TYPE_CHECKING:
    from types import FrameType

    from rich.progress import Progress

    from ploc.keyed import Keyed

Format = Literal["csv", "tsv", "parquet", "ndjson"]

app = App(
    name="ploc",
    help="Centre a frozen classifier on a shifted stream: one number of state, no labels, no training.",
    help_epilogue="`ploc COMMAND --help` tells more. Errors are one line on stderr with exit code 2.",
    help_format="markdown",
    print_error=False,
    exit_on_error=False,
    suppress_keyboard_interrupt=False,
    result_action="return_int_as_exit_code_else_zero",
)
app.register_install_completion_command()


@app.command
def score(
    file: Path,
    /,
    *,
    out: Annotated[Path, Parameter(alias="-o")],
    logit: Annotated[list[str] | None, Parameter(negative_iterable="")] = None,
    proba: Annotated[list[str] | None, Parameter(negative_iterable="")] = None,
    by: str | None = None,
    order_by: str | None = None,
    deferred: Annotated[bool, Parameter(negative="")] = False,
    anchor: float = 0.0,
    state: Path | None = None,
    prefix: str = "ploc_",
    from_: Annotated[Format | None, Parameter(name="--from")] = None,
    to: Format | None = None,
) -> int:
    """Answer the rows of a file: CSV, TSV, Parquet or NDJSON, of any size.

    Every column comes back as it was, with three more: `ploc_proba`, the answer P(y=1); `ploc_shift`, the
    origin the row was centred by; and `ploc_count`, how many rows that origin had seen. A row that can't be
    answered stops the run, and no file is written.

        ploc score day.parquet --logit z --by tenant --order-by t -o answered.parquet

    Parameters
    ----------
    file
        The rows to answer.
    out
        Where the answered rows go; written whole or not at all.
    logit
        The column of the relative logit log p1/p0. Given K times: the K logit columns of K classes.
    proba
        In place of --logit: the column of P(y=1), or K columns of probabilities; their logits are centred.
    by
        The column whose values each have an origin of their own, such as a tenant.
    order_by
        The column that says in which order rows came: numbers, or ISO 8601 times. Ties stay in the file's
        order. Without it, the file's order is the stream's.
    deferred
        Look at the whole file first, then answer every row with the one final origin: the ranking stays.
    anchor
        Where centred logits should sit. 0 is the paper's method.
    state
        Begin with the origins in this file, if it is there, and save them to it when the run is done.
    prefix
        What the names of the new columns begin with.
    from_
        The format of FILE, if its ending does not say.
    to
        The format of OUT, if its ending does not say.
    """
    from ploc.tables import Score, Table, apart

    columns, is_proba = _either(logit, proba)
    if state is not None:
        apart(out, state, "the file of --state")
    rows = _rows(max(2, len(columns)), anchor, is_proba, by, state)
    source, target = Table(file, from_), Table(out, to)
    with _progress() as progress:
        total = source.height() if not progress.disable else None
        task = progress.add_task(f"answering {file.name}", total=total)
        run = Score(rows, columns, order_by, deferred, prefix, advance=lambda n: progress.advance(task, n))
        height = run.run(source, target)
    if state is not None:
        rows.save(state)
    _note(f"{height:,} rows answered into {out}" + (f"; {state} holds the origins" if state else ""))
    return 0


@app.command
def stream(
    *,
    logit: str | None = None,
    proba: str | None = None,
    by: str | None = None,
    classes: int = 2,
    anchor: float = 0.0,
    state: Path | None = None,
    save_every: float = 1.0,
    on_bad: Literal["stop", "pass"] = "stop",
    prefix: str = "ploc_",
) -> int:
    """Answer lines of JSON as they come: a Unix filter from stdin to stdout.

    A line comes out as it came in, byte for byte, with `ploc_proba`, `ploc_shift` and `ploc_count` added.
    Every line that has arrived is answered, and its answer is out, before more is read.

        producer | ploc stream --logit z --state origins.json | consumer

    Parameters
    ----------
    logit
        The field of the relative logit log p1/p0 (default: z); with --classes K a list of K logits.
    proba
        In place of --logit: the field of P(y=1), or of the list of K probabilities.
    by
        The field whose values each have an origin of their own, such as a tenant: text or whole numbers.
    classes
        How many classes the model has.
    anchor
        Where centred logits should sit. 0 is the paper's method.
    state
        Begin with the origins in this file, if it is there, and save them to it as the stream goes, at its
        end, and on SIGTERM or SIGINT. It always holds a state that was true after some answered line.
    save_every
        Seconds between saves while lines come in; 0 saves after every block.
    on_bad
        At a line that has no answer: stop there (exit code 2), or pass it on untouched. Either way stderr
        says which.
    prefix
        What the names of the new fields begin with.
    """
    from ploc.stream import Filter

    if sys.stdin is None or sys.stdout is None:
        raise ValueError("standard input or output is closed; ploc stream reads the one and writes the other")
    if not save_every >= 0:
        raise ValueError(f"--save-every is {save_every}; it is seconds, from 0")
    columns, is_proba = _either([logit] if logit else None, [proba] if proba else None, "z")
    rows = _rows(classes, anchor, is_proba, by, state)
    if rows.lines:
        _tell(f"ploc: {state}: goes on after line {rows.lines:,} ({rows.count:,} rows observed)")
    if sys.stdin.isatty():
        _note('reading lines like {"z": 0.5} from this terminal; Ctrl-D ends them')
    return Filter(rows, columns[0], prefix, on_bad, state, save_every).run()


@app.command
def report(
    file: Path,
    /,
    *,
    out: Annotated[Path, Parameter(alias="-o")],
    logit: str | None = None,
    proba: str | None = None,
    label: str | None = None,
    by: str | None = None,
    order_by: str | None = None,
    anchor: float = 0.0,
    title: str | None = None,
    from_: Annotated[Format | None, Parameter(name="--from")] = None,
) -> int:
    """Tell a stream's story on one HTML page: what the source says, what PLOC says, whether it helps.

    The page is one file, needs no network, and prints. Without --label it says what can be said without
    labels, and what can't.

        ploc report day.csv --label y --by region -o report.html

    Parameters
    ----------
    file
        The rows of the stream: CSV, TSV, Parquet or NDJSON.
    out
        Where the page goes.
    logit
        The column of the relative logit log p1/p0 (default: z).
    proba
        In place of --logit: the column of P(y=1).
    label
        The column of the true classes, 0 and 1. Labels are for measuring; no answer depends on them.
    by
        A column whose values are shown apart: what the one shift does to each group.
    order_by
        The column that says in which order rows came. Without it, the file's order is the stream's.
    anchor
        Where centred logits should sit. 0 is the paper's method.
    title
        What the page is called (default: the file's name).
    from_
        The format of FILE, if its ending does not say.
    """
    from ploc import report as story
    from ploc.files import whole
    from ploc.tables import Table, apart, stream_of

    columns, is_proba = _either([logit] if logit else None, [proba] if proba else None, "z")
    apart(out, file)
    with whole(out) as part, _progress() as progress:
        progress.add_task(f"reading and weighing {file.name}", total=None)
        z, y, groups = stream_of(
            Table(file, from_), columns[0], proba=is_proba, label=label, by=by, order_by=order_by
        )
        page = story.html(z, y, groups, anchor=anchor, title=title or file.name, by=by or "")
        part.write_text(page, encoding="utf-8")
    _note(f"the story of {len(z):,} rows is in {out}")
    return 0


@app.command
def demo() -> int:
    """See PLOC at work on real, embedded data: once where it helps, once where it does not."""
    from ploc.demo import show

    show(Console())
    return 0


def main() -> NoReturn:
    """Run the command line: 0 is fine, 2 an error of the user's, 130 an interruption."""
    signal.signal(signal.SIGTERM, _terminated)
    try:
        code = app(sys.argv[1:])
    except CycloptsError as error:
        _tell(f"ploc: {_plain(error)}")
        code = 2
    except (ValueError, TypeError, OSError, ModuleNotFoundError) as error:
        _tell(f"ploc: {_sentence(error)}")
        code = 2
    except KeyboardInterrupt:
        _tell("ploc: interrupted; no file was changed")
        code = 130
    sys.exit(code)


def _either(logit: list[str] | None, proba: list[str] | None, default: str = "") -> tuple[list[str], bool]:
    """The columns, and whether they hold probabilities."""
    if logit and proba:
        raise ValueError("--logit and --proba are two ways to say the same; give one of them")
    for name in (logit or proba or [])[1:]:
        if (logit or proba or []).count(name) > 1:
            raise ValueError(f"the column {name!r} is named twice; each class has a column of its own")
    if not logit and not proba and not default:
        raise ValueError("say which column holds the logit with --logit, or the probability with --proba")
    return logit or proba or [default], bool(proba)


def _rows(classes: int, anchor: float, proba: bool, by: str | None, state: Path | None) -> Keyed:
    from ploc.files import place
    from ploc.keyed import Keyed

    rows = Keyed(classes, anchor, proba, by)
    if state is None:
        return rows
    place(state)  # a state that could not be saved is refused before the first row, not after the last
    return rows.load(state) if state.exists() else rows


def _progress() -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _note(text: str) -> None:
    """For people; a script's stderr stays empty when all is well."""
    if sys.stderr.isatty():
        _tell(text)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def _plain(error: CycloptsError) -> str:
    words = " ".join(str(error).split())
    command = " ".join(error.command_chain or ())
    return f"{words} (see: ploc {command}{' ' if command else ''}--help)"


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, ModuleNotFoundError):
        return f"{error}; pip install 'ploc[cli]' brings it"
    return " ".join(str(error).split())


def _terminated(number: int, _: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
