"""A record of the tests that ran: `pytest -p tests.tested --tested=FILE` leaves out those that FILE
lists, and adds those of this run.

The equals sign matters: pytest looks for its settings before it knows the option, and would take a
FILE by itself for a folder of tests.

What is skipped for want of a library or program is not added: a later run, which has it, runs that
and no test twice.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

WANTING = ("could not import", "could not find")
"""How the reason of such a skip begins."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tested", type=Path, required=True, metavar="FILE", help=__doc__)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Tested(config.getoption("tested")))


class Tested:
    """The tests that need not run (again); processes of pytest-xdist read it, the first writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        self.before: frozenset[str] = frozenset(json.loads(text or "[]"))
        self.reports: dict[str, bool] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out what ran before."""
        config.hook.pytest_deselected(items=[i for i in items if i.nodeid in self.before])
        items[:] = [i for i in items if i.nodeid not in self.before]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test ran unless a part of it (its setup, the call) wanted a library."""
        wanting = report.skipped and any(words in str(report.longrepr) for words in WANTING)
        self.reports[report.nodeid] = self.reports.get(report.nodeid, True) and not wanting

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the record."""
        if not hasattr(session.config, "workerinput"):
            ran = {name for name, here in self.reports.items() if here}
            self.path.write_text(json.dumps(sorted(self.before | ran)), encoding="utf-8")
