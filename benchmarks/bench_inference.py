"""One row through a frozen source model: torch eager, ONNX Runtime and numpy, one thread, CPU time."""

import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from rich.console import Console
from rich.table import Table

from ploc_lab.models import Checkpoint, build
from ploc_lab.models.export import to_onnx

D, ROWS, ROUNDS = 38, 400, 5


def numpy_mlp(net):
    p = {name: value.numpy() for name, value in net.state_dict().items()}
    layers = [(p[f"blocks.{i}.0.weight"], p[f"blocks.{i}.0.bias"]) for i in range(2)]

    def logit(row):
        for weight, bias in layers:
            row = np.maximum(weight @ row + bias, 0)
        return p["head.weight"] @ row + p["head.bias"]

    return logit


def numpy_tab_transformer(net):
    p = {name: value.numpy() for name, value in net.state_dict().items()}

    def logit(row):
        row = row - row.mean()
        row = row / np.sqrt(row @ row / len(row) + np.float32(1e-5)) * p["norm.weight"] + p["norm.bias"]
        row = np.maximum(p["mlp.0.weight"] @ row + p["mlp.0.bias"], 0)
        row = np.maximum(p["mlp.2.weight"] @ row + p["mlp.2.bias"], 0)
        return p["head.weight"] @ row + p["head.bias"]

    return logit


def numpy_ft_transformer(net):
    """The query never changes, so both scores' factors and the values' tables are computed once."""
    p = {name: value.numpy() for name, value in net.state_dict().items()}
    heads, size = 8, 8
    cls = p["cls_token"]
    weight = np.vstack([p["feature_tokenizer.weight"], np.zeros_like(cls)])
    bias = np.vstack([p["feature_tokenizer.bias"], cls])
    q = (p["attention.W_q.weight"] @ cls + p["attention.W_q.bias"]).reshape(heads, size) / np.sqrt(
        np.float32(size)
    )
    u = np.einsum("hk,hki->hi", q, p["attention.W_k.weight"].reshape(heads, size, -1))
    slope, level = u @ weight.T, u @ bias.T  # the keys' bias is the same for every token: softmax drops it
    values = p["attention.W_v.weight"].reshape(heads, size, -1)
    of_weight, of_bias = (np.einsum("ji,hki->hjk", tokens, values) for tokens in (weight, bias))

    def norm(h, name):
        h = h - h.mean()
        return h / np.sqrt(h @ h / len(h) + np.float32(1e-5)) * p[f"{name}.weight"] + p[f"{name}.bias"]

    def logit(row):
        row = np.append(row, np.float32(0))
        scores = row * slope + level
        a = np.exp(scores - scores.max(1, keepdims=True))
        a /= a.sum(1, keepdims=True)
        collected = ((a * row)[:, None] @ of_weight + a[:, None] @ of_bias).ravel() + p["attention.W_v.bias"]
        h = cls + p["attention.W_out.weight"] @ collected + p["attention.W_out.bias"]
        first = p["ffn.linear_first.weight"] @ norm(h, "ffn_normalization") + p["ffn.linear_first.bias"]
        h = (
            h
            + p["ffn.linear_second.weight"] @ (first[:64] * np.maximum(first[64:], 0))
            + p["ffn.linear_second.bias"]
        )
        return p["head.weight"] @ np.maximum(norm(h, "head_normalization"), 0) + p["head.bias"]

    return logit


NUMPY = {"mlp": numpy_mlp, "tab_transformer": numpy_tab_transformer, "ft_transformer": numpy_ft_transformer}


def contenders(backbone, folder):
    torch.manual_seed(0)
    net = build(backbone, D).eval().requires_grad_(requires_grad=False)
    path = Path(folder) / f"{backbone}.onnx"
    to_onnx(Checkpoint(Path(folder), {"backbone": backbone, "d": D}, net), path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    by_numpy = NUMPY[backbone](net)

    def eager(row):
        with torch.inference_mode():
            return net(torch.from_numpy(row)[None]).numpy()[0]

    return {
        "torch eager": eager,
        "onnxruntime": lambda row: session.run(None, {"x": row[None]})[0][0],
        "numpy": by_numpy,
    }


def run():
    """Rows of (backbone, host, microseconds a row, times faster than torch eager): the best round."""
    torch.set_num_threads(1)
    x = np.random.default_rng(0).normal(size=(ROWS, D)).astype(np.float32)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for backbone in NUMPY:
            hosts = contenders(backbone, folder)
            for row in x[:20]:
                reference = hosts["torch eager"](row)
                for host in hosts.values():
                    np.testing.assert_allclose(host(row), reference, rtol=1e-3, atol=1e-4)
            best = dict.fromkeys(hosts, float("inf"))
            for _ in range(ROUNDS):
                for name, host in hosts.items():
                    start = time.process_time()
                    for row in x:
                        host(row)
                    best[name] = min(best[name], (time.process_time() - start) / ROWS * 1e6)
            rows += [(backbone, name, spent, best["torch eager"] / spent) for name, spent in best.items()]
    return rows


def main():
    table = Table("backbone", "host", "us a row", "times faster", title="one row at a time")
    for backbone, name, spent, ratio in run():
        table.add_row(backbone, name, f"{spent:.0f}", f"{ratio:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
