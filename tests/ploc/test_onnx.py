import warnings

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from ploc import PLOC, PLOCProb, deferred, origin
from ploc.onnx import bake, rule, state

rng = np.random.default_rng(3)


def network(outputs=1, *, flat=False, kind="float32", last=None):
    """x (N, 4) -> hidden -> logits (N, outputs), or (N,) if flat; `last` puts one more operator on top."""
    dtype = np.dtype(kind)
    elem = helper.np_dtype_to_tensor_dtype(dtype)
    weights = {
        "W": rng.normal(size=(4, 8)),
        "b": rng.normal(size=8),
        "V": rng.normal(size=(8, outputs)),
        "c": rng.normal(size=outputs),
    }
    nodes = [
        helper.make_node("Gemm", ["x", "W", "b"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "V", "c"], ["g"]),
        helper.make_node("Squeeze" if flat else "Identity", ["g", "axis"] if flat else ["g"], ["top"]),
        helper.make_node(last or "Identity", ["top"], ["logits"]),
    ]
    tensors = [numpy_helper.from_array(value.astype(dtype), name) for name, value in weights.items()]
    if flat:
        tensors.append(numpy_helper.from_array(np.array([1]), "axis"))
    shape = ["N"] if flat else ["N", outputs]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", elem, ["N", 4])],
        [helper.make_tensor_value_info("logits", elem, shape)],
        tensors,
    )
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18)])


def run(model, outputs=None, **inputs):
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(outputs, inputs)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize(("outputs", "flat"), [(1, True), (1, False), (2, False), (5, False)])
def test_a_baked_model_answers_with_the_shift_subtracted_and_nothing_else(outputs, flat, kind):
    model = network(outputs, flat=flat, kind=kind)
    x = rng.normal(size=(30, 4)).astype(kind)
    (z,) = run(model, x=x)
    _, mu = deferred(z.astype(float) if outputs > 1 else z.ravel().astype(float))
    baked = bake(model, mu)
    (got,) = run(baked, x=x)
    np.testing.assert_array_equal(got, z - np.asarray(mu, kind))
    assert got.dtype == z.dtype
    assert [node.op_type for node in baked.graph.node] == [*(n.op_type for n in model.graph.node), "Sub"]
    assert baked.graph.output == model.graph.output
    assert baked.graph.input == model.graph.input


def test_baking_leaves_the_callers_model_and_every_other_output_alone():
    model = network()
    model.graph.node.append(helper.make_node("Sigmoid", ["logits"], ["probs"]))
    model.graph.output.append(helper.make_tensor_value_info("probs", TensorProto.FLOAT, ["N", 1]))
    before = model.SerializeToString()
    baked = bake(model, 0.75, output="logits")
    assert model.SerializeToString() == before
    x = rng.normal(size=(6, 4)).astype("float32")
    z, p = run(model, ["logits", "probs"], x=x)
    shifted, same = run(baked, ["logits", "probs"], x=x)
    np.testing.assert_array_equal(same, p)
    np.testing.assert_array_equal(shifted, z - np.float32(0.75))


def test_baking_follows_the_logits_into_the_branches_of_an_if():
    model = network()
    branches = {}
    for name, op in (("then_branch", "Neg"), ("else_branch", "Identity")):
        value = helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 1])
        branches[name] = helper.make_graph([helper.make_node(op, ["logits"], [name])], name, [], [value])
    model.graph.initializer.append(numpy_helper.from_array(np.array(True), "yes"))
    model.graph.node.append(helper.make_node("If", ["yes"], ["negated"], **branches))
    model.graph.output.append(helper.make_tensor_value_info("negated", TensorProto.FLOAT, ["N", 1]))
    x = rng.normal(size=(6, 4)).astype("float32")
    (z,) = run(model, ["logits"], x=x)
    shifted, negated = run(bake(model, 1.0, "logits"), ["logits", "negated"], x=x)
    np.testing.assert_array_equal(negated, -z)
    np.testing.assert_array_equal(shifted, z - np.float32(1.0))


@pytest.mark.parametrize(
    ("model", "shift", "output", "error"),
    [
        (network(last="Sigmoid"), 0.5, None, "comes from a Sigmoid: probabilities"),
        (network(3, last="Softmax"), [0.1, 0.2, 0.3], None, "comes from a Softmax"),
        (network(), 0.5, "scores", "no output 'scores'; it has logits"),
        (network(3), 0.5, None, r"shape \(\), but output 'logits' has 3 logit"),
        (network(2), 0.5, None, "has 2 logit"),
        (network(), [0.5, 0.5], None, "has 1 logit"),
        (network(flat=True), [[0.5]], None, r"shape \(1, 1\)"),
        (network(), float("nan"), None, "is not finite"),
        (network(), 1e39, None, r"1e\+39 is not finite in the output's own type, float32"),
        (bake(network(), 0.5), 0.5, None, "carries a shift already"),
    ],
)
def test_what_can_not_be_baked_is_refused_in_one_sentence(model, shift, output, error):
    before = model.SerializeToString()
    with pytest.raises(ValueError, match=error):
        bake(model, shift, output)
    assert model.SerializeToString() == before


def test_outputs_that_are_no_computed_floats_are_refused_and_several_have_to_be_named():
    passed = helper.make_graph(
        [],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])],
    )
    with pytest.raises(ValueError, match="computed by no node"):
        bake(helper.make_model(passed), 0.5)
    model = network()
    model.graph.node.append(helper.make_node("ArgMax", ["logits"], ["label"], axis=1))
    model.graph.output.append(helper.make_tensor_value_info("label", TensorProto.INT64, ["N", 1]))
    with pytest.raises(ValueError, match="the outputs logits, label"):
        bake(model, 0.5)
    with pytest.raises(TypeError, match="no float tensor"):
        bake(model, 0.5, "label")


def stepped(session, z, start, cuts=()):
    answers, kept = [], start
    for part in np.array_split(z, cuts) if len(cuts) else [z]:
        _, centred, kept = session.run(["probs", "centred", "next_state"], {"logits": part, "state": kept})
        answers.append(centred)
    return np.concatenate(answers), kept


def session_of(model):
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


SESSIONS = {k: session_of(rule(k, dtype="float64")) for k in (2, 3)}


@given(st.sampled_from([2, 3]), st.integers(1, 40), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_the_rule_is_ploc_to_the_last_bit_however_the_stream_is_cut(classes, n, random):
    width = () if classes == 2 else (classes,)
    z = np.array([random.uniform(-30, 30) for _ in range(n * (classes if width else 1))]).reshape(n, *width)
    center = PLOC(None if classes == 2 else classes)
    cuts = sorted({random.randint(1, n) for _ in range(3)} - {n})
    got, kept = stepped(SESSIONS[classes], z, np.zeros((3, *width)), cuts)
    np.testing.assert_array_equal(got, center.replay(z, logits=True))
    np.testing.assert_array_equal(kept, state(center))


@pytest.mark.parametrize("classes", [2, 3])
def test_the_rules_probabilities_are_those_of_ploc(classes):
    z = rng.normal(size=(50, 3) if classes == 3 else 50).astype("float32")
    start = np.zeros((3, 3) if classes == 3 else 3)
    probs, _, _ = run(rule(classes), logits=z, state=start)
    np.testing.assert_allclose(probs, PLOC(None if classes == 2 else 3).replay(z.astype(float)), rtol=1e-12)


def test_the_rule_closes_a_block_of_65536_rows_as_ploc_does():
    head, tail = rng.normal(size=65_530), rng.normal(size=20)
    center = PLOC()
    center.observe(head)
    got, kept = stepped(SESSIONS[2], tail, state(center))
    np.testing.assert_array_equal(got, center.replay(tail, logits=True))
    np.testing.assert_array_equal(kept, state(center))
    assert kept[0] == 65_550
    assert kept[1] != 0.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_is_answered_nan_and_not_observed(bad):
    z = rng.normal(size=(9, 3))
    clean, kept = stepped(SESSIONS[3], z, np.zeros((3, 3)))
    z = np.insert(z, 4, [0.0, bad, 1.0], axis=0)
    got, same = stepped(SESSIONS[3], z, np.zeros((3, 3)))
    assert np.isnan(got[4]).all()
    np.testing.assert_array_equal(np.delete(got, 4, axis=0), clean)
    np.testing.assert_array_equal(same, kept)


@pytest.mark.parametrize("anchor", [0.5, [0.1, 0.2, -0.3]])
def test_the_rule_with_an_anchor(anchor):
    z = rng.normal(size=(9, 3))
    got, _ = stepped(session_of(rule(3, anchor=anchor, dtype="float64")), z, np.zeros((3, 3)))
    np.testing.assert_array_equal(got, PLOC(3, anchor=anchor).replay(z, logits=True))


def test_the_rule_joins_onto_a_network_as_one_file():
    model = network(flat=True)
    joined = onnx.compose.merge_models(model, rule(), io_map=[("logits", "logits")])
    x = rng.normal(size=(12, 4)).astype("float32")
    (z,) = run(model, x=x)
    probs, _, kept = run(joined, ["probs", "centred", "next_state"], x=x, state=np.zeros(3))
    np.testing.assert_allclose(probs, PLOC().replay(z.astype(float)), rtol=1e-12)
    assert kept[0] == 12


def test_rules_and_states_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="classes"):
        rule(1)
    with pytest.raises(ValueError, match="dtype is 'int8'; known are float32, float64"):
        rule(dtype="int8")
    with pytest.raises(ValueError, match="anchor"):
        rule(anchor=np.nan)
    with pytest.raises(ValueError, match=r"keeps a mean, not EMA\(0.1\)"):
        state(PLOC(origin=origin.EMA(0.1)))
    with pytest.raises(TypeError, match="a PLOCProb centres a probability"):
        state(PLOCProb())


@pytest.mark.parametrize("name", ["baked", "rule"])
def test_the_files_survive_saving(tmp_path, name):
    model = bake(network(), 0.5) if name == "baked" else rule()
    onnx.save(model, tmp_path / "model.onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        onnx.checker.check_model(str(tmp_path / "model.onnx"), full_check=True)
