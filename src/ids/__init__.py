"""IDS: which predicates account for a continuous aggregate, exactly, while the window is open.

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

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ids.errors import IdsError

if TYPE_CHECKING:
    __version__: str
    from ids import spark
    from ids.engine import Engine, Result, sql, sql_all
    from ids.model.attribution import Attribution
    from ids.model.promotion import Promotion
    from ids.model.sampling import Sampling
    from ids.model.window import Changelog, CountWindow, TimeWindow

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

# Loaded on first use, so that ``import ids`` costs next to nothing.
_HOMES = {
    "Attribution": "ids.model.attribution",
    "Changelog": "ids.model.window",
    "CountWindow": "ids.model.window",
    "Engine": "ids.engine",
    "Promotion": "ids.model.promotion",
    "Result": "ids.engine",
    "Sampling": "ids.model.sampling",
    "TimeWindow": "ids.model.window",
    "sql": "ids.engine",
    "sql_all": "ids.engine",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def __getattr__(name: str) -> Any:
    if name == "spark":
        return import_module("ids.spark")
    if name == "__version__":
        return _version()
    if name not in _HOMES:
        raise AttributeError(f"module 'ids' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found


def _version() -> str:
    """The version of the installed package; read on first use, for that takes milliseconds."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = globals()["__version__"] = version("ids-engine")
    except PackageNotFoundError:
        fact = "'ids' has no '__version__': the package ids-engine is not installed"
        raise AttributeError(f"{fact}; install it, as in pip install .") from None
    return found
