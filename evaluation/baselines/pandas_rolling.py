"""pandas: one rolling sum a moment, the formula on NumPy arrays."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from evaluation.baselines.factor import Columns, lift_factors

__all__ = ["run"]


def run(table: pa.Table, window: int, regions: list[str]) -> Columns:
    """The whole stream in 1 + 2K rolling sums."""
    frame = table.select(["region", "latency"]).to_pandas()
    latency, codes = frame["latency"].to_numpy(), frame["region"].cat.codes.to_numpy()
    categories = frame["region"].cat.categories

    def rolled(values: np.ndarray) -> np.ndarray:
        sums: np.ndarray = pd.Series(values).rolling(window, min_periods=1).sum().to_numpy()
        return sums

    n = np.minimum(np.arange(1, len(latency) + 1), window)
    factor, total = lift_factors(window)[n], rolled(latency)
    mean = total / n
    out: Columns = {"n": n}
    for k, region in enumerate(regions):
        inside = codes == categories.get_loc(region)
        m = rolled(inside.astype(np.float64))
        A_P = rolled(np.where(inside, latency, 0.0))
        share = m / n * mean
        lift = factor * (A_P - m * mean)
        out[f"value_{k}"], out[f"share_{k}"], out[f"lift_{k}"] = share + lift, share, lift
    return out
