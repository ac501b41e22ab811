"""Progress of a session's jobs: how many tasks are done, and whether any still run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic, sleep
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["tasks_ended", "watching"]

_PAUSE = 0.2
_PATIENCE = 30.0  # seconds for tasks to end; in a shared session they may be of other jobs


@contextmanager
def watching(session: SparkSession, tell: Callable[[int, int], None]) -> Iterator[None]:
    """Call ``tell`` with what is done and what there is, a few times a second, while inside.

    Spark learns of stages as it goes, so the second number may grow. Spark Connect has no such
    view of a session: there nothing is told.
    """
    tracker = _tracker(session)
    if tracker is None:
        yield
        return
    over = Event()
    seen: dict[int, tuple[int, int]] = {}

    def look() -> None:
        while not over.wait(_PAUSE):
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                if info is not None:
                    seen[stage] = (info.numCompletedTasks, info.numTasks)
            for stage, (_, tasks) in seen.items():
                if stage not in tracker.getActiveStageIds():
                    seen[stage] = (tasks, tasks)
            if seen:
                done, known = map(sum, zip(*seen.values(), strict=True))
                tell(done, known)

    watcher = Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


@contextmanager
def tasks_ended(session: SparkSession) -> Iterator[None]:
    """Let an error out of the block only when no task runs any more.

    Spark ends a job that fails or is interrupted at once, and its tasks a while later: until then
    they write files.
    """
    try:
        yield
    except BaseException:
        tracker, end = _tracker(session), monotonic() + _PATIENCE
        while tracker is not None and monotonic() < end:
            if not any(info.numRunningTasks for info in tracker.getExecutorInfos()):
                break
            sleep(_PAUSE / 4)
        raise


def _tracker(session: SparkSession):  # type: ignore[no-untyped-def]
    try:
        return session.sparkContext.statusTracker()
    except Exception:
        return None
