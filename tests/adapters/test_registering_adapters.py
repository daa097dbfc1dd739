"""Adapters from outside the package: registered, found by entry points, checked."""

import sys
from importlib.metadata import EntryPoint, EntryPoints
from types import SimpleNamespace

import numpy as np
import pytest

import gpcert
from gpcert.adapters import Conversion, LibraryPrediction, Supported, registry
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.kernels import SquaredExponential

HERE = __name__.partition(".")[0]


class Bump:
    """A model of a library that nobody knows."""

    height = 2.0

    def predict(self, X):
        return self.height * np.exp(-0.5 * np.square(X).sum(1))


LIBRARY = "bumps"
SUPPORTED = (Supported("Bump", "Gaussian", ("rbf",)),)


def accepts(model):
    return isinstance(model, Bump)


def to_posterior(model):
    posterior = gpcert.Posterior(SquaredExponential(1.0), [[0.0, 0.0]], [2.0])
    return Conversion(posterior, lambda X: LibraryPrediction(mean=model.predict(X)[:, None]))


@pytest.fixture(autouse=True)
def restore():
    before = list(registry.REGISTERED)
    yield
    registry.REGISTERED[:] = before


def test_a_registered_adapter_is_used():
    with pytest.raises(UnsupportedModelError, match=r"got .*Bump"):
        gpcert.as_posterior(Bump())
    module = sys.modules[__name__]
    assert gpcert.adapters.register(HERE, module) is module
    assert gpcert.certify(Bump(), [0.0, 0.0], 0.1, threshold=1.0).status.name == "ROBUST"
    assert ("bumps", SUPPORTED[0]) in gpcert.adapters.supported().rows
    assert "Bump" in str(gpcert.adapters.supported())


def test_an_entry_point_is_used(monkeypatch):
    found = EntryPoints([EntryPoint(HERE, __name__, registry.GROUP)])
    monkeypatch.setattr(registry, "entry_points", found.select)
    assert gpcert.as_posterior(Bump()).weights[0, 0] == 2.0
    assert ("bumps", SUPPORTED[0]) in gpcert.adapters.supported().rows


def test_a_wrong_conversion_is_refused():
    class Taller(Bump):
        height = 3.0

    gpcert.adapters.register(HERE, sys.modules[__name__])
    with pytest.raises(UnsupportedModelError, match=r"difference of mean 0\.333"):
        gpcert.as_posterior(Taller())


def test_an_adapter_may_be_less_exact():
    rough = SimpleNamespace(
        LIBRARY="rough",
        SUPPORTED=SUPPORTED,
        accepts=accepts,
        to_posterior=lambda model: Conversion(
            to_posterior(model).posterior,
            lambda X: LibraryPrediction(mean=1.0001 * model.predict(X)[:, None]),
            tolerance=1e-3,
        ),
    )
    gpcert.adapters.register(HERE, rough)
    assert gpcert.adapters.agreement(Bump()).mean == pytest.approx(1e-4, rel=1e-3)


@pytest.mark.parametrize("missing", ["LIBRARY", "SUPPORTED", "accepts", "to_posterior"])
def test_an_adapter_has_four_names(missing):
    names = {name: globals()[name] for name in ("LIBRARY", "SUPPORTED", "accepts", "to_posterior")}
    del names[missing]
    with pytest.raises(InputError, match=f"without {missing}"):
        gpcert.adapters.register("bumps", SimpleNamespace(**names))


def test_its_table_has_rows():
    wrong = SimpleNamespace(LIBRARY="x", SUPPORTED=(), accepts=accepts, to_posterior=to_posterior)
    with pytest.raises(InputError, match="SUPPORTED to be a tuple"):
        gpcert.adapters.register("bumps", wrong)


@pytest.mark.parametrize("package", ["", "a.b", 3, None])
def test_packages_are_named_by_their_top(package):
    with pytest.raises(InputError, match="top-level package"):
        gpcert.adapters.register(package, sys.modules[__name__])
