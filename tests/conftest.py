"""Settings of the whole suite: reproducible property tests, plots without a display, and a plain
word at the end about what was not tested."""

import os
import re
from collections import Counter
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from gpcert.numerics.arrays import backend_from_name
from gpcert.testing.effort import examples
from tests.headless_browser import browser_program, opened_browser

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
    "latex2mathml": "make docs",
    "distributed": "make setup",
    "shap": EXPLAIN,
    "lime": EXPLAIN,
    "skimage": EXPLAIN,
    "gpytorch": "make libraries",
    "botorch": "make libraries",
    "optuna": "make libraries",
    "skopt": "make libraries",
    "trieste": "pip install trieste (it brings TensorFlow)",
    "ax": "pip install 'gpcert[ax]'",
    "panel": "make libraries",
    "gpflow": "make test-gpflow",
    "jax": "make test-jax",
}
"""Libraries and programs that the tests can do without, and the command that brings them (and, for
GPflow and JAX, runs their tests in an environment of their own)."""

WANTED = re.compile(r"could not (?:import|find) '(\w+)")
"""How the reason of a test says that it was skipped for want of something."""


@pytest.fixture(params=["numpy", "torch"])
def backend(request):
    """Both backends, torch where it is installed."""
    if request.param == "torch":
        pytest.importorskip("torch")
    return backend_from_name(request.param)


@pytest.fixture(scope="module")
def page():
    """The page of a browser, where there is one."""
    program = browser_program()
    if program is None:
        pytest.skip("could not find 'chromium' on the path, nor GPCERT_BROWSER")
    with opened_browser(program) as opened:
        yield opened


def expected() -> list[str]:
    """The libraries that GPCERT_EXPECT names, with commas between."""
    return [name for name in os.environ.get("GPCERT_EXPECT", "").split(",") if name]


def pytest_configure() -> None:
    missing = [name for name in expected() if find_spec(name) is None]
    if missing:
        raise pytest.UsageError(
            f"GPCERT_EXPECT: expected these libraries to be installed: {', '.join(missing)}; the "
            "tests that want them would be skipped. Install them with `make libraries`"
        )


def missing_libraries(reports: Iterable[Any]) -> Counter[str]:
    """How many skipped tests, and files of them, wanted each optional library or program."""
    found = [(report.nodeid, WANTED.search(str(report.longrepr))) for report in reports]
    return Counter(library for _, library in {(place, one[1]) for place, one in found if one})


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run fails that skips what wants an expected library: it is installed, and broken."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter is not None else []
    if set(expected()) & set(missing_libraries(skipped)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for library, count in missing_libraries(terminalreporter.stats.get("skipped", [])).items():
        terminalreporter.write_line(
            f"NOT TESTED: {count} tests or test files want {library}, which is not installed; "
            f"`{OPTIONAL.get(library, 'make setup')}` installs it, then run the tests again",
            yellow=True,
        )
