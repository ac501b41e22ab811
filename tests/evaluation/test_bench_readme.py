from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evaluation.benchmarks.readme import BEGIN, END, README, block_of, render, updated

MACHINE = {"cores": 2, "platform": "Linux x86_64", "python": "3.11.7"}


def keep(directory: Path, name: str, **facts: Any) -> None:
    record = {"name": name, "machine": MACHINE, **facts}
    (directory / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")


def test_the_numbers_in_the_readme_are_those_of_the_records() -> None:
    written = block_of(README.read_text(encoding="utf-8"))
    assert written == render(), "run python -m evaluation.benchmarks.readme"


def test_a_record_that_is_missing_has_no_line(tmp_path: Path) -> None:
    assert "make bench" in render(tmp_path)
    keep(
        tmp_path,
        "continuous",
        rows=1000,
        window=10,
        predicates=4,
        contenders={"IDS": {"best_s": 0.002}, "Other": {"best_s": 3.0}},
    )
    lines = render(tmp_path).splitlines()
    assert len(lines) == 5
    assert "| 2 ms | Other: 3 s | 1,500 × | [bench_continuous.py]" in lines[2]
    assert lines[4].endswith("A ratio above 1 means that IDS is faster.")


def test_a_ratio_is_the_others_time_over_ours(tmp_path: Path) -> None:
    questions = [
        {"question": "bare Python function, after a slide", "p50_us": 0.5},
        {"question": "registered, after a slide, K = 4", "p50_us": 8.0},
        {"question": "registered, after a slide, K = 64", "p50_us": 10.0},
        {"question": "bare Python function, again and again", "p50_us": 0.5},
    ]
    keep(tmp_path, "question", questions=questions)
    table = render(tmp_path)
    assert "K = 64 | 10 µs | bare Python function: 500 ns | 0.05 × |" in table
    assert "K = 4 |" not in table


def test_only_what_stands_between_the_markers_is_rewritten() -> None:
    text = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    fresh = updated(text, "new")
    assert fresh == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    assert block_of(fresh) == "new"
    assert updated(fresh, "new") == fresh
