"""Lockstep of five checkpoints against the plain loop: one network, one optimiser, one row, eager autograd.

At B = 1, one thread, ratios from interleaved rounds of one run, in processor time, so that what else runs on
the machine counts little; and the neighbour filter of FTAT at B = 512 against a loop over rows. Set
PLOC_BENCH_ROWS for longer rounds.

Beside each lockstep time stand three floors, measured in the same run: its arithmetic at the rate of a large
matrix product, its weights' traffic at the rate of a copy of their size, and its operations at the cost of
one on a single number. The largest is what bounds the step. Last come the hours of the paper's five streams.
"""

import os
import time
import warnings
from copy import deepcopy
from statistics import median

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from sklearn.metrics import pairwise_distances
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from ploc_lab import models
from ploc_lab.methods import SourceInfo, spec
from ploc_lab.methods.neighbours import agrees

SEEDS, ROUNDS, ROWS = 5, 5, int(os.environ.get("PLOC_BENCH_ROWS", "60"))
STREAMS = {"heloc": 6_914, "diabetes": 50_968, "assistments": 1_906, "anes": 21_231, "acs": 817_877}
# How often a step goes over a network's weights at least: both passes read them, the step reads and writes
# them; Adam's two moments are read and written; CoTTA's teacher answers twice and is averaged, its anchor
# answers once. Tent and SAR write next to nothing, and SAR has four passes.
SWEEPS = {"tent_ln": 2, "sar": 4, "ftat": 4 * 3, "pft3a": 4, "cotta": 4 + 4 + 4 + 1}


class Normed(nn.Module):
    """The MLP with a LayerNorm after each hidden layer, so that Tent has something to move."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.blocks = nn.Sequential(
            nn.Linear(d, 256), nn.LayerNorm(256), nn.ReLU(), nn.Linear(256, 256), nn.LayerNorm(256), nn.ReLU()
        )
        self.head = nn.Linear(256, 1)

    def features(self, x):
        return self.blocks(x)

    def forward(self, x):
        return self.head(self.blocks(x))


def entropy(p):
    return -(p * p.log()).sum(1)


def two(z):
    return torch.cat([1 - z.sigmoid(), z.sigmoid()], 1)


def plain_tent(net):
    net = deepcopy(net).requires_grad_(False)
    norms = [m.requires_grad_() for m in net.modules() if isinstance(m, nn.LayerNorm)]
    optimizer = torch.optim.Adam([p for m in norms for p in m.parameters()], lr=1e-3)

    def step(x):
        z = net(x)
        entropy(two(z)).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        return z.detach()

    return step


def plain_sar(net, rho=0.05):
    net = deepcopy(net).requires_grad_(False)
    norms = [m.requires_grad_() for m in net.modules() if isinstance(m, nn.LayerNorm)]
    params, margin = [p for m in norms for p in m.parameters()], 0.4 * np.log(2)
    optimizer = torch.optim.SGD(params, lr=3.125e-5, momentum=0.9)

    def step(x):
        z = net(x)
        e = entropy(two(z))
        e[e < margin].mean().backward()
        with torch.no_grad():
            norm = torch.stack([p.grad.norm() for p in params]).norm()
            climbs = [rho / (norm + 1e-12) * p.grad for p in params]
            for p, climb in zip(params, climbs, strict=True):
                p.add_(climb)
        optimizer.zero_grad()
        again = entropy(two(net(x)))[e < margin]
        again[again < margin].mean().backward()
        with torch.no_grad():
            for p, climb in zip(params, climbs, strict=True):
                p.sub_(climb)
        optimizer.step()
        optimizer.zero_grad()
        return z.detach()

    return step


def released(p):
    return entropy(p.softmax(1)) * (p[:, 0] - p[:, 1]).abs()


def plain_filter(x, labels):
    """FTAT's filter by its code's means: scikit-learn's distances, a loop over rows, tensors times arrays."""
    distance = pairwise_distances(x)
    tau = distance.mean()
    keep = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of such products
        for row, own in zip(distance, labels, strict=True):
            near = np.where(row > tau, 0, 1)
            share = (labels * near).sum() / near.sum()
            keep.append(bool(abs(share - own) <= 0.3))
    return torch.tensor(keep)


def plain_ftat(net):
    nets = [deepcopy(net) for _ in range(3)]
    optimizers = [
        torch.optim.SGD(n.parameters(), lr=lr) for n, lr in zip(nets, (1e-5, 5e-4, 1e-4), strict=True)
    ]
    pi0 = torch.tensor([0.7, 0.3])
    pi = pi0.clone()

    def step(x):
        nonlocal pi
        ps = [two(n(x)) for n in nets]
        r = torch.stack([1 - released(p).mean() for p in ps])
        mean = sum(w * p for w, p in zip(r / r.abs().sum(), ps, strict=True)).detach()
        tilted = mean * pi / pi0
        tilted = tilted / tilted.sum(1, keepdim=True)
        keep = plain_filter(x, mean.argmax(1))
        if keep.any():
            for p, optimizer in zip(ps, optimizers, strict=True):
                released(p[keep]).mean().backward()
                optimizer.step()
                optimizer.zero_grad()
        c = tilted.argmax(1)
        a = torch.stack([tilted[c == k].mean(0) for k in (0, 1)])
        v = torch.linalg.inv(a) @ tilted[tilted.amax(1) > 0.7].mean(0)
        if not v.isnan().any():
            pi = (pi - 0.1 * v).softmax(0)
        out = mean * pi / pi0
        return out / out.sum(1, keepdim=True)

    return step


def plain_pft3a(net):
    net = deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-5)

    def step(x):
        p = two(net.head(net.features(x)))
        if plain_filter(x, p.argmax(1)).any():
            entropy(p).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        return p.detach()

    return step


def plain_cotta(net, noise=0.01, views=32):
    student, teacher, anchor = (
        deepcopy(net),
        deepcopy(net).requires_grad_(False),
        deepcopy(net).requires_grad_(False),
    )
    source = deepcopy(net.state_dict())
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)

    def step(x):
        target = teacher(x)
        noisy = torch.stack([teacher(x + noise * torch.randn_like(x)) for _ in range(views)]).mean(0)
        if two(anchor(x)).amax(1).mean() < 0.92:
            target = noisy
        z = torch.cat([torch.zeros_like(target), student(x)], 1)
        (-(two(target) * z.log_softmax(1)).sum(1)).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), student.parameters(), strict=True):
                slow.mul_(0.999).add_(fast, alpha=0.001)
            for name, p in student.named_parameters():
                mask = (torch.rand(p.shape) < 0.01).float()
                p.copy_(source[name] * mask + p * (1 - mask))
        return target

    return step


CASES = [
    ("tent_ln", plain_tent, "normed_mlp", 38, 5.0),
    ("ftat", plain_ftat, "mlp", 38, 5.0),
    ("pft3a", plain_pft3a, "mlp", 38, 5.0),
    ("cotta", plain_cotta, "mlp", 38, 5.0),
    ("tent_ln", plain_tent, "ft_transformer", 38, 1.8),
    ("sar", plain_sar, "ft_transformer", 38, None),
    ("ftat", plain_ftat, "ft_transformer", 38, 1.8),
    ("pft3a", plain_pft3a, "ft_transformer", 38, 1.8),
    ("cotta", plain_cotta, "ft_transformer", 38, 1.8),
    ("ftat", plain_ftat, "mlp", 183, 5.0),
    ("ftat", plain_ftat, "tab_transformer", 38, None),
    ("pft3a", plain_pft3a, "tab_transformer", 38, None),
    ("cotta", plain_cotta, "tab_transformer", 38, None),
]


def measure(name, plain, backbone, d):
    """Median milliseconds a step of all five, plain and in lockstep, and the lockstep's three floors."""
    nets = []
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        nets.append((Normed(d) if backbone == "normed_mlp" else models.build(backbone, d)).eval())
    rows = torch.randn(ROWS, 1, d)
    entry = spec(name)
    method = entry.cls(nets, SourceInfo(np.array([0.7, 0.3])), **entry.options)
    loops = [plain(net) for net in nets]

    def lockstep():
        with torch.no_grad():
            for x in rows:
                method.advance(x)

    def one_by_one():
        for loop in loops:
            for x in rows:
                loop(x)

    times = {lockstep: [], one_by_one: []}
    for _ in range(ROUNDS + 1):  # the first one warms up and traces
        for run, found in times.items():
            start = time.process_time()
            run()
            found.append(1e3 * (time.process_time() - start) / ROWS)
    slow, fast = (median(times[run][1:]) for run in (one_by_one, lockstep))
    return slow, fast, floors(name, method, loops[0], nets[0], rows[0])


class Count(TorchDispatchMode):
    """How many tensor operations are run."""

    total = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.total += 1
        return func(*args, **(kwargs or {}))


def floors(name, method, loop, net, x):
    """Milliseconds a step of all five that flops, memory and the operations' overhead alone would take."""
    with FlopCounterMode(display=False) as flops:
        loop(x)
    with Count() as count, torch.no_grad():
        method.advance(x)
    numbers = SEEDS * sum(p.numel() for p in net.parameters())
    return {
        "flops": SEEDS * flops.get_total_flops() / RATES["flops"],
        "memory": SWEEPS[name] * numbers / copied(numbers * (3 if name == "ftat" else 1)),
        "overhead": count.total * RATES["operation"],
    }


def each(call, times):
    """Milliseconds of one call, the best of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(times):
            call()
        best = min(best, 1e3 * (time.process_time() - start) / times)
    return best


def copied(size):
    """Numbers a millisecond that are read or written where so many are copied again and again."""
    a, b = torch.zeros(size), torch.zeros(size)
    return 2 * size / each(lambda: b.copy_(a), 20)


RATES = {}


def machine():
    """Flops a millisecond of a large product, milliseconds of an operation on one number."""
    a, one = torch.randn(512, 512), torch.zeros(1)
    out = torch.empty_like(a)
    RATES["flops"] = 2 * 512**3 / each(lambda: torch.mm(a, a, out=out), 5)
    RATES["operation"] = each(lambda: torch.ops.aten.add.Tensor(one, one), 1000)


def main():
    torch.set_num_threads(1)
    machine()
    table = Table(title=f"{SEEDS} checkpoints, one row a step, one thread: milliseconds")
    heads = ("method", "backbone", "d", "plain", "lockstep", "ratio", "asked", "flops", "memory", "overhead")
    for column in (*heads, "bound by"):
        table.add_column(column, justify="left" if column in {"method", "backbone", "bound by"} else "right")
    hours = {}
    for name, plain, backbone, d, asked in CASES:
        slow, fast, least = measure(name, plain, backbone, d)
        shown = [f"{slow:.2f}", f"{fast:.2f}", f"{slow / fast:.1f}", f"{asked}" if asked else ""]
        found = [f"{least[what]:.3f}" for what in ("flops", "memory", "overhead")]
        table.add_row(name, backbone, str(d), *shown, *found, max(least, key=least.get))
        if d == 38 and name != "tent_ln":
            hours[name, backbone] = [sum(STREAMS.values()) * ms / 3.6e6 for ms in (slow, fast)]
    torch.manual_seed(0)
    x, labels = torch.randn(512, 38), torch.randint(0, 2, (512,))
    times = {True: [], False: []}
    for _ in range(ROUNDS):
        for ours, found in times.items():
            start = time.process_time()
            agrees(x, labels[None]) if ours else plain_filter(x, labels)
            found.append(1e3 * (time.process_time() - start))
    slow, fast = median(times[False]), median(times[True])
    table.add_row("neighbours, B = 512", "", "38", f"{slow:.2f}", f"{fast:.2f}", f"{slow / fast:.1f}", "15")
    console = Console(width=130)
    console.print(table)
    console.print(grid(hours))


def grid(hours):
    """Hours at B = 1 over the five target streams; Tent and EATA have nothing to move on the tables."""
    rows = f"{sum(STREAMS.values()):,} rows of the paper's five streams, {SEEDS} seeds, B = 1, at d = 38"
    table = Table(title=f"Hours for the {rows}")
    for column in ("method", "backbone", "plain", "lockstep"):
        table.add_column(column, justify="left" if column in {"method", "backbone"} else "right")
    for (name, backbone), (slow, fast) in hours.items():
        table.add_row(name, backbone, f"{slow:.2f}", f"{fast:.2f}")
    table.add_row("all", "", *(f"{sum(both[i] for both in hours.values()):.2f}" for i in (0, 1)))
    return table


if __name__ == "__main__":
    main()
