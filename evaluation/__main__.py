"""``python -m evaluation``."""

from evaluation.cli import app
from ids.cli import main

if __name__ == "__main__":
    main(app, "python -m evaluation")
