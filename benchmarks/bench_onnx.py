"""What PLOC adds to onnxruntime, one row a call, for the paper's MLP: 38 inputs, 256, 256, one logit."""

import itertools
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from ploc import PLOC
from ploc.onnx import bake, rule

ROWS, ROUNDS = 2_000, 15


def mlp(widths=(38, 256, 256, 1)):
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
    tensors.append(numpy_helper.from_array(np.array([1]), "axis"))
    nodes.append(helper.make_node("Squeeze", [name, "axis"], ["logit"]))
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", widths[0]])],
        [helper.make_tensor_value_info("logit", TensorProto.FLOAT, ["N"])],
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
        float(run(None, {"x": row})[0][0])


def step(run, x):
    answer = PLOC().step
    for row in x:
        answer(float(run(None, {"x": row})[0][0]))


def joined(run, x):
    state = np.zeros(3)
    for row in x:
        _, state = run(["probs", "next_state"], {"x": row, "state": state})


def main() -> None:
    model = mlp()
    with_rule = onnx.compose.merge_models(model, rule(), io_map=[("logit", "logits")])
    rows = list(np.random.default_rng(1).normal(size=(ROWS, 1, 38)).astype("float32"))
    plain = session(model)
    peers = {
        "bare": (bare, plain.run),
        "baked shift": (bare, session(bake(model, 0.25)).run),
        "PLOC.step": (step, plain.run),
        "rule in the graph": (joined, session(with_rule).run),
    }
    ratios: dict[str, list[float]] = {name: [] for name in peers}
    floors = []
    for round_ in range(ROUNDS + 1):
        seconds = {}
        for name, (loop, run) in peers.items():
            start = time.perf_counter()
            loop(run, rows)
            seconds[name] = time.perf_counter() - start
        if round_:  # the first warms the caches
            floors.append(seconds["bare"] / ROWS * 1e6)
            for name in peers:
                ratios[name].append(seconds[name] / seconds["bare"])
    print(f"onnxruntime {onnxruntime.__version__}, one row a call, bare {np.median(floors):.1f} us a row")
    print("time by the bare call's, median of", ROUNDS, "rounds:")
    for name, values in ratios.items():
        print(f"  {name:18s} {np.median(values):.3f}  ({min(values):.3f} to {max(values):.3f})")


if __name__ == "__main__":
    main()
