from __future__ import annotations

import csv
import io
import json
import math
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation import records
from evaluation.records import keep, keep_all
from evaluation.report import Comparison
from evaluation.step import Repeated, Row, in_turns
from evaluation.tables import number, power, shown
from ids.errors import SinkError

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | st.integers() | st.text() | FLOATS
MEASURED = st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=5).map(Repeated.of)
ROWS = st.lists(st.dictionaries(st.text(), SCALARS | MEASURED), max_size=4)
FACTS = {"step": "rq1-a", "skipped": None, "fingerprint": {"size": "full"}}


@settings(max_examples=60)
@given(st.dictionaries(st.text(min_size=1), ROWS, max_size=3))
def test_a_record_is_read_as_it_was_written(findings: dict[str, list[Row]]) -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "new" / "rq1-a.json"
        records.write(path, FACTS, findings)
        assert records.read(path) == {**FACTS, "findings": findings}
        assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_half_a_record_is_none(tmp_path: Path) -> None:
    path = tmp_path / "rq1-a.json"
    records.write(path, FACTS, {"rq1_t": [{"a": Repeated((1.0, 2.0))}]})
    whole = path.read_bytes()
    for length in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:length])
        assert records.read(path) is None
    assert records.read(tmp_path / "absent.json") is None
    path.write_text('{"findings": {"rq1_t": [{"a": {"mean": 1}}]}}', encoding="utf-8")
    assert records.read(path) is None


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, np.float64("nan"), Repeated((1.0, math.nan))]
)
def test_a_finding_that_is_no_number_is_refused(value: float, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a finding must be a number, and a is"):
        records.write(tmp_path / "rq1-a.json", FACTS, {"rq1_t": [{"a": value}]})
    assert list(tmp_path.iterdir()) == []


def test_numpys_scalars_are_kept_as_plain_ones(tmp_path: Path) -> None:
    path = tmp_path / "rq1-a.json"
    records.write(path, FACTS, {"rq1_t": [{"n": np.int64(3), "x": np.float64(0.1)}]})  # type: ignore[dict-item]
    assert json.loads(path.read_text("utf-8"))["findings"] == {"rq1_t": [{"n": 3, "x": 0.1}]}


def test_csv_has_the_interval_of_what_was_repeated() -> None:
    rows: list[Row] = [{"a": 'x,"y"', "t": Repeated((1.0, 3.0))}, {"a": None, "b": True}]
    read = list(csv.DictReader(io.StringIO(records.csv_text(rows))))
    assert list(read[0]) == ["a", "t", "t_low", "t_high", "t_repetitions", "b"]
    assert read[0]["a"] == 'x,"y"'
    assert [float(read[0][name]) for name in ("t", "t_low", "t_high")] == pytest.approx(
        [2, 2 - 12.7062, 2 + 12.7062], abs=1e-4
    )
    assert read[0]["t_repetitions"] == "2"
    assert read[1] == {
        "a": "",
        "t": "",
        "t_low": "",
        "t_high": "",
        "t_repetitions": "",
        "b": "True",
    }


def test_a_file_is_the_old_one_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = keep(tmp_path / "report.html", "old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(SinkError, match=r"cannot write .*report\.html: .*No space left on device"):
        keep(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_only_files_of_a_chapter_go_when_they_are_stale(tmp_path: Path) -> None:
    mine = ("rq2_old.csv", "rq3-older.csv")
    others = ("prices.csv", "rq22_x.csv", "rq2_old.txt", "my_rq2_notes.csv")
    for name in (*mine, *others):
        (tmp_path / name).write_text("old", encoding="utf-8")
    keep_all(tmp_path, ".csv", {"rq2_new": "new"})
    assert {path.name for path in tmp_path.iterdir()} == {*others, "rq2_new.csv"}
    keep_all(tmp_path, ".csv", {})
    assert {path.name for path in tmp_path.iterdir()} == set(others)


def test_the_interval_is_students() -> None:
    five = Repeated((1.0, 2.0, 3.0, 4.0, 5.0))
    assert five.half_width == pytest.approx(2.776445 * math.sqrt(2.5 / 5), rel=1e-6)
    assert (five.mean, five.median, five.best) == (3.0, 3.0, 1.0)
    assert Repeated((7.0,)).half_width == 0


@given(MEASURED, st.floats(1e-3, 1e3))
def test_another_unit_scales_the_mean_and_the_interval(value: Repeated, factor: float) -> None:
    scaled = value.scaled(factor)
    assert scaled.mean == pytest.approx(factor * value.mean, rel=1e-9, abs=1e-9 * factor * 1e100)
    assert scaled.half_width >= 0


def test_a_ratio_is_taken_repetition_by_repetition() -> None:
    assert Repeated((2.0, 9.0)).over(Repeated((1.0, 3.0))).samples == (2.0, 3.0)
    with pytest.raises(ValueError, match="zip"):
        Repeated((1.0,)).over(Repeated((1.0, 2.0)))


def test_contenders_take_turns_after_a_warm_up() -> None:
    calls: list[str] = []
    ticks = count()
    spent = in_turns(
        {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")},
        2,
        lambda: float(next(ticks)),
    )
    assert "".join(calls) == "ababab"
    assert spent == {"a": Repeated((1.0, 1.0)), "b": Repeated((1.0, 1.0))}


@pytest.mark.parametrize(
    ("paper", "ours", "better", "verdict"),
    [
        (10.0, 9.0, "lower", "better"),
        (10.0, 10.4, "lower", "equal"),
        (10.0, 10.6, "lower", "worse"),
        (10.0, 11.0, "higher", "better"),
        (10.0, 9.0, "higher", "worse"),
        (10.0, 12.4, "same", "equal"),
        (10.0, 7.0, "same", "worse"),
        (0.0, 0.0, "lower", "equal"),
        (0.0, 1e-16, "lower", "worse"),
        (-2.0, -3.0, "lower", "better"),
        (None, 1.0, "lower", ""),
        (1.0, None, "lower", ""),
    ],
)
def test_the_verdict_is_that_of_the_numbers(
    paper: float | None, ours: float | None, better: str, verdict: str
) -> None:
    assert Comparison("x", paper, ours, better).verdict == verdict
    assert Comparison("x", paper, ours, better, incomparable="why").verdict == ""


@given(FLOATS.filter(bool), FLOATS)
def test_what_is_better_one_way_is_worse_the_other(paper: float, ours: float) -> None:
    low, high = (Comparison("x", paper, ours, b).verdict for b in ("lower", "higher"))
    opposite = {"better": "worse", "worse": "better", "equal": "equal"}
    assert high == opposite[low]


@pytest.mark.parametrize(
    ("paper", "ours", "ratio"),
    [(4.0, 1.0, 0.25), (0.0, 1.0, None), (4.0, None, None), (4.0, 0.0, None)],
)
def test_a_ratio_needs_both_numbers_and_neither_0(
    paper: float, ours: float | None, ratio: float | None
) -> None:
    assert Comparison("x", paper, ours).ratio == ratio


RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def read(text: str) -> float:
    mantissa, _, exponent = text.replace(",", "").replace("−", "-").partition("×10")
    return float(f"{mantissa}e{exponent.translate(RAISED) or 0}")


@given(st.floats(-1e300, 1e300).filter(lambda value: abs(value) > 1e-300))
def test_a_number_is_right_to_its_figures(value: float) -> None:
    assert read(number(value)) == pytest.approx(value, rel=5.1e-3)
    assert read(power(value, 3)) == pytest.approx(value, rel=5.1e-3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (shown(9.999, "number"), "10.0"),
        (shown(1234.56), "1,235"),
        (shown(0.01234), "0.0123"),
        (shown(3.1e-16), "3.10×10⁻¹⁶"),
        (shown(7), "7"),
        (shown(1234.5, "power3"), "1.23×10³"),
        (shown(True), "yes"),
        (shown(None, "number"), "–"),
        (shown("a", "number"), "a"),
        (shown(0.05, "percent"), "5 %"),
        (shown(Repeated((4.5, 4.504))), "4.50 ± 0.03"),
        (shown(99_999.6, "number"), "100,000"),
        (shown(0.00099999, "number"), "0.00100"),
        (shown(1e9, "number"), "1.00×10⁹"),
        (shown(-4.3e-12, "power"), "−4.3×10⁻¹²"),
        (shown(0.5, "times"), "0.500 ×"),
        (shown(0.0123, "percent"), "1.23 %"),
        (shown(1.5e-9, "duration"), "1.50 ns"),
        (shown(0.0, "duration"), "0 ns"),
        (shown(0.0123, "duration"), "12.3 ms"),
        (shown(1536, "bytes"), "1.50 KiB"),
        (shown(0, "bytes"), "0 B"),
        (shown(Repeated((1.0, 2.0, 3.0))), "2 ± 2.5"),
        (shown(Repeated((4.0, 4.5))), "4.25 ± 3.18"),
    ],
)
def test_a_number_is_shown_as_a_reader_wants_it(text: str, expected: str) -> None:
    assert text == expected
