"""What PLOC adds to onnxruntime, one row a call, for the paper's MLP: 38 inputs, 256, 256, one logit."""

import itertools
import time
from functools import partial

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from ploc import PLOC
from ploc.onnx import bake, rule

ROWS, TURNS = 40, 2_000


def mlp(widths=(38, 256, 256, 1), *, flat=False):
    rng = np.random.default_rng(0)
    nodes, tensors, name = [], [], "x"
    for i, (a, b) in enumerate(itertools.pairwise(widths)):
        tensors += [
            numpy_helper.from_array(rng.normal(scale=a**-0.5, size=(a, b)).astype("float32"), f"W{i}"),
            numpy_helper.from_array(np.zeros(b, "float32"), f"b{i}"),
        ]
        nodes.append(helper.make_node("Gemm", [name, f"W{i}", f"b{i}"], [f"h{i}"]))
        name = f"h{i}"
        if b > 1:
            nodes.append(helper.make_node("Relu", [name], [f"r{i}"]))
            name = f"r{i}"
    nodes[-1].output[0] = "g" if flat else "logit"
    if flat:
        tensors.append(numpy_helper.from_array(np.array([1]), "axis"))
        nodes.append(helper.make_node("Squeeze", ["g", "axis"], ["logit"]))
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", widths[0]])],
        [helper.make_tensor_value_info("logit", TensorProto.FLOAT, ["N"] if flat else ["N", 1])],
        tensors,
    )
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18)])


def session(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def bare(run, x):
    for row in x:
        run(None, {"x": row})[0].item()


def step(answer, run, x):
    for row in x:
        answer(run(None, {"x": row})[0].item())


def joined(run, x):
    state = np.zeros(3)
    for row in x:
        _, state = run(["probs", "next_state"], {"x": row, "state": state})


def main() -> None:
    model = mlp()
    with_rule = onnx.compose.merge_models(mlp(flat=True), rule(), io_map=[("logit", "logits")])
    rows = list(np.random.default_rng(1).normal(size=(ROWS, 1, 38)).astype("float32"))
    plain = session(model)
    peers = {
        "bare": (bare, plain.run),
        "baked shift": (bare, session(bake(model, 0.25)).run),
        "PLOC.step": (partial(step, PLOC().step), plain.run),
        "rule in the graph": (joined, session(with_rule).run),
    }
    # Short turns in rotation, and each one's fastest: what other processes take falls out.
    best = dict.fromkeys(peers, np.inf)
    for _ in range(TURNS):
        for name, (loop, run) in peers.items():
            start = time.perf_counter()
            loop(run, rows)
            best[name] = min(best[name], time.perf_counter() - start)
    print(f"onnxruntime {onnxruntime.__version__}, one thread, one row a call, fastest of {TURNS} turns")
    for name, seconds in best.items():
        print(f"  {name:18s} {seconds / ROWS * 1e6:6.1f} us a row  {seconds / best['bare']:.3f} of bare")


if __name__ == "__main__":
    main()
