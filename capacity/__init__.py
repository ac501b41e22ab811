"""What a stream costs: measured on this machine, as a formula, and the tables of docs/scale.md."""
