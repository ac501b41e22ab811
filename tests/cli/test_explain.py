from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ids.cli.explain import explained, selects
from ids.language import parse
from ids.model.query import Explain, Register, Select
from tests.cli.conftest import SELECT, FakeEngine, Outcome

Call = Callable[..., Outcome]


def test_the_plan_of_every_select_is_printed(engine: FakeEngine, call: Call, script: str) -> None:
    Path(script).write_text(SELECT + "\n" + SELECT.replace("FROM t", "FROM u"))
    assert call("explain", script) == Outcome(0, "a plan for t\n\na plan for u\n\n", "")


def test_only_selects_that_have_none_get_an_explain() -> None:
    register = "REGISTER PREDICATE p AS (r = 'SELECT') ON t;"
    script = f"{register} {SELECT}-- SELECT\n  explain {SELECT}\n\n/* ; */ {SELECT} {SELECT}"
    kinds = [type(statement) for statement in parse(explained(script, selects(script)))]
    assert kinds == [Register, Explain, Explain, Explain, Explain]
    assert [type(s) for s in parse(script)].count(Select) == 3


def test_an_error_stands_where_it_was_written(call: Call, script: str) -> None:
    wrong = SELECT.replace("SUM(x)", "SUM(y)")
    Path(script).write_text(SELECT + " " + wrong)
    table = Path(script).with_name("t.csv")
    table.write_text("at,x\n2024-01-01T00:00:00Z,1\n")
    for verb in ("run", "explain"):
        _, _, err = call(verb, script, "--table", f"t={table}")
        column = len(SELECT) + 1 + wrong.index("y)") + 1
        assert err.startswith(f"error: unknown column 'y' at line 1, column {column};"), err
