"""What stands beside the summaries, if it was asked for: room for rows, an index, a sample."""

from __future__ import annotations

from ids.engine.contents import contents
from ids.engine.core import CONTENT, Core
from ids.engine.sampling import Sampler
from ids.engine.settings import Settings
from ids.model.window import Changelog, CountWindow
from ids.state.index import Index

__all__ = ["attend"]


def attend(core: Core, settings: Settings) -> None:
    """Set up what follows the rows inside; a column it needs and does not find is refused."""
    core.changelog = isinstance(settings.window, Changelog) and core.has_raw
    if core.changelog and core.retained is not None and len(core.retained):
        table = core.retained.table()
        core.retained.rows.put(CONTENT, contents(table, list(core.retained.kinds), 0))
    if core.retained is not None and isinstance(settings.window, CountWindow):
        core.retained.rows.expected = settings.window.size
    if settings.index:
        core.index = Index(settings.index, core.schema.kinds)
    if settings.sampling is not None and not isinstance(settings.window, Changelog):
        core.sampler = Sampler(core.schema, settings.sampling, settings.window)
