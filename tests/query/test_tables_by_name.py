"""Tables by name: as keyword arguments, or in the argument ``tables``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import ids
from ids.errors import SourceError, UnknownNameError
from ids.plan.script import OPTIONS
from ids.spark.spark_run import sql as spark_sql
from ids.spark.spark_run import sql_all as spark_sql_all
from ids.spark.stream import start

SELECT = "SELECT SUM(x) AS s FROM `{}` WINDOW w AS (ORDER BY x ROWS 2 PRECEDING) EMIT CHANGES"
ROWS = {"x": [1, 2]}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ids.sql": ids.sql,
    "ids.sql_all": ids.sql_all,
    "ids.spark.sql": spark_sql,
    "ids.spark.sql_all": spark_sql_all,
    "ids.spark.start": start,
}


@pytest.mark.parametrize("name", ["seed", "tables", "output", "my table", "from", "events"])
def test_a_table_may_have_any_name(name: str) -> None:
    found = ids.sql(SELECT.format(name), tables={name: ROWS})
    assert found["s"].to_pylist() == [1.0, 3.0]
    (result,) = ids.sql_all(SELECT.format(name), tables={name: ROWS}, other=ROWS)
    assert result.table.equals(found)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_takes_tables_both_ways_and_refuses_a_table_given_twice(name: str) -> None:
    needed = {"checkpoint": "ck"} if name == "ids.spark.start" else {}
    with pytest.raises(SourceError, match=r"^table 'Events' is given twice; give it once$"):
        FUNCTIONS[name](SELECT, tables={"events": ROWS}, Events=ROWS, **needed)
    with pytest.raises(SourceError, match=r"^once=True is neither an option nor a table$"):
        FUNCTIONS[name](SELECT, events=ROWS, once=True, **needed)
    with pytest.raises(SourceError, match=r"^tables is a list, not a dict by name; give tables="):
        FUNCTIONS[name](SELECT, tables=[ROWS], **needed)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_name_that_no_keyword_can_have_is_known(name: str) -> None:
    parameters = inspect.signature(FUNCTIONS[name]).parameters.values()
    options = {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}
    assert "tables" in options and options <= OPTIONS


@pytest.mark.parametrize(
    ("name", "given"),
    [("trips", "trips=…"), ("seed", "tables={'seed': …}"), ("a b", "tables={'a b': …}")],
)
def test_a_missing_table_is_named_as_it_is_to_be_given(name: str, given: str) -> None:
    with pytest.raises(UnknownNameError, match="; pass it as ") as refused:
        ids.sql(SELECT.format(name))
    assert str(refused.value).endswith(f"pass it as {given}")
