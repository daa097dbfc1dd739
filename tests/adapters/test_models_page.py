"""docs/models.md: its table is that of the code, and its examples run."""

import importlib.util
import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_is_that_of_the_code():
    spec = importlib.util.spec_from_file_location("table", DOCS / "make_models_table.py")
    command = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(command)
    page = (DOCS / "models.md").read_text(encoding="utf-8")
    assert page.count("\n| ") > 4
    assert command.with_table(page) == page, "run: python docs/make_models_table.py"


def test_the_examples_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "models.md").read_text("utf-8"), re.S)
    assert len(blocks) >= 2
    for block in blocks:
        exec(compile(block, "docs/models.md", "exec"), {})
    assert capsys.readouterr().out
