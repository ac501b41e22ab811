"""The fan-out of atoms in words and tables, from its rows alone."""

from __future__ import annotations

from typing import Any

from evaluation.chapter import Section, Table, Tables
from evaluation.formatting import bytes_, duration, interval, number, power

__all__ = ["show"]

Found = dict[str, Any]


def show(tables: Tables) -> Section:
    """What was found of the schemas, and of the limit."""
    rows, limit = tables["beyond_fanout"], tables["beyond_fanout_limit"]
    remarks = [*(_of_schemas(rows) if rows else []), *(_of_the_limit(limit) if limit else [])]
    shown = []
    if rows:
        shown.append(_table("Live atoms of K predicates, by schema", rows))
    if limit:
        shown.append(_table("Independent Booleans up to the atom limit and past it", limit))
    return Section(remarks, (), shown)


def _of_schemas(rows: list[Found]) -> list[str]:
    most = max(row["predicates"] for row in rows)
    tame = [row for row in rows if row["predicates"] == most and row["bound"] <= most + 1]
    refined = [row for row in rows if row["refined"]]
    finest = max(refined, key=lambda row: int(row["signatures"]))
    coarsest = min(refined, key=lambda row: int(row["signatures"]))
    window = rows[0]["window"]
    said = [
        f"How many atoms live is up to the data, not to 2^K: {most} predicates over one column, "
        f"exclusive, overlapping or nested, make at most "
        f"{max(row['signatures'] for row in tame)} live atoms of a nominal {power(2.0**most)}, "
        f"in at most {bytes_(max(row['bytes'] for row in tame))}. No schema makes more than there "
        f"are rows, {window:,}.",
        f"The finest division that still has its atoms is {finest['label']} at "
        f"K = {finest['predicates']}: {finest['signatures']:,} atoms in {bytes_(finest['bytes'])} "
        f"beside {bytes_(finest['retained'])} of retained rows. The slide loop alone takes "
        f"{number(finest['kernel_ns'].best)} ns a row there and "
        f"{number(coarsest['kernel_ns'].best)} ns with {coarsest['signatures']} atoms (the best of "
        f"each): a row touches one atom, however many there are; what many cost more is probably "
        f"memory that no cache holds.",
        f"Through the engine, in slides of 1,000 rows, a row costs "
        f"{duration(coarsest['slide_ns'].median * 1e-9)} at {coarsest['signatures']} atoms and "
        f"{duration(finest['slide_ns'].median * 1e-9)} at {finest['signatures']:,}: each slide "
        f"looks at every atom once, so with tens of thousands of atoms larger slides are cheaper.",
    ]
    given_up = [row for row in rows if not row["refined"]]
    if given_up:
        which = ", ".join(f"{row['label']} at K = {row['predicates']}" for row in given_up)
        said.append(
            f"Past the limit of {rows[0]['limit']:,} atoms the engine keeps the registered "
            f"predicates alone: {which}. Answers were compared with a recount and stayed exact."
        )
    return said


def _of_the_limit(rows: list[Found]) -> list[str]:
    before = [row for row in rows if row["refined"]]
    after = [row for row in rows if not row["refined"]]
    if not before or not after:
        return []
    last, first = max(before, key=_predicates), min(after, key=_predicates)
    return [
        f"With independent Booleans the fallback sets in between K = {last['predicates']} "
        f"({last['signatures']:,} live atoms) and K = {first['predicates']} "
        f"({first['signatures']:,} signatures), the limit being {last['limit']:,}. A registered "
        f"predicate is answered in {_micro(last, 'marginal_us')} before and "
        f"{_micro(first, 'marginal_us')} after; a combination in "
        f"{_micro(last, 'combination_us')} by {last['combination_by']} before and "
        f"{_micro(first, 'combination_us')} by {first['combination_by']} after. A row of a slide "
        f"costs {duration(last['slide_ns'].median * 1e-9)} before and "
        f"{duration(first['slide_ns'].median * 1e-9)} after, and sums take "
        f"{bytes_(last['bytes'])} before and {bytes_(first['bytes'])} after. What is given up is "
        f"that combinations nobody named need the rows: without retained ones they are refused."
        + (" So close to the limit atoms cost more than they save."
           if last["combination_us"].median > first["combination_us"].median else ""),
    ]  # fmt: skip


def _predicates(row: Found) -> int:
    return int(row["predicates"])


def _micro(row: Found, name: str) -> str:
    return duration(row[name].median * 1e-6)


def _table(title: str, rows: list[Found]) -> Table:
    labels = list(dict.fromkeys(row["label"] for row in rows))
    return Table(
        title,
        [
            "schema", "K", "2^K", "live atoms", "state", "slide loop, ns a row",
            "engine, ns a row", "registered, µs", "combination, µs", "answered by",
        ],
        [
            [
                row["label"],
                str(row["predicates"]),
                power(row["nominal"]),
                f"{row['signatures']:,}" + ("" if row["refined"] else " (given up)"),
                bytes_(row["bytes"]),
                number(None) if row["kernel_ns"] is None else interval(row["kernel_ns"]),
                interval(row["slide_ns"]),
                interval(row["marginal_us"]),
                interval(row["combination_us"]),
                row["combination_by"],
            ]
            for row in sorted(rows, key=lambda r: (labels.index(r["label"]), r["predicates"]))
        ],
        f"A window of {rows[0]['window']:,} rows, an atom limit of {rows[0]['limit']:,}. Live "
        "atoms are counted from the rows, without the engine; the state is sums, signatures and "
        "the tables that lead from a row to its atom. Given up: past the limit, where the engine "
        "keeps the registered predicates alone. Questions are asked just after a slide.",
    )  # fmt: skip
