"""Every error is one line: the fact, its position, and the remedy."""

from __future__ import annotations

import pytest

from ids.errors import IdsError, ScriptError, UnknownNameError
from ids.language import parse, parse_aggregate, parse_predicate

TAIL = "FROM t WINDOW w AS (ORDER BY ts ROWS 5 PRECEDING) EMIT CHANGES"


def frame(text: str) -> str:
    return f"SELECT SUM(x) FROM t\nWINDOW w AS ({text})\nEMIT CHANGES"


def refused(script: str) -> str:
    with pytest.raises(ScriptError) as caught:
        parse(script)
    message = str(caught.value)
    assert "\n" not in message
    return message


MISTAKES = {
    f"SELECT\n    MEDIAN(x) AS m {TAIL}": "unknown aggregate 'MEDIAN' at line 2, column 5; known: "
    "SUM, COUNT, AVG, VAR_POP, VAR_SAMP, M3, M4",
    f"SELECT SHAPLEY_ATRIBUTE(SUM(x), p) {TAIL}": "unknown aggregate 'SHAPLEY_ATRIBUTE' at line 1, "
    "column 8; did you mean 'SHAPLEY_ATTRIBUTE'?",
    "SELCT SUM(x)": "unknown statement 'SELCT' at line 1, column 1; did you mean 'SELECT'?",
    f"SELECT region {TAIL}": "not an aggregate: 'region' at line 1, column 8; known: SUM",
    f"SELECT * {TAIL}": "unexpected '*' at line 1, column 8; expected an aggregate",
    f"SELECT SUM(*) {TAIL}": "unexpected '*' at line 1, column 12; expected a value",
    f"SELECT SUM(x) total {TAIL}": "unexpected 'total' at line 1, column 15; expected AS",
    f"SELECT SHAPLEY_ATTRIBUTE(SUM(x)) {TAIL}": "unexpected ')' at line 1, column 32; expected ','",
    f"SELECT SHAPLEY_ATTRIBUTE(SUM(x), ) {TAIL}": "unexpected ')' at line 1, column 34; expected a "
    "predicate",
    f"SELECT SHAPLEY_ATTRIBUTE(SUM(x), a b) {TAIL}": "unexpected 'b' at line 1, column 36; expected"
    " an operator",
    f"SELECT SHAPLEY_ATTRIBUTE(SUM(x), a WITH (SHARE, LEFT)) {TAIL}": "unexpected 'LEFT' at line 1,"
    " column 49; expected SHARE or LIFT",
    f"SELECT SHAPLEY_ATTRIBUTE(SUM(x), a WITH (LIFT, lift)) {TAIL}": "LIFT is repeated at line 1, "
    "column 48",
    f"SELECT SHAPLEY_DELTA(SUM(x), a WITH (LIFT)) {TAIL}": "SHAPLEY_DELTA does not take WITH "
    "at line 1, column 32",
    f"SELECT SHAPLEY_ATTRIBUTE(SUM(x), a APPROXIMATE USING RESERVOIR SAMPLE 0) {TAIL}": "a sample "
    "of 0 rows at line 1, column 71",
    f"SELECT SHAPLEY_ATTRIBUTE(SUM(x), a APPROXIMATE USING RESERVOIR SAMPLE 1.5) {TAIL}": "unexpect"
    "ed '1.5' at line 1, column 71; expected the size of the sample",
    f"SELECT SHAPLEY_DELTA(SUM(x), a APPROXIMATE USING RESERVOIR SAMPLE 9 CONFIDENCE 95) {TAIL}": ""
    "a confidence of 95 at line 1, column 80; choose a number between 0 and 1",
    f"SELECT SUM(x) AS a,\n  AVG(x) AS A {TAIL}": "column name 'A' is already used for "
    "item 1 at line 2, column 3",
    f"SELECT SUM(x) AS n {TAIL}": "column name 'n' is already used for the number of rows at",
    f"SELECT SUM(x) AS Emit_At {TAIL}": "column name 'Emit_At' is already used for the emit's time",
    f"SELECT SHAPLEY_ATTRIBUTE(SUM(x), p WITH (SHARE)) AS a, SUM(x) AS a_share {TAIL}": "column "
    "name 'a_share' is already used for item 1 at line 1, column 56",
    f"SELECT SUM(x), SUM(y) AS expr_1 {TAIL}": "column name 'expr_1' is already used",
    frame("PARTITION BY k ORDER BY ts ROWS 5 PRECEDING").replace("SUM(x)", "SUM(x) AS k"): "column "
    "name 'k' is already used for a PARTITION BY column at line 1, column 8",
    frame("PARTITION BY n ORDER BY ts ROWS 5 PRECEDING"): "PARTITION BY 'n' clashes",
    frame("ORDER BY ts ROWS 5 PRECEEDING"): "unexpected 'PRECEEDING' at line 2, column 33; expected"
    " PRECEDING",
    frame(
        "ORDER BY ts DESC ROWS 5 PRECEDING"
    ): "ORDER BY … DESC at line 2, column 26; windows move",
    frame("ORDER BY ts ROWS 0 PRECEDING"): "a count window of 0 rows with a slide of 1 at line 2, "
    "column 26; both must be at least 1",
    frame("ORDER BY ts ROWS UNBOUNDED PRECEDING"): "unexpected 'UNBOUNDED' at line 2, column 31; "
    "expected a number of rows",
    frame("ORDER BY ts ROWS 5 PRECEDING SLIDE INTERVAL '1' DAY"): "SLIDE INTERVAL with ROWS at line"
    " 2, column 49",
    frame("ORDER BY ts RANGE INTERVAL '1' HOUR PRECEDING"): "RANGE without a slide at line 2, colum"
    "n 26; add SLIDE INTERVAL",
    frame("ORDER BY ts RANGE INTERVAL '1' HOUR PRECEDING SLIDE 5 ROWS"): "unexpected '5' at line 2,"
    " column 66; expected INTERVAL",
    frame("ORDER BY ts RANGE INTERVAL '1' HOUR PRECEDING SLIDE INTERVAL 7 MINUTES"): "a slide of "
    "7 minutes does not divide the window of 1 hour at line 2, column 60; choose a slide",
    frame("ORDER BY ts RANGE INTERVAL '1' MONTH PRECEDING SLIDE INTERVAL '1' MONTH"): "unknown unit"
    " of time 'MONTH' at line 2, column 45",
    frame("ORDER BY ts RANGE INTERVAL '-inf' HOUR PRECEDING SLIDE INTERVAL 1 HOUR"): "not a dura"
    "tion: '-inf' at line 2, column 41",
    frame("ROWS 5 PRECEDING"): "unexpected 'ROWS' at line 2, column 14; expected PARTITION BY or "
    "ORDER BY",
    "SELECT SUM(x) FROM t EMIT CHANGES": "unexpected 'EMIT' at line 1, column 22; expected WINDOW",
    "SELECT SUM(x) FROM t\nWINDOW w AS (ORDER BY ts ROWS 5 PRECEDING);": "missing EMIT at line 2, "
    "column 43; end the query with EMIT CHANGES or EMIT FINAL",
    frame("ORDER BY ts ROWS 5 PRECEDING")
    + " NOW": "unexpected 'NOW' at line 3, column 14; expecte",
    "SELECT SUM(x) FROM t WINDOW w AS (ORDER BY ts ROWS 5 PRECEDING) EMIT ALL": "unexpected 'ALL' a"
    "t line 1, column 70; expected CHANGES or FINAL",
    "REGISTER PREDICATE p AS (a = 1) ON t\nSELECT": "unexpected 'SELECT' at line 2, column 1; "
    "expected ';'",
    "REGISTER PREDICATE p AS region = 'EU' ON t": "unexpected 'region' at line 1, column 25; expec"
    "ted '('",
    "REGISTER PREDICATE from AS (a) ON t": "unexpected keyword 'from' at line 1, column 20; expecte"
    "d the predicate's name",
    frame('PARTITION BY "k" ORDER BY ts ROWS 5 PRECEDING'): "unexpected text 'k' at line 2, column "
    "27; did you mean `k`? Quotes are for text, backticks for names",
    frame("ORDER BY 'ts' ROWS 5 PRECEDING"): "unexpected text 'ts' at line 2, column 23; did you "
    "mean `ts`?",
    f'SELECT SUM(x) AS "total" {TAIL}': "unexpected text 'total' at line 1, column 18; did you "
    "mean `total`?",
    "DROP PREDICATE p": "unexpected end at line 1, column 17; expected ON",
    "EXPLAIN SHOW PREDICATES": "unexpected 'SHOW' at line 1, column 9; expected SELECT",
    "/* a\n b */ SHOW /* c": "unterminated comment at line 2, column 12; expected '*/'",
    "SHOW\n 'PREDICATES": "unterminated string at line 2, column 2; expected ' at the end",
    "SHOW\x00": "invalid character '\\x00' at line 1, column 5; a script must be",
    "SHOW \ud800": "invalid character '\\ud800' at line 1, column 6",
    "SHOW 🙂": "unexpected '🙂' at line 1, column 6; a name with such characters needs backticks",
}


@pytest.mark.parametrize("script", MISTAKES)
def test_a_mistake_is_told_with_its_place_and_the_way_out(script: str) -> None:
    message = refused(script)
    assert message.startswith(MISTAKES[script]), message


CONDITIONS = {
    "": "unexpected end at line 1, column 1; expected a condition",
    "a =": "unexpected end at line 1, column 4; expected a value",
    "a = AND b": "unexpected 'AND' at line 1, column 5; expected a value",
    "a\n  AND": "unexpected end at line 2, column 6; expected a value",
    "(a = 1": "'(' is never closed at line 1, column 1",
    "a = 1)": "unexpected ')' at line 1, column 6; there is no matching '('",
    "1 < x < 10": "unexpected second comparison '<' at line 1, column 7; join comparisons with AND",
    "a IN (b)": "'b' is not a literal at line 1, column 7; IN takes literals",
    "a IN ()": "unexpected ')' at line 1, column 7; expected a value",
    "a IN 1": "unexpected '1' at line 1, column 6; expected '('",
    "a IS 1": "unexpected '1' at line 1, column 6; expected NULL, TRUE or FALSE after IS",
    "a NOT 1": "unexpected '1' at line 1, column 7; expected IN, LIKE or BETWEEN after NOT",
    "a BETWEEN 1": "BETWEEN without AND at line 1, column 3",
    "a BETWEEN b = c AND 2": "unexpected second comparison '=' at line 1, column 13; join",
    "a BETWEEN 1 AND NOT b": "unexpected 'NOT' at line 1, column 17; expected a value (put NOT",
    "a IS NULL + 1": "unexpected '+' at line 1, column 11; expected AND or OR (or put the test",
    "a IS NULL = b": "unexpected second comparison '=' at line 1, column 11; join comparisons",
    "a LIKE b": "the pattern of LIKE is not a string at line 1, column 1",
    "a RLIKE 'b'": "'RLIKE' is not supported in an expression at line 1, column 3",
    "CAST(a AS INT)": "'CAST' is not supported in an expression at line 1, column 1",
    "CASE WHEN a THEN b END": "'CASE' is not supported in an expression at line 1, column 1",
    "a || b": "'||' is not supported in an expression at line 1, column 3",
    "t.a = 1": "unexpected '.' after 't' at line 1, column 2; write only the column's name",
    '"t"."a" = 1': "'.' is not supported in an expression at line 1, column 4; write only the",
    "REVERSE(a)": "unknown function 'REVERSE' at line 1, column 1; known: ABS, FLOOR, CEIL, SQRT, "
    "LOWER, UPPER, TRIM, LENGTH, HOUR, MINUTE, DAYOFWEEK, DAY, MONTH, YEAR, COALESCE",
    "ABS()": "unexpected ')' at line 1, column 5; expected an argument for ABS",
    "ABS(a, b)": "2 arguments for 'ABS' at line 1, column 1; ABS takes one",
    "a > 9223372036854775808": "integer out of range: 9223372036854775808 at line 1, column 5",
    "a > 5e": "not a number: '5e' at line 1, column 5",
    "a > 1.5x": "unexpected '1.5x' at line 1, column 5; a name with such characters needs",
    "a > 1e999": "number out of range: 1e999 at line 1, column 5",
    "a > DATE 'soon'": "not a date: 'soon' at line 1, column 5; write it as '2026-01-31'",
    "a > TIMESTAMP '0001-01-01 00:00:00+14:00'": "not a timestamp: ",
    "a = '\\uD800'": "invalid escape '\\\\uD800' at line 1, column 5",
    "a = window": "unexpected 'window' at line 1, column 5; expected a value (a column of",
    "`` = 1": "empty name `` at line 1, column 1",
    "a {# b": "unexpected '{#' at line 1, column 3",
    "a = NOT b": "unexpected 'NOT' at line 1, column 5; expected a value",
    "a; b": "';' is not supported in an expression at line 1, column 2",
}


@pytest.mark.parametrize("text", CONDITIONS)
def test_a_wrong_condition_is_told_with_its_place(text: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse_predicate(text)
    assert str(caught.value).startswith(CONDITIONS[text])


def test_an_error_carries_its_position_and_hint_as_values() -> None:
    with pytest.raises(UnknownNameError) as caught:
        parse("SHOW PREDICATES;\n SELET")
    assert caught.value.at == (2, 2)
    assert caught.value.hint == "did you mean 'SELECT'?"


@pytest.mark.parametrize("text", ["", "AVG(", "AVG(x) y", "(AVG)", "MEDIAN", "AVG x", "'AVG'"])
def test_a_wrong_aggregate_is_refused(text: str) -> None:
    with pytest.raises(IdsError):
        parse_aggregate(text)


def test_a_script_that_is_no_text_is_refused() -> None:
    with pytest.raises(ScriptError, match="a script must be text, not bytes"):
        parse(b"SHOW PREDICATES")  # type: ignore[arg-type]
