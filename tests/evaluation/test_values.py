from __future__ import annotations

import pyarrow as pa

from evaluation.bench import as_text, equality, frequent, plain, where

ZONES = pa.table({"zone": pa.chunked_array([["b", None, "a"], ["c", "a", "b"]])})
CODED = pa.table({"zone": ZONES["zone"].dictionary_encode(), "y": [1, 2, 3, 4, 5, 6]})


def test_the_most_frequent_value_comes_first_equals_in_their_order_and_null_is_none() -> None:
    for table in (ZONES, CODED):
        assert frequent(table, "zone") == [("a", 2), ("b", 2), ("c", 1)]
    numbers = pa.table({"n": [9, 10, 10, 9, 2]})
    assert frequent(numbers, "n") == [(9, 2), (10, 2), (2, 1)]


def test_a_value_is_found_where_it_stands_and_null_is_no_value() -> None:
    for table in (ZONES, CODED):
        assert where(plain(table["zone"]), "b").tolist() == [True, *[False] * 4, True]
        assert not where(plain(table["zone"]), "d").any()


def test_text_without_its_dictionary_is_the_same_text() -> None:
    told = as_text(CODED)
    assert told.schema.field("zone").type == pa.string()
    assert told.to_pydict() == CODED.to_pydict()
    assert told["zone"].num_chunks == 1


def test_a_condition_quotes_what_it_must() -> None:
    assert equality("tier", "it's") == r"tier = 'it\'s'"
    assert equality("vendor", 2) == "vendor = 2"
