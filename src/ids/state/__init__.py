"""What survives between slides: summaries, the retained window, checkpoints."""
