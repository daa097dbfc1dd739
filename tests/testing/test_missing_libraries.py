"""The suite says what it did not test for want of a library, and is collected without any."""

import importlib.util
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpcert.utils.optional_imports import EXTRAS

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("suite", ROOT / "tests" / "conftest.py")
suite = importlib.util.module_from_spec(spec)
spec.loader.exec_module(suite)

NEEDED = {"flint", "hypothesis", "mpmath", "pytest"}
LARGE = {"torch", "gpytorch", "botorch", "gpflow", "jax", "gpjax", "tinygp", "optuna", "skopt"}
SMALL = {*suite.OPTIONAL, *EXTRAS} - LARGE - NEEDED


@pytest.mark.parametrize("library", suite.OPTIONAL)
def test_a_skipped_import_is_counted(library):
    with pytest.raises(pytest.skip.Exception) as skipped:
        pytest.importorskip(f"{library}_that_nobody_has")
    reason = str(skipped.value).replace("_that_nobody_has", "")
    lines = []
    reporter = SimpleNamespace(
        stats={"skipped": [SimpleNamespace(nodeid=each, longrepr=reason) for each in "aab"]},
        write_line=lambda text, **_: lines.append(text),
    )
    suite.pytest_terminal_summary(reporter)
    assert len(lines) == 1
    assert f"NOT TESTED: 2 tests or test files want {library}" in lines[0]


@pytest.mark.parametrize(("expect", "fails"), [("torch,GPy", True), ("torch", False), ("", False)])
def test_what_is_expected_may_not_be_skipped(expect, fails, monkeypatch):
    """Installed as it is, a library of which a part cannot be imported would skip its tests."""
    monkeypatch.setenv("GPCERT_EXPECT", expect)
    skipped = SimpleNamespace(nodeid="a", longrepr="could not import 'GPy.models': broken")
    reporter = SimpleNamespace(stats={"skipped": [skipped]})
    plugins = SimpleNamespace(get_plugin={"terminalreporter": reporter}.get)
    session = SimpleNamespace(config=SimpleNamespace(pluginmanager=plugins), exitstatus=0)
    suite.pytest_sessionfinish(session)
    assert (session.exitstatus != 0) == fails


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process cannot be copied")
@pytest.mark.parametrize("files", ["mentioning", pytest.param("all", marks=pytest.mark.slow)])
@pytest.mark.parametrize("libraries", [SMALL, LARGE], ids=["small", "large"])
def test_no_test_module_fails_to_import_where_a_library_is_missing(libraries, files):
    """Each library that is here, in turn; for what is not here this very run is the test."""
    here = [name for name in sorted(libraries) if find_spec(name) or shutil.which(name)]
    if not here:
        pytest.skip("could not import 'torch', nor what needs as much room")
    command = [sys.executable, "-m", "tests.hidden_library", files, *here]
    # a process that copies itself should have no threads
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GPCERT_EXPECT": ""}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
