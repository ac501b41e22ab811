"""The report: an edition as one self-contained page, and as Markdown."""

from ids.reproduce.report.html import html
from ids.reproduce.report.markdown import markdown

__all__ = ["html", "markdown"]
