"""RQ2 in words and tables."""

from __future__ import annotations

from ids.reproduce.chapter import Section, Table, Tables
from ids.reproduce.formatting import duration, interval, number, power, times
from ids.reproduce.rq2 import alternatives, literally, on_spark, paper
from ids.reproduce.rq2.comparing import comparisons
from ids.reproduce.rq2.findings import cells, latencies, overall, span
from ids.reproduce.rq2.latency import AFTER, AGAIN, BARE
from ids.reproduce.rq2.maintaining import ATOMS, EVERYTHING

__all__ = ["show"]


def show(tables: Tables) -> Section:
    """What was found, with every number taken from the rows."""
    remarks = [*_on_throughput(tables), *_on_algorithm1(tables)]
    remarks += [*_on_alternatives(tables), *_on_latency(tables)]
    makers = (_throughput_table, _speedup_table, _algorithm1_table)
    shown = [make(tables) for make in (*makers, _alternatives_table, _latency_table)]
    return Section(remarks, comparisons(tables), [table for table in shown if table.rows])


def _on_throughput(tables: Tables) -> list[str]:
    everywhere, flat = span(cells(tables, kept=ATOMS)), overall(tables, 1)
    all_kept = overall(tables, 1, EVERYTHING)
    if everywhere is None or flat is None or all_kept is None:
        return []
    by_window = span(cells(tables, kept=ATOMS, step=1, game="VAR", predicates=4), "ids_tuples_s")
    assert by_window is not None
    return [
        f"The slide loop does not look at N: from N = 10³ to 10⁶ it takes {power(by_window[0])} to "
        f"{power(by_window[1])} tuples/s (K = 4, |Δ| = 1), while a scan of every window falls as "
        f"1/N.",
        f"Over all cells the speed-up is {times(everywhere[0])} to {times(everywhere[1])}. A slide "
        f"touches 2|Δ| rows where a scan touches N, so that about N / 2|Δ| is to be expected.",
        f"Where the marginals and the window are kept beside the atoms, as in Algorithm 1, the "
        f"median at |Δ| = 1 is {power(all_kept)} tuples/s in place of {power(flat)}: each row is "
        f"added in several places, to integers of up to 128 bits. The engine does so once for a "
        f"batch, not for a row, which is what the cells of |Δ| = 10 and 100 measure.",
    ]


def _on_algorithm1(tables: Tables) -> list[str]:
    rows = {row["contender"]: row for row in tables["rq2_algorithm1"]}
    if not {literally.LOOP, literally.WHOLE, literally.ALL, literally.LITERAL} <= rows.keys():
        return []
    cost = {label: row["ns_per_tuple"].mean for label, row in rows.items()}
    literal = cost[literally.LITERAL]
    return [
        f"Algorithm 1 taken literally, in compensated doubles and compiled, takes "
        f"{number(literal)} ns a tuple on this machine. The slide loop of IDS takes "
        f"{number(cost[literally.LOOP])} ns, {number(cost[literally.WHOLE])} ns with signatures "
        f"and digits counted in, and {number(cost[literally.ALL])} ns where it keeps all that "
        f"Algorithm 1 keeps; its sums are exact."
    ]


def _on_alternatives(tables: Tables) -> list[str]:
    rows = {row["contender"]: row for row in tables["rq2_alternatives"]}
    remarks = []
    if alternatives.OURS in rows:
        ours = rows[alternatives.OURS]
        others = [
            f"{label} {times(row['times_ours'].mean)}"
            for label, row in rows.items()
            if row["rows"] == ours["rows"] and label != alternatives.OURS
        ]
        remarks.append(
            f"The paper's query with four regions and N = {ours['window']:,} runs through ids.sql "
            f"at {power(ours['rows_s'].mean)} rows/s, an emit at each row. On the same rows the "
            f"others take as many times as long: {', '.join(others)}."
        )
    if {on_spark.FUNCTIONS, on_spark.SPARK_SQL} <= rows.keys():
        spark, mine = rows[on_spark.FUNCTIONS], rows[on_spark.SPARK_SQL]
        remarks.append(
            f"Spark's window functions add up the frame anew at every row: "
            f"{number(spark['rows_s'].mean)} rows/s over {spark['rows']:,} rows with "
            f"N = {spark['window']:,}, and they stop at counts, sums and sums of squares. "
            f"ids.spark.sql answers on the same rows at {number(mine['rows_s'].mean)} rows/s, of "
            f"which the start of its jobs is most."
        )
    return remarks


def _on_latency(tables: Tables) -> list[str]:
    after, again = latencies(tables, "marginal", AFTER), latencies(tables, "marginal", AGAIN)
    both = latencies(tables, "compositional", AFTER)
    bare = [*latencies(tables, BARE, AFTER).values()]
    if not (after and again and both and bare):
        return []
    few, many = min(after), max(after)
    printed = {line.predicates: line.p50 for line in paper.LATENCIES if line.path == "marginal"}
    return [
        f"Right after a slide a registered predicate is answered in {number(after[few])} µs at "
        f"K = {few} and {number(after[many])} µs at K = {many}, where the paper has "
        f"{number(printed[few])} and {number(printed[many])} µs. A compositional question takes "
        f"{number(both[many])} µs at K = {many}. The bare closed form as a Python function takes "
        f"{number(bare[0])} µs at the same moment; in an unchanged window, where the answer is "
        f"remembered, the engine takes {number(again[many])} µs."
    ]


def _throughput_table(tables: Tables) -> Table:
    """The paper's Figure 2(a)."""
    rows = sorted(
        cells(tables, game="VAR", predicates=4),
        key=lambda row: (row["kept"], row["step"], row["window"]),
    )
    return Table(
        "Incremental maintenance and a scan of every window (VAR: m, A and B; K = 4)",
        ("kept", "|Δ|", "N", "IDS, tuples/s", "scan, tuples/s", "IDS, slides/s", "speed-up"),
        [
            (
                row["kept"],
                str(row["step"]),
                f"{row['window']:,}",
                power(row["ids_tuples_s"].mean, 3),
                power(row["scan_tuples_s"].mean, 3),
                power(row["ids_slides_s"].mean, 3),
                times(row["speedup"].mean),
            )
            for row in rows
        ],
        "Both kernels are compiled, and both left the same integers in every cell. Scans are timed "
        "on a few slides (two to four at N = 10⁶) and counted per slide. Means of the repetitions; "
        "the records hold the 95 % intervals and the AVG game.",
    )


def _speedup_table(tables: Tables) -> Table:
    """The paper's Figure 2(b)."""
    found = cells(tables, game="VAR", step=1)
    windows = sorted({int(row["window"]) for row in found})
    lines: dict[tuple[str, int, int], list[str]] = {
        (row["kept"], row["predicates"], row["live"]): [] for row in found
    }
    for line in lines:
        same = [row for row in found if (row["kept"], row["predicates"]) == line[:2]]
        by_window = {row["window"]: times(row["speedup"].mean) for row in same}
        lines[line] = [by_window.get(window, "") for window in windows]
    return Table(
        "Speed-up over a scan at |Δ| = 1, by the number of predicates",
        ("kept", "K", "live atoms", *(f"N = {window:,}" for window in windows)),
        [(kept, str(k), str(live), *lines[kept, k, live]) for kept, k, live in sorted(lines)],
    )


def _algorithm1_table(tables: Tables) -> Table:
    return Table(
        "A slide of one row, beside Algorithm 1 taken literally",
        ("", "N", "K", "ns a tuple", "times as fast"),
        [
            (
                row["contender"],
                f"{row['window']:,}",
                str(row["predicates"]),
                interval(row["ns_per_tuple"]),
                times(row["times_faster"].mean),
            )
            for row in tables["rq2_algorithm1"]
        ],
    )


def _alternatives_table(tables: Tables) -> Table:
    return Table(
        "The same query by other means",
        ("", "rows", "N", "time", "rows/s", "times as long as IDS"),
        [
            (
                row["contender"],
                f"{row['rows']:,}",
                f"{row['window']:,}",
                duration(row["seconds"].mean),
                power(row["rows_s"].mean, 3),
                times(row["times_ours"].mean),
            )
            for row in tables["rq2_alternatives"]
        ],
        "Spark runs fewer rows, many of them while the window fills, which favours it; its "
        "ratio is to IDS on those rows. Its window functions give count, sum and sum of squares "
        "and no attribution. All but IDS sum in doubles.",
    )


def _latency_table(tables: Tables) -> Table:
    """The paper's Table 5, ours twice beside it."""
    found = {(row["predicates"], row["path"], row["reading"]): row for row in tables["rq2_latency"]}
    lines = []
    for line in paper.LATENCIES:
        readings = [found.get((line.predicates, line.path, reading)) for reading in (AFTER, AGAIN)]
        if any(reading is None for reading in readings):
            continue
        ours = [number(r[p].mean) for r in readings if r for p in ("p50", "p99")]
        live = readings[0]["live"] if readings[0] else ""
        lines.append(
            (str(line.predicates), f"{live} ({line.live})", line.path, *ours,
             number(line.p50), number(line.p99))
        )  # fmt: skip
    return Table(
        "Library attribution latency, µs at N = 10⁴",
        ("K", "live atoms (paper)", "path", f"p50, {AFTER}", f"p99, {AFTER}", f"p50, {AGAIN}",
         f"p99, {AGAIN}", "p50, paper", "p99, paper"),
        lines,
        "The compositional question is the union of two registered predicates (K = 1: the "
        "complement of the one). The paper does not say whether its window moved in between."
        ,
    )  # fmt: skip
