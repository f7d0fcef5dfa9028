"""Training five source models: plain eager runs one after another, and ours. One thread, CPU time.

The plain run is a DataLoader over a TensorDataset, the peer's own module and AdamW as it comes: rtdl 0.0.13
for the FT-Transformer, tab-transformer-pytorch 0.2.1 for the TabTransformer. The lean run is our network,
rows taken by index and the fused AdamW: what is left is arithmetic, whose floor is the matrix products alone.
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

D, N, ROUNDS = 38, 4096, 3
EPOCHS = {"mlp": 2, "tab_transformer": 4, "ft_transformer": 1}


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
    for group in [seeds] if stacked else [[seed] for seed in seeds]:
        fit(group, source, recipe)


def products(backbone, x, epochs):
    """The MLP's matrix products, forward and backward, and nothing else."""
    batch, steps = find(backbone).batch, PLACES * epochs * (len(x) // find(backbone).batch)
    a, h, w1, w2 = x[:batch], torch.rand(batch, 256), torch.rand(D, 256), torch.rand(256, 256)
    for _ in range(steps):
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
    rows = []
    for backbone, epochs in EPOCHS.items():
        contenders = {
            "plain eager": lambda b=backbone, e=epochs: plain(b, x, y, e),
            "lean, one by one": lambda b=backbone, e=epochs: ours(b, x, y, e, stacked=False),
            "lean, in lockstep": lambda b=backbone, e=epochs: ours(b, x, y, e, stacked=True),
        }
        if backbone == "mlp":
            contenders["floor: matrix products"] = lambda b=backbone, e=epochs: products(b, x, e)
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
