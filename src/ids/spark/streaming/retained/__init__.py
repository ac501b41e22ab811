"""The rows inside a stream's window, kept by pane for questions that nobody has registered."""

__all__: list[str] = []
