"""The record of tests that ran: a second run, with more libraries, runs the others and no more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TESTS = """
import pytest

@pytest.mark.known
@pytest.mark.parametrize("k", [1, 2])
def test_plain(k):
    pass

def test_wants():
    pytest.importorskip("late_library")

@pytest.fixture
def late():
    return pytest.importorskip("late_library.part")

def test_wants_by_fixture(late):
    pass

def test_says_nothing_here():
    pytest.skip("two classes only")
"""

MODULE = """
import pytest

pytest.importorskip("late_library")

def test_of_the_library():
    pass
"""


@pytest.mark.parametrize("processes", [0, 2])
def test_the_second_run_runs_what_the_first_skipped_for_want_of_a_library(tmp_path, processes):
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "pytest.ini").write_text("[pytest]\naddopts = -q --strict-markers\nmarkers = known")
    (suite / "test_some.py").write_text(TESTS, encoding="utf-8")
    (suite / "test_module.py").write_text(MODULE, encoding="utf-8")

    def closing_line():
        command = [sys.executable, "-m", "pytest", "-n", str(processes), "-p", "tests.tested"]
        done = subprocess.run(
            [*command, f"--tested={tmp_path / 'record.json'}"],
            cwd=suite,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.splitlines()[-1].rpartition(" in ")[0]

    assert closing_line() == "2 passed, 4 skipped"
    (suite / "late_library").mkdir()
    (suite / "late_library" / "__init__.py").touch()
    (suite / "late_library" / "part.py").touch()
    # xdist counts what is left out in each process, and does not say it
    assert closing_line().removesuffix(", 3 deselected") == "3 passed"
