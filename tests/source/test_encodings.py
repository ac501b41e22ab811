"""Parquet as other writers encode it, and decimals as a person reads them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from ids.source import open_table


def test_text_in_a_delta_encoding_is_read(tmp_path: Path) -> None:
    words = ["a", "bb", None, "a"]
    file = tmp_path / "delta.parquet"
    pq.write_table(
        pa.table({"word": words}),
        file,
        use_dictionary=False,
        column_encoding={"word": "DELTA_BYTE_ARRAY"},
    )
    column = open_table(file, "words").read(["word"]).columns["word"]
    assert column.valid is not None and column.dictionary is not None
    found = [
        column.dictionary[code] if valid else None
        for code, valid in zip(column.values, column.valid, strict=True)
    ]
    assert found == words


@given(st.lists(st.integers(-(10**17), 10**17), min_size=1), st.integers(0, 12))
def test_a_decimal_is_the_double_nearest_to_it(units: list[int], scale: int) -> None:
    decimals = [Decimal(unit).scaleb(-scale) for unit in units]
    column = pa.array(decimals, pa.decimal128(38, scale))
    read = open_table(pa.table({"x": column}), "t").read(["x"]).columns["x"]
    assert read.values.tolist() == [float(d) for d in decimals]
