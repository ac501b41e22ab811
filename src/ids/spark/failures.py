"""Translate Spark's exceptions into one-line errors that say what failed, where and what to do.

A Spark exception contains a long Java traceback. The rules below search it for the cause, the most
specific rules first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
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

# returns the error for a rule's match in the text of the failure
_Meaning = Callable[[re.Match[str], str], IdsError]


@contextmanager
def translated() -> Iterator[None]:
    """Convert Spark exceptions raised in the block to IDS errors, with the exception as cause."""
    try:
        yield
    except Exception as error:
        meaning = translate(error)
        if meaning is None:
            raise
        raise meaning from error


def translate(error: BaseException) -> IdsError | None:
    """Return the IDS error for a Spark exception; None for any other exception."""
    from py4j.protocol import Py4JError  # imported here: a checkpoint is read without Spark
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException | Py4JError):
        return None
    text = _full_text(error)
    for pattern, meaning in _RULES:
        found = re.search(pattern, text, re.MULTILINE)
        if found:
            return meaning(found, text)
    return IdsError(f"Spark failed: {_root(text)}")


def _full_text(error: BaseException) -> str:
    """Return the messages of an exception and its causes as one text, with Java tracebacks."""
    texts: list[str] = []
    seen: set[int] = set()
    rest: list[BaseException | None] = [error]
    while rest:
        one = rest.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        # pyspark keeps a Java exception's traceback in a private attribute
        texts += [str(one), getattr(one, "_stackTrace", None) or ""]
        rest += [getattr(one, "_cause", None), one.__cause__]
    return "\n".join(texts)


def unfit_workers(fact: str) -> SetupError:
    """Return the error for workers whose Python cannot run our functions."""
    return SetupError(
        f"the Python of Spark's workers {fact}; install IDS there, or set PYSPARK_PYTHON to a "
        "Python that has it before the session (or the Spark Connect server) starts"
    )


def unshared(place: str | Path) -> SourceError:
    """Return the error for local files that the driver and the workers do not share."""
    return SourceError(
        f"the workers do not see the same {place} as the driver; use storage that they share"
    )


def _raised(found: re.Match[str], _: str) -> IdsError:
    # ids.spark.expression_sql ends an error with a number that makes it unique
    return DataError(re.sub(r" #\d+$", "", " ".join(found.group(1).split())))


def _raised_by_worker(found: re.Match[str], _: str) -> IdsError:
    kind = getattr(errors, found.group(1), IdsError)
    text = found.group(2).strip()
    return ScriptError(text) if kind is UnknownNameError else kind(text)


def _lacking(found: re.Match[str], _: str) -> IdsError:
    module = found.group(1)
    return unfit_workers("has no IDS" if module == "ids" else f"has no {module}")


def _unreadable(found: re.Match[str], text: str) -> IdsError:
    file = _path(found.group(1))
    column = re.search(r"column: \[(.*?)\], physicalType: (\S+), logicalType: ([^\s,.]+)", text)
    if column:
        name, stored, expected = column.groups()
        fault = f"column {name!r} is stored as {stored}, not as {expected}"
        return SourceError(f"{file} does not match the files before it: {fault}; write it again")
    if re.search(r"is not a Parquet file|[Ee]xpected magic number|[Cc]orrupt|footer", text):
        return SourceError(f"{file} is not a whole Parquet file; write it again")
    if re.search(r"FileNotFoundException|FILE_NOT_EXIST|does not exist", text):
        if Path(file).exists():
            return unshared(file)
        return SourceError(f"{file} was deleted or changed while it was read; run again")
    if "CSV header does not conform" in text:
        return SourceError(f"the header of {file} differs from the files before it; correct it")
    if re.search(r"MALFORMED_RECORD_IN_PARSING|Malformed|BadRecordException", text):
        record = re.search(r"parsing: (.*?)\.?\n", text)
        shown = f" ({record.group(1)[:80]})" if record else ""
        return SourceError(
            f"{file} contains a record that does not match its columns{shown}; correct it"
        )
    return SourceError(f"cannot read {file}: {_root(text)}")


def _missing(found: re.Match[str], _: str) -> IdsError:
    file = _path(found.group(1))
    if Path(file).exists():
        return unshared(file)
    return SourceError(f"no such file or directory: {file}")


def _path(uri: str) -> str:
    """Convert a URI to a path, if it is local.

    >>> _path("file:///tmp/a%20b.csv")
    '/tmp/a b.csv'
    """
    return re.sub(r"^file:/+", "/", unquote(uri)) if uri.startswith("file:") else uri


def _root(text: str) -> str:
    """Return the innermost cause, without Java class names and error codes."""
    lines = [line.strip(" :") for line in text.splitlines() if line.strip(" :")]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        del lines[0]
    causes = re.findall(r"^Caused by: (.*)$", text, re.MULTILINE)
    line = (causes[-1:] or lines or ["no reason given"])[0]
    line = re.sub(r"^(?:[\w$]+\.)+[\w$]+(?::\s*|$)", "", line) or line
    line = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", line)
    return re.sub(r"\s*SQLSTATE: \w+\s*$", "", line).rstrip(". ")


_RULES: list[tuple[str, _Meaning]] = [
    (r"\[USER_RAISED_EXCEPTION\] ([\s\S]*?)(?: SQLSTATE: P0001|\n\tat |\Z)", _raised),
    (r"^ids\.errors\.(\w+): (.+)$", _raised_by_worker),
    (r"ModuleNotFoundError: No module named '([\w.]+)'", _lacking),
    (
        r"\[PYTHON_VERSION_MISMATCH\][^\n]*?different version: ([\d.]+) than that in driver: "
        r"([\d.]+),",
        lambda found, _: unfit_workers(f"is {found[1]}, this one is {found[2]}"),
    ),
    (
        r'Cannot run program "([^"]*python[^"]*)"',
        lambda found, _: unfit_workers(f"({found[1]}) does not exist"),
    ),
    (
        r"\[COLUMN_ALREADY_EXISTS\] The column `(.*?)` already exists",
        lambda found, _: SourceError(
            f"column {found[1]!r} occurs several times with different case; rename the columns, "
            "or set spark.sql.caseSensitive to true"
        ),
    ),
    (
        r"No space left on device|DiskOutOfSpace|Disk quota exceeded",
        lambda *_: SinkError(
            "no space left on the disk of the output or of Spark's own files; free some, "
            "or set spark.local.dir to a larger disk"
        ),
    ),
    (
        r"OutOfMemoryError: ([^\n]+)",
        lambda found, _: SetupError(
            f"Spark ran out of memory ({found[1]}); raise spark.driver.memory, "
            "or spark.executor.memory on a cluster"
        ),
    ),
    (
        r"ExecutorLostFailure|Executor heartbeat timed out|MetadataFetchFailed",
        lambda *_: SetupError(
            "Spark lost its executors too often to retry; check the workers and their memory, "
            "then run again"
        ),
    ),
    (r"FAILED_READ_FILE[\s\S]*?reading file (\S+)\.\s", _unreadable),
    (r"\[PATH_NOT_FOUND\] Path does not exist: (\S+?)\.(?:\s|$)", _missing),
    (
        r"Failed to find (?:the )?data source: `?kafka",
        lambda *_: SetupError(
            "the session has no Kafka connector; set spark.jars.packages to the version of "
            "spark-sql-kafka-0-10 that matches Spark"
        ),
    ),
    (
        r"UnknownTopicOrPartitionException",
        lambda *_: SourceError("the Kafka topic does not exist; check its name, or create it"),
    ),
    (
        r"No resolvable bootstrap urls|Timed out waiting for a node assignment|kafka\.common"
        r"\.errors\.TimeoutException",
        lambda *_: SourceError(
            "cannot connect to a Kafka broker; check the host and the port, and that it runs"
        ),
    ),
    (
        r"All masters are unresponsive|Connection refused|StatusCode\.UNAVAILABLE",
        lambda _, text: SetupError(
            f"cannot connect to Spark: {_root(text)}; check the master's address"
        ),
    ),
]
