from __future__ import annotations

from datetime import datetime
from textwrap import dedent

import ids

TABLE = {
    "at": [datetime(2024, 1, 1)],
    "region": ["EU"],
    "tier": ["gold"],
    "ms": [1.0],
    "my zone": ["a"],
}
REGISTER = """
REGISTER PREDICATE eu AS (region = 'EU') ON requests;
REGISTER PREDICATE `gold tier` AS (tier IN ('gold', 'platinum')) ON requests;
"""


def plan_of(select: str) -> str:
    lines: list[str] = ids.sql(REGISTER + "EXPLAIN " + select, requests=TABLE)["plan"].to_pylist()
    return "\n".join(lines)


def test_a_plan_over_rows_reads_from_top_to_bottom() -> None:
    plan = plan_of(
        """SELECT SHAPLEY_ATTRIBUTE(AVG(ms), eu WITH (SHARE, LIFT)) AS eu_ms,
        SHAPLEY_ATTRIBUTE(VAR_SAMP(ms), eu AND NOT `gold tier`), AVG(ms) AS `mean ms`
        FROM requests WHERE ms > 0
        WINDOW w AS (ORDER BY at ROWS 10000 PRECEDING) EMIT CHANGES"""
    )
    assert plan == dedent(
        """\
        read requests: at, region, tier, ms
        keep the rows where ms > 0
        window: the newest 10,000 rows, ordered by at
        refine into atoms by 2 predicates, one bit each
          bit 0: region = 'EU'
          bit 1: region = 'EU' AND tier NOT IN ('gold', 'platinum')
        keep exact sums per atom: m rows, A = Σ y, B = Σ y² of y = ms
        eu_ms = SHAPLEY_ATTRIBUTE(AVG(ms), eu) with share and lift: bit 0, marginal (registered), exact
        expr_2 = SHAPLEY_ATTRIBUTE(VAR_SAMP(ms), eu AND NOT `gold tier`): bit 1, compositional (combines registered predicates), exact
        `mean ms` = AVG(ms)
        emit one answer after every row"""  # noqa: E501
    )


def test_a_plan_over_time_says_when_it_speaks() -> None:
    plan = plan_of(
        """SELECT SHAPLEY_DELTA(COUNT(*), ms > 100 OR eu) AS slow, M4(ms) FROM requests
        WINDOW w AS (PARTITION BY `my zone`, tier ORDER BY at
        RANGE INTERVAL '1' HOUR PRECEDING SLIDE INTERVAL 90 SECONDS) EMIT CHANGES"""
    )
    assert plan == dedent(
        """\
        read requests: at, `my zone`, tier, ms, region
        window: the rows in (t - 1 hour, t] per `my zone`, tier, ordered by at
          t: every multiple of 90 seconds since 1970 UTC
        refine into atoms by 1 predicate, one bit each
          bit 0: ms > 100 OR region = 'EU'
        keep exact sums per atom: m rows
        keep exact sums per atom: m rows, Σ y … Σ y^4 of y = ms
        slow = SHAPLEY_DELTA(COUNT(*), ms > 100 OR eu): change since the previous slide, bit 0, inline (a condition of this query), exact
        expr_2 = M4(ms)
        emit one answer per key at every t whose window is not empty"""  # noqa: E501
    )


def test_a_plan_for_the_last_answer_says_so() -> None:
    plan = plan_of(
        "SELECT SUM(ms) FROM requests WINDOW w AS (PARTITION BY tier ORDER BY at ROWS 1 PRECEDING"
        " SLIDE 3 ROWS) EMIT FINAL"
    )
    assert plan == dedent(
        """\
        read requests: at, tier, ms
        window: the newest row per tier, ordered by at
        keep exact sums per atom: m rows, A = Σ y of y = ms
        expr_1 = SUM(ms)
        emit only the last answer per key"""
    )


def test_show_lists_what_is_registered_and_can_be_read_back() -> None:
    shown = ids.sql(REGISTER + "SHOW PREDICATES", requests=TABLE)
    assert shown.to_pylist() == [
        {"predicate": "eu", "table": "requests", "condition": "region = 'EU'"},
        {
            "predicate": "gold tier",
            "table": "requests",
            "condition": "tier IN ('gold', 'platinum')",
        },
    ]
    dropped = ids.sql(REGISTER + "DROP PREDICATE EU ON requests; SHOW PREDICATES", requests=TABLE)
    assert dropped["predicate"].to_pylist() == ["gold tier"]
