"""Lockstep of five checkpoints against the plain loop: one network, one optimiser, one row, eager autograd.

At B = 1, one thread, ratios from interleaved rounds of one run; and the neighbour filter
of FTAT at B = 512 against a loop over rows. Set PLOC_BENCH_ROWS for longer rounds.
"""

import os
import time
from copy import deepcopy
from statistics import median

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from ploc_lab import models
from ploc_lab.methods import SourceInfo, spec
from ploc_lab.methods.neighbours import agrees

SEEDS, ROUNDS, ROWS = 5, 5, int(os.environ.get("PLOC_BENCH_ROWS", "60"))


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


def released(p):
    return entropy(p.softmax(1)) * (p[:, 0] - p[:, 1]).abs()


def plain_filter(x, labels):
    distance = torch.cdist(x, x)
    tau = distance.mean()
    keep = []
    for i in range(len(x)):
        near = labels[distance[i] <= tau].float()
        keep.append(bool((near.mean() - labels[i]).abs() <= 0.3))
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
    ("ftat", plain_ftat, "ft_transformer", 38, 1.8),
    ("pft3a", plain_pft3a, "ft_transformer", 38, 1.8),
    ("cotta", plain_cotta, "ft_transformer", 38, 1.8),
    ("ftat", plain_ftat, "mlp", 183, 5.0),
    ("ftat", plain_ftat, "tab_transformer", 38, None),
    ("pft3a", plain_pft3a, "tab_transformer", 38, None),
    ("cotta", plain_cotta, "tab_transformer", 38, None),
]


def measure(name, plain, backbone, d):
    """Median milliseconds a step of all five, plain and in lockstep, from interleaved rounds."""
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
            start = time.perf_counter()
            run()
            found.append(1e3 * (time.perf_counter() - start) / ROWS)
    return tuple(median(times[run][1:]) for run in (one_by_one, lockstep))


def main():
    torch.set_num_threads(1)
    table = Table(title=f"{SEEDS} checkpoints, one row a step, one thread")
    for column in ("method", "backbone", "d", "plain ms", "lockstep ms", "ratio", "asked"):
        table.add_column(column, justify="left" if column in {"method", "backbone"} else "right")
    for name, plain, backbone, d, asked in CASES:
        slow, fast = measure(name, plain, backbone, d)
        table.add_row(
            name,
            backbone,
            str(d),
            f"{slow:.2f}",
            f"{fast:.2f}",
            f"{slow / fast:.1f}",
            f"{asked}" if asked else "",
        )
    torch.manual_seed(0)
    x, labels = torch.randn(512, 38), torch.randint(0, 2, (512,))
    times = {True: [], False: []}
    for _ in range(ROUNDS):
        for ours, found in times.items():
            start = time.perf_counter()
            agrees(x, labels[None]) if ours else plain_filter(x, labels)
            found.append(1e3 * (time.perf_counter() - start))
    slow, fast = median(times[False]), median(times[True])
    table.add_row("neighbours, B = 512", "", "38", f"{slow:.2f}", f"{fast:.2f}", f"{slow / fast:.1f}", "15")
    Console().print(table)


if __name__ == "__main__":
    main()
