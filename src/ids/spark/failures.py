"""Spark's failures in one line: what, where, and the way out.

A failure of Spark is a page of Java. Somewhere in it is what happened; the rules below look
for it, the more telling ones first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from ids import errors
from ids.errors import (
    DataError,
    IdsError,
    ScriptError,
    SetupError,
    SinkError,
    SourceError,
    UnknownNameError,
)


@contextmanager
def translated() -> Iterator[None]:
    """Whatever Spark raises inside becomes an error of IDS, with Spark's own as its cause."""
    try:
        yield
    except Exception as error:
        meaning = translate(error)
        if meaning is None:
            raise
        raise meaning from error


def translate(error: BaseException) -> IdsError | None:
    """What ``error`` means; None if it is not Spark's."""
    from py4j.protocol import Py4JError  # imported here: a checkpoint is read without Spark
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException | Py4JError):
        return None
    told = _told(error)
    for rule in _RULES:
        found = re.search(rule.pattern, told, re.MULTILINE)
        if found:
            return rule.meaning(found, told)
    return IdsError(f"Spark failed: {_root(told)}")


def _told(error: BaseException) -> str:
    """All that an exception and its causes say, Java's traceback included."""
    texts: list[str] = []
    seen: set[int] = set()
    rest: list[BaseException | None] = [error]
    while rest:
        one = rest.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        # the traceback of an exception that came from Java lies in an attribute of its own
        texts += [str(one), getattr(one, "_stackTrace", None) or ""]
        rest += [getattr(one, "_cause", None), one.__cause__]
    return "\n".join(texts)


class _Rule(NamedTuple):
    pattern: str
    meaning: Callable[[re.Match[str], str], IdsError]


def _raised(found: re.Match[str], _: str) -> IdsError:
    # an error of ids.spark.condition_sql ends with a number of its own
    return DataError(re.sub(r" #\d+$", "", " ".join(found.group(1).split())))


def _raised_by_worker(found: re.Match[str], _: str) -> IdsError:
    kind = getattr(errors, found.group(1), IdsError)
    text = found.group(2).strip()
    return ScriptError(text) if kind is UnknownNameError else kind(text)


def _disk_full(_: re.Match[str], __: str) -> IdsError:
    return SinkError(
        "no space left on the disk of the output or of Spark's own files; free some, "
        "or set spark.local.dir to a larger disk"
    )


def _out_of_memory(found: re.Match[str], _: str) -> IdsError:
    return SetupError(
        f"Spark ran out of memory ({found.group(1)}); raise spark.driver.memory, "
        "or spark.executor.memory on a cluster"
    )


def _lost(_: re.Match[str], __: str) -> IdsError:
    return SetupError(
        "Spark lost the processes that did the work, more often than it tries again; "
        "check the workers and their memory, then run again"
    )


def unfit_workers(fact: str) -> SetupError:
    """The workers' Python cannot run our functions."""
    return SetupError(
        f"the Python of Spark's workers {fact}; install IDS there, or set PYSPARK_PYTHON to a "
        "Python that has it before the session (or the Spark Connect server) starts"
    )


def _lacking(found: re.Match[str], _: str) -> IdsError:
    module = found.group(1)
    return unfit_workers("has no IDS" if module == "ids" else f"has no {module}")


def _other_python(found: re.Match[str], _: str) -> IdsError:
    theirs, ours = found.groups()
    return unfit_workers(f"is {theirs}, this one {ours}")


def _no_python(found: re.Match[str], _: str) -> IdsError:
    return unfit_workers(f"({found.group(1)}) is not there")


def _alike(found: re.Match[str], _: str) -> IdsError:
    return SourceError(
        f"several columns are called {found.group(1)!r} but for the case of letters; rename them, "
        "or set spark.sql.caseSensitive to true"
    )


def _unreadable(found: re.Match[str], told: str) -> IdsError:
    file = _path(found.group(1))
    column = re.search(r"column: \[(.*?)\], physicalType: (\S+), logicalType: ([^\s,.]+)", told)
    if column:
        name, stored, expected = column.groups()
        fault = f"column {name!r} is stored as {stored} where {expected} is expected"
        return SourceError(f"{file} does not fit the files before it: {fault}; write it again")
    if re.search(r"is not a Parquet file|[Ee]xpected magic number|[Cc]orrupt|footer", told):
        return SourceError(f"{file} is not a whole Parquet file; write it again")
    if re.search(r"FileNotFoundException|FILE_NOT_EXIST|does not exist", told):
        if Path(file).exists():
            return unshared(file)
        return SourceError(f"{file} is gone, or changed while it was read; run again")
    if "CSV header does not conform" in told:
        return SourceError(f"the header of {file} is not that of the files before it; mend it")
    if re.search(r"MALFORMED_RECORD_IN_PARSING|Malformed|BadRecordException", told):
        record = re.search(r"parsing: (.*?)\.?\n", told)
        shown = f" ({record.group(1)[:80]})" if record else ""
        return SourceError(f"{file} holds a record that does not fit its columns{shown}; mend it")
    return SourceError(f"cannot read {file}: {_root(told)}")


def _gone(found: re.Match[str], _: str) -> IdsError:
    file = _path(found.group(1))
    return (
        unshared(file) if Path(file).exists() else SourceError(f"no such file or directory: {file}")
    )


def unshared(place: str | Path) -> SourceError:
    """The driver sees a place of this machine, the workers do not, or not the same."""
    return SourceError(
        f"the workers do not see {place} as the driver does; name a place on storage that they "
        "share"
    )


def _no_connector(_: re.Match[str], __: str) -> IdsError:
    return SetupError(
        "the session has no Kafka connector; start it with spark.jars.packages set to the "
        "spark-sql-kafka-0-10 of its own version"
    )


def _no_topic(_: re.Match[str], __: str) -> IdsError:
    return SourceError("the Kafka topic does not exist; check its name, or make it first")


def _no_broker(_: re.Match[str], __: str) -> IdsError:
    return SourceError("no Kafka broker answers; check the host and the port, and that it runs")


def _refused(_: re.Match[str], told: str) -> IdsError:
    return SetupError(f"Spark cannot be reached: {_root(told)}; check the master's address")


def _path(uri: str) -> str:
    """A file as a person names it.

    >>> _path("file:///tmp/a%20b.csv")
    '/tmp/a b.csv'
    """
    return re.sub(r"^file:/+", "/", unquote(uri)) if uri.startswith("file:") else uri


def _root(told: str) -> str:
    """The innermost cause, without its Java names and codes."""
    lines = [line.strip(" :") for line in told.splitlines() if line.strip(" :")]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        del lines[0]
    causes = re.findall(r"^Caused by: (.*)$", told, re.MULTILINE)
    line = (causes[-1:] or lines or ["it does not say why"])[0]
    line = re.sub(r"^(?:[\w$]+\.)+[\w$]+(?::\s*|$)", "", line) or line
    line = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", line)
    return re.sub(r"\s*SQLSTATE: \w+\s*$", "", line).rstrip(". ")


_RULES = [
    _Rule(r"\[USER_RAISED_EXCEPTION\] ([\s\S]*?)(?: SQLSTATE: P0001|\n\tat |\Z)", _raised),
    _Rule(r"^ids\.errors\.(\w+): (.+)$", _raised_by_worker),
    _Rule(r"ModuleNotFoundError: No module named '([\w.]+)'", _lacking),
    _Rule(
        r"\[PYTHON_VERSION_MISMATCH\][^\n]*?different version: ([\d.]+) than that in driver: "
        r"([\d.]+),",
        _other_python,
    ),
    _Rule(r'Cannot run program "([^"]*python[^"]*)"', _no_python),
    _Rule(r"\[COLUMN_ALREADY_EXISTS\] The column `(.*?)` already exists", _alike),
    _Rule(r"No space left on device|DiskOutOfSpace|Disk quota exceeded", _disk_full),
    _Rule(r"OutOfMemoryError: ([^\n]+)", _out_of_memory),
    _Rule(r"ExecutorLostFailure|Executor heartbeat timed out|MetadataFetchFailed", _lost),
    _Rule(r"FAILED_READ_FILE[\s\S]*?reading file (\S+)\.\s", _unreadable),
    _Rule(r"\[PATH_NOT_FOUND\] Path does not exist: (\S+?)\.(?:\s|$)", _gone),
    _Rule(r"Failed to find (?:the )?data source: `?kafka", _no_connector),
    _Rule(r"UnknownTopicOrPartitionException", _no_topic),
    _Rule(
        r"No resolvable bootstrap urls|Timed out waiting for a node assignment|kafka\.common"
        r"\.errors\.TimeoutException",
        _no_broker,
    ),
    _Rule(r"All masters are unresponsive|Connection refused|StatusCode\.UNAVAILABLE", _refused),
]
