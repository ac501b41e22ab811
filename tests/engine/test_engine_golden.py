"""The engine on the golden windows: every game, every predicate, to the last bits."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import ids


@pytest.mark.parametrize("kind", ["count", "changelog"])
def test_golden_windows(kind: str, golden_cases: list[dict[str, Any]]) -> None:
    for case in golden_cases:
        y, signature = case["y"], case["signature"]
        window = ids.CountWindow(max(1, len(y))) if kind == "count" else ids.Changelog()
        engine = ids.Engine(window, "y", degree=4)
        for k in range(3):
            engine.register(f"p{k}", f"s % {2 ** (k + 1)} >= {2**k}")
        rows = {"y": y, "s": signature}
        if kind == "count":
            engine.ingest({"y": [1e6] * 5, "s": [0] * 5})
            engine.ingest(rows)
        else:
            engine.apply(inserts=rows)
        if not y:
            continue
        for game, answers in case["attribution"].items():
            for predicate, printed in answers.items():
                exact = Fraction(printed)
                found = engine.attribute(game, predicate)
                size = Fraction(abs(found.share)) + Fraction(abs(found.lift))
                assert abs(Fraction(found.value) - exact) <= Fraction(1e-12) * (size + abs(exact))
