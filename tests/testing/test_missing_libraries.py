"""The suite says what it did not test for want of a library."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest

spec = importlib.util.spec_from_file_location("suite", Path(__file__).parents[1] / "conftest.py")
suite = importlib.util.module_from_spec(spec)
spec.loader.exec_module(suite)


@pytest.mark.parametrize("library", suite.OPTIONAL)
def test_a_skipped_import_is_counted(library):
    with pytest.raises(pytest.skip.Exception) as skipped:
        pytest.importorskip(f"{library}_that_nobody_has")
    reason = str(skipped.value).replace("_that_nobody_has", "")
    lines = []
    reporter = SimpleNamespace(
        stats={"skipped": [SimpleNamespace(longrepr=reason)]},
        write_line=lambda text, **_: lines.append(text),
    )
    suite.pytest_terminal_summary(reporter)
    assert len(lines) == 1
    assert f"NOT TESTED: 1 tests or test files want {library}" in lines[0]
