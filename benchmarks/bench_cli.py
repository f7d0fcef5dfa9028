"""The command line beside a bare loop and a bare copy: rates by processor time, and the memory of a run."""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.table import Table

LINES, ROWS = 500_000, 4_000_000
ECHO = "import sys, json\nfor line in sys.stdin: json.loads(line); sys.stdout.write(line)"
COPY = "import sys, polars; polars.scan_csv(sys.argv[1], infer_schema=False).sink_csv(sys.argv[2])"
ROUND_TRIP = 2_000


def ploc(*words):
    return [sys.executable, "-m", "ploc.cli", *map(str, words)]


def run(command, stdin=None, stdout=subprocess.DEVNULL):
    """Processor seconds (the machine may be shared) and peak memory in MiB of one process."""
    process = subprocess.Popen(command, stdin=stdin, stdout=stdout)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def answered_one_by_one(command):
    """Median microseconds from a line sent to its answer read, by a client that waits for each."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        reader = os.fdopen(process.stdout.fileno(), "rb", closefd=False)
        took = []
        for i in range(ROUND_TRIP):
            began = time.perf_counter()
            process.stdin.write(b'{"z": %d.5}\n' % (i % 7))
            reader.readline()
            took.append(time.perf_counter() - began)
        process.stdin.close()
    return sorted(took)[ROUND_TRIP // 2] * 1e6


def main() -> None:
    console = Console()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        draw = random.Random(0)
        lines = folder / "in.ndjson"
        with lines.open("w") as file:
            for i in range(LINES):
                file.write(json.dumps({"t": i, "k": f"k{i % 1000}", "z": draw.gauss(1, 2)}) + "\n")

        table = Table("ploc stream", "lines/s of CPU", "by the bare loop", "memory", title=f"{LINES:,} lines")
        with lines.open("rb") as file:
            bare, memory = run([sys.executable, "-c", ECHO], file)
        table.add_row("json.loads and echo, no PLOC", f"{LINES / bare:,.0f}", "1.00", f"{memory:,.0f} MiB")
        state = folder / "state.json"
        for name, words in {
            "one origin": [],
            "one origin, --state": ["--state", state],
            "--by, 1,000 keys": ["--by", "k"],
        }.items():
            with lines.open("rb") as file:
                took, memory = run(ploc("stream", *words), file)
            table.add_row(name, f"{LINES / took:,.0f}", f"{took / bare:.2f}", f"{memory:,.0f} MiB")
        console.print(table)
        console.print(
            f"a client that waits for every answer gets it in {answered_one_by_one(ploc('stream')):.0f} us\n"
        )

        rows = folder / "in.csv"
        pl.DataFrame({"t": range(ROWS)}).with_columns(
            z=pl.col("t").hash(0) % 6001 / 1000 - 3, k=pl.col("t") % 100, note=pl.lit("x" * 40)
        ).write_csv(rows)
        size = rows.stat().st_size / 2**20
        out = folder / "out.csv"
        table = Table(
            "ploc score",
            "rows/s of CPU",
            "by the bare copy",
            "memory",
            title=f"{ROWS:,} rows, {size:,.0f} MiB of CSV",
        )
        bare, memory = run([sys.executable, "-c", COPY, str(rows), str(out)])
        table.add_row("polars, a copy, no PLOC", f"{ROWS / bare:,.0f}", "1.00", f"{memory:,.0f} MiB")
        for name, words in {
            "prequential": [],
            "--deferred": ["--deferred"],
            "--by, 100 keys": ["--by", "k"],
            "--order-by, in order": ["--order-by", "t"],
        }.items():
            took, memory = run(ploc("score", rows, "--logit", "z", *words, "-o", out))
            table.add_row(name, f"{ROWS / took:,.0f}", f"{took / bare:.2f}", f"{memory:,.0f} MiB")
        console.print(table)


if __name__ == "__main__":
    main()
