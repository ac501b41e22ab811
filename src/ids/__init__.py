"""IDS: exact Shapley attribution of continuous aggregates to predicates, over sliding windows.

>>> import ids
>>> events = {"t": [1, 2, 3], "region": ["EU", "US", "EU"], "latency": [10.0, 20.0, 60.0]}
>>> ids.sql(
...     "SELECT SHAPLEY_ATTRIBUTE(SUM(latency), region = 'EU') AS eu FROM events "
...     "WINDOW w AS (ORDER BY t ROWS 2 PRECEDING) EMIT CHANGES",
...     events=events,
... )["eu"].to_pylist()
[10.0, 10.0, 60.0]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ids import spark
from ids.errors import IdsError
from ids.lazy import lazy

if TYPE_CHECKING:
    __version__: str
    from ids.engine import Engine
    from ids.model import Attribution, Changelog, CountWindow, Promotion, Sampling, TimeWindow
    from ids.query import Result, sql, sql_all

__all__ = [
    "Attribution",
    "Changelog",
    "CountWindow",
    "Engine",
    "IdsError",
    "Promotion",
    "Result",
    "Sampling",
    "TimeWindow",
    "spark",
    "sql",
    "sql_all",
]

_find, _names = lazy(__name__)


def __dir__() -> list[str]:
    return sorted({*_names(), "__version__"})


def __getattr__(name: str) -> Any:
    return _version() if name == "__version__" else _find(name)


def _version() -> str:
    """Return the version of the installed package; looking it up takes milliseconds."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = globals()["__version__"] = version("ids-engine")
    except PackageNotFoundError:
        raise AttributeError(
            "ids.__version__ is unknown: the package ids-engine is not installed; run pip install ."
        ) from None
    return found
