from __future__ import annotations

import json
from itertools import count
from pathlib import Path

from evaluation.benchmarks.record import markdown, measure, write


def test_contenders_take_turns_after_a_warm_up_and_are_kept(tmp_path: Path) -> None:
    calls: list[str] = []
    ticks = count()
    record = measure(
        "pair",
        {"ours": lambda: calls.append("ours"), "theirs": lambda: calls.append("theirs")},
        rows=10,
        repetitions=2,
        clock=lambda: float(next(ticks)),
        window=5,
    )
    assert calls == ["ours", "theirs"] * 3
    assert record["contenders"]["theirs"] == {
        "best_s": 1.0,
        "median_s": 1.0,
        "rows_per_s": 10.0,
        "ratio": 1.0,
    }
    assert json.loads(write(record, tmp_path).read_text("utf-8")) == record
    assert record["window"] == 5
    assert "| ours | 1.000 s | 1.000 s | 10 | 1.00 × |" in markdown(record)
