"""Training five source models: plain eager runs one after another, and ours. One thread, CPU time.

The plain run is a DataLoader over a TensorDataset, the peer's own module and AdamW as it comes: rtdl 0.0.13
for the FT-Transformer, tab-transformer-pytorch 0.2.1 for the TabTransformer. The lean run is our network,
rows taken by index and the fused AdamW. Rows, columns and batches are HELOC's: three steps an epoch, nine for
the TabTransformer.

For the MLP two bounds stand below. "By hand" is lockstep with nothing around the arithmetic: no autograd,
gradients written out into one buffer for all five networks, one fused AdamW step on it. The floor is the
matrix products alone.
"""

import time
from dataclasses import replace

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from ploc_lab.models import build
from ploc_lab.models.recipe import find
from ploc_lab.models.training import PLACES, Source, fit, fresh

D, N, ROUNDS = 38, 2_220, 5
EPOCHS = {"mlp": 8, "tab_transformer": 8, "ft_transformer": 2}


def peer(backbone):
    if backbone == "ft_transformer":
        import rtdl

        return rtdl.FTTransformer.make_baseline(
            n_num_features=D, cat_cardinalities=None, d_token=64, n_blocks=1, attention_dropout=0.0,
            ffn_d_hidden=64, ffn_dropout=0.0, residual_dropout=0.0, last_layer_query_idx=[-1], d_out=1,
        )  # fmt: skip
    if backbone == "tab_transformer":
        from tab_transformer_pytorch import TabTransformer

        return TabTransformer(categories=(), num_continuous=D, dim=32, depth=6, heads=1, dim_out=1)
    return nn.Sequential(
        nn.Linear(D, 256),
        nn.ReLU(),
        nn.Dropout(0.0),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Dropout(0.0),
        nn.Linear(256, 1),
    )


def plain(backbone, x, y, epochs):
    recipe = find(backbone)
    no_codes = torch.empty(0, 0, dtype=torch.long)
    for seed in range(PLACES):
        torch.manual_seed(seed)
        net = peer(backbone)
        inputs = {
            "mlp": lambda rows: (rows,),
            "ft_transformer": lambda rows: (rows, None),
            "tab_transformer": lambda rows: (no_codes, rows),
        }[backbone]
        optimiser = torch.optim.AdamW(net.parameters(), lr=recipe.lr, weight_decay=recipe.weight_decay)
        criterion = nn.BCEWithLogitsLoss()
        loader = DataLoader(TensorDataset(x, y.float()), batch_size=recipe.batch, shuffle=True)
        for _ in range(epochs):
            for rows, labels in loader:
                optimiser.zero_grad()
                criterion(net(*inputs(rows))[:, 0], labels).backward()
                optimiser.step()


def ours(backbone, x, y, epochs, *, stacked):
    recipe = replace(find(backbone), epochs=epochs)
    source = Source(lambda index: x.index_select(0, index), y.numpy())
    seeds = [fresh(lambda: build(backbone, D), seed) for seed in range(PLACES)]
    groups = [seeds] if stacked else [[seed] for seed in seeds]
    return [net for group in groups for net in fit(group, source, recipe)]


def batches(rows, batch):
    return [slice(start, start + batch) for start in range(0, rows, batch)]


@torch.no_grad()
def by_hand(x, y, epochs):
    """Five MLPs in lockstep without a framework around the arithmetic."""
    recipe = find("mlp")
    seeds = [fresh(lambda: build("mlp", D), seed) for seed in range(PLACES)]
    parameters = [parameter for member in seeds for parameter in member.net.parameters()]
    sizes = [parameter.numel() for parameter in parameters]
    theta = torch.cat([parameter.flatten() for parameter in parameters])
    theta.grad = torch.zeros_like(theta)
    weights, gradients = (
        [part.view_as(parameter) for part, parameter in zip(flat.split(sizes), parameters, strict=True)]
        for flat in (theta, theta.grad)
    )
    optimiser = torch.optim.AdamW([theta], lr=recipe.lr, weight_decay=recipe.weight_decay, fused=True)
    labels = y.float()
    for _ in range(epochs):
        orders = [torch.randperm(len(y), generator=member.shuffler) for member in seeds]
        for part in batches(len(y), recipe.batch):
            for place, order in enumerate(orders):
                w1, b1, w2, b2, w3, b3 = weights[6 * place : 6 * place + 6]
                to_w1, to_b1, to_w2, to_b2, to_w3, to_b3 = gradients[6 * place : 6 * place + 6]
                rows = x.index_select(0, order[part])
                first = torch.addmm(b1, rows, w1.T).relu_()
                second = torch.addmm(b2, first, w2.T).relu_()
                logit = torch.addmv(b3, second, w3[0])
                up = (logit.sigmoid() - labels[order[part]]) / len(rows)
                torch.mv(second.T, up, out=to_w3[0])
                torch.sum(up, 0, keepdim=True, out=to_b3)
                up = (up[:, None] * w3).mul_(second > 0)
                torch.mm(up.T, first, out=to_w2)
                torch.sum(up, 0, out=to_b2)
                up = torch.mm(up, w2).mul_(first > 0)
                torch.mm(up.T, rows, out=to_w1)
                torch.sum(up, 0, out=to_b1)
            optimiser.step()
    return [torch.cat([part.flatten() for part in weights[6 * p : 6 * p + 6]]) for p in range(PLACES)]


def products(x, epochs):
    """The MLP's matrix products, forward and backward, and nothing else."""
    w1, w2, hidden = torch.rand(D, 256), torch.rand(256, 256), torch.rand(len(x), 256)
    for _ in range(PLACES * epochs):
        for part in batches(len(x), find("mlp").batch):
            a, h = x[part], hidden[part]
            _ = a @ w1, h @ w2, h @ w2.T, h.T @ h, a.T @ h


def seconds(work):
    start = time.process_time()
    work()
    return time.process_time() - start


def run():
    """Rows of (backbone, what, seconds, times faster than the plain runs): the best of interleaved rounds."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(N, D)).astype(np.float32))
    y = torch.from_numpy((x[:, 0].numpy() > 0).astype(np.int64))
    for net, weights in zip(ours("mlp", x, y, 1, stacked=False), by_hand(x, y, 1), strict=True):
        torch.testing.assert_close(torch.cat([p.flatten() for p in net.parameters()]), weights)
    rows = []
    for backbone, epochs in EPOCHS.items():
        contenders = {
            "plain eager": lambda b=backbone, e=epochs: plain(b, x, y, e),
            "lean, one by one": lambda b=backbone, e=epochs: ours(b, x, y, e, stacked=False),
            "lean, in lockstep": lambda b=backbone, e=epochs: ours(b, x, y, e, stacked=True),
        }
        if backbone == "mlp":
            contenders["bound: lockstep by hand"] = lambda e=epochs: by_hand(x, y, e)
            contenders["floor: matrix products"] = lambda e=epochs: products(x, e)
        best = dict.fromkeys(contenders, float("inf"))
        for _ in range(ROUNDS):
            for name, work in contenders.items():
                best[name] = min(best[name], seconds(work))
        taken = "lean, in lockstep" if find(backbone).lockstep else "lean, one by one"
        rows += [
            (backbone, name + (" (used)" if name == taken else ""), spent, best["plain eager"] / spent)
            for name, spent in best.items()
        ]
    return rows


def main():
    table = Table("backbone", "five runs of", "seconds", "times faster", title="training five seeds")
    for backbone, name, spent, ratio in run():
        table.add_row(backbone, name, f"{spent:.2f}", f"{ratio:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
