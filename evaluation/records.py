"""Records: what a step found, as JSON and CSV; the source of every number that is shown."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.keeping import keep
from evaluation.repeated import Repeated
from evaluation.step import Findings, Row, Value

__all__ = ["Record", "csv_text", "read", "read_all", "write"]

Record = dict[str, Any]
_SAMPLES = "samples"


def write(path: Path, record: Mapping[str, Any], findings: Findings) -> None:
    """Keep a record; the file is whole or not there."""
    rows = {name: [_spelled(row) for row in rows] for name, rows in findings.items()}
    text = json.dumps({**record, "findings": rows}, indent=1, ensure_ascii=False, allow_nan=False)
    keep(path, text + "\n")


def read(path: Path) -> Record | None:
    """A record with its findings as they were found; None where there is none, or half of one."""
    try:
        record: Record = json.loads(path.read_text(encoding="utf-8"))
        record["step"], record["skipped"], record["fingerprint"]["size"]
        record["findings"] = {
            name: [{key: _found(value) for key, value in row.items()} for row in rows]
            for name, rows in record["findings"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return record


def read_all(directory: Path) -> list[Record]:
    """The records in a directory, by the name of their step."""
    found = (read(path) for path in sorted(directory.glob("*.json")))
    return [record for record in found if record is not None]


def csv_text(rows: Sequence[Row]) -> str:
    """Rows as CSV: a quantity measured several times is its mean, low, high and how many times."""
    flat = [_flat(row) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return out.getvalue()


def _flat(row: Row) -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in row.items():
        if isinstance(value, Repeated):
            half = value.half_width
            flat |= {
                name: value.mean,
                f"{name}_low": value.mean - half,
                f"{name}_high": value.mean + half,
                f"{name}_repetitions": len(value.samples),
            }
        else:
            flat[name] = value
    return flat


def _spelled(row: Row) -> dict[str, Any]:
    return {name: _plain(name, value) for name, value in row.items()}


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, Repeated):
        samples = [_plain(name, sample) for sample in value.samples]
        half = value.half_width
        interval = {"mean": value.mean, "low": value.mean - half, "high": value.mean + half}
        return interval | {_SAMPLES: samples}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"a finding must be a number, and {name} is {value}")
    return value


def _found(value: Any) -> Value:
    if isinstance(value, dict):
        return Repeated.of(value[_SAMPLES])
    found: Value = value
    return found
