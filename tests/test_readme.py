"""The Python of README.md runs, from top to bottom, as a reader would run it."""

import re
import warnings
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_its_python_runs(capsys):
    names = {"__name__": "readme"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a training that stops early says so
        for block in BLOCKS:
            exec(block, names)
    assert "Status.ROBUST" in capsys.readouterr().out
    assert 0 < names["rad"].lower <= names["rad"].upper
    assert names["rng"].minimum.lower <= names["rng"].minimum.upper
    assert len(names["model"].classes_) == 3  # of the last block
