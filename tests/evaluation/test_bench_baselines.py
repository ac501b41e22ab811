from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from ids.kernels import mix
from tests.oracles.domination import undominated
from tests.oracles.recount import recount
from tests.oracles.shapley import closed_form

pytest.importorskip("pandas", reason="the baselines need the extra 'bench'")
pytest.importorskip("polars", reason="the baselines need the extra 'bench'")
pytest.importorskip("duckdb", reason="the baselines need the extra 'bench'")

from evaluation.baselines import loops, rolling
from evaluation.step import REGIONS

RUNS = {
    "pandas": rolling.by_pandas,
    "polars": rolling.by_polars,
    "duckdb": rolling.by_duckdb,
    "duckdb framed": rolling.by_duckdb_frame,
}


def server_events(rows: int, seed: int) -> pa.Table:
    """Requests strictly in order of time, of more regions than are asked about."""
    rng = np.random.default_rng(seed)
    start = np.datetime64("2026-01-01T00:00:00", "us")
    columns = {"event_time": start + np.cumsum(rng.integers(1, 2000, rows)).astype("m8[us]")}
    for name, values in {"region": [*REGIONS, "EU-North", "AF"], "tier": ["a", "b", "c"]}.items():
        drawn = pa.array(rng.integers(0, len(values), rows, dtype=np.int32))
        columns[name] = pa.DictionaryArray.from_arrays(drawn, values)
    return pa.table(columns | {"latency": rng.lognormal(4.0, 0.5, rows)})


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("window", [1, 2, 7, 40, 1000])
def test_a_baseline_gives_the_attribution_of_every_window(run: object, window: int) -> None:
    table, regions = server_events(120, seed=3), REGIONS
    found = run(table, window, regions)  # type: ignore[operator]
    region, y = table["region"].to_pylist(), table["latency"].to_pylist()
    for last in range(0, 120, 7):
        rows = range(max(0, last + 1 - window), last + 1)
        assert found["n"][last] == len(rows)
        ys = [y[i] for i in rows]
        for k, name in enumerate(regions):
            members = [j for j, i in enumerate(rows) if region[i] == name]
            exact = float(closed_form("AVG", ys, members))
            share = len(members) / len(rows) * float(sum(map(Fraction, ys)) / len(ys))
            assert found[f"value_{k}"][last] == pytest.approx(exact, abs=1e-9)
            assert found[f"value_{k}_share"][last] == pytest.approx(share, abs=1e-9)
            assert found[f"value_{k}_lift"][last] == pytest.approx(exact - share, abs=1e-9)


def test_the_baselines_agree_with_each_other_on_a_longer_stream() -> None:
    table = server_events(20_000, seed=5)
    answers = [run(table, 1000, REGIONS) for run in RUNS.values()]
    for other in answers[1:]:
        assert other.keys() == answers[0].keys()
        for name, column in answers[0].items():
            np.testing.assert_allclose(other[name], column, rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("rows", [1, 99, 500])
def test_algorithm_1_ends_in_the_state_of_a_recount(rows: int) -> None:
    table, window, centre = server_events(rows, seed=9), 100, 60.0
    region, tier = (table[name].chunk(0).indices.to_numpy() for name in ("region", "tier"))
    y = table["latency"].to_numpy()
    predicates = np.array([[0, 0], [0, 2], [1, 0], [1, 2]], dtype=np.int32)
    found = loops.algorithm1(region, tier, y, window, predicates, centre)
    whole, marginals, atoms, harmonics = found
    inside = range(max(0, rows - window), rows)

    def signature(i: int) -> int:
        return sum(
            1 << k
            for k, (column, code) in enumerate(predicates)
            if (region, tier)[column][i] == code
        )

    def agrees(summary: np.ndarray, predicate: object) -> None:
        exact = recount(inside, predicate, lambda i: Fraction(y[i]) - 60)  # type: ignore[arg-type]
        np.testing.assert_allclose(summary, [float(each) for each in exact], rtol=1e-12, atol=1e-9)

    agrees(whole[0], lambda i: i >= 0)
    for k in range(4):
        agrees(marginals[k], lambda i, k=k: bool(signature(i) >> k & 1))
    for atom in range(16):
        agrees(atoms[atom], lambda i, atom=atom: signature(i) == atom)
    harmonic = [sum(1 / j**d for j in range(1, len(inside) + 1)) for d in (1, 2)]
    np.testing.assert_allclose(harmonics, harmonic, rtol=1e-13)


@pytest.mark.parametrize(("rows", "window", "size"), [(1, 1, 1), (150, 40, 3), (90, 200, 12)])
def test_eager_domination_holds_the_undominated_rows(rows: int, window: int, size: int) -> None:
    priority = np.empty(rows)
    mix(np.uint64(7), np.arange(rows), priority)
    keep = undominated(priority, size)
    sequence, drawn, passed = np.empty(rows, np.int64), np.empty(rows), np.empty(rows, np.int32)
    held = loops.eager(np.uint64(7), rows, window, size, sequence, drawn, passed)
    wanted = {i for i in range(max(0, rows - window), rows) if keep[i]}
    assert set(sequence[:held].tolist()) == wanted
    assert drawn[:held].tolist() == priority[sequence[:held]].tolist()
