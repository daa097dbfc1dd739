"""The example of each library runs where the library is installed."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
LIBRARIES = {
    "gpytorch_classifier.py": "gpytorch",
    "botorch_surrogate.py": "botorch",
    "gpy_classifier.py": "GPy",
    "gpflow_classifier.py": "gpflow",
}


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.filterwarnings("ignore")  # of the libraries
def test_the_example_runs(name, capsys):
    pytest.importorskip(LIBRARIES[name])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert len(capsys.readouterr().out.splitlines()) >= 2
