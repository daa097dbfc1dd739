"""docs/models.md: its table is that of the code."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_is_that_of_the_code():
    spec = importlib.util.spec_from_file_location("table", DOCS / "make_models_table.py")
    command = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(command)
    page = (DOCS / "models.md").read_text(encoding="utf-8")
    assert page.count("\n| ") > 4
    assert command.with_table(page) == page, "run: python docs/make_models_table.py"
