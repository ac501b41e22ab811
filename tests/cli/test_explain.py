from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import SELECT, Outcome

Call = Callable[..., Outcome]


def test_the_plan_of_every_select_is_printed(call: Call, script: str) -> None:
    """Of those that have an EXPLAIN already, too, once."""
    other = SELECT.replace("FROM t", "FROM u")
    Path(script).write_text(f"{SELECT} EXPLAIN {other} SHOW PREDICATES; {other}")
    table = Path(script).with_name("t.csv")
    table.write_text("at,x\n2024-01-01T00:00:00Z,1\n")
    declared = ("--table", "u=kafka://host/u", "--schema", "u=at TIMESTAMP, x INT")
    code, out, err = call("explain", script, "--table", f"t={table}", *declared)
    assert (code, err) == (0, "")
    plans = [plan.splitlines() for plan in out.removesuffix("\n\n").split("\n\n")]
    assert [plan[0] for plan in plans] == [
        "read t: at, x",
        "read u: at, x",
        "read u: at, x",
    ]
    assert plans[0][1:] == plans[1][1:] == plans[2][1:]


def test_an_error_stands_where_it_was_written(call: Call, script: str) -> None:
    wrong = SELECT.replace("SUM(x)", "SUM(y)")
    Path(script).write_text(SELECT + " " + wrong)
    table = Path(script).with_name("t.csv")
    table.write_text("at,x\n2024-01-01T00:00:00Z,1\n")
    for verb in (["run", "--format", "table"], ["explain"]):
        _, _, err = call(*verb, script, "--table", f"t={table}")
        column = len(SELECT) + 1 + wrong.index("y)") + 1
        assert err.startswith(f"error: unknown column 'y' at line 1, column {column};"), err
