"""An engine in one line, as it prints."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from ids.engine.settings import Window
from ids.model.window import CountWindow, TimeWindow, span

__all__ = ["describe"]

_SHOWN = 8  # names of a kind


def describe(
    window: Window, values: Collection[str], rows: int, predicates: Collection[str]
) -> str:
    """The window, the measures, the rows inside and the predicates; of many names, the first."""
    return (
        f"<ids.Engine {_called(window)}, value {_some(values)}, "
        f"{rows:,} row{'' if rows == 1 else 's'} inside, predicates {_some(predicates)}>"
    )


def _some(names: Collection[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    shown = ", ".join(" ".join(name.split()) for name in islice(names, _SHOWN))
    return shown + more if names else "none"


def _called(window: Window) -> str:
    """The window as it may be typed."""
    match window:
        case CountWindow(size, slide):
            return f"CountWindow({size:_}{f', slide={slide:_}' if slide > 1 else ''})"
        case TimeWindow(duration=duration, slide=slide):
            spans = [span(one).replace(",", "") for one in (duration, slide) if one is not None]
            return "TimeWindow('" + "', slide='".join(spans) + "')"
    return "Changelog()"
