"""A load: what comes in with every batch, and what is asked of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["Load"]

_REGIONS = 24
_GROUP = 100_000  # rows that Spark can give to a task of their own


@dataclass(frozen=True, slots=True)
class Load:
    """Rows over a uniform choice of keys, one file a batch; windows slide by a minute.

    panes       a window's length, in minutes
    rows        in each batch
    predicates  asked of each window
    minutes     of event time in each batch
    """

    keys: int
    panes: int
    rows: int = 400_000
    predicates: int = 1
    minutes: int = 1

    @property
    def batches(self) -> int:
        """Until windows are full and code is compiled, and eight more, which are measured.

        Java compiles what runs often, so short batches take more of them to get warm.
        """
        warm = 40 if self.keys < 100_000 else 24
        return max(-(-self.panes // self.minutes), warm) + 8

    @property
    def script(self) -> str:
        """AVG, and its attribution to each predicate, by key."""
        items = "".join(
            f", SHAPLEY_ATTRIBUTE(AVG(latency), region = 'r{n}') AS r{n}"
            for n in range(self.predicates)
        )
        return f"""SELECT AVG(latency) AS latency{items} FROM events
            WINDOW w AS (PARTITION BY k ORDER BY event_time
                RANGE INTERVAL '{self.panes}' MINUTE PRECEDING SLIDE INTERVAL '1' MINUTE)
            EMIT CHANGES"""

    @property
    def columns(self) -> int:
        """Of whole numbers in a row of sums: rows, then players and three parts for each item."""
        return 1 + 4 * (1 + self.predicates)

    @property
    def pane_rows(self) -> float:
        """Sums that a batch brings: a row for each key and minute that occur, on average."""
        places = self.keys * self.minutes
        return float(places * -np.expm1(-self.rows / places))

    @property
    def live_keys(self) -> float:
        """Keys with a row in the window, on average."""
        return float(self.keys * -np.expm1(-self.rows * self.panes / self.minutes / self.keys))

    @property
    def emits(self) -> float:
        """Of a batch."""
        return self.live_keys * self.minutes

    def write(self, directory: Path) -> None:
        """One Parquet file a batch."""
        random = np.random.default_rng(0)
        regions = pa.array([f"r{n}" for n in range(_REGIONS)])
        span = self.minutes * 60_000_000
        for batch in range(self.batches):
            times = np.sort(random.integers(batch * span, (batch + 1) * span, self.rows))
            columns = {
                "event_time": pa.array(times, pa.timestamp("us", "UTC")),
                "k": pa.array(random.integers(0, self.keys, self.rows)),
                "region": regions.take(pa.array(random.integers(0, _REGIONS, self.rows))),
                "latency": pa.array(random.lognormal(3, 1, self.rows)),
            }
            file = directory / f"{batch:05d}.parquet"
            pq.write_table(pa.table(columns), file, row_group_size=_GROUP)
