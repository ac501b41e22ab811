"""Random queries over random tables: the engine against the oracle, and against itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import ids
from tests.engine.sql_agreement import assert_right, expected
from tests.engine.sql_queries import REGISTER, REGISTERED, arrow, queries, tables


@given(rows=tables(), data=st.data())
def test_every_emit_is_what_the_oracle_says(rows: list[dict], data: st.DataObject) -> None:
    query = data.draw(queries(len(rows)))
    script = REGISTER + str(query)
    assert_right(ids.sql(script, t=arrow(rows)), expected(script, rows, REGISTERED))
