"""Progress of a session's jobs: how many tasks are done, and whether any still run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from secrets import token_hex
from threading import Event, Thread
from time import monotonic, sleep
from typing import TYPE_CHECKING

from pyspark import InheritableThread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run_to_end", "watching"]

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


def run_to_end(session: SparkSession, job: Callable[[], None]) -> None:
    """Call ``job``, which has Spark write; an error comes out only when nothing writes any more.

    An interrupt leaves a call into Java at once, which goes on there and may start its tasks only
    then. So the call has a thread of its own, which ends when Java has ended.
    """
    failed: list[BaseException] = []
    tag = f"ids-{token_hex(8)}"

    def call() -> None:
        session.addTag(tag)
        try:
            job()
        except BaseException as error:
            failed.append(error)

    thread = InheritableThread(call, session=session)
    thread.start()
    try:
        thread.join()
        if failed:
            raise failed[0]
    except BaseException:
        while thread.is_alive():
            session.interruptTag(tag)
            thread.join(_PAUSE)
        _wait_for_tasks(session)
        raise


def _wait_for_tasks(session: SparkSession) -> None:
    """Wait for the tasks of a job that has failed: Spark ends them a while later."""
    tracker, end = _tracker(session), monotonic() + _PATIENCE
    while tracker is not None and monotonic() < end:
        if not any(info.numRunningTasks for info in tracker.getExecutorInfos()):
            return
        sleep(_PAUSE / 4)


def _tracker(session: SparkSession):  # type: ignore[no-untyped-def]
    try:
        return session.sparkContext.statusTracker()
    except Exception:
        return None
