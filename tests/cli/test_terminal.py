from __future__ import annotations

import io
import time

import pyarrow as pa
import pytest
from rich.console import Console

from ids.cli.terminal import Bar, cells, emit_table


def printed(table: pa.Table, width: int = 80, last: int | None = 20) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(emit_table(table, width, last))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 22.123456], ["1.000", "22.123"]),
        ([0.0], ["0.0000"]),
        ([1e-9, -2.5e-7], ["1.0000e-09", "-2.5000e-07"]),
        ([1e15], ["1.0000e+15"]),
        ([123456.7], ["123,457"]),
        ([float("nan"), 1.0], ["nan", "1.0000"]),
        ([1234, None], ["1,234", "NULL"]),
        ([True, None], ["True", "NULL"]),
        (["a\x1b[31m", "b"], ["a·[31m", "b"]),
    ],
)
def test_a_column_is_spelt_alike(values: list[object], expected: list[str]) -> None:
    assert cells(pa.chunked_array([pa.array(values)])) == expected


@pytest.mark.parametrize(
    ("micros", "expected"),
    [
        ([0, 1_000_000], ["1970-01-01 00:00:00", "1970-01-01 00:00:01"]),
        ([0, 1_500], ["1970-01-01 00:00:00.000000", "1970-01-01 00:00:00.001500"]),
        ([2_000, None], ["1970-01-01 00:00:00.002", "NULL"]),
    ],
)
def test_instants_are_as_exact_as_they_must_be(
    micros: list[int | None], expected: list[str]
) -> None:
    for zone in (None, "UTC", "Asia/Tokyo"):
        array = pa.array(micros, pa.timestamp("us", zone))
        assert cells(pa.chunked_array([array])) == expected


def test_no_digit_is_cut_on_a_narrow_screen() -> None:
    names = [f"aratherlongname{i}" for i in range(5)]
    at = pa.array([0], pa.timestamp("us", "UTC"))
    table = pa.table({"emit_at": at, **{name: [12345.678] for name in names}})
    lines = printed(table, width=57)
    assert max(len(line.rstrip()) for line in lines) == 57
    text = "\n".join(lines)
    assert all(name in text for name in names)
    assert text.count("12,346") == 5
    assert text.count("1970-01-01 00:00:00") == text.count("emit_at") == 3
    assert "…" not in text


def test_a_long_name_is_folded_at_its_underscores() -> None:
    lines = printed(pa.table({"eu_attribution_share": [1.5], "eu_attr": [2.5]}))
    assert [line.split() for line in lines[:3]] == [["eu_"], ["attribution_"], ["share", "eu_attr"]]


def test_markup_in_the_data_is_data() -> None:
    assert "[bold]x[/bold]" in "\n".join(printed(pa.table({"s": ["[bold]x[/bold]"]})))


def test_no_emits_are_said_to_be_none() -> None:
    assert printed(EMPTY)[-1].strip() == "no emits"


EMPTY = pa.table({"emit_at": pa.array([], pa.timestamp("us")), "x": pa.array([], pa.float64())})


def bar_on_a_terminal(patience: float) -> tuple[Bar, io.StringIO]:
    file = io.StringIO()
    return Bar(Console(file=file, force_terminal=True, width=80), patience), file


def wait_for(text: str, file: io.StringIO) -> None:
    deadline = time.monotonic() + 10
    while text not in file.getvalue():
        assert time.monotonic() < deadline, file.getvalue()
        time.sleep(0.01)


def test_the_bar_appears_when_work_is_long_and_goes_when_it_is_done() -> None:
    bar, file = bar_on_a_terminal(patience=0.0)
    for _ in range(2):  # a second statement gets a bar of its own
        bar.start()
        wait_for("starting", file)
        bar(6_000, 10_000)
        wait_for("6,000 of 10,000", file)
        bar.clear()
        assert file.getvalue().endswith("\x1b[2K")
        file.truncate(0)


def test_short_work_has_no_bar() -> None:
    bar, file = bar_on_a_terminal(patience=60.0)
    bar.start()
    bar(6, 10)
    bar.clear()
    bar._appear()  # a timer that was too late to be cancelled
    assert file.getvalue() == ""


def test_there_is_no_bar_without_a_terminal() -> None:
    console = Console(file=io.StringIO())
    assert isinstance(console.file, io.StringIO)
    bar = Bar(console, patience=0.0)
    bar.start()
    bar(1, 10)
    bar.clear()
    assert console.file.getvalue() == ""
