"""The paper's evaluation, run again: measured in steps, kept as records, shown as a report.

A *chapter* is a research question; its *steps* measure and give *findings*, rows of named tables;
a record keeps the findings of a step; figures, tables and comparisons are drawn from records alone.
"""
