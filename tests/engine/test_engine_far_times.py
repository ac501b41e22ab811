"""Event times at the ends of 64 bits: nothing wraps around."""

from __future__ import annotations

import pytest

import ids

END = 2**63


@pytest.mark.parametrize("slide", [None, 5])
def test_a_window_at_either_end_of_64_bits_holds_the_rows_it_should(slide: int | None) -> None:
    for first in (-END, END - 20):
        engine = ids.Engine(ids.TimeWindow(10, slide), value="x", order_by="t")
        engine.register("all", "x > 0")
        times: list[int] = []
        for tick in (0, 1, 6, 9, 10, 12):
            times.append(first + tick)
            engine.ingest({"t": times[-1:], "x": [1.0]})
            now = -(-times[-1] // (slide or 1)) * (slide or 1)
            inside = [t for t in times if now - 10 < t <= now]
            assert engine.attribute("COUNT", "all").n == len(inside)


def test_a_row_is_late_by_its_distance_only() -> None:
    engine = ids.Engine(ids.TimeWindow(10), value="x", order_by="t", lateness=5)
    engine.register("all", "x > 0")
    engine.ingest({"t": [2 - END, -END], "x": [1.0, 1.0]})
    assert engine.attribute("COUNT", "all").n == 2
    engine.ingest({"t": [END - 1, -END, END - 6], "x": [1.0, 1.0, 1.0]})
    assert engine.attribute("COUNT", "all").n == 2
