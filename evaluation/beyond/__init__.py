"""Beyond the paper: atom fan-out, reproducible bits, late rows, taxi months, indexes, Spark."""

from evaluation.beyond import bits, fanout, index, spark
from evaluation.step import Chapter, Size, Step


def _steps(size: Size) -> list[Step]:
    # How Spark scales comes last, when Java has run for a while: it compiles what runs often.
    parts = (fanout, index, bits, spark)
    return [step for part in parts for step in part.steps(size)]


CHAPTER = Chapter("beyond", _steps)
