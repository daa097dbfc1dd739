"""No kernel of the registry lacks a contract test, a formula or a relaxation."""

import importlib
from pathlib import Path

import numpy as np
import pytest

import gpcert.kernels
from gpcert.kernels import KERNELS, kernel_from_config
from gpcert.numerics.arrays import Backend
from gpcert.paper.lines import affine_relaxation
from gpcert.paper.lines.carriers import AffineRelaxation
from gpcert.regions import Box
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells
from gpcert.testing.kernel_references import REFERENCES, partner_configs
from gpcert.testing.node_contract import TESTED

OURS = sorted(name for name in KERNELS if KERNELS[name].__module__.startswith("gpcert."))
HERE = Path(__file__).parent
RECIPE = "see the checklist for a new kernel in CONTRIBUTING.md"


@pytest.fixture(scope="module")
def tested():
    """Names of the kernels that some test class of this folder puts through the whole contract."""
    folder = __name__.rpartition(".")[0]
    names = {f"{folder}.{path.stem}" for path in HERE.glob("test_*.py")}
    for name in sorted(names):
        importlib.import_module(name)
    return {name for name, cls in TESTED.items() if cls.__module__ in names}


@pytest.mark.parametrize("name", OURS)
def test_every_kernel_has_a_contract_test(name, tested):
    assert name in tested, f"no subclass of NodeContract in {HERE.name} tests {name!r}; {RECIPE}"


@pytest.mark.parametrize("name", OURS)
def test_every_kernel_has_a_formula_and_a_partner(name):
    assert KERNELS[name].name == name
    assert name in REFERENCES, f"no formula of {name!r} in testing/kernel_references.py; {RECIPE}"
    partners = partner_configs(2)
    assert name in partners, f"no {name!r} in testing.kernel_references.partner_configs; {RECIPE}"
    assert kernel_from_config(name, partners[name]).name == name


@pytest.mark.parametrize("name", OURS)
def test_every_kernel_is_public(name):
    assert KERNELS[name].__name__ in gpcert.kernels.__all__


@pytest.mark.parametrize("name", OURS)
def test_lines_are_finite(name):
    kernel = kernel_from_config(name, partner_configs(2)[name])
    region = Box([0.0, 0.0], [1.0, 0.5])
    frame = Frame.of(region, kernel.typical_lengths(2), Backend())
    points = np.array([[0.5, 0.2], [2.0, -1.0], [-0.3, 0.1]])
    lines = affine_relaxation(
        kernel.node(points, frame).at(ScaledCells.in_frame(region.root(), frame))
    )
    assert isinstance(lines, AffineRelaxation)
    assert np.all(np.isfinite(lines.low)), "nothing is known from below"
    assert np.all(np.isfinite(lines.high)), "nothing is known from above"


def test_every_formula_belongs_to_a_kernel():
    assert set(REFERENCES) == set(OURS) == set(partner_configs(2))
