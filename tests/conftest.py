"""Settings of the whole suite: reproducible property tests, plots without a display, and a plain
word at the end about what was not tested."""

from collections import Counter
from typing import Any

import matplotlib
from hypothesis import HealthCheck, settings

from gpcert.testing.effort import examples

matplotlib.use("Agg")

settings.register_profile(
    "ci",
    max_examples=examples(100),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("ci")

EXPLAIN = "pip install 'gpcert[explain]'"
OPTIONAL = {"torch": "make torch", "shap": EXPLAIN, "lime": EXPLAIN, "skimage": EXPLAIN}
"""Libraries that the tests can do without, and the command that brings them."""


def missing_libraries(reports: list[Any]) -> Counter[str]:
    """How many skipped tests wanted each of the optional libraries."""
    reasons = [str(report.longrepr) for report in reports]
    return Counter(
        library
        for reason in reasons
        for library in OPTIONAL
        if f"could not import '{library}'" in reason
    )


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for library, count in missing_libraries(terminalreporter.stats.get("skipped", [])).items():
        terminalreporter.write_line(
            f"NOT TESTED: {count} tests or test files want {library}, which is not installed; "
            f"`{OPTIONAL[library]}` installs it, then run the tests again",
            yellow=True,
        )
