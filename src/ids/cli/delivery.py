"""Where the results of a script go: all of them shown, or each SELECT written to its own place."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from io import TextIOWrapper
from typing import BinaryIO, Protocol, TypeVar

from rich.console import Console

from ids.cli.arguments import OptionError
from ids.cli.terminal import is_terminal, note
from ids.model import Explain, Select, Show, Statement
from ids.sink import Format, Target, faults_named, is_device, is_directory, opened, parts, resolve

STDOUT = "-"
TABLE = "table"

_SHOWN = 20  # emits of a SELECT, on a terminal
_FORMATS = {format_.name.lower(): format_ for format_ in Format}


class Outcome(Protocol):
    """A result of a script, in process or on Spark."""

    @property
    def bad_rows(self) -> int: ...


R = TypeVar("R", bound=Outcome)

# What writes results to places while it is open; all that is written appears when it ends well.
Writer = Callable[[Sequence[Target]], AbstractContextManager[Callable[[R, Target], int]]]


@dataclass(frozen=True, slots=True)
class Delivery:
    """What becomes of the results of a script, each of them known by its number.

    places  where results are written
    topic   the Kafka topic that gets the one result
    shown   without either: where all of them are shown, as tables
    last    how many emits of a SELECT are shown; None: all
    """

    places: dict[int, Target] = field(default_factory=dict)
    topic: str | None = None
    shown: str = STDOUT
    last: int | None = None

    @classmethod
    def of(
        cls, output: str | None, format_: str | None, statements: Sequence[Statement]
    ) -> Delivery:
        """What ``--output`` and ``--format`` mean for a script; refuses what cannot be.

        Of a script without a SELECT, what the last SHOW or EXPLAIN shows is written.
        """
        giving = [s for s in statements if isinstance(s, Select | Show | Explain)]
        if not giving:
            return cls()  # a mistake in what it registers is told first
        selects = {number: s.table for number, s in enumerate(giving) if isinstance(s, Select)}
        wanted = list(selects) or [len(giving) - 1]
        place = output or STDOUT
        stdout = on_stdout(format_) if place == STDOUT else None
        if format_ == TABLE or (place == STDOUT and stdout is None):
            if place != STDOUT and not is_device(place):
                fact = "a table is for the terminal; use csv, jsonl or parquet"
                raise OptionError("--format", fact)
            return cls(shown=place, last=_SHOWN if is_terminal() else None)
        if len(wanted) > 1 and not is_directory(place):
            held, more = ("standard output", ", or --format table") if stdout else (place, "")
            raise OptionError(
                "--output",
                f"the script has {len(wanted)} SELECTs, and {held} holds one; give a directory "
                f"(out/), which gets a file for each{more}",
            )
        if place.startswith("kafka://"):
            _refuse_format(format_, "a topic gets JSON")
            return cls(topic=place)
        if len(wanted) > 1:
            places = parts(place, _names(list(selects.values())), _format_named(format_))
            return cls(dict(zip(wanted, places, strict=True)))
        return cls({wanted[0]: stdout or resolve(place, _format_named(format_))})


def on_stdout(format_: str | None) -> Target | None:
    """Standard output, in a format for programs; None: as a table."""
    name = format_ or (TABLE if is_terminal() else "csv")
    chosen = None if name == TABLE else _format_named(name)
    if chosen is Format.PARQUET and is_terminal():
        raise OptionError("--format", "Parquet is for files and pipes; use table, csv or jsonl")
    return None if chosen is None else Target(STDOUT, chosen, device=True)


def lines_of(output: str | None, format_: str | None) -> Target | None:
    """Where a stream prints its emits as lines; None where it writes files, or shows them live."""
    place = output or STDOUT
    if place != STDOUT and not is_device(place):
        _refuse_format(format_, "a stream's files are named by it (out.csv/, out.jsonl/)")
        return None
    if place == STDOUT:
        target = on_stdout(format_)
        if target is None and is_terminal():
            return None
    else:
        target = resolve(place, _format_named(format_))
    if target is None or target.format is Format.PARQUET:
        raise OptionError("--format", "a stream prints csv or jsonl in a pipe")
    return target


def _format_named(name: str | None) -> Format | None:
    if name is None or name in _FORMATS:
        return None if name is None else _FORMATS[name]
    raise OptionError("--format", f"{name!r} is not known; use table, csv, jsonl or parquet")


def _refuse_format(name: str | None, why: str) -> None:
    if name is not None:
        raise OptionError("--format", f"{why}; leave it out")


def _names(tables: Sequence[str]) -> list[str]:
    """What the file of each SELECT is called: its place in the script, then its table.

    >>> _names(["trips", "a/b"])
    ['1-trips', '2-a_b']
    """
    width = len(str(len(tables)))
    names = [re.sub(r"[^\w.-]", "_", table) for table in tables]
    return [f"{number:0{width}}-{name}" for number, name in enumerate(names, start=1)]


@contextmanager
def printed(place: Target) -> Iterator[BinaryIO]:
    """The stream of a device, or of standard output."""
    if place.place == STDOUT:
        yield sys.stdout.buffer
        return
    with faults_named(place.place), opened(place) as stream:
        yield stream


def deliver(
    results: Iterable[R],
    to: Delivery,
    show: Callable[[R, Console], None],
    writer: Writer[R],
) -> None:
    """Show every result as it comes, or write those that have a place."""
    if not to.places:
        nothing = True
        with _console(to.shown) as console:
            for result in results:
                show(result, console)
                nothing = False
        if nothing:
            from ids.plan import nothing_asked  # which brings in the compiler

            raise nothing_asked()
        return
    with writer(list(to.places.values())) as write:
        for number, result in enumerate(results):
            place = to.places.get(number)
            if place is None:
                continue
            with faults_named(place.place):
                rows = write(result, place)
            if not place.device and sys.stderr.isatty():
                note(f"wrote {rows:,} rows to {place.place}")


def noted(results: Iterable[R], place: str | None) -> Iterator[R]:
    """The results, with a note of the bad rows of each, which were set aside at ``place``."""
    for result in results:
        if result.bad_rows:
            rows = "row" if result.bad_rows == 1 else "rows"
            note(f"{result.bad_rows:,} bad {rows} set aside in {place}")
        yield result


@contextmanager
def _console(shown: str) -> Iterator[Console]:
    if shown == STDOUT:
        yield Console()
        return
    with printed(Target(shown, Format.CSV, device=True)) as stream:
        yield Console(file=TextIOWrapper(stream, encoding="utf-8", write_through=True))
