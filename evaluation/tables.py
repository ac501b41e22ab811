"""Records as tables, read row by row or asked in SQL, and numbers as a reader wants them."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from math import isfinite
from typing import Any

import duckdb
import pyarrow as pa

from evaluation.records import interval, kept
from evaluation.step import Repeated, Row, Value

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
_BYTES = {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10, "B": 1}
_REPEATED = "STRUCT(mean DOUBLE, low DOUBLE, high DOUBLE, samples DOUBLE[])"
_MACROS = """
    CREATE MACRO scaled(r, factor) AS repeated(list_transform(r.samples, lambda x: factor * x));
    CREATE MACRO rate(r, work) AS repeated(list_transform(r.samples, lambda x: work / x));
    CREATE MACRO over(a, b) AS
        repeated(list_transform(list_zip(a.samples, b.samples), lambda x: x[1] / x[2]));
    CREATE MACRO best(r) AS list_min(r.samples);
    CREATE MACRO middle(r) AS list_median(r.samples);
"""


def number(value: float, figures: int = 3) -> str:
    """With so many figures: 0, 1,235, 0.0123, 3.10×10⁻¹⁶."""
    if value == 0 or not isfinite(value):
        return f"{value:.0f}"
    place = int(f"{value:.{figures - 1}e}".partition("e")[2])  # of the rounded value: 9.999 is 10.0
    if place < -4 or place > 8:
        return power(value, figures)
    decimals = 0 if float(value).is_integer() else max(0, figures - 1 - place)
    return f"{value:,.{decimals}f}".replace("-", "−")


def power(value: float, figures: int = 2) -> str:
    """Always with a power of ten: 4.3×10⁵."""
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.{figures - 1}e}".split("e")
    return f"{mantissa.replace('-', '−')}×10{str(int(exponent)).translate(_RAISED)}"


def _mean(value: Repeated, figures: int = 3) -> str:
    """The mean, and half its 95 % t-interval to the same place: 4.50 ± 0.03."""
    mean, half = number(value.mean, figures), value.half_width
    if not half:
        return mean
    alike = f"{half:,.{len(mean.partition('.')[2])}f}"
    if "×" in mean or value.mean.is_integer() or not alike.strip("0.,"):
        alike = number(half, 2)
    return f"{mean} ± {alike}"


def _percent(value: float, figures: int = 3) -> str:
    near = round(100 * value)
    return f"{number(near if abs(100 * value - near) < 1e-9 else 100 * value, figures)} %"


def _in_unit(units: Mapping[str, float], value: float, figures: int = 3) -> str:
    fits = [unit for unit in units if abs(value) >= units[unit]] or list(units)[-1:]
    return f"{number(value / units[fits[0]], figures)} {fits[0]}"


FORMATS: dict[str, Callable[..., str]] = {
    "number": number,
    "power": power,
    "times": lambda value, figures=3: f"{number(value, figures)} ×",
    "percent": _percent,
    "interval": number,
    "duration": partial(_in_unit, _SECONDS),
    "bytes": partial(_in_unit, _BYTES),
}


def shown(value: Any, spec: str = "") -> str:
    """A value in a format, which may end in how many figures it has; text stays as it is."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    name = spec.rstrip("0123456789")
    given = {"figures": int(spec[len(name) :])} if spec != name else {}
    if isinstance(value, Repeated):
        if name in ("", "interval"):
            return _mean(value, **given)
        value = value.mean
    if name == "text" or not isinstance(value, int | float):
        return str(value)
    return FORMATS[name or "number"](value, **given)


class Unmeasured(LookupError):
    """No record has a table, or a column, that was asked for."""


class Tables(dict[str, list[dict[str, Any]]]):
    """The rows that the steps found, by table; a query is SQL over them.

    In SQL a quantity that was measured several times is a STRUCT of mean, low, high and samples;
    ``scaled(r, factor)``, ``rate(r, work)`` and ``over(a, b)`` are those of ``Repeated``,
    ``best(r)`` and ``middle(r)`` its least and its median, ``shown(number, 'power2')`` its text.
    What queries asked for and no record has is in ``lacking``.
    """

    def __init__(self, rows: Mapping[str, Sequence[Row]]) -> None:
        super().__init__({name: list(map(dict, some)) for name, some in rows.items() if some})
        self.lacking: set[str] = set()
        self._duck = duckdb.connect(config={"python_enable_replacements": False})
        self._duck.create_function("repeated", _repeated, ["DOUBLE[]"], _REPEATED)
        self._duck.create_function("shown", shown, ["DOUBLE", "VARCHAR"], "VARCHAR")
        self._duck.execute(_MACROS)
        for name, some in self.items():
            self.load(name, some)

    def __missing__(self, name: str) -> list[dict[str, Any]]:
        raise Unmeasured(f"no record has a table {name}")

    def load(self, name: str, rows: Sequence[Row]) -> None:
        """One more table, for queries alone."""
        names = dict.fromkeys(key for row in rows for key in row)
        columns = {key: pa.array([kept(row.get(key)) for row in rows]) for key in names}
        self._duck.from_arrow(pa.table(columns)).create(name)

    def where(self, name: str, **equal: object) -> list[dict[str, Any]]:
        """The rows of a table whose columns have these values."""
        return [row for row in self[name] if all(row.get(k) == v for k, v in equal.items())]

    def select(self, query: str) -> list[dict[str, Any]]:
        """What a query answers, row by row."""
        names, rows = self._ask(query)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def answer(self, query: str) -> tuple[list[str], list[list[Value]]]:
        """The names of its columns, which may be alike, and rows: none where no record has them."""
        try:
            return self._ask(query)
        except Unmeasured as error:
            self.lacking.add(str(error))
            return [], []

    def value(self, query: str) -> Value:
        """The one value that a query answers; None where there is none."""
        values = [value for row in self.answer(query)[1] for value in row]
        if len(values) > 1:
            raise ValueError(f"a query of one value answers more: {query.strip()}")
        return values[0] if values else None

    def _ask(self, query: str) -> tuple[list[str], list[list[Value]]]:
        try:
            asked = self._duck.execute(query)
        except duckdb.Error as error:
            said = str(error).partition("\n")[0]
            if "Table with name" in said or "Referenced column" in said or "a column named" in said:
                raise Unmeasured(said) from error
            raise ValueError(f"{said} in: {query.strip()}") from error
        names = [column[0] for column in asked.description or ()]
        return names, [list(map(_value, row)) for row in asked.fetchall()]


def _repeated(samples: Sequence[float]) -> dict[str, Any]:
    return interval(Repeated.of(samples))


def _value(value: Any) -> Value:
    if isinstance(value, dict):
        return Repeated.of(value["samples"])
    return float(value) if isinstance(value, Decimal) else value
