"""Streams: the same script over rows that keep coming, exactly once."""

from ids.spark.streaming.batches import Progress, Totals
from ids.spark.streaming.retained.asking import ask
from ids.spark.streaming.running import Running
from ids.spark.streaming.starting import MAX_AHEAD, start

__all__ = ["MAX_AHEAD", "Progress", "Running", "Totals", "ask", "start"]
