"""Every origin against its definition written out plainly, and the laws that all of them share."""

import json
import math
from fractions import Fraction
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ploc import PLOC, origin

KINDS = [
    origin.Mean(),
    origin.EMA(0.01),
    origin.EMA(1.0),
    origin.Window(1),
    origin.Window(7),
    origin.Huber(2.5),
    origin.ZScore(),
    origin.Median(),
]
streams = st.lists(st.floats(-1e6, 1e6), max_size=60)


def by_definition(kind, past):
    """(shift, scale) after the logits `past`, as the paper and its ablation define it."""
    if not past:
        return 0.0, 1.0
    match kind:
        case origin.Mean():
            return float(sum(map(Fraction, past)) / len(past)), 1.0
        case origin.EMA():
            mu = past[0]
            for z in past[1:]:
                mu = (1 - kind.alpha) * mu + kind.alpha * z
            return mu, 1.0
        case origin.Window():
            last = past[-kind.rows :]
            return float(sum(map(Fraction, last)) / len(last)), 1.0
        case origin.Huber():
            mu = 0.0
            for t, z in enumerate(past, 1):
                mu += max(-kind.tau, min(kind.tau, z - mu)) / t
            return mu, 1.0
        case origin.ZScore():
            sd = float(np.std(past)) if len(past) > 1 else 1.0
            return float(np.mean(past)), max(sd, 1e-6)
        case origin.Median():
            return median(past), 1.0


@pytest.mark.parametrize("kind", KINDS, ids=repr)
@given(stream=streams)
def test_it_is_what_its_definition_says(kind, stream):
    running = kind.fresh()
    for t, z in enumerate(stream):
        shift, scale = by_definition(kind, stream[:t])
        size = max(map(abs, stream[:t]), default=0.0)
        assert running.shift == pytest.approx(shift, rel=1e-9, abs=1e-12 + 1e-14 * size)
        assert running.scale == pytest.approx(scale, rel=1e-6, abs=1e-6 + 1e-7 * size)
        running.push(z)
    assert running.count == len(stream)


@pytest.mark.parametrize("kind", KINDS, ids=repr)
@given(stream=streams, cut=st.integers(0, 60))
def test_trail_is_pushing_to_the_last_bit_wherever_the_stream_is_cut(kind, stream, cut):
    pushed, trailed = kind.fresh(), kind.fresh()
    shifts, scales = [], []
    for z in stream:
        shifts.append(pushed.shift)
        scales.append(pushed.scale)
        pushed.push(z)
    z = np.array(stream, dtype=np.float64)
    parts = [trailed.trail(z[:cut]), trailed.trail(z[cut:])]
    assert np.concatenate([shift for shift, _ in parts]).tolist() == shifts
    if kind == origin.ZScore():
        assert np.concatenate([scale for _, scale in parts]).tolist() == scales
    assert trailed.dump() == pushed.dump()


@pytest.mark.parametrize("kind", KINDS, ids=repr)
@given(stream=streams)
def test_its_state_goes_through_json_and_goes_on(kind, stream):
    running = kind.fresh()
    running.trail(np.array(stream, dtype=np.float64))
    restored = kind.fresh()
    restored.load(json.loads(json.dumps(running.dump())))
    for z in (0.1, -3.7, 2.2):
        assert (restored.count, restored.shift, restored.scale) == (
            running.count,
            running.shift,
            running.scale,
        )
        restored.push(z)
        running.push(z)


@pytest.mark.parametrize("kind", [k for k in KINDS if k.mergeable], ids=repr)
@given(stream=streams, cut=st.integers(0, 60))
def test_merged_shards_are_the_whole_stream(kind, stream, cut):
    whole, left, right = kind.fresh(), kind.fresh(), kind.fresh()
    z = np.array(stream, dtype=np.float64)
    whole.trail(z)
    left.trail(z[:cut])
    right.trail(z[cut:])
    left.merge(right)
    assert left.count == whole.count
    assert left.shift == pytest.approx(whole.shift, rel=1e-12, abs=1e-8)
    assert left.scale == pytest.approx(whole.scale, rel=1e-6, abs=1e-3)


@pytest.mark.parametrize("kind", [k for k in KINDS if not k.mergeable], ids=repr)
def test_origins_that_depend_on_the_order_refuse_to_merge(kind):
    with pytest.raises(ValueError, match="depend on the order of the stream and do not merge"):
        kind.fresh().merge(kind.fresh())


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_columns_are_origins_side_by_side(kind):
    Z = np.random.default_rng(1).normal(size=(50, 3))
    row = origin.columns(kind, 3)
    shifts, scales = row.trail(Z)
    for k in range(3):
        single = kind.fresh()
        expected = single.trail(Z[:, k].copy())
        assert shifts[:, k].tolist() == expected[0].tolist()
        if scales is not None:
            assert scales[:, k].tolist() == expected[1].tolist()
        assert row.shift[k] == single.shift
    pushed = origin.columns(kind, 3)
    for z in Z:
        pushed.push(z)
    assert pushed.dump() == row.dump()


def test_a_kind_is_a_value_that_using_does_not_move():
    kind = origin.EMA(0.5)
    c = PLOC(origin=kind)
    c.observe([1.0, 2.0, 3.0])
    assert kind.count == 0
    assert c.origin == origin.EMA(0.5) != origin.EMA(0.25)
    assert len({origin.EMA(0.5), origin.EMA(0.5), origin.Mean()}) == 2


def test_sums_close_a_block_alike_in_push_and_trail():
    z = np.random.default_rng(2).normal(3, 1, size=2 * origin.BLOCK + 11)
    pushed, trailed = origin.Mean(), origin.Mean()
    for value in z.tolist():
        pushed.push(value)
    trailed.trail(z[:100])
    trailed.trail(z[100:])
    assert trailed.sums == pushed.sums
    assert pushed.sums[3] != 0.0
    assert origin.BLOCK - 1 == 0xFFFF  # the literal in PLOC.step


def test_blocks_keep_the_mean_of_equal_logits_where_one_running_sum_loses_it():
    n, z = 10**7, 0.1
    blocked = origin.Mean()
    chunk = np.full(10**6, z)
    for _ in range(n // len(chunk)):
        blocked.trail(chunk)
    assert abs(blocked.shift - z) < 1e-13
    assert abs(np.cumsum(np.full(n, z))[-1] / n - z) > 1e-12


def test_after_1e8_logits_the_mean_is_right_to_1e_10():
    running = origin.Mean()
    chunk = np.random.default_rng(3).normal(-1.1, 3.0, size=10**6)
    for _ in range(100):
        running.trail(chunk)
    assert running.count == 10**8
    assert abs(running.shift - math.fsum(chunk) / 10**6) < 1e-10


@settings(max_examples=30)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40), st.floats(0.1, 5))
def test_one_logit_moves_huber_by_no_more_than_tau_over_t(stream, tau):
    running = origin.Huber(tau)
    for t, z in enumerate(stream, 1):
        before = running.shift
        running.push(z)
        assert abs(running.shift - before) <= tau / t + 1e-12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: origin.EMA(0.0), r"alpha must lie in \(0, 1\], got 0.0"),
        (lambda: origin.Window(0), "whole number from 1, got 0"),
        (lambda: origin.Window(2.5), "whole number from 1, got 2.5"),
        (lambda: origin.Huber(-1.0), "tau must be a positive number, got -1.0"),
        (lambda: origin.Mean().load({"count": -1}), "count -1; it must be a whole number from 0"),
        (lambda: origin.Mean().load({"count": 1, "part": math.nan, "total": 0.0}), "part nan"),
        (lambda: origin.Median().load({"logits": 3}), "logits 3; it must be a list"),
        (
            lambda: origin.Window(2).load({"count": 9, "block": [1.0, 2.0], "older": []}),
            r"none of Window\(2\)",
        ),
        (lambda: origin.from_dict({"kind": "Mode"}), "state names the origin 'Mode'; there are Mean"),
        (lambda: origin.from_dict({"kind": "EMA", "params": {"beta": 1}}), "the origin EMA the parameters"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
