"""What of each workload is measured: the paper's Table of workloads."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["REGIONS", "SUBJECTS", "Subject"]


@dataclass(frozen=True)
class Subject:
    """A workload's measure y, and the attributes that predicates speak of."""

    workload: str
    value: str
    attributes: tuple[str, ...]
    quick_rows: int | None

    @property
    def columns(self) -> list[str]:
        """All that a measurement reads, the event time first."""
        return ["event_time", *self.attributes, self.value]


REGIONS = ("EU-West", "US-East", "AP-South", "SA-East")
"""All that the synthetic stream has."""

SUBJECTS = {
    subject.workload: subject
    for subject in (
        Subject("synthetic", "latency", ("region", "tier", "endpoint"), 200_000),
        Subject("stress", "latency", ("region", "tier", "endpoint"), 40_000),
        Subject("nyc", "fare_amount", ("borough", "vendor", "payment"), None),
        Subject("auction", "price", ("category", "channel", "auction"), 100_000),
    )
}
