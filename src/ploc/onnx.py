"""PLOC in ONNX files: a deferred shift baked into a model, or the prequential rule as a graph of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ploc.center import PLOC
from ploc.origin import BLOCK, Mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

_FLOATS = (TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE)
_OPSET = 18
_IR = 9


def bake(model: onnx.ModelProto, shift: ArrayLike, output: str | None = None) -> onnx.ModelProto:
    """A copy of `model` with `shift` subtracted from its logits: one Sub, the output keeps its name and type.

    `shift` is `PLOC().shift`, or the origin that `deferred` returns: a number, or K numbers for K logits.
    `output` names the logits where the model has several outputs. The shift is rounded to the output's own
    type.

    >>> from onnx import parser
    >>> model = parser.parse_model('''
    ...     <ir_version: 9, opset_import: ["" : 18]>
    ...     net (float[N, 3] x) => (float[N] logit) { axes = Constant <value = int64[1] {1}> ()
    ...                                               logit = ReduceSum <keepdims = 0> (x, axes) }''')
    >>> [node.op_type for node in bake(model, 0.25).graph.node]
    ['Constant', 'ReduceSum', 'Sub']
    """
    baked = onnx.ModelProto()
    baked.CopyFrom(model)
    graph = baked.graph
    logits = _output(graph, output)
    name = logits.name
    _check_logits(baked, logits)
    constant = _shift(shift, logits)
    raw, const = _unused(graph, f"{name}_uncentred"), _unused(graph, f"{name}_shift")
    _rename(graph, name, raw)
    constant.name = const
    graph.initializer.append(constant)
    graph.node.append(helper.make_node("Sub", [raw, const], [name], name=_unused(graph, f"{name}_ploc")))
    baked.metadata_props.add(key=_key(name), value=str(np.asarray(shift, np.float64).tolist()))
    onnx.checker.check_model(baked, full_check=True)
    return baked


def rule(classes: int = 2, *, anchor: float | ArrayLike = 0.0, dtype: str = "float32") -> onnx.ModelProto:
    """The prequential rule (Algorithm 1) as a graph: logits and a state in, answers and the next state out.

    Inputs: `logits`, (T,) for two classes or (T, K), of type `dtype`, in stream order; `state`, (3,) or (3,
    K) float64, all zeros before the first row. Outputs, in float64: `probs` and `centred`, shaped like
    `logits`, and `next_state`, which the caller hands in as `state` with the following rows. The answers are
    those of `PLOC().replay` and do not depend on how the stream is cut into calls. The state's rows are the
    number of rows observed, the sum over closed blocks of 65,536 rows, and the sum of the open block.

    Runtimes scan no empty stream: T is at least 1. A graph can't raise: a row that is not finite is answered
    nan, and the state stays as it was.

    >>> [value.name for value in rule().graph.output]
    ['probs', 'centred', 'next_state']
    """
    anchors = PLOC(None if classes == 2 else classes, anchor=anchor).anchor
    kinds = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}
    if dtype not in kinds:
        raise ValueError(f"dtype is {dtype!r}; known are {', '.join(kinds)}")

    width = [] if classes == 2 else [classes]
    row = [
        helper.make_tensor_value_info(n, TensorProto.DOUBLE, width) for n in ("count", "closed", "open", "z")
    ]
    after = ("count_next", "closed_next", "open_next", "d")
    step = helper.make_graph(
        [
            _node("Add", "closed", "open", "total"),
            _node("Max", "count", "one", "rows"),
            _node("Div", "total", "rows", "mean"),
            _node("Sub", "mean", "anchor", "shift"),
            _node("Sub", "z", "shift", "moved"),
            _node("Equal", "count", "zero", "first"),
            _node("Where", "first", "z", "moved", "answer"),
            # z - z is 0 for a finite z alone: one bad coordinate, and the row is not observed.
            _node("Sub", "z", "z", "fault_k"),
            _node("ReduceSum", "fault_k", "fault", keepdims=1)
            if width
            else _node("Identity", "fault_k", "fault"),
            _node("Equal", "fault", "zero", "good"),
            _node("Where", "good", "answer", "nan", "d"),
            _node("Where", "good", "z", "zero", "seen"),
            _node("Where", "good", "one", "zero", "more"),
            _node("Add", "count", "more", "count_next"),
            _node("Add", "open", "seen", "summed"),
            _node("Mod", "count_next", "block", "position", fmod=1),
            _node("Equal", "position", "zero", "full"),
            _node("Add", "closed", "summed", "closing"),
            _node("Where", "full", "closing", "closed", "closed_next"),
            _node("Where", "full", "zero", "summed", "open_next"),
        ],
        "step",
        row,
        [helper.make_tensor_value_info(n, TensorProto.DOUBLE, width) for n in after],
        [
            numpy_helper.from_array(np.asarray(value, np.float64), name)
            for name, value in (
                ("zero", 0),
                ("one", 1),
                ("block", BLOCK),
                ("anchor", anchors),
                ("nan", np.nan),
            )
        ],
    )
    start, end = ("count", "closed", "open"), ("count_next", "closed_next", "open_next")
    nodes = [
        helper.make_node("Cast", ["logits"], ["z64"], to=TensorProto.DOUBLE),
        *(_node("Gather", "state", f"row{i}", f"{n}0", axis=0) for i, n in enumerate(start)),
        helper.make_node(
            "Scan",
            [f"{n}0" for n in start] + ["z64"],
            [f"{n}1" for n in end] + ["centred"],
            body=step,
            num_scan_inputs=1,
        ),
        *(_node("Unsqueeze", f"{n}1", "row0", f"{n}2") for n in end),
        helper.make_node("Concat", [f"{n}2" for n in end], ["next_state"], axis=0),
        _node("Sigmoid", "centred", "probs")
        if classes == 2
        else _node("Softmax", "centred", "probs", axis=-1),
    ]
    stream: list[str | int] = ["T", *width]
    kept = [3, *width]
    graph = helper.make_graph(
        nodes,
        "ploc",
        [
            helper.make_tensor_value_info("logits", kinds[dtype], stream),
            helper.make_tensor_value_info("state", TensorProto.DOUBLE, kept),
        ],
        [
            helper.make_tensor_value_info("probs", TensorProto.DOUBLE, stream),
            helper.make_tensor_value_info("centred", TensorProto.DOUBLE, stream),
            helper.make_tensor_value_info("next_state", TensorProto.DOUBLE, kept),
        ],
        [numpy_helper.from_array(np.array(i, np.int64), f"row{i}") for i in range(3)],
    )
    opsets = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(graph, ir_version=_IR, opset_imports=opsets, producer_name="ploc")
    onnx.checker.check_model(model, full_check=True)
    return model


def state(center: PLOC) -> NDArray[np.float64]:
    """The state of a `PLOC` as `rule` takes it, to go on with its stream in another runtime.

    >>> c = PLOC()
    >>> c.observe([0.5, 1.0])
    >>> state(c)
    array([2. , 0. , 1.5])
    """
    if center.what != "logit":
        raise TypeError(f"the rule centres logits, a {type(center).__name__} centres a {center.what}")
    if type(center.origin) is not Mean:
        raise ValueError(f"the rule keeps a mean, not {center.origin!r}")
    origin = center.state()["origin"]
    total = np.asarray(origin["total"])
    return np.stack((np.full_like(total, origin["count"]), total, np.asarray(origin["part"])))


def _output(graph: onnx.GraphProto, name: str | None) -> onnx.ValueInfoProto:
    names = [o.name for o in graph.output]
    if name is None:
        if len(names) != 1:
            raise ValueError(
                f"the model has the outputs {', '.join(names)}; say which are the logits: output=..."
            )
        name = names[0]
    if name not in names:
        raise ValueError(f"the model has no output {name!r}; it has {', '.join(names)}")
    value: onnx.ValueInfoProto = graph.output[names.index(name)]
    return value


def _check_logits(model: onnx.ModelProto, logits: onnx.ValueInfoProto) -> None:
    name, kind = logits.name, logits.type.tensor_type.elem_type
    if kind not in _FLOATS:
        raise TypeError(f"output {name!r} is no float tensor; logits are float16, float32 or float64")
    makers = [node for node in model.graph.node if name in node.output]
    if not makers:
        raise ValueError(
            f"output {name!r} is computed by no node of the graph; there are no logits to centre"
        )
    if makers[0].op_type in ("Sigmoid", "Softmax"):
        raise ValueError(
            f"output {name!r} comes from a {makers[0].op_type}: probabilities; bake centres logits"
        )
    if any(p.key == _key(name) for p in model.metadata_props):
        raise ValueError(f"output {name!r} carries a shift already; bake the model without it")
    versions = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    if not versions:
        model.opset_import.append(helper.make_opsetid("", _OPSET))
    elif min(versions) < 7:
        raise ValueError(
            f"the model's opset is {min(versions)}; Sub broadcasts from opset 7 on: convert the model"
        )


def _shift(shift: ArrayLike, logits: onnx.ValueInfoProto) -> onnx.TensorProto:
    """The shift in the output's own type, fitting the output's last axis."""
    name, tensor = logits.name, logits.type.tensor_type
    value = np.asarray(shift, np.float64)
    dims = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
    classes = dims[-1] if len(dims) > 1 else 1
    if value.ndim > 1 or (classes is not None and value.size != classes) or not value.size:
        raise ValueError(
            f"the shift has shape {value.shape}, but output {name!r} has {classes} logit(s) a row; "
            "hand in one number for one logit, K numbers for K logits"
        )
    with np.errstate(over="ignore"):
        cast = value.astype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    if not np.isfinite(cast).all():
        raise ValueError(f"the shift {value.tolist()} is not finite in the output's own type, {cast.dtype}")
    return numpy_helper.from_array(cast if value.size > 1 else cast.reshape(()))


def _key(output: str) -> str:
    return f"ploc.shift.{output}"


def _rename(graph: onnx.GraphProto, old: str, new: str) -> None:
    """Give the value `old` the name `new` wherever `graph`, or a graph inside it, makes or reads it."""
    for node in _nodes(graph):
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                if name == old:
                    names[i] = new


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                yield from _nodes(inner)


def _unused(graph: onnx.GraphProto, name: str) -> str:
    taken = {n for node in _nodes(graph) for n in (node.name, *node.input, *node.output)}
    taken |= {v.name for v in (*graph.input, *graph.output, *graph.initializer)}
    while name in taken:
        name += "_"
    return name


def _node(op: str, *names: str, **attributes: Any) -> onnx.NodeProto:
    """A node with one output, the last name."""
    return helper.make_node(op, list(names[:-1]), [names[-1]], **attributes)
