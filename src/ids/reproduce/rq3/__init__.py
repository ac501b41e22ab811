"""RQ3: memory by component and configuration, on paper and as a process really takes it."""

from __future__ import annotations

from ids.reproduce.chapter import Chapter, Figure
from ids.reproduce.rq3.drawing import draw
from ids.reproduce.rq3.measuring import steps
from ids.reproduce.rq3.showing import show

__all__ = ["CHAPTER"]

CHAPTER = Chapter(
    "rq3",
    "Memory",
    "What does each component cost to keep, and how far is the process above what is needed?",
    steps,
    show,
    (
        Figure(
            "rq3-memory",
            "Memory by component across configurations and window sizes (symmetric logarithmic "
            "scale, as the paper's Figure 3). Bars: what the design needs, worked out on paper, "
            "each component beside the others. Markers: the measured peak of the whole "
            "configuration, in a process of its own.",
            ("rq3_memory",),
            draw,
        ),
    ),
)
