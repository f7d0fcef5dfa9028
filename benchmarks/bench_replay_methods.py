"""Every forward-only method over 50,968 cached logits (diabetes readmission's target), one thread.

`replay` (ours) is set against the same stream walked batch by batch, as a runner without it would (measured
on a prefix, compared per row). The floor is one sigmoid over the stream. Two classes; features of 256.
"""

import math
import time
import warnings

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from ploc import links
from ploc_lab import methods
from ploc_lab.methods.em import maximise
from ploc_lab.methods.protocol import OutputMethod, batches, outputs
from ploc_lab.models.mlp import MLP

T, D, ROUNDS, WALKED = 50_968, 22, 3, 1_000


def stream():
    """A frozen MLP, a labelled source sample, and a shifted stream's logits and features."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    net = MLP(D).eval()
    with torch.no_grad():
        net.head.weight *= 20
    z, f = outputs(net, rng.normal(0.3, 1, size=(T, D)).astype(np.float32), features=True)
    x = rng.normal(size=(3_000, D)).astype(np.float32)
    logits, features = outputs(net, x, features=True)
    y = (rng.random(len(x)) < links.sigmoid(0.8 * logits - 0.2)).astype(np.int64)
    prior = np.bincount(y, minlength=2) / len(y)
    return net, methods.SourceInfo(prior, methods.Validation(x, y, logits, features)), z, f


def fastest(call, rounds=ROUNDS):
    """Seconds of the best round."""
    best = math.inf
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def bench_replay():
    net, source, z, f = stream()
    floor = fastest(lambda: links.sigmoid(z))
    table = Table(
        "method",
        *(column for size in (1, 512) for column in (f"B={size}: ms", "rows/s", "/ floor", "walked / ours")),
        title=f"{T:,} rows; floor: one sigmoid over them, {floor * 1e3:.2f} ms",
        title_justify="left",
    )
    for name in methods.names():
        if not issubclass(methods.spec(name).cls, OutputMethod):
            continue
        cells = []
        for size in (1, 512):
            built = [methods.build(name, net, source) for _ in range(ROUNDS)]
            seconds = fastest(lambda b=built, s=size: b.pop().replay(z, f, batch=s))
            cells += [f"{seconds * 1e3:,.1f}", f"{T / seconds:,.0f}", f"{seconds / floor:,.0f}"]
            if name == "ploc_deferred":
                cells.append("")  # it has no next batch to walk to
                continue
            method, rows = methods.build(name, net, source), max(WALKED, 2 * size)
            start = time.perf_counter()
            for part in batches(rows, size):
                method.answer(z[part], f[part].astype(np.float64))
            cells.append(f"{(time.perf_counter() - start) / rows / (seconds / T):,.1f}")
        table.add_row(name, *cells)
    Console(width=130).print(table)


def bench_em():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the peer's own imports are deprecated
        import quapy
        from quapy.method.aggregative import EMQ

    _, _, z, _ = stream()
    p = links.softmax(np.stack([np.zeros(T), z], axis=1))
    prior = np.array([0.6, 0.4])
    classes_first = np.ascontiguousarray(p.T)[:, None, :]
    ours = fastest(lambda: maximise(classes_first, prior, tolerance=1e-9, most=1000))
    peer = fastest(lambda: EMQ.EM(prior, p, epsilon=1e-9))
    table = Table("", "ms", "peer / ours", title=f"EM to 1e-9 on {T:,} rows at once", title_justify="left")
    table.add_row("ours", f"{ours * 1e3:,.1f}", "")
    table.add_row(f"QuaPy {quapy.__version__} EMQ.EM", f"{peer * 1e3:,.1f}", f"{peer / ours:.1f}")
    Console(width=130).print(table)


def main():
    bench_replay()
    bench_em()


if __name__ == "__main__":
    main()
