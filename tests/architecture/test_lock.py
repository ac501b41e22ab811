from __future__ import annotations

import re
import warnings

import pytest
from pyspark.sql.pandas.utils import require_minimum_pandas_version

from tests.architecture.source import ROOT


def test_pyspark_takes_the_locked_pandas_without_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    locked = re.search(r"^pandas==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert locked
    monkeypatch.setattr("pandas.__version__", locked[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_minimum_pandas_version()
