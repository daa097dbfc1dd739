"""`import gpcert`: what it offers, and what it leaves alone."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import gpcert

MODULES = ["adapters", "attacks", "datasets", "errors", "kernels", "likelihoods", "models", "plots"]


def test_modules_are_there_after_import():
    code = f"import gpcert; print([getattr(gpcert, name).__name__ for name in {MODULES}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([f"gpcert.{name}" for name in MODULES])
    assert set(MODULES) <= set(dir(gpcert))


def test_unknown_names_are_missing():
    with pytest.raises(AttributeError, match="module 'gpcert' has no attribute 'nothing'"):
        _ = gpcert.nothing


def test_import_leaves_heavy_libraries_alone():
    heavy = "{'pandas', 'matplotlib', 'torch', 'sklearn.gaussian_process', 'scipy.stats'}"
    code = f"import sys, gpcert; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


OPTIONAL = {"torch", "gpytorch", "botorch", "gpflow", "GPy", "flint"}


@pytest.mark.filterwarnings("ignore")
def test_every_module_can_be_imported():
    """Doctests of a module that cannot be imported are left out: only other libraries may miss."""
    missing = set()
    for module in pkgutil.walk_packages(gpcert.__path__, "gpcert."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:
                missing.add(error.name)
    assert missing <= OPTIONAL
