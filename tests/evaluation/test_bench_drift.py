from __future__ import annotations

import pytest

from evaluation.benchmarks.bench_drift import STREAMS, drift

HALF_ULP = 2.0**-53


@pytest.mark.parametrize("stream", STREAMS)
def test_ids_is_off_by_the_last_rounding_alone(stream: str) -> None:
    average, variance = drift(stream, slides=11_000)["IDS"]
    assert average <= HALF_ULP
    assert variance <= 2 * HALF_ULP


def test_running_sums_of_doubles_do_drift() -> None:
    found = drift("spikes", slides=11_000)
    assert found["doubles, += and -="][0] > 1e-12
    assert found["doubles, centred"][1] > 1e-6
