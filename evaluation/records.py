"""Records: what a step found, as JSON and CSV; the source of every number that is shown."""

import json
import math
import os
import platform
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evaluation.step import Findings, Repeated, Row, Value
from ids.sink import faults_named
from ids.sink.atomic_files import whole

Record = dict[str, Any]
_INTERVAL = {"mean", "low", "high", "samples"}
_PACKAGES = ["ids-engine", "numpy", "numba", "pyarrow", "pandas", "polars", "duckdb", "pyspark"]
_PACKAGES += ["scipy", "shap", "shapiq"]


def write(path: Path, record: Mapping[str, Any], findings: Findings) -> None:
    """Keep a record; the file is whole or not there."""
    for name, value in (cell for rows in findings.values() for row in rows for cell in row.items()):
        for sample in value.samples if isinstance(value, Repeated) else (value,):
            if isinstance(sample, float) and not math.isfinite(sample):
                raise ValueError(f"a finding must be a number, and {name} is {sample}")
    told = {**record, "findings": findings}
    text = json.dumps(told, default=kept, indent=1, ensure_ascii=False, allow_nan=False)
    keep(path, text + "\n")


def read(path: Path) -> Record | None:
    """A record with its findings as they were found; None where there is none, or half of one."""
    try:
        record: Record = json.loads(path.read_text(encoding="utf-8"), object_hook=_found)
        record["step"], record["skipped"], record["fingerprint"]["size"], record["findings"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return record


def _found(value: dict[str, Any]) -> Any:
    """What ``kept`` made of a quantity, as it was; any other object stays as it is."""
    return Repeated.of(value["samples"]) if value.keys() == _INTERVAL else value


def read_all(directory: Path) -> list[Record]:
    """The records in a directory, by the name of their step."""
    return list(filter(None, map(read, sorted(directory.glob("*.json")))))


def interval(value: Repeated) -> dict[str, Any]:
    """A quantity that was measured several times, as a record and a table hold it."""
    mean, half = value.mean, value.half_width
    return {"mean": mean, "low": mean - half, "high": mean + half, "samples": list(value.samples)}


def kept(value: Any) -> Any:
    """A value of a finding in plain types."""
    if isinstance(value, Repeated):
        return interval(value)
    return value.item() if isinstance(value, np.generic) else value


def csv_text(rows: Sequence[Row]) -> str:
    """Rows as CSV: a quantity measured several times is its mean, low, high and how many times."""
    flat = [dict(cell for pair in row.items() for cell in _cells(*pair)) for row in rows]
    return str(pd.DataFrame(flat, dtype=object).to_csv(index=False, lineterminator="\n"))


def _cells(name: str, value: Value) -> Iterator[tuple[str, object]]:
    if isinstance(value, Repeated):
        mean, low, high, samples = interval(value).values()
        yield from ((name, mean), (f"{name}_low", low), (f"{name}_high", high))
        yield f"{name}_repetitions", len(samples)
    else:
        yield name, value


def keep(path: Path, text: str) -> Path:
    """Write a file, with the directories above it: a reader sees the old one or the new one."""
    make_directory(path.parent)
    with faults_named(path), whole(path) as stream:
        stream.write(text.encode())
    return path


def keep_all(directory: Path, ending: str, texts: Mapping[str, str]) -> None:
    """These texts as files of one ending, and none of a chapter's that is of an earlier time.

    What does not begin with a chapter's key is somebody's own, and stays.
    """
    for name, text in texts.items():
        keep(directory / f"{name}{ending}", text)
    for path in directory.glob(f"*{ending}"):
        if path.stem not in texts and re.match(r"(rq\d|beyond)[-_]", path.stem):
            path.unlink(missing_ok=True)


def make_directory(path: Path) -> None:
    """A directory is there, with those above it."""
    with faults_named(path):
        path.mkdir(parents=True, exist_ok=True)


def circumstances() -> dict[str, Any]:
    """The machine, the versions and the commit a record was made with."""
    machine = {
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }
    versions = {package: version(package) for package in _PACKAGES}
    return {"machine": machine, "versions": versions, "commit": _commit()}


def _commit() -> str | None:
    """The commit of the checkout this runs from; None where there is none."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *arguments]
        return subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL).strip()

    try:
        return git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return None
