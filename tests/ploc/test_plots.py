import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ploc.plots import Chart, count, ticks


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 9))
def test_ticks_are_even_round_and_inside(low, length, about):
    found = ticks(low, low + length, about)
    steps = np.diff(found)
    if len(found) > 2:
        assert steps == pytest.approx(steps[0], rel=1e-6, abs=1e-9)
        assert f"{steps[0]:.0e}"[0] in "125"
    assert all(low - 1e-6 * length <= t <= low + length * (1 + 1e-6) for t in found)
    assert len(found) <= 2.5 * about + 2


def test_values_fall_where_the_axes_say():
    chart = Chart("c", (0, 10), (-1, 1), width=400, height=270)
    assert (chart.px(0), chart.px(10)) == (chart.left, 400 - chart.right)
    assert (chart.py(-1), chart.py(1)) == (270 - chart.bottom, chart.top)
    assert chart.py(0) == (chart.py(-1) + chart.py(1)) / 2


def test_a_picture_is_sound_xml_and_escapes_what_it_is_given():
    chart = Chart('<"&', (0, 1), (0, 0), "<x>", "&y").line([0, 0.5, 1], [0, float("nan"), 1], "ploc")
    chart.steps(np.array([0.0, 0.5, 1.0]), np.array([1.0, 2.0]), "source").dot(0, 0, "truth", tip="<b>")
    root = ET.fromstring(chart.rule(x=0.5).rule(y=0.0).text(0, 0, "<").segment((0, 1), (0, 1), "ref").svg())
    assert root.get("aria-label") == '<"&'
    path = next(p.get("d") for p in root.iter("path") if "line" in p.get("class"))
    assert re.sub(r"[-\d. ]+", "", path) == "MM"  # a value that isn't there breaks the line


def test_counts_are_short():
    assert [count(v) for v in (0, 950, 1500, 2_000_000)] == ["0", "950", "1.5k", "2M"]
