"""Columns in the type they are declared, as Spark SQL; ``ids.source.conversion`` in process.

A value that does not fit reads NULL. A column of ours beside it (UNFIT) says which it was, so that
the row is bad for a query that reads the column, and for no other.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ids.exact import Program
from ids.model.table import FIRST_INSTANT, LAST_INSTANT, Kind
from ids.predicates.epochs import micros_of
from ids.source.conversion import (
    BLANKS,
    FALSE,
    SPELLINGS,
    TRUE,
    epoch_bounds,
    fitting_types,
    kind_of_type,
)
from ids.source.declared import EPOCHS, unfit_reason
from ids.spark.sources.canonical import instant, spell, with_zone
from ids.spark.sources.origin import beside, mark_of
from ids.spark.typed import UNFIT, Typed, typed_value

__all__ = ["retyped"]


def retyped(data: DataFrame, columns: Mapping[str, str], place: str) -> DataFrame:
    """The rows at ``place``, with ``columns`` in their declared types."""
    if not columns:
        return data
    fields = data.schema.fields
    own = {f.name: f"c{number}" for number, f in enumerate(fields) if mark_of(f) is None}
    given = {f.name: typed_value(own[f.name], f.dataType) for f in fields if f.name in own}
    known = {name: typed for name, typed in given.items() if typed is not None}
    held = {name: typed.kind for name, typed in known.items()}
    placed = data.toDF(*(f"c{number}" for number in range(len(fields))))
    chosen = [F.col(f"c{number}").alias(f.name) for number, f in enumerate(fields)]
    for name, type_ in fitting_types(columns, held, place).items():
        if held[name] is Kind.NUMBER or held[name] is not kind_of_type(type_):
            number = int(own[name][1:])
            placed, value, reason = _converted(placed, number, name, known[name], type_)
            chosen[number] = F.expr(value).alias(name)
            chosen.append(beside(own, F.expr(reason), UNFIT + name))
    return placed.select(*chosen)


def _converted(
    data: DataFrame, number: int, name: str, typed: Typed, type_: str
) -> tuple[DataFrame, str, str]:
    """``data`` with what is needed beside it; the value in the type, and why there is none."""
    held, text = f"ids_held{number}", f"ids_text{number}"
    is_text = typed.kind is Kind.TEXT
    trimmed = f"nullif(trim(BOTH {spell(BLANKS)} FROM {typed.text}), '')" if is_text else "''"
    data = data.selectExpr("*", f"{typed.text} AS {held}", f"{trimmed} AS {text}")
    if typed.kind is None:
        value = f"CAST(NULL AS {'TIMESTAMP' if type_ in EPOCHS else type_})"
    elif type_ in EPOCHS:
        data, value = _instants(data, number, typed, type_)
    else:
        value = _of_text(text, type_) if is_text else _of_number(held, typed.whole, type_)
    before, after = map(spell, unfit_reason(name, type_))
    reason = f"concat({before}, cast({held} as string), {after})"
    present = f"{held} IS NOT NULL AND {text} IS NOT NULL"
    return data, value, f"if({present} AND ({value}) IS NULL, {reason}, NULL)"


def _of_text(text: str, type_: str) -> str:
    """A trimmed text as a value of the type, NULL where it is none."""
    if type_ == "BOOLEAN":
        true, false = (", ".join(map(spell, words)) for words in (TRUE, FALSE))
        lower = f"lower({text})"
        return f"CASE WHEN {lower} IN ({true}) THEN true WHEN {lower} IN ({false}) THEN false END"
    if type_ == "TIMESTAMP":
        local = instant(f"try_cast({text} AS TIMESTAMP_NTZ)")
        zoned = f"WHEN {_like(text, 'ZONED')} THEN {with_zone(text)}"
        return f"CASE {zoned} WHEN {_like(text, 'LOCAL')} THEN {local} END"
    return f"CASE WHEN {_like(text, type_)} THEN try_cast({text} AS {type_}) END"


def _like(text: str, spelling: str) -> str:
    return f"{text} RLIKE {spell(SPELLINGS[spelling])}"


def _of_number(held: str, whole: bool, type_: str) -> str:
    if type_ == "DOUBLE" or whole:
        return f"cast({held} as {type_})"
    inside = f"abs({held}) < 9223372036854775808D AND {held} = rint({held})"
    return f"CASE WHEN {inside} THEN cast({held} as bigint) END"


def _instants(data: DataFrame, number: int, typed: Typed, type_: str) -> tuple[DataFrame, str]:
    """Numbers since 1970 as instants: whole ones as they are, the others to the nearest µs."""
    least, largest = epoch_bounds(type_)
    factor = 1_000_000 // EPOCHS[type_]
    whole, double = f"ids_held{number}", f"ids_held{number}"
    if typed.kind is Kind.TEXT:
        text = f"ids_text{number}"
        whole, double = _of_text(text, "BIGINT"), _of_text(text, "DOUBLE")
    elif typed.whole:
        double = "CAST(NULL AS DOUBLE)"
    else:
        whole = "CAST(NULL AS BIGINT)"
    exact, broken, near = (f"ids_{each}{number}" for each in ("whole", "double", "near"))
    data = data.selectExpr("*", f"{whole} AS {exact}", f"{double} AS {broken}")
    inside = f"{broken} BETWEEN {least}D AND {largest + 1}D"
    data = data.selectExpr("*", f"CASE WHEN {inside} THEN {broken} ELSE 0D END AS {near}")
    program = Program(f"ids_stage{number}_")
    micros = micros_of(program.column(near), EPOCHS[type_]).text
    for stage in program.stages():
        data = data.selectExpr("*", *(f"{text} AS {name}" for name, text in stage))
    times = f"CASE WHEN {exact} BETWEEN {least}L AND {largest}L THEN {exact} * {factor}L END"
    within = f"{inside} AND {micros} BETWEEN {FIRST_INSTANT}L AND {LAST_INSTANT}L"
    rounded = f"CASE WHEN {within} THEN {micros} END"
    return data, f"timestamp_micros(if({exact} IS NOT NULL, {times}, {rounded}))"
