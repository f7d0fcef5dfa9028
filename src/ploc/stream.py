"""The Unix filter: a line of JSON in, the same line with its answer out."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from ploc import links
from ploc.origin import LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import FrameType

    from ploc.keyed import Keyed

CHUNK = 1 << 16  # what a pipe holds on Linux
PAGE = 4096  # PIPE_BUF: what a pipe that is ready to write takes without blocking
READER_GONE = 141  # 128 + SIGPIPE, as a shell reports it

_decode = json.JSONDecoder().decode


class MalformedLineError(ValueError):
    """A line that can't be answered, and the choice was to stop there."""


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


@dataclass
class Filter:
    """Answers every whole line it has been handed before it reads on.

    A line comes out as it came in, byte for byte, with three fields added before its last brace, named as
    `frame.center` names its columns: the probability, the origin it was centred by, and how many rows that
    origin had seen. Who sends one line and waits gets its answer; who sends many gets them in blocks of
    what a pipe holds. A state is saved after its answers are out, never before.
    """

    rows: Keyed
    field: str = "z"
    prefix: str = "ploc_"
    on_bad: Literal["stop", "pass"] = "stop"
    state: Path | None = None
    save_every: float = 1.0
    tell: Callable[[str], None] = _tell

    def run(self, source: int = 0, sink: int = 1) -> int:
        """Answer the lines of `source` on `sink` until the end or a signal; the exit code."""
        self._line, self._saved, self._due = 0, self.rows.lines, time.monotonic() + self.save_every
        self._names = [self.prefix + name for name in ("proba", "shift", "count")]
        with _Signals() as signals:
            return self._loop(source, sink, signals)

    def _loop(self, source: int, sink: int, signals: _Signals) -> int:
        tail: list[bytes] = []
        while True:
            ready = signals.wait(source, self._due - time.monotonic() if self._unsaved else None)
            if signals.code or (self._unsaved and time.monotonic() >= self._due):
                self._save()
            if signals.code:
                return signals.code
            if not ready:
                continue
            chunk = os.read(source, CHUNK)
            head, newline, rest = chunk.rpartition(b"\n")
            if chunk and not newline:
                tail.append(chunk)
                continue
            # At the end of the input a last line without its newline is a line all the same.
            block = b"".join([*tail, head])
            tail = [rest]
            if newline or block:
                out, error = self._answers(block.split(b"\n"))
                data = b"".join([line + b"\n" for line in out])
                if signals.write(sink, data) < len(data):
                    # The state is past what went out, so it is not saved: the last save stays.
                    return READER_GONE if signals.gone else signals.code
                self._line += len(out)
                self.rows.lines += len(out)
                if error:
                    self._save()
                    raise MalformedLineError(self._stopped(error))
            if not chunk:
                self._save()
                return 0

    def _answers(self, lines: list[bytes]) -> tuple[list[bytes], str]:
        """The lines with their answers, and what is wrong with the line where it stopped."""
        try:
            texts = b"\n".join(lines).decode().split("\n")
        except UnicodeDecodeError:  # some line is not UTF-8: find out which
            texts = []
        rows, field, by, names = self.rows, self.field, self.rows.by, set(self._names)
        proba, shift, count = (f'"{name}":'.encode() for name in self._names)
        plain = rows.classes == 2 and not rows.proba
        out: list[bytes] = []
        for i, line in enumerate(lines):
            try:
                row = _decode(texts[i] if texts else line.decode())
                z = row[field]
                if not (plain and type(z) is float and -LARGEST < z < LARGEST):
                    z = self._logit(z)
                if not names.isdisjoint(row):
                    self._taken(row)
                center = rows["" if by is None else _key(row, by)]
            except (ValueError, KeyError, TypeError, RecursionError) as problem:
                what = f"line {self._line + i + 1:,} {self._reason(line, problem)}"
                if self.on_bad == "stop":
                    return out, what
                self.tell(f"ploc: {what}; passed on as it is")
                out.append(line)
                continue
            before, seen = center.shift, center.count
            p = center.step(z)
            # A JSON object ends in its brace; what it holds is not written anew, so it stays as it was.
            end = line.rindex(b"}")
            added = b",%b%b,%b%b,%b%d" % (proba, _json(p), shift, _json(before), count, seen)
            out.append(line[:end] + added + line[end:])
        return out, ""

    def _logit(self, value: Any) -> float | np.ndarray:
        """The logit or logits that a line's value says, or what is wrong with it."""
        rows = self.rows
        if rows.classes == 2:
            number = self._number(value)
            return links.logit(number) if rows.proba else number
        if not isinstance(value, list) or len(value) != rows.classes:
            raise TypeError(f"has {_short(value)} as {self.field!r}, not a list of {rows.classes} numbers")
        z = np.array([self._number(v) for v in value])
        if rows.proba and abs(z.sum() - 1.0) > links.OFF:
            raise TypeError(f"has {_short(value)} as {self.field!r}, which sum to {z.sum():.6g}, not to 1")
        return links.from_proba(z[None])[0] if rows.proba else z

    def _number(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"has {_short(value)} as {self.field!r}, which is no number")
        if self.rows.proba and not 0 <= value <= 1:
            raise TypeError(f"has {_short(value)} as {self.field!r}, which is no probability")
        if not -LARGEST < value < LARGEST:
            raise TypeError(f"has {_short(value)} as {self.field!r}, which is no finite logit")
        return float(value)

    def _taken(self, row: dict[str, Any]) -> None:
        name = next(name for name in self._names if name in row)
        raise TypeError(f"has a field {name!r} already; choose other names with --prefix")

    def _reason(self, line: bytes, problem: Exception) -> str:
        """What is wrong with a line, so that its sender can mend it."""
        shown = _short(line.decode(errors="replace"))
        if isinstance(problem, KeyError):
            names = list(json.loads(line))
            near = get_close_matches(problem.args[0], names, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(names) or 'none'}"
            return f"has no field {problem.args[0]!r}; {hint}"
        if isinstance(problem, UnicodeDecodeError):
            return f"is not UTF-8: {shown}"
        if isinstance(problem, json.JSONDecodeError | RecursionError):
            return f"is not JSON: {shown}"
        words = str(problem)
        return words if words.startswith("has ") else f"is no JSON object with numbers: {shown}"

    def _stopped(self, error: str) -> str:
        state = f", {self.state} holds the state after them" if self.state else ""
        return f"{error}; the lines before it are answered{state}; --on-bad pass goes on past such lines"

    @property
    def _unsaved(self) -> bool:
        return self.state is not None and self.rows.lines != self._saved

    def _save(self) -> None:
        if self.state is not None and self.rows.lines != self._saved:
            began = time.monotonic()
            self.rows.save(self.state)
            self._saved, now = self.rows.lines, time.monotonic()
            # A state of a million keys takes its time to write: at most a tenth of the whole goes there.
            self._due = now + max(self.save_every, 10 * (now - began))


def _key(row: dict[str, Any], by: str) -> str:
    value = row[by]
    if type(value) is str:
        return value
    if type(value) is int:
        return str(value)
    raise TypeError(f"has {_short(value)} as {by!r}; a key is text or a whole number")


def _json(value: float | np.ndarray) -> bytes:
    return repr(value if isinstance(value, float) else value.tolist()).encode()


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class _Signals:
    """SIGTERM and SIGINT as something to wait for, so that they never cut an answer from its state."""

    def __enter__(self) -> Self:
        self.code, self.gone = 0, False
        self._wake, self._bell = os.pipe()
        os.set_blocking(self._bell, False)
        self._old_bell = signal.set_wakeup_fd(self._bell, warn_on_full_buffer=False)
        self._old = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
        self._count = 0
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._old_bell)
        os.close(self._wake)
        os.close(self._bell)

    def _note(self, number: int, _: FrameType | None) -> None:
        self.code = 128 + number
        self._count += 1

    def wait(self, source: int, timeout: float | None) -> bool:
        """Wait for something to read, a signal, or the time to be up; whether there is something to read."""
        # An hour is as long as select waits: it takes no number of seconds, and the caller asks again.
        limit = None if timeout is None else min(max(0.0, timeout), 3600.0)
        ready, _, _ = select.select([source, self._wake], [], [], limit)
        return source in ready

    def write(self, sink: int, data: bytes) -> int:
        """Write everything; the bytes written are fewer when the reader is gone or a second signal came."""
        sent, view = 0, memoryview(data)
        try:
            while sent < len(data) and self._count < 2:
                # After the first signal the bell rings on: wait for the sink alone, a little at a time.
                _, ready, _ = select.select([] if self.code else [self._wake], [sink], [], 0.1)
                if ready:
                    sent += os.write(sink, view[sent : sent + PAGE])
        except BrokenPipeError:
            self.gone = True
        except OSError as error:
            raise OSError(error.errno, error.strerror, "standard output") from None
        return sent
