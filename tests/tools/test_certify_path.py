"""How many files a call of `certify` enters: few, so that a stranger can follow it."""

import runpy
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "certify_path.py"
MOST = {"mean": 38, "probability": 46}


def test_a_call_enters_few_files():
    entered = runpy.run_path(str(TOOL))["files_entered"]()
    assert {name: len(files) for name, files in entered.items() if len(files) > MOST[name]} == {}
    assert all("api/certify.py" in files for files in entered.values())
