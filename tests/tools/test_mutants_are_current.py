"""The seeded mutants still name lines that exist: a stale mutant would test nothing."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = tomllib.loads((ROOT / "tools" / "mutants.toml").read_text(encoding="utf-8"))
MUTANTS = [(name, file, m) for file, mutants in TABLE.items() for name, m in mutants.items()]


@pytest.mark.parametrize(
    ("file", "mutant"), [m[1:] for m in MUTANTS], ids=[name for name, _, _ in MUTANTS]
)
def test_old_text_occurs_once(file, mutant):
    text = (ROOT / "src" / "gpcert" / file).read_text(encoding="utf-8")
    assert text.count(mutant["old"]) == 1
    assert mutant["new"] != mutant["old"]
    for test in mutant["tests"]:
        name = test.partition("::")[0]
        assert (ROOT / name).exists() or not name.startswith("tests/")


def test_names_are_unique():
    names = [name for name, _, _ in MUTANTS]
    assert len(set(names)) == len(names)
