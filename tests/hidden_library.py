"""Run by testing/test_missing_libraries.py in a fresh process: for each library, the tests that
mention it are collected where it is hidden, in a copy of this process that has loaded the rest."""

import contextlib
import importlib
import io
import os
import re
import sys
from pathlib import Path

import pytest

from tests.plain_install import hide

ROOT = Path(__file__).parents[1]

PROGRAMS = {"chromium"}
"""Not packages: hidden by an empty path."""

LOADED = (
    *("scipy.stats", "scipy.optimize", "sklearn.gaussian_process", "hypothesis", "typer.testing"),
    *("gpcert.api", "gpcert.analyses", "gpcert.explain", "gpcert.models"),
    *("gpcert.adapters.sklearn_wrappers", "gpcert.testing.node_contract"),
)
"""What most tests import, and none of the libraries: once, before this process is copied."""


def mentioning(library: str) -> list[str]:
    """Files of tests and doctests with the library's name, and those that import such a file."""
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")}
    names = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in texts}
    found = {path for path, text in texts.items() if re.search(rf"\b{library}\b", text)}
    reached = None
    while found != reached:
        reached = set(found)
        words = re.compile("|".join(rf"\b{re.escape(names[path])}\b" for path in found))
        found |= {path for path, text in texts.items() if words.search(text)}
    return sorted(map(str, found))


def collect(library: str, files: list[str]) -> int:
    """Exit code of pytest, which collects these files and runs none, without the library."""
    if library in PROGRAMS:
        os.environ["PATH"] = ""
    hide({library})
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        code = pytest.main(
            ["--collect-only", "-q", "--assert=plain", "-p", "no:cacheprovider", *files]
        )
    if code not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        print(f"without {library}:\n{text.getvalue()}", flush=True)
        return 1
    return 0


def main(libraries: list[str], everything: bool) -> int:
    """How many libraries cannot be missed."""
    for name in LOADED:
        importlib.import_module(name)
    failures = 0
    for library in libraries:
        child = os.fork()
        if not child:
            os._exit(collect(library, [] if everything else mentioning(library)))
        failures += bool(os.waitpid(child, 0)[1])
    return failures


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:], everything=sys.argv[1] == "all"))
