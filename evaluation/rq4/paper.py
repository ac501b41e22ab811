"""What the paper prints of sampling: Section 9.4, and Figure 4 without its numbers."""

from __future__ import annotations

__all__ = [
    "AVG_ERROR",
    "BOUND",
    "CONTROL",
    "EAGER",
    "EMPTY",
    "EMPTY_ROWS",
    "FIGURE",
    "LAZY",
    "REPLACEMENT",
    "SECTION",
    "STRATA",
    "TIMES",
    "TIMES_ROWS",
    "VAR_ERROR",
]

SECTION = "§9.4"
FIGURE = "Figure 4"

# Least and largest error over predicates, in % of the aggregate, by r/N.
AVG_ERROR = {0.01: (0.4, 7.0), 0.05: (0.2, 3.1)}
VAR_ERROR = {0.05: (1.0, 14.0)}

CONTROL = {"median": 1.06, "most": 4.96}  # how many times less variance
REPLACEMENT = 7.0  # %: with against without replacement, r/N ≤ 0.1
STRATA = (1.3, 1.4)  # times less error
EMPTY = (10.5, 1.25)  # % of trials without a row of the predicate: uniform, stratified
EMPTY_ROWS = 100

# Eq. 6 over the empirical Bernstein bound; either bound over the observed 95th percentile.
BOUND = {"times": 22.5, "eq6_slack": 246.0, "slack": 10.0, "coverage": 1.00}

EAGER = (31.0, 271.0)  # µs a tuple, least and largest over r
LAZY = (0.62, 0.79)
TIMES = 343.0
TIMES_ROWS = 2_048
