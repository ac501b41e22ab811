"""What every test may ask for: hypothesis profiles, and the real data where it is at hand."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent

# The same examples every time, so that red means the change; `--hypothesis-profile=explore` looks
# further, with new examples each time.
settings.register_profile(
    "house",
    max_examples=200,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "explore", settings.get_profile("house"), max_examples=3000, derandomize=False
)
settings.load_profile("house")


def _directory(variable: str, beside: str) -> Path:
    path = Path(os.environ.get(variable) or ROOT.parent / "shared" / beside)
    if not path.is_dir():
        pytest.skip(f"no {beside} at {path.name}/: set {variable} to the directory that holds it")
    return path


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The directory of real data (taxi_green/, incidents/); skips where it is absent."""
    return _directory("IDS_DATA", "data")


@pytest.fixture(scope="session")
def golden_cases() -> list[dict[str, Any]]:
    """Small windows with their exact attributions, by enumeration; skips where they are absent."""
    path = _directory("IDS_GOLDEN", "golden") / "shapley_small_windows.json"
    if not path.is_file():
        pytest.skip(f"IDS_GOLDEN holds no {path.name}")
    cases: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cases"]
    return cases


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session for all tests that need one."""
    from ids.spark.session import local_session

    session = local_session("local[2]", **{"spark.sql.shuffle.partitions": "3"})
    yield session
    session.stop()
