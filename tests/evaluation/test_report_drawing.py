from __future__ import annotations

from itertools import combinations, pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from evaluation.drawing import (
    STYLES,
    _apart,
    _luminance,
    canvas,
    ink,
    label_lines,
    lightness,
    plot,
    styled,
    svg,
)
from evaluation.repeated import Repeated


def drawn() -> Figure:
    with styled():
        drawing, (axes,) = canvas()
        plot(axes, [1.0, 10.0], [Repeated((1.0, 2.0)), Repeated((1.0, 9.0))], STYLES[0])
        plot(axes, [1.0, 10.0], [1.5, 2.5], STYLES[1])
        axes.set(xscale="log", yscale="log")
        ends = [(10.0, 5.0, "one", "#c08a20"), (10.0, 5.1, "two", "black"), (10.0, 2.5, "3", "red")]
        label_lines(axes, ends)
    return drawing


def test_any_two_styles_are_told_apart_in_grey_by_dash_and_by_marker() -> None:
    for one, other in combinations(STYLES, 2):
        assert abs(lightness(one["color"]) - lightness(other["color"])) >= 6.9
        assert one["linestyle"] != other["linestyle"]
        assert one["marker"] != other["marker"]


def test_every_style_stands_out_from_white_and_ours_is_the_darkest() -> None:
    assert all(1.05 / (_luminance(style["color"]) + 0.05) >= 3 for style in STYLES)
    assert min(STYLES, key=lambda style: lightness(style["color"])) is STYLES[0]


def test_lightness_goes_from_black_to_white() -> None:
    assert lightness("black") == 0
    assert lightness("white") == pytest.approx(100)
    assert lightness("#777777") == pytest.approx(50, abs=0.5)


@given(st.tuples(*[st.integers(0, 255)] * 3))
def test_ink_can_be_read_on_white_and_dark_colours_stay(parts: tuple[int, int, int]) -> None:
    color = "#{:02x}{:02x}{:02x}".format(*parts)
    assert 1.05 / (_luminance(ink(color)) + 0.05) >= 4.5
    assert ink(ink(color)) == ink(color)


HEIGHTS = st.lists(st.floats(0, 300), min_size=1, max_size=12)


@given(HEIGHTS)
def test_names_are_moved_apart_and_keep_their_order(heights: list[float]) -> None:
    moved = _apart(heights, 10, floor=-1000)
    order = sorted(range(len(heights)), key=heights.__getitem__)
    assert all(moved[b] - moved[a] >= 10 - 1e-6 for a, b in pairwise(order))
    assert sum(moved) == pytest.approx(sum(heights), abs=1e-6)


@given(HEIGHTS)
def test_no_name_is_moved_below_the_floor(heights: list[float]) -> None:
    moved = _apart(heights, 10, floor=0)
    assert min(moved) >= 5 - 1e-6
    assert all(b - a >= 10 - 1e-6 for a, b in pairwise(sorted(moved)))


def test_names_that_are_far_apart_stay_where_they_are() -> None:
    assert _apart([100.0, 50.0, 200.0], 10, floor=0) == [100, 50, 200]


def test_labels_do_not_lie_on_one_another_and_can_be_read() -> None:
    drawing = drawn()
    drawing.draw_without_rendering()
    (axes,) = drawing.axes
    labels = [child for child in axes.get_children() if isinstance(child, Annotation)]
    boxes = [label.get_window_extent() for label in labels]
    assert len(boxes) == 3
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert labels[0].get_color() == ink("#c08a20")


def test_the_band_of_an_interval_below_zero_has_a_place_on_a_logarithmic_axis() -> None:
    (axes,) = drawn().axes
    (band,) = axes.collections
    heights = [np.asarray(path.vertices)[:, 1] for path in band.get_paths()]
    assert min(map(np.min, heights)) == pytest.approx(0.5)


def test_equal_figures_are_equal_bytes_without_a_date_and_without_fonts() -> None:
    one, other = svg(drawn()), svg(drawn())
    assert one == other
    assert "<dc:date>" not in one
    names = {node.tag.rpartition("}")[2] for node in ElementTree.fromstring(one).iter()}
    assert "text" not in names
