from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.report import markdown
from evaluation.report.columns import numeric
from evaluation.report.markdown import _text
from tests.evaluation.editions import NASTY, PLAIN, edition


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    return markdown(edition(tmp_path_factory.mktemp("records")))


def cells(line: str) -> list[str]:
    """The cells of a row as GitHub divides them: at bars that are not escaped."""
    return [cell.strip() for cell in re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1]]


def plain(cell: str) -> str:
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", cell)


def test_every_row_of_a_table_has_as_many_cells_as_its_head(text: str) -> None:
    tables = re.findall(r"(?:^\|.*\n?)+", text, flags=re.MULTILINE)
    assert len(tables) == 4
    for table in tables:
        head, rule, *rows = (cells(line) for line in table.splitlines())
        assert all(re.fullmatch(r"---:?", mark) for mark in rule)
        assert {len(row) for row in rows} == {len(head)} == {len(rule)}


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=40))
def test_text_is_one_cell_and_comes_back_as_it_was(said: str) -> None:
    (cell,) = cells(f"| {_text(said)} |")
    assert plain(cell) == " ".join(said.split())


def test_no_text_is_taken_for_markdown(text: str) -> None:
    assert "<i>" not in text
    assert NASTY not in text
    assert NASTY in plain(text)


def test_the_first_lines_say_that_it_is_made_and_by_what(text: str) -> None:
    head = plain(text.partition("**")[0])
    assert head.startswith("<!-- Generated; do not edit. -->")
    for told in (
        "generated from the records in [records](records)",
        "`python -m evaluation --out DIR`",
        "2 cores, Linux x86_64",
        "Python 3.12.1",
        "numpy 2.4.0",
        "commit 0123456789ab",
    ):
        assert told in head


def test_the_papers_number_stands_beside_ours(text: str) -> None:
    assert "| p50 latency, K = 4 ↓ | 1.37 µs | 1.10 µs | 0.803 × | better | Table 4 |" in text
    assert "| throughput ↑ | 7.3×10⁷ tuples/s | 7.20×10⁷ tuples/s | 0.986 × | equal |" in text
    assert "| speedup ↑ | 430,000 × | – | – | – | §7.2 |" in text
    assert "| p99 latency ↓ | 1.87 µs | 2.90 µs | 1.55 × | **worse** | Table 4 |" in text
    assert "- **p99 latency**: shared cores" in text


def test_paths_lead_to_where_the_files_are(tmp_path: Path) -> None:
    text = markdown(edition(tmp_path), "evaluation/figures")
    links = re.findall(r"\]\(([^)#][^)]*)\)", text.replace(_text(NASTY), ""))
    assert set(links) == {
        "evaluation/records",
        "evaluation/figures/rq2-ingest.svg",
        "evaluation/figures/rq2-again.svg",
        "evaluation/tables/rq2_ingest.csv",
        "evaluation/tables/rq2_latency.csv",
        "evaluation/records/rq2-ingest.json",
        "evaluation/records/rq2-latency.json",
        "evaluation/records/rq2-real.json",
    }


def test_the_contents_lead_to_the_chapters(text: str) -> None:
    assert "(#rq2-throughput--latency)" in text
    assert "## RQ2: Throughput \\& \\<latency\\>" in text


def test_a_quick_run_says_so(tmp_path: Path) -> None:
    text = markdown(edition(tmp_path, PLAIN, fingerprint={"size": "quick"}))
    assert "> This is a quick run" in text


@pytest.mark.parametrize(
    "cell",
    ["7", "1,234", "0.0123", "4.3×10⁵", "10³", "1.2 ± 0.1", "82 ms", "5 %", "312 B", "2 ×", "−3",
     "≤ 4×10⁻¹²", "0 (exact)", "0.4–7 %", "1.5 µs", "9 tuples/s", "3.6e-12",
     "1.20×10⁻³ ± 2.0×10⁻⁴", "118 + 215", "0.543 % at 51,200"],
)  # fmt: skip
def test_a_number_with_its_unit_is_a_number(cell: str) -> None:
    assert numeric([[cell], ["–"], [""]], 0)


@pytest.mark.parametrize("cell", ["IDS", "3 of the 4 candidates", "N = 3", "Table 3", "–", ""])
def test_words_are_no_number(cell: str) -> None:
    assert not numeric([[cell]], 0)
    assert not numeric([["1"], ["words"]], 0)
