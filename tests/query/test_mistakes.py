"""Wrong input, in Python and on the command line: one line with the fact and the way out."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ids
from ids.cli.app import invoke
from ids.errors import IdsError

TIMES = [datetime(2024, 1, 1, second=s, tzinfo=UTC) for s in range(3)]
EVENTS = pa.table({"at": TIMES, "x": [1.5, 2.5, 4.0], "s": ["a", "b", None]})
ODD = EVENTS.append_column("tags", pa.array([["a"], ["b"], []]))
TEN_MINUTES = "RANGE INTERVAL '10' MINUTE PRECEDING SLIDE INTERVAL"


def select(
    items: str = "SUM(x)", window: str = "ORDER BY at ROWS 2 PRECEDING", where: str = "\n"
) -> str:
    return f"SELECT {items}\nFROM t {where}WINDOW w AS ({window})\nEMIT CHANGES;"


def attribute(predicate: str) -> str:
    return select(f"SHAPLEY_ATTRIBUTE(SUM(x), {predicate})")


class Mistake(NamedTuple):
    """A script that is wrong, the fact that the error states, and its place: line and column."""

    script: str
    fact: str
    at: tuple[int, int] | None
    table: pa.Table = EVENTS


MISTAKES = {
    "a sum of text": Mistake(select("SUM(s)"), "s is text", (1, 12)),
    "a number as predicate": Mistake(attribute("x"), "x is a number", (1, 34)),
    "text beside a number": Mistake(attribute("s > 1"), "s is text, 1 is a number", (1, 34)),
    "a column in double quotes": Mistake(
        attribute("\"s\" = 'a'"), "'s' = 'a' reads no column", (1, 34)
    ),
    "a counted column in double quotes": Mistake(
        select('COUNT("s")'), "'s' reads no column", (1, 14)
    ),
    "NaN": Mistake(
        select(),
        "NaN of 'x' in t, row 2",
        None,
        EVENTS.set_column(1, "x", pa.array([1.0, float("nan"), 2.0])),
    ),
    "an infinite value": Mistake(
        select(where="WHERE s IS NULL\n"),
        "an infinite value of 'x' in t, row 3",
        None,
        EVENTS.set_column(1, "x", pa.array([1.0, 2.0, float("-inf")])),
    ),
    "a sum that overflows": Mistake(
        select("SUM(x * 1e308)"), "an infinite value of 'x * 1e+308' in t, row 2", None
    ),
    "no event time": Mistake(
        select(),
        "NULL event time 'at' in t, row 3",
        None,
        EVENTS.set_column(0, "at", pa.array([*TIMES[:2], None])),
    ),
    "no event time at all": Mistake(
        select(window=f"ORDER BY at {TEN_MINUTES} '5' MINUTE"),
        "NULL event time 'at' in t, row 1",
        None,
        EVENTS.set_column(0, "at", pa.nulls(3)),
    ),
    "an event time that no clock shows": Mistake(
        select(window=f"ORDER BY at {TEN_MINUTES} '5' MINUTE"),
        "event time 'at' outside the years 1 to 9999 in t, row 2",
        None,
        EVENTS.set_column(0, "at", pa.array([0, 2**63 - 1, None], pa.timestamp("us"))),
    ),
    "an unknown table": Mistake(
        select().replace("FROM t", "FROM tt"), "unknown table 'tt'", (2, 6)
    ),
    "a table that nobody gave": Mistake(
        select().replace("FROM t", "FROM trips"), "unknown table 'trips'", (2, 6)
    ),
    "a table of an odd name": Mistake(
        select().replace("FROM t", "FROM `all trips`"), "unknown table 'all trips'", (2, 6)
    ),
    "an unknown column": Mistake(select("SUM(xx)"), "unknown column 'xx'", (1, 12)),
    "an unknown predicate": Mistake(
        "REGISTER PREDICATE region_eu AS (s = 'a') ON t;\n" + attribute("regoin_eu"),
        "unknown predicate 'regoin_eu'",
        (2, 34),
    ),
    "a predicate that nobody registered": Mistake(
        attribute("x > 1 AND NOT `night fare`"), "unknown predicate 'night fare'", (1, 48)
    ),
    "a misspelt aggregate": Mistake(
        attribute("x > 1").replace("SUM", "SMU"), "unknown aggregate 'SMU'", (1, 26)
    ),
    "a misspelt attribution": Mistake(
        attribute("x > 1").replace("SHAPLEY", "SHAPELY"),
        "unknown aggregate 'SHAPELY_ATTRIBUTE'",
        (1, 8),
    ),
    "a misspelt function": Mistake(
        attribute("LOWWER(s) = 'a'"), "unknown function 'LOWWER'", (1, 34)
    ),
    "an unknown aggregate": Mistake(select("MEDIAN(x)"), "unknown aggregate 'MEDIAN'", (1, 8)),
    "an unknown order": Mistake(
        select(window="ORDER BY att ROWS 2 PRECEDING"), "unknown column 'att'", (3, 23)
    ),
    "an unknown key": Mistake(
        select(window="PARTITION BY zone ORDER BY at ROWS 2 PRECEDING"),
        "unknown column 'zone'",
        (3, 27),
    ),
    "two columns that differ in case": Mistake(
        select(window="ORDER BY AT ROWS 2 PRECEDING"),
        "'AT' is ambiguous in t",
        (3, 23),
        EVENTS.append_column("At", EVENTS["at"]),
    ),
    "lists summed": Mistake(
        select("SUM(tags)"), "column 'tags' is a list<item: string>", (1, 12), ODD
    ),
    "lists compared": Mistake(
        attribute("Tags = 'a'"), "column 'tags' is a list<item: string>", (1, 34), ODD
    ),
    "lists registered": Mistake(
        "REGISTER PREDICATE p AS (tags IS NULL) ON t;",
        "column 'tags' is a list<item: string>",
        (1, 26),
        ODD,
    ),
    "lists as keys": Mistake(
        select(window="PARTITION BY tags ORDER BY at ROWS 2 PRECEDING"),
        "column 'tags' is a list<item: string>",
        (3, 27),
        ODD,
    ),
    "a range of numbers": Mistake(
        select(window=f"ORDER BY x {TEN_MINUTES} '5' MINUTE"),
        "RANGE must be ordered by a timestamp, 'x' is a number",
        (3, 23),
    ),
    "a slide that does not divide": Mistake(
        select(window=f"ORDER BY at {TEN_MINUTES} '3' MINUTE"),
        "a slide of 3 minutes does not divide the window of 10 minutes",
        (3, 63),
    ),
    "no rows": Mistake(
        select(window="ORDER BY at ROWS 0 PRECEDING"),
        "a count window of 0 rows with a slide of 1",
        (3, 26),
    ),
    "a sample": Mistake(
        attribute("s = 'a' APPROXIMATE USING RESERVOIR SAMPLE 20000000"),
        "a sample of 20,000,000 rows",
        (1, 77),
    ),
    "groups": Mistake(select(where="GROUP BY s\n"), "unexpected 'GROUP'", (2, 8)),
    "groups after a condition": Mistake(
        select(where="WHERE x > 1 GROUP BY s\n"), "unexpected 'GROUP'", (2, 20)
    ),
    "a bare column": Mistake(select("s, SUM(x)"), "not an aggregate: 's'", (1, 8)),
    "nothing asked": Mistake(
        "REGISTER PREDICATE p AS (x > 1) ON t;", "the script has no query", None
    ),
    "nothing at all": Mistake("-- nothing", "the script has no query", None),
    "a name twice": Mistake(
        "REGISTER PREDICATE p AS (x > 1) ON t;\nREGISTER PREDICATE P AS (x > 2) ON T;",
        "predicate 'P' is already registered on T",
        (2, 1),
    ),
    "a name dropped": Mistake(
        "REGISTER PREDICATE p AS (x > 1) ON t; DROP PREDICATE p ON t;\n" + attribute("p"),
        "unknown predicate 'p'",
        (2, 34),
    ),
    "a million characters": Mistake(
        "SELECT " + "x" * 1_000_000, f"not an aggregate: '{'x' * 40}…'", (1, 8)
    ),
    "ten thousand parentheses": Mistake(
        attribute("(" * 10_000 + "x > 1" + ")" * 10_000), "nested too deeply", (1, 233)
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_one_line_in_python(mistake: Mistake) -> None:
    message, excerpt = refused(mistake)
    fact, _, way_out = message.partition("; ")
    place = " at line {}, column {}".format(*mistake.at) if mistake.at else ""
    assert fact == mistake.fact + place
    assert way_out and "\n" not in message
    assert points(message, mistake.script, excerpt)


def refused(mistake: Mistake) -> tuple[str, str | None]:
    """What ``ids.sql`` says, and the excerpt."""
    with pytest.raises(IdsError) as caught:
        ids.sql(mistake.script, t=mistake.table)
    return str(caught.value), caught.value.excerpt


def points(message: str, script: str, excerpt: str | None) -> bool:
    """Whether an excerpt is of the line that the message names, with a caret at the column."""
    place = re.search(r"at line (\d+), column (\d+)", message)
    if place is None or excerpt is None:
        return place is None and excerpt is None
    line, column = script.split("\n")[int(place[1]) - 1], int(place[2])
    shown, caret = excerpt.split("\n")
    start = column - len(caret)  # of a long line only a part is shown
    return caret.endswith("^") and line[start:].startswith(shown.strip("…"), int(start > 0))


OPTIONS = {
    "bad_rows='DIR'": "--bad-rows DIR",
    "schema='x EPOCH_SECONDS'": "--schema 'x EPOCH_SECONDS'",
    "pass it as trips=…": "add --table trips=PATH",
    "pass it as tables={'all trips': …}": "add --table 'all trips'=PATH",
}


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """``ids run`` in an empty directory; output goes to out.parquet."""
    monkeypatch.chdir(tmp_path)

    def called(script: str, *options: str, table: str = "t.parquet") -> tuple[int, str, str]:
        Path("q.sql").write_text(script, encoding="utf-8")
        if "--engine" not in options:
            options = (*options, "--engine", "local")
        arguments = ["run", "q.sql", "--table", f"t={table}", "--output", "out.parquet", *options]
        return invoke(arguments), *capsys.readouterr()

    return called


def dedented(lines: list[str]) -> str | None:
    assert all(line.startswith("  ") for line in lines)
    return "\n".join(line[2:] for line in lines) or None


# What is wrong with a row shows while the engine runs; the rest is seen before any engine starts.
IN_ROWS = [name for name, mistake in MISTAKES.items() if ", row " in mistake.fact]


@pytest.mark.parametrize(
    ("name", "engine"),
    [*((name, "spark") for name in MISTAKES), *((name, "local") for name in IN_ROWS)],
)
def test_a_mistake_is_one_line_code_one_and_no_output_on_the_command_line(
    run: Run, name: str, engine: str, request: pytest.FixtureRequest
) -> None:
    mistake = MISTAKES[name]
    if engine == "spark":
        request.getfixturevalue("spark")
    pq.write_table(mistake.table, "t.parquet")
    code, out, err = run(mistake.script, "--engine", engine)
    # a file has a name of its own, and Parquet its own name for what is in a list
    message = refused(mistake)[0].replace("list<item:", "list<element:")
    for row in (1, 2, 3):
        message = message.replace(f"in t, row {row};", f"in t, row {row} of t.parquet;")
    for argument, option in OPTIONS.items():
        message = message.replace(argument, option)
    told, *lines = err.splitlines()
    assert (code, out, told) == (1, "", f"error: {message}")
    assert points(message, mistake.script, dedented(lines))
    assert sorted(path.name for path in Path().iterdir()) == ["q.sql", "t.parquet"]


def halved(content: bytes) -> bytes:
    return content[: len(content) // 2]


def scratched(content: bytes) -> bytes:
    """The footer is whole, the data is not."""
    return content[:4] + b"\xff" * 400 + content[404:]


@pytest.mark.parametrize("damage", [halved, scratched, lambda _: b"", lambda _: b"no parquet"])
def test_a_damaged_file_is_refused(run: Run, damage: Callable[[bytes], bytes]) -> None:
    long = {"at": list(range(5_000)), "x": [i * 0.5 for i in range(5_000)]}
    pq.write_table(pa.table(long), "t.parquet", compression="none")
    Path("t.parquet").write_bytes(damage(Path("t.parquet").read_bytes()))
    code, out, err = run(select())
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("error: ") and "t.parquet" in err
    assert not Path("out.parquet").exists()


def test_a_failed_run_leaves_an_earlier_output_as_it_was(run: Run) -> None:
    pq.write_table(EVENTS, "t.parquet")
    assert run(select()) == (0, "", "")
    before = Path("out.parquet").read_bytes()
    assert run(select("SUM(y)"))[0] == 1
    assert Path("out.parquet").read_bytes() == before


ITEMS = "SHAPLEY_ATTRIBUTE(AVG(x), s = 'a' WITH (LIFT)) AS phi, COUNT(*) AS c, SUM(x)"
EMPTY: dict[str, list[Any]] = {
    "emit_at": [],
    "n": [],
    "phi": [],
    "phi_lift": [],
    "c": [],
    "expr_3": [],
}


@pytest.mark.parametrize("emit", ["CHANGES", "FINAL"])
@pytest.mark.parametrize(
    "window", ["ROWS 2 PRECEDING", "ROWS 2 PRECEDING SLIDE 3 ROWS", f"{TEN_MINUTES} '5' MINUTE"]
)
@pytest.mark.parametrize(
    "table",
    [EVENTS.slice(0, 0), {"at": [], "x": [], "s": []}, "at,x,s\n"],
    ids=["arrow", "lists", "csv"],
)
def test_a_table_without_rows_has_no_emits_and_the_right_columns(
    tmp_path: Path, table: Any, window: str, emit: str
) -> None:
    if isinstance(table, str):
        (tmp_path / "t.csv").write_text(table)
        table = tmp_path / "t.csv"
    script = select(ITEMS, f"ORDER BY at {window}").replace("CHANGES", emit)
    found = ids.sql(script, t=table)
    assert found.to_pydict() == EMPTY
    types = [pa.timestamp("us", "UTC"), pa.int64(), *[pa.float64()] * 4]
    assert found.schema.types == types
    keyed = ids.sql(script.replace("ORDER BY at", "PARTITION BY s ORDER BY at"), t=table)
    assert keyed.column_names == ["s", *EMPTY]


def test_a_column_of_nothing_but_nulls_may_be_anything() -> None:
    table = {"at": [1, 2], "x": [1.0, 2.0], "s": [None, None]}
    script = select("SHAPLEY_ATTRIBUTE(SUM(x), s = 'a' OR s > 1), COUNT(s), SUM(s)")
    last = {"emit_at": 2, "n": 2, "expr_1": 0.0, "expr_2": 0.0, "expr_3": None}
    assert ids.sql(script, t=table).to_pylist()[-1] == last


def test_a_script_may_be_a_million_characters_long() -> None:
    many = "".join(f"REGISTER PREDICATE p{i} AS (x > {i}) ON t;\n" for i in range(2_000))
    script = "-- " + "é" * 900_000 + "\n" + many + attribute("p1 AND NOT p2")
    assert ids.sql(script, t=EVENTS)["expr_1"].to_pylist() == [1.5, 1.5, 0.0]


NAN, INF = float("nan"), float("inf")
BAD = pa.table(
    {
        "at": [*TIMES[:2], None, TIMES[2]],
        "x": [1.0, NAN, 3.0, 4.0],
        "y": [INF, 2.0, 3.0, 4.0],
        "tags": [["a"]] * 4,
    }
)


def test_bad_rows_are_set_aside_and_the_rest_is_answered(run: Run) -> None:
    pq.write_table(BAD, "t.parquet")
    code, out, err = run(select(), "--bad-rows", "bad")
    assert (code, out, err) == (0, "", "note: 2 bad rows set aside in bad\n")
    assert pq.read_table("out.parquet")["expr_1"].to_pylist() == [1.0, 5.0]
    aside = pq.read_table("bad/t.parquet")
    assert aside.column_names == ["at", "x", "y", "ids_row", "ids_reason"]
    assert aside["ids_row"].to_pylist() == ["row 2 of t.parquet", "row 3 of t.parquet"]
    assert aside["ids_reason"].to_pylist() == ["NaN of 'x'", "NULL event time 'at'"]
    assert aside["y"].to_pylist() == [2.0, 3.0]


def test_two_queries_set_every_bad_row_aside_once(tmp_path: Path) -> None:
    found = ids.sql(select() + select("SUM(y)"), t=BAD, bad_rows=tmp_path / "bad")
    assert found["expr_1"].to_pylist() == [2.0, 6.0]
    aside = pq.read_table(tmp_path / "bad" / "t.parquet")
    assert aside["ids_row"].to_pylist() == ["row 1", "row 2", "row 3"]
    assert aside["ids_reason"].to_pylist() == [
        *("an infinite value of 'y'", "NaN of 'x'", "NULL event time 'at'")
    ]


def test_a_row_bad_in_two_ways_says_both(tmp_path: Path) -> None:
    table = {"at": [1, 2], "x": [NAN, 1.0], "y": [INF, 1.0]}
    ids.sql(select() + select("SUM(y)"), t=table, bad_rows=tmp_path)
    aside = pq.read_table(tmp_path / "t.parquet")
    assert aside["ids_reason"].to_pylist() == ["NaN of 'x'; an infinite value of 'y'"]


def test_rows_set_aside_may_come_back_and_be_set_aside_again(tmp_path: Path) -> None:
    ids.sql(select(), t=BAD, bad_rows=tmp_path / "first")
    ids.sql(select(), t=tmp_path / "first" / "t.parquet", bad_rows=tmp_path / "second")
    again = pq.read_table(tmp_path / "second" / "t.parquet")
    assert again.column_names[-4:] == ["ids_row", "ids_reason", "ids_row_2", "ids_reason_2"]
    for reason in ("ids_reason", "ids_reason_2"):
        assert again[reason].to_pylist() == ["NaN of 'x'", "NULL event time 'at'"]


def test_rows_cannot_be_set_aside_where_a_file_is(run: Run) -> None:
    pq.write_table(BAD, "t.parquet")
    code, out, err = run(select(), "--bad-rows", "q.sql")
    assert (code, out, err) == (
        1,
        "",
        "error: q.sql is a file; give an existing or a new directory\n",
    )
    assert not Path("out.parquet").exists()
