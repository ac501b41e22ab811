"""The tables of docs/scale.md, made of records; each stands between two comments that name it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from capacity.load import Load
from capacity.model import UNITS, Model, sums_read, sums_written, task_rows

__all__ = ["fitted", "measured", "pair_ratios", "predictions", "published"]

Records = Sequence[dict[str, Any]]

_CORES = 1_600  # 100 machines of 16
_TRIGGER = 60.0  # seconds
_BUSY = 0.7  # of the cores; the rest is start-up of tasks, stragglers, garbage collection
_NETWORK = 100 * 1.25e9  # bytes a second, 10 Gbit a machine
_ROW = 25  # bytes to read a row: three columns of eight, and one of few texts


def published(page: str, records: Records, held_out: Sequence[Load]) -> str:
    """The page with its tables made anew."""
    model = fitted(records, held_out)
    tables = {
        "measured": _measured(records),
        "constants": _constants(model),
        "predictions": _predictions(records, held_out),
        "bytes": _bytes(records),
        "cluster": _cluster(model, records),
        "driver": _driver(records),
    }
    for name, lines in tables.items():
        marks = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        found = marks.search(page)
        assert found is not None, name
        page = page[: found.end(1)] + "\n".join(lines) + "\n" + page[found.start(2) :]
    return page


def fitted(records: Records, held_out: Sequence[Load]) -> Model:
    """The formula of all loads but those held out."""
    known = {load: r["cpu"] for load, r in measured(records).items() if load not in held_out}
    return Model.fit(list(known), list(known.values()))


def predictions(records: Records, held_out: Sequence[Load]) -> list[tuple[Load, float, float]]:
    """Each held-out load, with CPU seconds as predicted and as measured."""
    model, found = fitted(records, held_out), measured(records)
    return [(load, model.seconds(load), found[load]["cpu"]) for load in held_out]


def measured(records: Records, contender: str = "ids") -> dict[Load, dict[str, float]]:
    """What was measured of each load, the median of its passes."""
    passes: dict[Load, list[dict[str, float]]] = {}
    for record in records:
        if record["contender"] == contender:
            numbers = {n: value for n, value in record.items() if isinstance(value, float | int)}
            passes.setdefault(Load(**record["load"]), []).append(numbers)
    return {
        load: {name: median(each[name] for each in found) for name in found[0]}
        for load, found in passes.items()
    }


def _measured(records: Records) -> list[str]:
    ours, plain = measured(records), measured(records, "plain")
    old = measured(records, "old")
    paired = {side: measured(_sides(records, side), side) for side in ("ids", "old")}
    rows = []
    for load in sorted(ours, key=lambda load: (load.panes, load.keys)):
        if load != Load(load.keys, load.panes) or load.panes not in (5, 60):
            continue
        record, before = paired["ids"].get(load, ours[load]), paired["old"].get(load, old.get(load))
        rows.append(
            [
                f"{load.keys:,}" + (" †" if load in paired["ids"] else ""),
                load.panes,
                f"{record['trigger']:.2f}",
                f"{record['cpu']:.2f}",
                f"{record['driver_bytes'] / 1e6:.0f}",
                f"{record['state_rows']:,.0f}",
                _ratios(pair_ratios(records, load)) or _times(record, before),
                f"{before['driver_bytes'] / 1e6:.0f}" if before else "",
                _times(ours[load], plain.get(load)),
            ]
        )
    heads = [
        "keys", "panes", "s a batch", "CPU s", "driver MB", "rows of state",
        "× driver's state", "its MB", "× `groupBy`",
    ]  # fmt: skip
    return _table(heads, rows)


def _times(ours: dict[str, float], theirs: dict[str, float] | None) -> str:
    return "" if theirs is None else f"{ours['trigger'] / theirs['trigger']:.2f}"


def pair_ratios(records: Records, load: Load) -> list[float]:
    """Seconds of a batch beside those of the older version that ran just before or after."""
    pairs = zip(_sides(records, "ids"), _sides(records, "old"), strict=True)
    return [a["trigger"] / b["trigger"] for a, b in pairs if Load(**a["load"]) == load]


def _sides(records: Records, side: str) -> Records:
    """One side of the pairs, as records."""
    pairs = [record for record in records if record["contender"] == "pair"]
    return [{"contender": side, "load": record["load"]} | record[side] for record in pairs]


def _ratios(found: Sequence[float]) -> str:
    """Their median, and each of them."""
    if not found:
        return ""
    return f"**{median(found):.2f}** ({', '.join(f'{ratio:.2f}' for ratio in found)})"


def _constants(model: Model) -> list[str]:
    rows = []
    for (name, (factor, unit)), value in zip(UNITS.items(), model.constants, strict=True):
        rows.append([name, f"{value * factor:.3g} {unit}"])
    return _table(["CPU time of", ""], rows)


def _predictions(records: Records, held_out: Sequence[Load]) -> list[str]:
    rows = []
    for load, predicted, spent in predictions(records, held_out):
        error = f"{predicted / spent - 1:+.0%}"
        rows.append([*_numbers(load), f"{predicted:.2f}", f"{spent:.2f}", error])
    heads = ["keys", "panes", "rows", "predicates", "minutes", "predicted s", "measured s", ""]
    return _table(heads, rows)


def _numbers(load: Load) -> list[str]:
    every = (load.keys, load.panes, load.rows, load.predicates, load.minutes)
    return [f"{number:,}" for number in every]


def _rates(records: Records) -> dict[str, float]:
    """Bytes: medians over the loads with many keys, where nothing else weighs."""
    ours = measured(records)
    many = [pair for pair in ours.items() if pair[0].keys >= 100_000]
    return {
        "shuffle": median(
            r["shuffled_bytes"] / ((sums_written(x) + sums_read(x)) * x.columns) for x, r in many
        ),
        "state": median(r["state_bytes"] / (r["state_rows"] * x.columns) for x, r in many),
        "output": median(r["output_bytes"] / (r["emits"] * (3 + x.predicates)) for x, r in many),
        "worker": (idle := min(r["worker_bytes"] for r in ours.values())),
        "task": median((r["worker_bytes"] - idle) / (task_rows(x) * x.columns) for x, r in many),
    }


def _bytes(records: Records) -> list[str]:
    rates = _rates(records)
    return _table(
        ["bytes of", ""],
        [
            ["a number through a shuffle (of sums written and read)", f"{rates['shuffle']:.1f}"],
            ["a number of the state on disk, three manifests' worth", f"{rates['state']:.1f}"],
            ["a column of an emit, in Parquet", f"{rates['output']:.1f}"],
            ["memory: a number of the sums that a task reads", f"{rates['task']:.0f}"],
            ["memory: a worker's Python beside that", f"{rates['worker']:,.0f}"],
        ],
    )


def _cluster(model: Model, records: Records) -> list[str]:
    rates, rows = _rates(records), []
    for keys, panes, predicates in (
        (10_000, 5, 4),
        (10_000_000, 5, 4),
        (10_000_000, 60, 4),
        (100_000_000, 60, 4),
        (100_000_000, 1_440, 4),
    ):

        def load(count: float, k: int = keys, w: int = panes, p: int = predicates) -> Load:
            return Load(k, w, rows=int(count), predicates=p)

        count = _largest(lambda n: model.seconds(load(n)) <= _CORES * _BUSY * _TRIGGER)
        best = load(count)
        numbers = (sums_written(best) + sums_read(best)) * best.columns
        network = (numbers * rates["shuffle"] + count * _ROW) / _TRIGGER / _NETWORK
        held = (best.pane_rows * panes + best.live_keys) * best.columns * rates["state"]
        rows.append(
            [
                f"{keys:,}",
                f"{panes:,}",
                f"{count / _TRIGGER:,.0f}" if count else "none",
                f"{best.emits:,.0f}",
                f"{network:.1%}",
                f"{held / 1e12:.2f}",
            ]
        )
    heads = ["keys", "panes", "rows/s", "emits a minute", "of the network", "TB of state"]
    return _table(heads, rows)


def _driver(records: Records) -> list[str]:
    rows = []
    for record in (each for each in records if each["contender"] == "driver"):
        times = [f"{record[name] * 1e3:.0f}" for name in ("commit", "read", "check")]
        size = f"{record['manifest_bytes'] / 1e3:.0f}"
        rows.append([f"{record['panes']:,}", f"{record['files']:,}", size, *times])
    heads = ["panes", "files a pane", "manifest kB", "to write ms", "to read ms", "to check ms"]
    return _table(heads, rows)


def _largest(fits: Any) -> float:
    """The largest count of rows that fits, to a hundredth."""
    low, high = 0.0, 1e12
    if not fits(1):
        return 0.0
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = [heads, ["---:"] * len(heads), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]
