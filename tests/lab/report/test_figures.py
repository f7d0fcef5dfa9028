"""Every figure of the report: drawn from what was run, legible, the same bytes each time, no colour alone."""

import math
import re
from itertools import pairwise

import matplotlib as mpl
import polars as pl
import pytest
from matplotlib.colors import to_hex

from ploc_lab.report import figures, vision
from ploc_lab.study.grid import BACKBONES, TREES

OTHERS = {"vision_accuracy"}  # images: test_vision.py


@pytest.fixture(scope="module")
def drawn(reports):
    return reports["printed"].drawn


@pytest.fixture(scope="module")
def run(reports):
    return reports["run"].drawn


def words(figure) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", figures.svg(figure))


def test_every_figure_is_drawn_from_one_of_the_two(drawn, run):
    assert {*drawn, *run} == set(figures.ALL) - OTHERS
    assert {"batch_sizes", "prior_shift", "drift_bound", "recovery", "cost", "tradeoff", "gains"} <= set(run)
    assert "differences" not in run, "nothing of the paper's data was run"
    assert set(figures.CAPTIONS) == set(figures.ALL)


def test_every_figure_has_text_marks_and_a_legend_or_labels(drawn, run):
    for figure in [*drawn.values(), *run.values()]:
        said = words(figure)
        assert len(said) > 5, said
        assert any(letter.isalpha() for word in said for letter in word)
        marks = [line for axis in figure.axes for line in axis.lines if len(line.get_xdata()) > 0]
        assert marks


def test_nothing_is_smaller_than_it_can_be_read(drawn, run):
    for figure in [*drawn.values(), *run.values()]:
        sizes = [float(s) for s in re.findall(r"font(?:-size)?: ([\d.]+)px", figures.svg(figure))]
        assert min(sizes) >= 7


def test_the_numbers_of_an_axis_stand_beside_each_other(drawn, run):
    for name, figure in [*drawn.items(), *run.items()]:
        with mpl.rc_context(figures.STYLE):
            figure.canvas.draw()
        for axis in figure.axes:
            low, high = sorted(axis.get_xlim())
            ticks = [t for t in axis.get_xticklabels() if low <= t.get_position()[0] <= high and t.get_text()]
            boxes = [t.get_window_extent() for t in ticks if t.get_visible() and axis.axison]
            boxes.sort(key=lambda box: box.x0)
            assert all(a.x1 < b.x0 for a, b in pairwise(boxes)), name


def test_the_same_cells_give_the_same_bytes(study, run, tmp_path):
    again = figures.draw(study.gathered)
    one, two = (figures.save({"gains": f["gains"]}, tmp_path / str(k)) for k, f in enumerate((run, again)))
    assert [p.name for p in one] == ["gains.svg", "gains.png"]
    assert [p.read_bytes() for p in one] == [p.read_bytes() for p in two]
    assert one[1].read_bytes().startswith(b"\x89PNG")


def test_no_two_lines_of_a_legend_look_alike_without_their_colour(drawn, run):
    for name, figure in [*drawn.items(), *run.items()]:
        for legend in figure.legends:
            looks = [
                (line.get_marker(), line.get_linestyle(), to_hex(line.get_markerfacecolor()) == "#ffffff",
                 line.get_markerfacecolor() == "none")
                for line in legend.get_lines()
            ]  # fmt: skip
            assert len(looks) == len(set(looks)), (name, [t.get_text() for t in legend.get_texts()])


def test_methods_that_share_a_figure_look_different():
    for shown in (figures.COMPARED, ("source", *figures.COMPARED)):
        looks = [figures.LOOKS[name] for name in shown]
        assert len({(look.marker, look.colour) for look in looks}) == len(looks)
        assert len({look.marker for look in looks}) == len(looks)
    backbones = [figures.BACKBONE_LOOKS[name] for name in (*BACKBONES, *TREES)]
    assert len({look.marker for look in backbones}) == len(backbones)


def test_differences_are_ours_less_the_papers(drawn, world):
    (axis, *_) = drawn["differences"].axes
    points = [x for line in axis.lines for x in line.get_xdata() if line.get_marker() == "s"]
    assert points
    assert max(abs(x) for x in points if not math.isnan(x)) < 1e-9  # the world's means are the printed ones
    moved = world.with_columns(
        pl.when(pl.col("method") == "source").then(pl.col("accuracy") + 0.1).otherwise("accuracy")
        .alias("accuracy")
    )  # fmt: skip
    (axis, *_) = figures.differences(moved).axes
    points = [x for line in axis.lines for x in line.get_xdata() if line.get_marker() == "s"]
    assert sum(abs(x - 0.1) < 1e-9 for x in points) == len(BACKBONES)


def test_better_is_right_of_the_line(world):
    for axis in figures.gains(world).axes:
        line = next(x for x in axis.lines if x.get_marker() == "o")
        heloc = [x for x, y in zip(*line.get_data(), strict=True) if y > 3.9]
        if axis.get_title() != "AUROC":
            assert len(heloc) == 5
            assert all(x > 0 for x in heloc), axis.get_title()


@pytest.mark.parametrize("asked", [
    {"method": ["ploc"]}, {"backbone": ["lightgbm"]}, {"dataset": ["simulation"]}, {"batch": [8]},
    {"method": ["nothing"]},
])  # fmt: skip
def test_part_of_a_study_makes_part_of_the_figures(study, world, asked):
    for cells in (study.gathered, world):
        part = cells.filter(pl.all_horizontal(pl.col(c).is_in(v) for c, v in asked.items()))
        assert set(figures.draw(part)) <= set(figures.ALL)


def test_the_vision_figure_is_one_of_them():
    assert figures.ALL["vision_accuracy"] is vision.accuracy
