"""Run every question, or those named: ``python -m evaluation.benchmarks [name …]``."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

__all__: list[str] = []

questions = sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))
asked = [f"bench_{name.removeprefix('bench_')}" for name in sys.argv[1:]] or questions
if unknown := set(asked) - set(questions):
    known = ", ".join(name.removeprefix("bench_") for name in questions)
    sys.exit(f"no such question: {', '.join(sorted(unknown))}; known: {known}")
for name in asked:
    module = import_module(f"evaluation.benchmarks.{name}")
    print(f"\n## {module.__doc__}\n")
    module.main()
