"""The checker is small, and imports nothing but the standard library and python-flint."""

import ast
import subprocess
import sys
from pathlib import Path

import gpcert_check

FOLDER = Path(gpcert_check.__file__).parent
LINES = 2203


def code_lines(path):
    """Lines of code: without blank ones, comments and docstrings."""
    text = path.read_text()
    strings = set()
    for node in ast.walk(ast.parse(text)):
        plain = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if plain and isinstance(node.value.value, str):
            strings |= set(range(node.lineno, node.end_lineno + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in strings
        for number, line in lines
    )


def test_it_has_few_lines():
    assert sum(map(code_lines, FOLDER.glob("*.py"))) <= LINES


def test_it_imports_the_standard_library_and_flint_alone():
    allowed = sys.stdlib_module_names | {"flint", "gpcert_check"}
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                names = [node.module]
            assert {name.split(".")[0] for name in names} <= allowed, path.name


def test_it_runs_without_gpcert_and_numpy(tmp_path):
    code = (
        "import sys, gpcert_check.cli, gpcert_check.check\n"
        "assert not {'gpcert', 'numpy', 'scipy'} & set(sys.modules)\n"
        f"sys.exit(gpcert_check.cli.main([{str(tmp_path / 'none.cert')!r}]))"
    )
    paths = {"PYTHONPATH": str(FOLDER.parent)}
    done = subprocess.run([sys.executable, "-c", code], env=paths, capture_output=True, check=False)
    assert done.returncode == 3, done.stderr
