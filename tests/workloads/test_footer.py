from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ids.errors import SourceError
from ids.workloads.footer import sort_encodings

# As Parquet's own list of encodings numbers them.
CODES = {
    "PLAIN": 0,
    "PLAIN_DICTIONARY": 2,
    "RLE": 3,
    "BIT_PACKED": 4,
    "DELTA_BINARY_PACKED": 5,
    "DELTA_BYTE_ARRAY": 7,
    "RLE_DICTIONARY": 8,
    "BYTE_STREAM_SPLIT": 9,
}
COLUMN = st.sampled_from(
    [
        pa.array([1.5, None, -2.0] * 3),
        pa.array(["a", "b", None] * 3),
        pa.array([True, False, None] * 3),
        pa.array([[1, 2], [], None] * 3),
        pa.array([{"x": 1, "y": "z"}, None, {"x": None, "y": ""}] * 3),
        pa.array([[("k", 1)], [], None] * 3, pa.map_(pa.string(), pa.int64())),
        pa.array([b"\x00" * 300, b"\x0f", b""] * 3),
        pa.array([0, 1, 2] * 3, pa.timestamp("us", "UTC")),
        pa.array([1, 2, 3] * 3, pa.decimal128(30, 2)),
    ]
)


def chunks(file: Path) -> list[dict[str, Any]]:
    metadata = pq.read_metadata(file)
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    return [g.column(i).to_dict() for g in groups for i in range(g.num_columns)]


@given(
    st.lists(COLUMN, min_size=1, max_size=20),
    st.sampled_from(["1.0", "2.4", "2.6"]),
    st.sampled_from(["1.0", "2.0"]),
    st.booleans(),
    st.integers(1, 9),
    st.dictionaries(st.text(max_size=5), st.text(max_size=300), max_size=3),
)
@settings(max_examples=150)
def test_only_the_order_of_encodings_changes(
    tmp_path_factory: pytest.TempPathFactory,
    columns: list[pa.Array],
    version: str,
    pages: str,
    dictionary: bool,
    group: int,
    notes: dict[str, str],
) -> None:
    file = tmp_path_factory.mktemp("footer") / "x.parquet"
    table = pa.table({f"c{i}": column for i, column in enumerate(columns)})
    pq.write_table(
        table.replace_schema_metadata(notes),
        file,
        version=version,
        data_page_version=pages,
        use_dictionary=dictionary,
        row_group_size=group,
        write_page_index=dictionary,
    )
    before, plain = chunks(file), pq.read_table(file)
    content = file.read_bytes()
    sort_encodings(file)
    for was, now in zip(before, chunks(file), strict=True):
        by_code = sorted(was["encodings"], key=CODES.__getitem__)
        assert list(now.pop("encodings")) == by_code
        was.pop("encodings")
        assert was == now
    assert pq.read_table(file).equals(plain)
    assert sorted(file.read_bytes()) == sorted(content)
    settled = file.read_bytes()
    sort_encodings(file)
    assert file.read_bytes() == settled


@pytest.mark.parametrize("content", [b"PAR1PAR1PAR1", b"PAR1" + b"\xff" * 8 + b"PAR1", b"x" * 20])
def test_what_has_no_footer_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.parquet"
    file.write_bytes(content)
    with pytest.raises(SourceError, match="no Parquet footer"):
        sort_encodings(file)
