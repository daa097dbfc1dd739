"""`import gpcert`: what it offers, and what it leaves alone."""

import ast
import importlib
import importlib.util
import inspect
import os
import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gpcert
from gpcert.errors import MissingExtraError
from gpcert.utils.optional_imports import NUMPY
from tests.certificates.record_cases import RECORDS

ROOT = Path(__file__).parents[1]


def test_unknown_names_are_missing():
    with pytest.raises(AttributeError, match="module 'gpcert' has no attribute 'nothing'"):
        _ = gpcert.nothing


def fresh(code: str, before: str = "") -> set[str]:
    """Names of the modules loaded by `code` in a fresh interpreter that ran what is before it."""
    count = "import sys\nold = set(sys.modules)"
    lines = [before, count, code, "print('loaded:', *(set(sys.modules) - old))"]
    command = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.partition("loaded: ")[2].split())


HEAVY = {
    *("pandas", "matplotlib", "rich", "typer", "torch", "clarabel", "highspy", "sklearn"),
    *("scipy.stats", "hypothesis", "pytest"),
}


EVERYTHING = """
import sys, gpcert
from gpcert.certificates.io import KINDS, ELSEWHERE
near = set(KINDS)

model = gpcert.Posterior(gpcert.kernels.SquaredExponential(0.5), points=[[0.0]], weights=[1.0])
assert gpcert.certify(model, [0.0], radius=0.2, threshold=0.5).status.name == "ROBUST"
print("proof:", *sys.modules)

assert "gpcert.explain" not in sys.modules
assert gpcert.load(sys.argv[1]).lower.shape == (2, 1, 1)
print("file:", *sys.modules)

names = [gpcert.__getattr__(name).__name__ for name in gpcert._MODULES]
assert names == [f"gpcert.{name}" for name in gpcert._MODULES]
print("modules:", *sys.modules)

import gpcert.analyses, gpcert.explain, gpcert.study.experiments.results
far = {k: c.__module__ for k, c in KINDS.items() if k not in near}
assert far.keys() == ELSEWHERE.keys()
assert all(m.startswith(ELSEWHERE[k]) for k, m in far.items())
print("records:", *sys.modules)
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """What one fresh interpreter has loaded after each of several steps: a start takes seconds."""
    path = tmp_path_factory.mktemp("records") / "effects.json"
    RECORDS["effects"].save(path)
    command = [sys.executable, "-c", EVERYTHING, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.partition(": ") for line in done.stdout.splitlines()]
    return {step: set(names.split()) for step, _, names in lines}


def test_kinds_of_other_packages_are_imported_when_a_file_has_one(loaded):
    assert "gpcert.explain" in loaded["file"] - loaded["proof"]


def test_modules_are_there_after_import_and_leave_other_libraries_alone(loaded):
    """matplotlib waits for a picture, scikit-learn's processes for one of their models."""
    assert {"gpcert.plots", "gpcert.adapters"} <= loaded["modules"]
    assert not loaded["modules"] & {"matplotlib", "sklearn.gaussian_process"}


def test_dir_has_the_public_names_only():
    others = set(dir(gpcert)) - set(gpcert.__all__)
    assert set(gpcert.__all__) <= set(dir(gpcert))
    assert all(inspect.ismodule(getattr(gpcert, name)) for name in others)
    assert [name for name in dir(gpcert) if name.startswith("_")] == ["__version__"]


@pytest.mark.parametrize("code", ["import gpcert", "import numpy, gpcert"])
@pytest.mark.parametrize(
    ("version", "text"), [("1.26.4", "short_version = '1.26.4'"), ("2.0.2", "full_version = '2'")]
)
def test_an_old_numpy_is_one_clear_line(tmp_path, code, version, text):
    """Whether it is loaded already or not."""
    (tmp_path / "numpy").mkdir()
    lines = f'version = "{version}"\n__version__ = version\n{text}\n'
    (tmp_path / "numpy" / "version.py").write_text(lines, encoding="utf-8")
    (tmp_path / "numpy" / "__init__.py").write_text(
        "from numpy.version import __version__", encoding="utf-8"
    )
    path = os.pathsep.join([str(tmp_path), str(Path(gpcert.__file__).parents[1])])
    command = [sys.executable, "-c", code]
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: gpcert: expected NumPy 2.1 or newer, found {version}; install it with: "
        "pip install 'numpy>=2.1'"
    )


def test_the_oldest_numpy_is_that_of_the_requirements():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"numpy>={'.'.join(map(str, NUMPY))}" in project["dependencies"]


def test_import_is_cheap():
    """Counted in modules, not in seconds, which depend on the machine: 0.01 s for about 60."""
    loaded = fresh("import gpcert")
    assert not loaded & (HEAVY | {"numpy", "scipy", "joblib"})
    assert len(loaded) < 50


def test_a_proof_leaves_heavy_libraries_alone(loaded):
    assert not loaded["proof"] & HEAVY


HELP = """
from gpcert.cli.app import app, CALCULATE, ANALYSE

app(["--version"], standalone_mode=False)
names = [command.name for command in app.registered_commands]
assert len(names) > len(CALCULATE) + len(ANALYSE)
for arguments in ([], *([name] for name in names)):
    app([*arguments, "--help"], standalone_mode=False)
"""


def test_the_help_of_commands_loads_what_it_shows():
    """Half a second of processor time; NumPy, SciPy and the verbs would be three more."""
    loaded = fresh(HELP)
    assert not loaded & (HEAVY - {"rich", "typer"} | {"numpy", "scipy", "joblib"})
    own = {name for name in loaded if name.startswith("gpcert.")}
    light = {
        "gpcert.utils",
        "gpcert.utils.option_names",
        "gpcert.errors",
        "gpcert.utils.optional_imports",
    }
    assert {name for name in own if not name.startswith("gpcert.cli")} == light


def test_the_list_of_experiments_and_their_report_do_without_scikit_learn():
    """It is imported where data are loaded and models fitted."""
    listed = "from gpcert.study.experiments import experiment_named, names"
    loaded = fresh(f"{listed}\nlist(map(experiment_named, names()))\nimport gpcert.study.report")
    assert not loaded & HEAVY


FITTED = """
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF

model = GaussianProcessClassifier(RBF(1.0), optimizer=None).fit([[-1.0], [1.0]], [0, 1])
"""

FIRST = """
import gpcert
assert gpcert.certify(model, [1.0], radius=0.1).status == "ROBUST"
"""


@pytest.mark.parametrize("library", ["sklearn", "torch"])
def test_the_first_proof_imports_by_need(library):
    """Of scikit-learn nothing that the user has not imported, of us no more than proofs need.

    That torch is not imported says something where it could be.
    """
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"could not import '{library}'")
    loaded = fresh(FIRST, before=FITTED)
    assert not loaded & HEAVY
    assert not {name for name in loaded if name.startswith(("sklearn.", "scipy.stats", "pandas."))}
    others = {"analyses", "cli", "datasets", "experiments", "explain", "models", "plots", "report"}
    assert not loaded & {f"gpcert.{name}" for name in others}


def test_names_for_type_checkers_are_those_at_run_time():
    """`gpcert.__init__` says twice where a name comes from: to type checkers, and when asked."""
    tree = ast.parse(Path(gpcert.__file__).read_text(encoding="utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in blocks[0].body if isinstance(node, ast.ImportFrom)]
    said = {alias.name: node.module for node in imports for alias in node.names}
    modules = {name for name, home in said.items() if home == "gpcert"}
    assert modules == {name for name in dir(gpcert) if inspect.ismodule(getattr(gpcert, name))}
    homes = {name: home for name, home in said.items() if name not in modules}
    assert homes.keys() == set(gpcert.__all__) - {"__version__"}
    for name, home in homes.items():
        assert getattr(gpcert, name) is getattr(importlib.import_module(home), name)


def test_every_kind_of_record_is_found_by_name(loaded):
    """`gpcert.load` imports the package that a file's kind belongs to."""
    assert "gpcert.explain" in loaded["records"]


OPTIONAL = {"torch", "gpytorch", "botorch", "gpflow", "GPy", "flint", "jax", "gpjax", "tinygp"}


@pytest.mark.filterwarnings("ignore")
def test_every_module_can_be_imported():
    """Doctests of a module that cannot be imported are left out: only other libraries may miss."""
    missing = set()
    for module in pkgutil.walk_packages(gpcert.__path__, "gpcert."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except (ModuleNotFoundError, MissingExtraError) as error:
                missing.add(error.name)
    assert missing <= OPTIONAL
