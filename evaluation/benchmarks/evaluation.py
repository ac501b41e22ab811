"""docs/evaluation.md and what lies beside it: made from the records of a full run.

``python -m evaluation.benchmarks.evaluation DIR`` takes the records of a full run in DIR over into
docs/evaluation; without DIR it writes everything again from the records that are there. Nothing is
measured.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluation.benchmarks.record import HERE
from evaluation.catalogue import KEYS, chapters
from evaluation.records import keep, keep_all, read_all
from evaluation.report import Edition, compose, markdown
from evaluation.size import FULL
from ids.errors import IdsError, SourceError, StateError

__all__ = ["DOCS", "main", "page", "renew"]

DOCS = HERE.parents[1] / "docs"


def renew(source: Path, docs: Path, asked: Sequence[Any]) -> Path:
    """Take over the records in ``source``, and write what they say; returns the page's path."""
    _whole(source, asked)
    edition = compose(asked, source)
    if edition.failed:
        raise StateError(f"no longer true: {'; '.join(edition.failed)}")
    home = docs / "evaluation"
    names = [record["step"] for record in edition.records]
    texts = {name: (source / f"{name}.json").read_text(encoding="utf-8") for name in names}
    keep_all(home / "records", ".json", texts, KEYS)
    keep_all(home / "tables", ".csv", edition.csv, KEYS)
    keep_all(home / "figures", ".svg", edition.figures, KEYS)
    return keep(docs / "evaluation.md", page(edition))


def page(edition: Edition) -> str:
    """The text of docs/evaluation.md."""
    return markdown(edition, "evaluation/")


def _whole(source: Path, asked: Sequence[Any]) -> None:
    """Refuse what is not the whole evaluation at the paper's sizes."""
    sizes = {record["step"]: record["fingerprint"]["size"] for record in read_all(source)}
    for size in set(sizes.values()) - {FULL.name}:
        raise SourceError(f"{source} holds a {size} run; docs/evaluation is of a full one")
    steps = [step.name for chapter in asked for step in chapter.steps(FULL)]
    lacking = [name for name in steps if name not in sizes]
    if sizes and lacking:
        some = ", ".join(lacking[:3]) + (", …" if len(lacking) > 3 else "")
        raise SourceError(f"{source} lacks {len(lacking)} of {len(steps)} steps: {some}; finish it")


def main(arguments: Sequence[str]) -> None:
    """Write docs/evaluation.md."""
    source = Path(arguments[0]) if arguments else DOCS / "evaluation"
    try:
        print(renew(source / "records", DOCS, chapters()))
    except IdsError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
