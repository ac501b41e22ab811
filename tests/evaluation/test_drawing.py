from __future__ import annotations

from itertools import combinations, pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from evaluation.drawing import (
    INK,
    STYLES,
    _apart,
    canvas,
    label_lines,
    plot,
    styled,
    svg,
)
from evaluation.step import Repeated


def drawn() -> Figure:
    with styled():
        drawing, (axes,) = canvas()
        plot(axes, [1.0, 10.0], [Repeated((1.0, 2.0)), Repeated((1.0, 9.0))], STYLES[0])
        plot(axes, [1.0, 10.0], [1.5, 2.5], STYLES[1])
        axes.set(xscale="log", yscale="log")
        ends = [(10.0, 5.0, "one", "#c08a20"), (10.0, 5.1, "two", "black"), (10.0, 2.5, "3", "red")]
        label_lines(axes, ends)
    return drawing


def luminance(color: str) -> float:
    """Relative luminance, from 0 to 1, as WCAG 2 defines it."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in to_rgb(color)
    ]
    return float(np.dot((0.2126, 0.7152, 0.0722), linear))


def contrast(color: str) -> float:
    return 1.05 / (luminance(color) + 0.05)


def lightness(color: str) -> float:
    """How light a colour is in grey, from 0 for black to 100 for white (CIE L*)."""
    return float(116 * luminance(color) ** (1 / 3) - 16)


def test_any_two_styles_are_told_apart_in_grey_by_dash_and_by_marker() -> None:
    for one, other in combinations(STYLES, 2):
        assert abs(lightness(one["color"]) - lightness(other["color"])) >= 6.9
        assert one["linestyle"] != other["linestyle"]
        assert one["marker"] != other["marker"]


def test_every_style_stands_out_from_white_and_ours_is_the_darkest() -> None:
    assert all(contrast(style["color"]) >= 3 for style in STYLES)
    assert min(STYLES, key=lambda style: lightness(style["color"])) is STYLES[0]


def test_names_of_lines_can_be_read_on_white() -> None:
    for style in STYLES:
        assert contrast(INK.get(style["color"], style["color"])) >= 4.5


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
    assert labels[0].get_color() == INK["#c08a20"]


def test_the_band_of_an_interval_below_zero_has_a_place_on_a_logarithmic_axis() -> None:
    (axes,) = drawn().axes
    (band,) = axes.collections
    heights = [np.asarray(path.vertices)[:, 1] for path in band.get_paths()]
    assert min(map(np.min, heights)) == pytest.approx(0.5)


def test_equal_figures_are_equal_bytes_without_a_date_and_without_fonts() -> None:
    one, other = svg(drawn), svg(drawn)
    assert one == other
    assert "<dc:date>" not in one
    names = {node.tag.rpartition("}")[2] for node in ElementTree.fromstring(one).iter()}
    assert "text" not in names
