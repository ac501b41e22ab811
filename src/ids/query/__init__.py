"""In-process queries: prepare the rows of a table, slide the window, evaluate every emit."""

from ids.query.approximate import Population, estimate_items, moment_items, with_moments
from ids.query.bad_rows import (
    FAR_TIME,
    INFINITE,
    NAN,
    NULL_TIME,
    bad_row_error,
    file_stem,
    notes,
)
from ids.query.emits import CountEmits, EmitPlan, Emits
from ids.query.evaluate import (
    Segment,
    evaluate_segment,
    item_columns,
    last_of_each_key,
    output_columns,
    refuse_wide_windows,
)
from ids.query.replay import Answers
from ids.query.run import (
    Result,
    run_script,
    shown,
    sql,
    sql_all,
)

__all__ = [
    "FAR_TIME",
    "INFINITE",
    "NAN",
    "NULL_TIME",
    "Answers",
    "CountEmits",
    "EmitPlan",
    "Emits",
    "Population",
    "Result",
    "Segment",
    "bad_row_error",
    "estimate_items",
    "evaluate_segment",
    "file_stem",
    "item_columns",
    "last_of_each_key",
    "moment_items",
    "notes",
    "output_columns",
    "refuse_wide_windows",
    "run_script",
    "shown",
    "sql",
    "sql_all",
    "with_moments",
]
