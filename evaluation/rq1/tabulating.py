"""The tables of RQ1: the paper's columns, replays by workload, restored engines, drift."""

from __future__ import annotations

from evaluation.chapter import Table
from evaluation.formatting import number, power
from evaluation.rq1 import paper
from evaluation.rq1.enumeration import GAMES
from evaluation.rq1.findings import ERRORS, Found, worst
from evaluation.rq1.regression import STRESS

__all__ = ["tables_of"]


def tables_of(found: Found) -> list[Table]:
    """Those that this run has rows for."""
    tables = []
    if found.enumerated or found.deltas:
        tables.append(_validation(found))
    if found.enumerated:
        tables.append(_kinds(found))
    if found.deltas or found.emits:
        tables.append(_replays(found))
    if found.restored:
        tables.append(_restored(found))
    if found.drift:
        tables.append(_drift(found))
    return tables


def _validation(found: Found) -> Table:
    rows: list[list[str]] = []
    for game in GAMES:
        rows.append([game, "ours", number(found.cases(game)), *_cells(found.errors(game))])
        if game in paper.PRINTED:
            printed = paper.PRINTED[game]._asdict()
            rows.append([game, "paper", number(paper.CASES), *_cells(printed)])
    stressed = [row for row in found.enumerated if row["kind"] == STRESS]
    for game in GAMES:
        cases = sum(row["cases"] for row in stressed if row["game"] == game) or None
        rows.append([game, "ours, stress alone", number(cases), *_cells(found.stress(game))])
    return Table(
        "Implementation validation",
        ["Game", "", "Cases", "max abs err", "max rel err", "max rel delta err",
         "max rel Eff. resid."],
        rows,
        "An absolute error is in the unit of the values, and the paper does not say how large its "
        "values are. Ours are below 1,000 in the upper rows, and about 10⁹ with a deviation "
        "of 10⁻³ in those of stress alone, where a sum's last bit is worth 10⁻⁶. A relative error "
        "is relative to the exact value, or where that is 0 to the aggregate.",
    )  # fmt: skip


def _cells(errors: dict[str, float | None]) -> list[str]:
    return [power(errors[column]) for column in ERRORS]


def _kinds(found: Found) -> Table:
    kinds = list(dict.fromkeys(row["kind"] for row in found.enumerated))
    rows = [
        [
            kind,
            *(
                number(
                    worst(
                        (r for r in found.enumerated if (r["kind"], r["game"]) == (kind, game)),
                        "units",
                    ),
                    2,
                )
                for game in GAMES
            ),
        ]
        for kind in kinds
    ]
    return Table(
        "Largest error against enumeration, in units of 2⁻⁵³·(|share| + |lift|)",
        ["values", *GAMES],
        rows,
        "Free of how much share and lift cancel. 1 is what rounding the exact value once may cost. "
        "Offset: a mean of 10⁹ with a deviation of 10⁻³, as in stress.",
    )


def _replays(found: Found) -> Table:
    rows = []
    for workload in found.workloads:
        kept = [row for row in found.deltas if row["workload"] == workload]
        emitted = [row for row in found.emits if row["workload"] == workload]
        both = [*kept, *emitted]
        rows.append(
            [
                workload,
                number(worst(both, "slides")),
                number(worst(kept, "checks")),
                f"{sum(r['differing'] for r in kept)} of {sum(r['questions'] for r in kept):,}",
                f"{sum(r['differing'] for r in emitted)} of "
                f"{sum(r['questions'] for r in emitted):,}",
                power(worst(both, "exact")),
                number(worst(both, "units"), 2),
                power(worst(kept, "residual")),
                power(worst(kept, "probe")),
                power(worst(emitted, "telescoped")),
            ]
        )
    return Table(
        "Delta equivalence, by workload (N = 10,000)",
        ["Workload", "Slides", "Check points", "Engine: differing bits", "ids.sql: differing bits",
         "max rel err, exact", "in 2⁻⁵³", "max rel Eff. resid.", "by the engine's own probe",
         "Σ SHAPLEY_DELTA"],
        rows,
        "The engine takes rows singly and in batches of up to 200 and is asked all seven games; "
        "ids.sql emits the paper's five at every row. "
        "Differing bits: answers that are not the recomputed one's, bit for bit. The exact errors "
        "are of the paper's five games, against whole numbers: relative to the value, then in "
        "units of 2⁻⁵³·(|share| + |lift|). Σ SHAPLEY_DELTA: what all deltas together miss of the "
        "last attribution, relative to the largest.",
    )  # fmt: skip


def _restored(found: Found) -> Table:
    return Table(
        "Checkpoint and restore in the middle",
        ["Workload", "Restored after slide", "of", "Live atoms", "Differing answers at the end"],
        [
            [
                row["workload"],
                number(row["restored_at"]),
                number(row["slides"]),
                number(row["atoms"]),
                f"{row['differing']} of {row['answers']}",
            ]
            for row in found.restored
        ],
    )


def _drift(found: Found) -> Table:
    last = max(row["slides"] for row in found.drift)
    return Table(
        f"Relative error after {number(last)} slides of one row (N = 1,000)",
        ["Stream", "State", "AVG", "VAR_POP"],
        [
            [row["stream"], row["state"], power(row["avg"]), power(row["var_pop"])]
            for row in found.drift
            if row["slides"] == last
        ],
        "stress: mean 10⁹, deviation 10⁻³. spikes: lognormal latencies, one in 5,000 a billion "
        "times too large; none is inside at the end.",
    )
