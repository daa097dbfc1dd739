"""Numbers, times and counts in words, the same in every format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gpcert.experiments.results import AGREEMENTS, Cell, ExperimentResult

MARKS = {"yes": "✓", "no": "✗", "unclear": "?"}
"""Agreement is told by a mark and a word; the colour only repeats it."""

REPORT_ROWS = 200
"""Rows of a table that a page shows; all are in its CSV file."""


def shown(value: Cell) -> str:
    """A cell to read: four digits, yes or no, nothing for None.

    >>> [shown(v) for v in (0.123456, 7, True, None, float("inf"), "text", 1234567.0)]
    ['0.1235', '7', 'yes', '', 'inf', 'text', '1.235e+06']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def time_taken(seconds: float) -> str:
    """A duration to read.

    >>> time_taken(0.31), time_taken(75.0), time_taken(7300.0)
    ('0.3 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


CLAIM_HEADS = ("experiment", "claim", "paper", "ours", "agrees", "how it was judged")


def claims(results: Iterable[ExperimentResult]) -> list[tuple[str, ...]]:
    """The paper's claims beside our numbers, one row each, below `CLAIM_HEADS`."""
    return [
        (result.experiment, each.claim, each.paper, each.ours, each.agrees, each.comment)
        for result in results
        for each in result.findings
    ]


def agreement_counts(results: Iterable[ExperimentResult]) -> str:
    """How many claims agree, over all results."""
    found = Counter(finding.agrees for result in results for finding in result.findings)
    words = {"yes": "agree", "no": "do not agree", "unclear": "are unclear"}
    return ", ".join(f"{found[key]} {words[key]}" for key in AGREEMENTS)


def where_computed(result: ExperimentResult) -> str:
    """Versions and machine in one line."""
    env = result.environment
    return (
        f"gpcert {env.gpcert}, Python {env.python}, NumPy {env.numpy}, SciPy {env.scipy}, "
        f"scikit-learn {env.sklearn}; {env.machine}, {env.cpu}, {env.cores} cores; "
        f"seed {env.random_state}; {env.date}"
    )
