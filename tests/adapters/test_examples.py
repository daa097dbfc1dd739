"""Every script in examples/ runs."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpcert.testing.effort import variants

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))

QUICK = ("by_hand",)
"""Scripts that run within seconds; `make test-slow` and `make test-gpflow` run all."""

OPTIONAL = {name: name for name in ("gpytorch", "botorch", "gpflow", "gpjax", "tinygp")}
OPTIONAL |= {"gpy": "GPy"}
"""Libraries by the first word of the scripts that need them."""


@variants(
    "script", sorted(EXAMPLES, key=lambda p: p.stem not in QUICK), len(QUICK), ids=lambda p: p.stem
)
def test_example_runs(script, tmp_path):
    library = OPTIONAL.get(script.stem.partition("_")[0])
    if library is not None and importlib.util.find_spec(library) is None:
        pytest.skip(f"could not import '{library}'")
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "agg"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
