"""The report: an edition as one self-contained page, and as Markdown."""

from evaluation.report.html import html
from evaluation.report.markdown import markdown

__all__ = ["html", "markdown"]
