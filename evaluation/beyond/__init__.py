"""Beyond the paper: atom fan-out, scale on Spark, reproducible bits, late rows, the taxi months."""

from evaluation.beyond import bits, fanout, figures, late, scaling, showing, taxi
from evaluation.chapter import Chapter, Section, Tables
from evaluation.size import Size
from evaluation.step import Step

__all__ = ["CHAPTER"]


def _steps(size: Size) -> list[Step]:
    # Scaling comes last, when Java has run for a while: it compiles what runs often.
    parts = (fanout, bits, late, taxi, scaling)
    return [step for part in parts for step in part.steps(size)]


def _show(tables: Tables) -> Section:
    return Section.joined([fanout.show(tables), showing.show(tables)])


CHAPTER = Chapter(
    "beyond",
    "Beyond the paper",
    "Does it hold where the paper does not look: with many atoms, on Spark over cores and rows, "
    "however rows are cut or delayed, and on real months?",
    _steps,
    _show,
    (*fanout.FIGURES, *figures.FIGURES),
)
