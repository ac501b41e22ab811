"""A Spark table as IDS sees it: every column under a number and in one of four types.

Numbers become BIGINT or DOUBLE, texts STRING, truths BOOLEAN, instants BIGINT (µs since 1970 UTC,
whatever the session's time zone). That is what the in-process engine computes with, too.

Columns are called ``c0``, ``c1``, … from here on, and whatever we add ``ids_…``. So no name of the
user's can clash with ours, and names that differ only in case stay apart in any session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from ids.model.table import Misread
from ids.plan import Schema, just_text
from ids.source.memory import article
from ids.source.table import REPEATED
from ids.spark.sources.origin import mark_of, with_origin
from ids.spark.typed import UNFIT, Typed, quoted, typed_value, unfit_of
from ids.spark.watermark import watermarks_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

__all__ = ["Frame", "Typed", "numbered", "quoted", "unfit_of"]


@dataclass(frozen=True, slots=True)
class Frame:
    """A table's rows, the columns IDS reads of it, and why it does not read the others.

    data         columns ``c0``, ``c1``, … and those that our own sources add (``ids_origin``)
    columns      by the names that users know, as SQL over ``data``
    unsupported  by the names that users know
    watermarks   the columns that a stream's user has put a watermark on, and its delay in ms
    misread      tells of a column of text what it seems to have been meant for
    """

    data: DataFrame
    columns: dict[str, Typed]
    unsupported: dict[str, str]
    watermarks: dict[str, int] = field(default_factory=dict)
    misread: Callable[[str], Misread | None] = just_text

    @classmethod
    def of(cls, data: DataFrame) -> Frame:
        """Take a DataFrame by its schema; no job runs."""
        columns: dict[str, Typed] = {}
        unsupported: dict[str, str] = {}
        taken: dict[str, Column] = {}
        unfit: dict[str, str] = {}
        fields = data.schema.fields
        repeated = {name for name, times in Counter(f.name for f in fields).items() if times > 1}
        for number, given in enumerate(fields):
            name, mark = numbered(number), mark_of(given)
            typed = typed_value(name, given.dataType)
            if mark is not None and mark.startswith(UNFIT):
                unfit[mark.removeprefix(UNFIT)] = name
            elif mark is not None:
                taken.setdefault(mark, F.col(name).alias(mark))
            elif given.name in repeated:
                unsupported[given.name] = REPEATED
            elif typed is None:
                unsupported[given.name] = _described(given.dataType)
            else:
                columns[given.name] = replace(typed, text=name)
                taken[name] = F.expr(typed.text).alias(name)
        for own, name in unfit.items():
            reason = unfit_of(columns[own])
            taken[reason] = F.col(name).alias(reason)
        placed = data.toDF(*(numbered(number) for number in range(len(fields))))
        return cls(placed.select(*taken.values()), columns, unsupported, watermarks_of(data))

    def placed(self) -> Frame:
        """The same rows, each with its origin: where it stood in the input."""
        return replace(self, data=with_origin(self.data))

    @property
    def schema(self) -> Schema:
        """What a plan needs to know; a column of Spark's VOID holds nothing."""
        kinds = {name: typed.kind for name, typed in self.columns.items()}
        return Schema(kinds, self.unsupported, self.misread)


def numbered(number: int) -> str:
    """The column that is number ``number`` of a table's own."""
    return f"c{number}"


def _described(type_: DataType) -> str:
    """A type IDS does not read, in the words of the in-process reader where it has them."""
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        return article(str(to_arrow_type(type_)))
    except PySparkException:
        return article(type_.simpleString())
