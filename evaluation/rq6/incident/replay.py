"""The incident replayed through the product: rows in, the candidates' signals out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import ids
from evaluation.baselines.coalitions import Floats
from evaluation.engines import registering
from evaluation.rq6.candidates import PLANTED, Candidate, conditions_of

__all__ = ["SIGNALS", "Signals", "replanted", "replay"]

SIGNALS = ("AVG lift", "ΔΦ of VAR")


@dataclass(frozen=True)
class Signals:
    """What each emit of a full window says.

    tuples    int64[emits]     rows since the onset: 20 is the emit at the incident's 20th row
    average   float64[emits]   the aggregate that is watched
    by_name   float64[candidates, emits] for each of ``SIGNALS``
    """

    tuples: npt.NDArray[np.int64]
    average: Floats
    by_name: Mapping[str, Floats]


def replay(
    rows: pa.Table, candidates: Sequence[Candidate], window: int, slide: int, onset: int
) -> Signals:
    """Slide a count window over ``rows``, whose row ``onset`` is the first of the incident."""
    emits = ids.sql(_script(candidates, window, slide), requests=rows)
    full = emits["n"].to_numpy() == window
    ends = slide * np.arange(1, emits.num_rows + 1)
    column = {name: emits[name].to_numpy()[full] for name in emits.column_names[1:]}
    return Signals(
        (ends - onset)[full],
        column["average"],
        {
            "AVG lift": np.stack([column[f"{c.name}_lift"] for c in candidates]),
            "ΔΦ of VAR": np.stack([column[f"{c.name}_delta"] for c in candidates]),
        },
    )


def replanted(calm: pa.Table, onset: int, factor: float) -> pa.Table:
    """Calm rows with another incident in them, from row ``onset`` of these to their end."""
    slowed = PLANTED.mask(calm) & (np.arange(calm.num_rows) >= onset)
    values = calm["latency"].to_numpy()
    at = calm.column_names.index("latency")
    return calm.set_column(at, "latency", pa.array(np.where(slowed, factor * values, values)))


def _script(candidates: Sequence[Candidate], window: int, slide: int) -> str:
    asked = ",\n".join(
        f"SHAPLEY_ATTRIBUTE(AVG(latency), {c.name} WITH (SHARE, LIFT)) AS {c.name},\n"
        f"SHAPLEY_DELTA(VAR_POP(latency), {c.name}) AS {c.name}_delta"
        for c in candidates
    )
    return f"""
        {registering(conditions_of(candidates), "requests")}
        SELECT AVG(latency) AS average, {asked}
        FROM requests
        WINDOW w AS (ORDER BY event_time ROWS {window} PRECEDING SLIDE {slide} ROWS)
        EMIT CHANGES;
    """
