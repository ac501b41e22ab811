"""What an engine may keep, from sums alone to all there is, and the stream that it keeps it of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import ids
from evaluation.engines import registered

__all__ = [
    "CONFIGURATIONS",
    "ENDPOINTS",
    "INDEXED",
    "PREDICATES",
    "REGIONS",
    "SAMPLE",
    "STRATUM_SAMPLE",
    "TIERS",
    "Configuration",
    "batch_rows",
    "make_batch",
    "run",
]

REGIONS = (
    "AF-South",
    "AP-East",
    "AP-South",
    "EU-North",
    "EU-West",
    "SA-East",
    "US-East",
    "US-West",
)
TIERS = ("free", "standard", "premium")
ENDPOINTS = ("/browse", "/cart", "/checkout", "/login", "/search")

# K = 4, and six live atoms: three answers of the region times two of the tier decide the fourth.
PREDICATES = {
    "west": "region = 'EU-West'",
    "east": "region = 'US-East'",
    "premium": "tier = 'premium'",
    "incident": "region = 'EU-West' AND tier = 'premium'",
}
INDEXED = ("region", "tier", "endpoint")
SAMPLE = 1024
STRATUM_SAMPLE = SAMPLE // len(REGIONS)
_SEED = 20260302


@dataclass(frozen=True)
class Configuration:
    """What is kept.

    retains, indexed  the rows inside, and an index on three of their columns
    sampling          a sample beside them
    """

    key: str
    label: str
    retains: bool = False
    indexed: bool = False
    sampling: ids.Sampling | None = None

    def engine(self, rows: int) -> ids.Engine:
        """An engine with the four predicates, before the first row."""
        window = ids.CountWindow(rows) if self.retains else ids.Changelog()
        made = ids.Engine(
            window,
            "latency",
            retain=self.retains,
            index=INDEXED if self.indexed else (),
            sampling=self.sampling,
        )
        return registered(made, PREDICATES)


CONFIGURATIONS = {
    one.key: one
    for one in (
        Configuration("summaries", "summaries only"),
        Configuration("retained", "+ retained window", retains=True),
        Configuration("index", "+ index", retains=True, indexed=True),
        Configuration(
            "sample", "+ sample", retains=True, indexed=True, sampling=ids.Sampling(SAMPLE)
        ),
        Configuration(
            "strata",
            "+ strata",
            retains=True,
            indexed=True,
            sampling=ids.Sampling(STRATUM_SAMPLE, strata=("region",)),
        ),
    )
}


def batch_rows(window: int) -> int:
    """Rows of one slide: few beside the window, so that a batch is not what is measured."""
    return max(1, min(1_000, window // 100))


def make_batch(number: int, rows: int) -> pa.Table:
    """The stream's batch of that number, the same whenever it is made."""
    rng = np.random.default_rng((_SEED, number))
    latency = np.rint(rng.lognormal(np.log(40.0), 0.5, rows) * 1e6) / 1e6
    return pa.table(
        {
            "region": _words(rng, rows, REGIONS),
            "tier": _words(rng, rows, TIERS),
            "endpoint": _words(rng, rows, ENDPOINTS),
            "latency": latency,
        }
    )


def run(configuration: Configuration, window: int, said: Callable[[], object]) -> ids.Engine:
    """Fill the window batch by batch, then slide it once over its own length.

    Summaries alone keep no row: what leaves is made again, as an upstream would send it. ``said``
    is called behind every slide.
    """
    engine = configuration.engine(window)
    rows = batch_rows(window)
    for coming, going in _slides(window):
        if configuration.retains:
            engine.ingest(make_batch(coming, rows))
        else:
            gone = None if going is None else make_batch(going, rows)
            engine.apply(inserts=make_batch(coming, rows), deletes=gone)
        said()
    return engine


def _slides(window: int) -> Iterator[tuple[int, int | None]]:
    """The numbers of the batch that comes and, once the window is full, of the one that goes."""
    inside = window // batch_rows(window)
    for number in range(2 * inside):
        yield number, number - inside if number >= inside else None


def _words(rng: np.random.Generator, rows: int, words: tuple[str, ...]) -> pa.DictionaryArray:
    drawn = rng.integers(0, len(words), rows, dtype=np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(drawn), pa.array(words))
