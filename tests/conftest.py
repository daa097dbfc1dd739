"""Settings of the whole suite: reproducible property tests, plots without a display, and a plain
word at the end about what was not tested."""

import os
from collections import Counter
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from gpcert.arrays import backend_from_name
from gpcert.testing.effort import examples

os.environ["MPLBACKEND"] = "agg"  # read when matplotlib is first imported, if ever

settings.register_profile(
    "ci",
    max_examples=examples(100),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("ci")

EXPLAIN = "pip install 'gpcert[explain]'"
OPTIONAL = {
    "torch": "make torch",
    "chromium": "make browser",
    "distributed": "make setup",
    "shap": EXPLAIN,
    "lime": EXPLAIN,
    "skimage": EXPLAIN,
    "gpytorch": "make libraries",
    "botorch": "make libraries",
    "gpflow": "make test-gpflow",
    "jax": "make test-jax",
}
"""Libraries and programs that the tests can do without, and the command that brings them (and, for
GPflow and JAX, runs their tests in an environment of their own)."""


@pytest.fixture(params=["numpy", "torch"])
def backend(request):
    """Both backends, torch where it is installed."""
    if request.param == "torch":
        pytest.importorskip("torch")
    return backend_from_name(request.param)


def absent(expected: str) -> list[str]:
    """Those of the libraries, named with commas between, that are not installed."""
    return [name for name in expected.split(",") if name and find_spec(name) is None]


def pytest_configure() -> None:
    missing = absent(os.environ.get("GPCERT_EXPECT", ""))
    if missing:
        raise pytest.UsageError(
            f"GPCERT_EXPECT: expected these libraries to be installed: {', '.join(missing)}; the "
            "tests that want them would be skipped. Install them with `make libraries`"
        )


def missing_libraries(reports: list[Any]) -> Counter[str]:
    """How many skipped tests wanted each of the optional libraries and programs."""
    reasons = [str(report.longrepr) for report in reports]
    return Counter(
        library
        for reason in reasons
        for library in OPTIONAL
        if f"could not import '{library}'" in reason or f"could not find '{library}'" in reason
    )


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for library, count in missing_libraries(terminalreporter.stats.get("skipped", [])).items():
        terminalreporter.write_line(
            f"NOT TESTED: {count} tests or test files want {library}, which is not installed; "
            f"`{OPTIONAL[library]}` installs it, then run the tests again",
            yellow=True,
        )
