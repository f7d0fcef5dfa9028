"""All benchmarks in turn, ratios against pinned peers in one run; some: `python -m benchmarks core frame`."""

import importlib
import os
import sys
from pathlib import Path

for library in (
    "OMP",
    "OPENBLAS",
    "MKL",
    "NUMBA",
    "POLARS",
):  # one thread, for peers as for us, before any starts
    os.environ.setdefault(f"{library}_{'MAX' if library == 'POLARS' else 'NUM'}_THREADS", "1")

names = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))
asked = sys.argv[1:] or names
if unknown := set(asked) - set(names):
    sys.exit(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(names)}")
for name in asked:
    print(f"\n== {name}")
    importlib.import_module(f"benchmarks.bench_{name}").main()
