"""Slow and obvious answers that every fast one is compared with; nothing here imports ids."""
