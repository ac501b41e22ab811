"""Spark sessions: one of our own for the command line, or the one the user has.

In a session of the user's own IDS changes no setting: time zones are settled in the expressions
themselves, and numbers of partitions are Spark's business. It needs one in one case: Spark reads
Parquet timestamps of nanoseconds only with ``spark.sql.legacy.parquet.nanosAsLong`` set to true,
which a session of our own has; without it a query that asks for such a column is refused, by name.

Jobs of a session are watched: how many tasks are done, and whether any still run.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any

from py4j.protocol import Py4JError
from pyspark import InheritableThread, SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession

from ids.errors import SetupError, SourceError
from ids.spark.failures import translate
from ids.spark.java import ensure_java
from ids.spark.spark_master import check_master, is_local

NANOSECONDS = "spark.sql.legacy.parquet.nanosAsLong"

_GIB = 1 << 30
_LARGEST_HEAP = 4 * _GIB
_PATIENCE = 10  # seconds for a server to take a connection
_PAUSE = 0.2
_TASK_PATIENCE = 30.0  # seconds for tasks to end; in a shared session they may be of other jobs
_CONNECT_PORT = 15002
_PACKAGES = "spark.jars.packages"

# PythonGatewayServer is named because Spark announces its level on stderr where it differs.
_LOGGING = """\
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = stderr
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = {level}
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""


def local_session(
    master: str | None = None,
    app: str = "ids",
    packages: Sequence[str] = (),
    log_level: str = "OFF",
    **conf: str,
) -> SparkSession:
    """A session for a process that is ours, such as the command line; quiet, in UTC.

    ``master`` is any Spark master, ``local[*]`` without one, or ``sc://…`` for Spark Connect;
    ``packages`` are Maven coordinates; ``conf`` holds Spark settings by their full names, which
    win over ours: a package of which they name a version or a jar is theirs, the others are added.
    A task that fails writes its Java traceback to the log, so the log is off unless a ``log_level``
    (``WARN``) asks for it.
    """
    master = master or "local[*]"
    check_master(master)
    if master.startswith("sc://"):
        return _connected(master, app, conf)
    if master.startswith("spark://"):
        _refuse_silent(master, master.removeprefix("spark://"))
    scratch = Path(tempfile.mkdtemp(prefix="ids-spark-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    settings = {"spark.app.name": app, "spark.master": master, **_settings(scratch, log_level)}
    if is_local(master):
        settings |= _local_settings(master)
    settings |= conf
    if fetched := _fetched(packages, conf):
        settings[_PACKAGES] = ",".join(fetched)
    return _started(settings, scratch, quiet=log_level == "OFF")


def has_session(tables: Iterable[object], spark: SparkSession | None = None) -> bool:
    """Whether there is a session to work in, so that none has to be started."""
    given = spark is not None or any(isinstance(table, DataFrame) for table in tables)
    return given or SparkSession.getActiveSession() is not None


def session_of(tables: Iterable[object], spark: SparkSession | None = None) -> SparkSession:
    """The session to work in: ``spark``, else that of the first DataFrame, the active, a new one.

    DataFrames of two sessions cannot meet in one query, so that is refused.
    """
    sessions = [table.sparkSession for table in tables if isinstance(table, DataFrame)]
    if spark is not None:
        sessions.insert(0, spark)
    if any(session is not sessions[0] and session != sessions[0] for session in sessions):
        raise SourceError("the tables belong to different Spark sessions; make them in one")
    if sessions:
        return sessions[0]
    return SparkSession.getActiveSession() or local_session()


def _settings(scratch: Path, log_level: str) -> dict[str, str]:
    logging = scratch / "log4j2.properties"
    logging.write_text(_LOGGING.format(level=log_level.lower()), encoding="utf-8")
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.caseSensitive": "true",  # a file may hold both At and at
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        NANOSECONDS: "true",
        # what a stream's own log keeps: as much as it takes to go on, not a hundred batches
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.sql.streaming.fileSource.log.cleanupDelay": "0",
        "spark.driver.memory": f"{_heap() >> 20}m",
        "spark.driver.extraJavaOptions": f'-Dlog4j2.configurationFile="{logging}"',
    }


def _fetched(packages: Sequence[str], conf: dict[str, str]) -> list[str]:
    """The packages that the settings name, and ours where they have no version or jar of it."""
    named = [name for name in conf.get(_PACKAGES, "").split(",") if name]
    jars = [jar.rpartition("/")[2] for jar in conf.get("spark.jars", "").split(",")]

    def is_given(package: str) -> bool:
        group, artifact, _ = package.split(":")
        version = any(name.startswith(f"{group}:{artifact}:") for name in named)
        return version or any(jar.startswith(f"{artifact}-") for jar in jars)

    return [*named, *(package for package in packages if not is_given(package))]


def _local_settings(master: str) -> dict[str, str]:
    cores = _cores(master)
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(max(2, cores)),
        "spark.default.parallelism": str(max(2, cores)),
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
    }


def _cores(master: str) -> int:
    """How many tasks a local master runs at once."""
    threads = re.match(r"local\[(\*|\d+)", master)
    if threads is None:
        return 1
    return os.cpu_count() or 1 if threads.group(1) == "*" else int(threads.group(1))


def _heap() -> int:
    """A quarter of the machine's (or the container's) memory, from 1 to 4 GiB."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file():
        text = limit.read_text(encoding="ascii").strip()
        memory = min(memory, int(text)) if text.isdigit() else memory
    return min(_LARGEST_HEAP, max(_GIB, memory // 4))


def _refuse_silent(master: str, places: str, port: int | None = None) -> None:
    """Refuse a server that takes no connection; Spark itself would try for minutes.

    ``places`` is HOST:PORT, or several with commas between; ``port`` stands where none is given.
    """
    fault = ""
    for place in places.split(","):
        host, colon, number = place.rpartition(":")
        if port is not None and (not colon or host.endswith(":")):
            host, number = place, str(port)
        if not host or not number.isdigit():
            raise SetupError(f"{master} is no address; write spark://HOST:PORT or sc://HOST:PORT")
        try:
            socket.create_connection((host.strip("[]"), int(number)), _PATIENCE).close()
            return
        except OSError as error:
            fault = error.strerror or str(error)
    raise SetupError(f"nobody answers at {master}: {fault}; check the address, and that it runs")


def _started(settings: dict[str, str], scratch: Path, *, quiet: bool) -> SparkSession:
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    said = scratch / "stderr"
    environment = {"JAVA_HOME": str(ensure_java())}
    if "spark.pyspark.python" in settings:
        environment["PYSPARK_PYTHON"] = settings["spark.pyspark.python"]
    try:
        with _environment(environment), said.open("wb") as stderr:
            if SparkContext._gateway is None:  # a second JVM in one process would be orphaned
                # What comes before the log (a package being fetched, a JVM that cannot start)
                # goes to stderr whatever the log level is.
                redirected = {"stderr": stderr} if quiet else {}
                gateway = launch_gateway(conf, redirected)  # type: ignore[no-untyped-call]
                SparkContext._ensure_initialized(gateway=gateway)
            if quiet:
                logging.getLogger().addFilter(_is_news)
            return SparkSession.builder.config(conf=conf).getOrCreate()
    except PySparkException as error:
        raise SetupError(_fault(said.read_text(encoding="utf-8", errors="replace"))) from error
    except Py4JError as error:
        if SparkContext._active_spark_context is not None:  # or the next session would be in it
            SparkContext._active_spark_context.stop()
        raise _unstarted(settings["spark.master"], error) from error


def _is_news(record: logging.LogRecord) -> bool:
    """Not the tracebacks that the bridge to Java logs when Ctrl-C ends a call; it is raised too."""
    return not str(record.msg).endswith(" while sending command.")


def _unstarted(master: str, error: Py4JError) -> SetupError:
    """Why there is a JVM but no session in it."""
    if "stopped SparkContext" in str(error):  # as it is after all attempts to register
        return SetupError(
            f"{master} does not take the application; check that a Spark of this "
            "version is the master there"
        )
    cause = str(translate(error)).removeprefix("Spark failed: ")
    return SetupError(
        f"Spark did not start on {master}: {cause}; check the master and the settings"
    )


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """The process's environment with ``values``, for as long as Java takes to start."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _fault(said: str) -> str:
    """Why Java ended before there was a session, from what it said."""
    missing = re.search(r"unresolved dependency: ([\w.-]+)#([\w.-]+);([\w.-]+)", said)
    if missing:
        package = ":".join(missing.groups())
        return f"cannot fetch the package {package}; check the network, or set spark.jars"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    faults = [line for line in lines if re.search(r"^Error|Exception|[Cc]ould not|cannot", line)]
    told = f": {(faults or lines)[0]}" if lines else ""
    return f"Spark did not start{told}; check the master, the settings and the machine's memory"


def _connected(master: str, app: str, conf: dict[str, str]) -> SparkSession:
    _refuse_silent(master, master.removeprefix("sc://").partition("/")[0], _CONNECT_PORT)
    try:
        builder = SparkSession.builder.remote(master).appName(app)
        for name, value in conf.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()
    except (PySparkException, ImportError) as error:
        fault = str(error).strip().split("\n", maxsplit=1)[0]
        raise SetupError(f"cannot reach {master}: {fault}; check that the server runs") from error


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
    """Wait for the tasks of a job that has failed: Spark ends them a while later.

    The scheduler is asked itself: the status that Spark shows lags behind, and does not yet know
    tasks that have just been started.
    """
    end = monotonic() + _TASK_PATIENCE
    try:
        scheduler: Any = session.sparkContext._jsc.sc().taskScheduler()
        # Map(driver -> 2)
        while re.search("-> [1-9]", scheduler.runningTasksByExecutors().toString()):
            if monotonic() > end:
                return
            sleep(_PAUSE / 4)
    except (PySparkException, Py4JError, AttributeError):
        return  # Spark Connect has no scheduler on this side


def _tracker(session: SparkSession):  # type: ignore[no-untyped-def]
    try:
        return session.sparkContext.statusTracker()
    except Exception:
        return None
