"""The core as ratios in one run: one step, a row of K logits, a replay of 10^7, the drift bound, the import.

Every figure is the fastest of several rounds, in which ours and the peers take turns. A ratio is the
peer's time over ours: above 1 we are faster.
"""

import math
import subprocess
import sys
import time
from math import exp

import duckdb
import numba
import numpy as np
import polars as pl
import river
from rich.console import Console
from rich.table import Table
from river import stats

from ploc import PLOC, theory

ROUNDS = 9


def fastest(candidates, rounds=ROUNDS):
    """Seconds of each candidate's best round; the rounds go around, so a busy moment hits all alike."""
    best = dict.fromkeys(candidates, math.inf)
    for _ in range(rounds):
        for name, call in candidates.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def show(title, ours, best, per, unit="ns"):
    scale = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1}[unit]
    table = Table("", f"{unit}", "peer / ours", title=title, title_justify="left")
    for name, seconds in best.items():
        ratio = "" if name == ours else f"{seconds / best[ours]:.2f}"
        table.add_row(name, f"{seconds / per * scale:,.2f}", ratio)
    Console(width=100).print(table)


def bench_step(n=300_000):
    logits = np.random.default_rng(0).normal(size=n).tolist()

    def ours():
        step = PLOC().step
        for z in logits:
            step(z)

    def river_mean():
        mean = stats.Mean()
        for z in logits:
            1 / (1 + exp(-(z - mean.get())))
            mean.update(z)

    def river_mean_stable():
        mean = stats.Mean()
        for z in logits:
            x = z - mean.get()
            e = exp(-abs(x))
            1 / (1 + e) if x >= 0 else e / (1 + e)
            mean.update(z)

    def inline():
        total, count, mu = 0.0, 0, 0.0
        for z in logits:
            1 / (1 + exp(mu - z))
            total += z
            count += 1
            mu = total / count

    def only_exp():
        for z in logits:
            exp(z)

    show(
        f"step, one float logit (river {river.__version__})",
        "PLOC.step",
        fastest(
            {
                "PLOC.step": ours,
                "river stats.Mean + a sigmoid that may overflow": river_mean,
                "river stats.Mean + a sigmoid that can't": river_mean_stable,
                "the bare loop, unchecked, no state to keep": inline,
                "floor: one C call of math.exp": only_exp,
            }
        ),
        n,
    )


def bench_row():
    for K in (3, 10, 100, 1000):
        n = 10_000 if K < 1000 else 2_000
        rows = list(np.random.default_rng(0).normal(size=(n, K)))

        def ours(rows=rows, K=K):
            step = PLOC(classes=K).step
            for z in rows:
                step(z)

        def plain(rows=rows, K=K):
            total, count = np.zeros(K), 0
            for z in rows:
                centred = z - total / count if count else z
                e = np.exp(centred - centred.max())
                e / e.sum()
                total += z
                count += 1

        show(
            f"step, a row of {K} logits",
            "PLOC.step",
            fastest({"PLOC.step": ours, f"plain numpy {np.__version__}": plain}),
            n,
        )


@numba.njit(cache=False)
def numba_replay(z):
    out = np.empty_like(z)
    total = 0.0
    for t in range(len(z)):
        mu = total / t if t else 0.0
        out[t] = 1 / (1 + math.exp(mu - z[t]))
        total += z[t]
    return out


def bench_replay(n=10**7):
    z = np.random.default_rng(0).normal(size=n)
    frame = pl.DataFrame({"t": np.arange(n), "z": z})
    numba_replay(z[:10])
    connection = duckdb.connect(config={"threads": 1})
    connection.register("rows", frame.to_arrow())

    def one_liner():
        mu = np.concatenate(([0.0], np.cumsum(z)[:-1] / np.arange(1, n)))
        return 1 / (1 + np.exp(-(z - mu)))

    def polars():
        mean = pl.col("z").cum_sum().shift(1, fill_value=0.0) / pl.max_horizontal(pl.col("t"), 1)
        return frame.select(1 / (1 + (mean - pl.col("z")).exp()))

    def duck():
        query = (
            "select 1 / (1 + exp(coalesce(avg(z) over (order by t rows between unbounded preceding"
            " and 1 preceding), 0) - z)) as p from rows"
        )
        return connection.sql(query).fetchnumpy()

    best = fastest(
        {
            "PLOC.replay": lambda: PLOC().replay(z),
            f"polars {pl.__version__} expression": polars,
            "numpy one-liner with temporaries": one_liner,
            f"numba {numba.__version__} loop": lambda: numba_replay(z),
            "floor: numpy copy": z.copy,
        },
        rounds=5,
    )
    best |= fastest({f"duckdb {duckdb.__version__} window": duck}, rounds=2)
    show(f"replay of {n:,} logits, a row", "PLOC.replay", best, n)


def bench_drift():
    def brute(z, y):
        mu = np.concatenate(([0.0], np.cumsum(z)[:-1] / np.arange(1, len(z))))
        pos, neg = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
        return sum(int(np.count_nonzero(np.abs(z[i] - z[neg]) <= np.abs(mu[i] - mu[neg]))) for i in pos)

    rng = np.random.default_rng(0)
    for n in (20_000, 817_877):
        z, y = rng.normal(-1, 2, size=n), (rng.random(n) < 0.4).astype(int)
        candidates = {"theory.drift_bound": lambda z=z, y=y: theory.drift_bound(z, y)}
        if n <= 20_000:
            candidates["every pair, numpy row by row"] = lambda z=z, y=y: brute(z, y)
        show(f"drift bound of {n:,} rows", "theory.drift_bound", fastest(candidates, rounds=3), 1, "s")


def bench_import():
    def fresh(module):
        return lambda: subprocess.run([sys.executable, "-c", f"import {module}"], check=True)

    show(
        "import, a fresh interpreter each",
        "ploc",
        fastest({"ploc": fresh("ploc"), "numpy": fresh("numpy"), "nothing": fresh("sys")}),
        1,
        "ms",
    )


def main() -> None:
    bench_step()
    bench_row()
    bench_replay()
    bench_drift()
    bench_import()


if __name__ == "__main__":
    main()
