"""The record of tests that ran: a second run, with more libraries, runs the others and no more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TESTS = """
import pytest

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
    (tmp_path / "test_some.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "test_module.py").write_text(MODULE, encoding="utf-8")

    def closing_line():
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(processes), "-c", os.devnull]
        done = subprocess.run(
            [*command, "--rootdir", tmp_path, "-p", "tests.tested", "--tested", "record.json"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.splitlines()[-1].rpartition(" in ")[0]

    assert closing_line() == "2 passed, 4 skipped"
    (tmp_path / "late_library").mkdir()
    (tmp_path / "late_library" / "__init__.py").touch()
    (tmp_path / "late_library" / "part.py").touch()
    # xdist counts what is left out in each process, and does not say it
    assert closing_line().removesuffix(", 3 deselected") == "3 passed"
