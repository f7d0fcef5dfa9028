"""Tables in files of any size: answered row by row in stream order, read and written in pieces."""

from __future__ import annotations

import csv
import glob
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from itertools import takewhile
from pathlib import Path
from threading import Event, current_thread, main_thread
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from polars.exceptions import NoDataError, PolarsError
from polars.io.plugins import register_io_source

from ploc import links
from ploc import origin as origins
from ploc.files import whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ploc.center import PLOC
    from ploc.keyed import Keyed

Format = Literal["csv", "tsv", "parquet", "ndjson"]
SUFFIXES: dict[str, Format] = {
    ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet",
    ".ndjson": "ndjson", ".jsonl": "ndjson",
}  # fmt: skip
BATCH = 1 << 16
ORDER, ROW = "ploc: order", "ploc: row"
NUMBER = r"^-?(0|[1-9]\d{0,14})(\.(0|\d*[1-9]))?([eE][+-]?\d+)?$"
"""A float as programs write it: no plus, no zero too many, no whole part that 53 bits could not hold."""
SHORT = r"^[+-]?[0.]*(\d\.?){0,17}([eE]|$)"
"""17 digits tell any two floats apart; what has more is more than a float."""
EXACT = pl.Decimal(38, 18)
INEXACT = r"\.\d{19}|[eE]-"
"""What `EXACT` would round."""
ISO = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?)?$"


@dataclass
class Table:
    """A file of rows. The cells of CSV are text, so that what is not ours is written back as it was.

    >>> Table("rows.csv").format
    'csv'
    """

    path: Path
    format: Format

    def __init__(self, path: str | Path, said: Format | None = None) -> None:
        self.path = Path(path)
        self.format = said or format_of(self.path)

    @property
    def typed(self) -> bool:
        """Whether the format has types."""
        return self.format in ("parquet", "ndjson")

    @property
    def separator(self) -> str:
        """What stands between the cells of CSV or TSV."""
        return "\t" if self.format == "tsv" else ","

    def scan(self) -> pl.LazyFrame:
        """The rows, not yet read."""
        if not self.path.exists():
            near = get_close_matches(
                self.path.name, [p.name for p in self.path.absolute().parent.glob("*")], 1
            )
            raise FileNotFoundError(
                f"{self.path}: no such file" + (f"; did you mean {near[0]}?" if near else "")
            )
        path = str(self.path.absolute())  # the engine would take [1], * and ~ for patterns
        with plain_errors(self):
            if self.format == "parquet":
                return pl.scan_parquet(path, glob=False)
            if self.format == "ndjson":
                return pl.scan_ndjson(glob.escape(path), infer_schema_length=None)
            return pl.scan_csv(path, glob=False, infer_schema=False, separator=self.separator)

    def schema(self) -> pl.Schema:
        """Names and types of the columns; two columns of one name are refused."""
        with plain_errors(self):
            schema = self.scan().collect_schema()
        if not self.typed and any("_duplicated_" in name for name in schema):  # so the engine renames them
            with self.path.open(encoding="utf-8-sig", newline="") as file:
                header = next(filter(None, csv.reader(file, delimiter=self.separator)), [])
            for name in header:
                if header.count(name) > 1:
                    raise ValueError(f"{self.path} has two columns {name!r}; give each a name of its own")
        return schema

    def kinds(self) -> dict[str, Any]:
        """Of columns of text those that are numbers and lose nothing as such; one pass that holds no rows.

        Each cell is a whole number that comes back from 64 bits as it was, or else each is a float like
        `NUMBER` that is `SHORT`. 007, +5, 1.10 and nan are neither.
        """
        tests = {}
        for name in self.schema():
            cell = pl.col(name)
            whole, real = cell.cast(pl.Int64, strict=False), cell.cast(pl.Float64, strict=False)
            held = real.is_finite() & ((real != 0) == cell.str.contains(r"^[-0.]*[1-9]"))  # 1e-999 is not 0
            fits = {
                pl.Float64: cell.str.contains(NUMBER) & cell.str.contains(SHORT) & held,
                pl.Int64: whole.cast(pl.String) == cell,
            }
            for kind, good in fits.items():
                every = (cell.is_null() | good.fill_null(False)).all()
                tests[name, kind] = every & cell.is_not_null().any()
        with plain_errors(self):
            found = self.scan().select(test.alias(f"{kind} {name}") for (name, kind), test in tests.items())
            row = found.collect(engine="streaming").row(0)
        return {name: kind for (name, kind), good in zip(tests, row, strict=True) if good}

    def require(self, names: Sequence[str]) -> None:
        """Refuse a column that is not there, with the one that was meant."""
        there = self.schema().names()
        for name in names:
            if name not in there:
                near = get_close_matches(name, there, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"it has {_listed(there)}"
                raise ValueError(f"{self.path} has no column {name!r}; {hint}")

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """The rows in pieces, in the file's order."""
        rows = self.scan() if columns is None else self.scan().select(list(dict.fromkeys(columns)))
        with plain_errors(self):
            yield from rows.collect_batches(chunk_size=BATCH, maintain_order=True)

    def height(self) -> int:
        """The number of rows; none at all is refused."""
        with plain_errors(self):
            height: int = self.scan().select(pl.len()).collect(engine="streaming").item()
        if not height:
            raise ValueError(f"{self.path} has no rows")
        return height

    def write(self, batches: Iterator[pl.DataFrame], schema: dict[str, Any]) -> None:
        """Write pieces as one file, whole or not at all."""
        stop = Event()

        def source(*_: object) -> Iterator[pl.DataFrame]:
            return takewhile(lambda _: not stop.is_set(), batches)

        rows = register_io_source(source, schema=schema)
        sink: Any = {
            "parquet": rows.sink_parquet,
            "ndjson": rows.sink_ndjson,
            "csv": rows.sink_csv,
            "tsv": partial(rows.sink_csv, separator=self.separator),
        }[self.format]
        # The engine holds its thread to the end; the main thread stays free to hear Ctrl-C. The thread begins
        # before the file does: one that Ctrl-C met while it began would be waited for by nobody.
        pool = ThreadPoolExecutor(1)
        pool.submit(int).result()
        if current_thread() is main_thread():
            # By now the engine has taken SIGINT for itself, and loses one that comes as it starts to write.
            signal.signal(signal.SIGINT, signal.getsignal(signal.SIGINT))
        # The engine is handed the open file, not its name: failing, it could be late and make the file anew.
        with whole(self.path) as part, part.open("wb") as file, plain_errors(self, writing=True), pool:
            try:
                writing = pool.submit(sink, file)
                while not wait([writing], timeout=0.1).done:
                    pass  # a wait without an end would not hear a signal that another thread was handed
                writing.result()
            except BaseException:
                stop.set()
                raise


def format_of(path: Path) -> Format:
    """The format that a file's name says."""
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(
            f"{path}: the ending {path.suffix!r} is none of {', '.join(SUFFIXES)}; say --from or --to"
        )
    return SUFFIXES[path.suffix.lower()]


def apart(out: Path, other: Path, what: str = "the file that is read") -> None:
    """Refuse to write over a file that is needed, whatever links lead to it."""
    both = out.exists() and other.exists()
    if out.samefile(other) if both else os.path.realpath(out) == os.path.realpath(other):
        raise ValueError(f"{out} is {what}; write to another one")


@contextmanager
def plain_errors(table: Table, *, writing: bool = False) -> Iterator[None]:
    """The line that the engine stumbled over, or the first line of what it says, with the file."""
    try:
        yield
    except NoDataError:
        raise ValueError(f"{table.path} is empty") from None
    except PolarsError as error:
        found = "" if writing else _stumbled(table)
        raise ValueError(f"{table.path}: {found or str(error).strip().splitlines()[0]}") from None


def _stumbled(table: Table) -> str:
    """The first line of a text file that is none of its format, in words; the engine does not say which."""
    if table.format == "parquet" or not table.path.is_file():
        return ""
    try:
        with table.path.open(encoding="utf-8", newline="") as file:
            if table.format == "ndjson":
                for number, line in enumerate(file, 1):
                    shown = line.strip()
                    try:
                        whole_row = not shown or isinstance(json.loads(shown), dict)
                    except ValueError:
                        whole_row = False
                    if not whole_row:
                        shown = repr(shown if len(shown) <= 60 else f"{shown[:57]}...")
                        return f"line {number:,} is no JSON object: {shown}"
                return ""
            rows = csv.reader(file, delimiter=table.separator)
            width = len(next(rows, []))
            for row in rows:
                if len(row) > width:
                    return f"line {rows.line_num:,} has {len(row)} fields where the header has {width}"
    except (UnicodeDecodeError, csv.Error) as error:
        return f"is no {table.format.upper()} in UTF-8: {error}"
    return ""


def numbers(batch: pl.DataFrame, columns: Sequence[str], table: Table, first: int, proba: bool) -> np.ndarray:
    """Logits or probabilities as float64, of K columns as rows; `first` rows of the file come before."""
    what = "probability" if proba else "logit"
    out = []
    for name in columns:
        column = batch[name]
        if column.dtype != pl.String and not column.dtype.is_numeric():
            raise TypeError(f"{table.path}: column {name!r} is {column.dtype}, which is no {what}")
        text = column.str.strip_chars() if column.dtype == pl.String else column
        values = text.cast(pl.Float64, strict=False).to_numpy()
        with np.errstate(invalid="ignore"):
            good = (values >= 0) & (values <= 1) if proba else np.abs(values) < origins.LARGEST
        if not good.all():
            row = int(np.argmin(good))
            raise ValueError(
                f"{table.path}: the {what} {name!r} of row {first + row + 1:,} is {_shown(column[row])}; "
                f"every row needs {'one from 0 to 1' if proba else 'a finite number'}"
            )
        out.append(values)
    return out[0] if len(out) == 1 else np.column_stack(out)


def keys(batch: pl.DataFrame, name: str, table: Table, first: int) -> pl.Series:
    """The column as text; an empty key is refused."""
    column = batch[name]
    if not (
        column.dtype.is_integer() or column.dtype in (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Date)
    ):
        raise TypeError(f"{table.path}: column {name!r} is {column.dtype}; a key is text or a whole number")
    if column.null_count():
        row = first + int(column.is_null().arg_true()[0]) + 1
        raise ValueError(f"{table.path}: the key {name!r} of row {row:,} is empty")
    return column.cast(pl.String)


def ordering(table: Table, name: str) -> pl.Expr:
    """The column as something to sort by: numbers, or ISO 8601 times; a third thing is refused."""
    dtype, column = table.schema()[name], pl.col(name)
    candidates = {"as it is": column}
    if dtype == pl.String:
        text = column.str.strip_chars()
        real = text.cast(pl.Float64, strict=False)
        candidates = {
            "int": text.cast(pl.Int64, strict=False),
            "decimal": pl.when(~text.str.contains(INEXACT)).then(text.cast(EXACT, strict=False)),
            "float": pl.when(real.is_finite() & text.str.contains(SHORT)).then(real),
            # Times that are all UTC or all local sort as text, once they are written alike.
            "iso": pl.when(text.str.contains(ISO)).then(text.str.replace("T", " ").str.strip_suffix("Z")),
        }
    elif dtype.is_float():
        candidates = {"finite": pl.when(column.is_finite()).then(column)}
    elif not (dtype.is_numeric() or dtype.is_temporal()):
        raise TypeError(
            f"{table.path}: column {name!r} is {dtype}, which has no order in time; use a number or a date"
        )
    with plain_errors(table):
        counts = table.scan().select(e.null_count().alias(k) for k, e in candidates.items())
        missing: dict[str, int] = counts.collect(engine="streaming").row(0, named=True)
        for kind, expression in candidates.items():
            if not missing[kind]:
                return expression
        best = min(candidates, key=lambda kind: missing[kind])
        bad = table.scan().select(column).with_row_index(ROW).filter(candidates[best].is_null())
        row, value = bad.head(1).collect(engine="streaming").row(0)
    raise ValueError(
        f"{table.path}: the order {name!r} of row {row + 1:,} is {_shown(value)}; every row needs a finite "
        "number of at most 20 digits before its point and 18 after, or every row an ISO 8601 time like "
        "2024-05-01 or 2024-05-01T12:00:00Z"
    )


def _listed(names: Sequence[str]) -> str:
    """Names as an error says them: printable, and not all of a thousand."""
    text = ", ".join("".join(c if c.isprintable() else "?" for c in name) for name in names)
    return text if len(text) <= 200 else f"{text[:197]}..."


def _shown(value: Any) -> str:
    return "empty" if value is None else repr(value)


def in_order(table: Table, expression: pl.Expr) -> bool:
    """Whether the file's rows are in that order already."""
    last: Any = None
    with plain_errors(table):
        for batch in (
            table.scan().select(expression.alias("t")).collect_batches(chunk_size=BATCH, maintain_order=True)
        ):
            t = batch["t"]
            if (last is not None and len(t) and t[0] < last) or not t.is_sorted():
                return False
            last = t[-1] if len(t) else last
    return True


@dataclass
class Score:
    """One run over a file: adds the columns that `frame.center` adds; every other column stays as it was.

    Prequential in the order of the file or of `order_by` (ties: as in the file), or `deferred`: two passes,
    each row centred by the final origin. One origin a key. Memory: a piece of the file and the state; rows
    that must be put in order first are held as order, key and logits, some 40 bytes each.
    """

    rows: Keyed
    logit: Sequence[str]
    order_by: str | None = None
    deferred: bool = False
    prefix: str = "ploc_"
    advance: Callable[[int], object] = lambda _: None

    def __post_init__(self) -> None:
        two = len(self.logit) == 2
        if not (len(self.logit) == self.rows.classes or (len(self.logit) == 1 and self.rows.classes == 2)):
            raise ValueError(f"{len(self.logit)} logit columns do not make {self.rows.classes} classes")
        many = [""] if self.rows.classes == 2 else [f"_{name}" for name in self.logit]
        self._relative = two and not self.rows.proba
        self._probas = [f"{self.prefix}proba{name}" for name in many]
        self._shifts = [f"{self.prefix}shift{name}" for name in many]

    def run(self, source: Table, target: Table) -> int:
        """Answer the rows of `source` into `target`; how many they were."""
        wanted = [*self.logit, *filter(None, [self.rows.by, self.order_by])]
        source.require(wanted)
        added = {**dict.fromkeys([*self._probas, *self._shifts], pl.Float64), f"{self.prefix}count": pl.Int64}
        schema = source.schema()
        for name in added:
            if name in schema:
                raise ValueError(f"{source.path} has a column {name!r} already; choose others with --prefix")
        apart(target.path, source.path)
        height = source.height()
        if self.deferred:
            self._observe(source, wanted)
            batches = self._answered(source)
        elif self.order_by is None or in_order(source, ordering(source, self.order_by)):
            batches = self._answered(source)
        else:
            batches = self._attached(source, self._sorted(source, ordering(source, self.order_by)))
        kinds: dict[str, Any] = {}
        if target.typed and not source.typed:
            kinds = source.kinds() | dict.fromkeys(self.logit, pl.Float64)
        if self.rows.by is not None:
            kinds.pop(self.rows.by, None)  # a key is text, in the next run too
        casts = [pl.col(name).str.strip_chars().cast(kind) for name, kind in kinds.items()]
        target.write((batch.with_columns(casts) for batch in batches), {**schema, **kinds, **added})
        self.rows.lines += height
        return height

    def _observe(self, source: Table, columns: Sequence[str]) -> None:
        first = 0
        for batch in source.batches(columns):
            for key, _, z in self._groups(batch, source, first):
                self.rows[key].observe(z)
            first += len(batch)

    def _answered(self, source: Table) -> Iterator[pl.DataFrame]:
        """The file's pieces with their answers, in the file's order."""
        first = 0
        for batch in source.batches():
            yield batch.hstack(self._answers(batch, source, first).get_columns())
            first += len(batch)
            self.advance(len(batch))

    def _attached(self, source: Table, answers: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """The file's pieces with answers that are there already."""
        first = 0
        for batch in source.batches():
            yield batch.hstack(answers.slice(first, len(batch)).get_columns())
            first += len(batch)
            self.advance(len(batch))

    def _sorted(self, source: Table, expression: pl.Expr) -> pl.DataFrame:
        """The answers of all rows, given in the stream's order and put back into the file's."""
        columns = list(dict.fromkeys([*self.logit, *filter(None, [self.rows.by])]))
        first = 0
        for batch in source.batches(columns):  # a bad row is named by its place in the file
            for _ in self._groups(batch, source, first):
                pass
            first += len(batch)
        with plain_errors(source):
            rows = source.scan().select(*columns, expression.alias(ORDER)).collect(engine="streaming")
        order = rows.select(pl.arg_sort_by(ORDER, maintain_order=True)).to_series().to_numpy()
        answers = self._answers(rows[order], source, 0)
        back = np.empty_like(order)
        back[order] = np.arange(len(order), dtype=order.dtype)
        return answers[back]

    def _answers(self, batch: pl.DataFrame, source: Table, first: int) -> pl.DataFrame:
        """The new columns of a batch in its own order; the states move on, unless the origin is final."""
        shape = (len(batch), len(self._probas))
        probs, shifts, counts = np.empty(shape), np.empty(shape), np.empty(len(batch), dtype=np.int64)
        for key, where, z in self._groups(batch, source, first):
            center = self.rows[key]
            rows = len(z), len(self._probas)
            if self.deferred:
                counts[where], shifts[where] = center.count, center.shift
                probs[where] = center.predict(z).reshape(rows)
            else:
                counts[where] = center.count + np.arange(len(z))
                shifts[where] = _shifts(center, z).reshape(rows)
                probs[where] = center.replay(z).reshape(rows)
        columns = {name: probs[:, k] for k, name in enumerate(self._probas)}
        columns |= {name: shifts[:, k] for k, name in enumerate(self._shifts)}
        return pl.DataFrame({**columns, f"{self.prefix}count": counts})

    def _groups(
        self, batch: pl.DataFrame, source: Table, first: int
    ) -> Iterator[tuple[str, Any, np.ndarray]]:
        """Key, positions in the batch, and logits of each key's rows."""
        z = numbers(batch, self.logit, source, first, self.rows.proba)
        try:
            z = links.from_proba(z) if self.rows.proba else links.relative(z) if self._relative else z
        except ValueError as error:  # rows that do not sum to 1
            raise ValueError(f"{source.path}, from row {first + 1:,} on: {error}") from None
        if self.rows.by is None:
            yield "", slice(None), z
            return
        where = pl.DataFrame({"key": keys(batch, self.rows.by, source, first)}).with_row_index("i")
        for key, index in where.group_by("key", maintain_order=True).agg("i").iter_rows():
            rows = np.array(index)
            yield key, rows, z[rows]


def _shifts(center: PLOC, z: np.ndarray) -> np.ndarray:
    """What `center` would centre each of these rows by, to the last bit; it does not move."""
    mean = origins.Mean()
    origin = mean if z.ndim == 1 else origins.columns(mean, z.shape[1])
    origin.load(center.state()["origin"])
    shifts, _ = origin.trail(z)
    shifts[0 if center.count else 1 :] -= center.anchor  # before any row there is nothing to move to it
    return shifts


def stream_of(
    table: Table, logit: str, *, proba: bool, label: str | None, by: str | None, order_by: str | None
) -> tuple[np.ndarray, np.ndarray | None, list[str] | None]:
    """Logits, labels and groups of a whole file in stream order: the few columns that a report needs."""
    columns = [logit, *filter(None, [label, by, order_by])]
    table.require(columns)
    table.height()
    rows = pl.concat(table.batches(columns))
    values = numbers(rows, [logit], table, 0, proba)
    z = links.from_proba(values) if proba else values
    y = None if label is None else labels(rows, label, table)
    groups = None if by is None else keys(rows, by, table, 0)
    if order_by is not None:
        order = (
            rows.select(pl.arg_sort_by(ordering(table, order_by), maintain_order=True)).to_series().to_numpy()
        )
        z, y, groups = z[order], None if y is None else y[order], None if groups is None else groups[order]
    return z, y, None if groups is None else groups.to_list()


def labels(rows: pl.DataFrame, name: str, table: Table) -> np.ndarray:
    """The classes 0 and 1 of a column; anything else is refused: which one is positive is not guessed."""
    column = rows[name]
    text = column.str.strip_chars() if column.dtype == pl.String else column
    values = text.cast(pl.Float64, strict=False).to_numpy()
    good = (values == 0) | (values == 1)
    if not good.all():
        row = int(np.argmin(good))
        shown = _shown(column[row])
        raise ValueError(f"{table.path}: the label {name!r} of row {row + 1:,} is {shown}, not 0 or 1")
    return values.astype(np.int64)
