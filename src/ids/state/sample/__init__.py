"""The sample: some rows of the sliding window, for questions that need not be exact."""

from ids.state.sample.candidates import SEQUENCE
from ids.state.sample.drawing import Drawing
from ids.state.sample.window import WindowSample

__all__ = ["SEQUENCE", "Drawing", "WindowSample"]
