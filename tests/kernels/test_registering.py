"""Kernels and likelihoods from outside the package: registered, saved, loaded."""

from dataclasses import dataclass
from importlib.metadata import EntryPoint, EntryPoints
from typing import ClassVar

import numpy as np
import pytest

import gpcert
import gpcert.utils.registry
from gpcert.errors import InputError
from gpcert.kernels import KERNELS, Matern, SquaredExponential
from gpcert.likelihoods import LIKELIHOODS, Probit


@dataclass(frozen=True, eq=False)
class Smoothest(SquaredExponential):
    """A kernel of a user's own."""

    name: ClassVar[str] = "smoothest"


@dataclass(frozen=True)
class Certain(Probit):
    """A likelihood of a user's own."""

    name: ClassVar[str] = "certain"


@pytest.fixture(autouse=True)
def restore():
    """What a test registers is forgotten after it."""
    before = [(registry, set(registry)) for registry in (KERNELS, LIKELIHOODS)]
    yield
    for registry, names in before:
        for name in set(registry) - names:
            del registry[name]


def saved(path):
    kernel = Smoothest([1.0, 2.0], 0.5) * Matern(1.0, 1.5)
    model = gpcert.Posterior(kernel, [[0.0, 1.0]], [2.0], likelihood=Certain())
    model.save(path)
    return model


def test_registered_classes_save_and_load(tmp_path):
    assert gpcert.kernels.register(Smoothest) is Smoothest
    assert gpcert.likelihoods.register(Certain) is Certain
    model = saved(tmp_path / "model.npz")
    again = gpcert.load(tmp_path / "model.npz")
    assert again.fingerprint == model.fingerprint
    assert again.likelihood == Certain()
    assert np.array_equal(again.predict([[0.3, 0.2]]), model.predict([[0.3, 0.2]]))
    assert gpcert.certify(again, [0.0, 1.0], 0.1).status == "ROBUST"


def test_unknown_names_say_both_ways_out(tmp_path):
    saved(tmp_path / "model.npz")
    with pytest.raises(InputError) as caught:
        gpcert.load(tmp_path / "model.npz")
    for words in ("'smoothest'", "gpcert.kernels.register", "entry point", "'gpcert.kernels'"):
        assert words in str(caught.value)
    gpcert.kernels.register(Smoothest)
    with pytest.raises(InputError, match=r"gpcert\.likelihoods\.register"):
        gpcert.load(tmp_path / "model.npz")


def test_entry_points_are_found(tmp_path, monkeypatch):
    here = f"{__name__}:"
    found = EntryPoints(
        [
            EntryPoint("smoothest", here + "Smoothest", "gpcert.kernels"),
            EntryPoint("certain", here + "Certain", "gpcert.likelihoods"),
        ]
    )
    monkeypatch.setattr(gpcert.utils.registry, "entry_points", found.select)
    model = saved(tmp_path / "model.npz")
    assert gpcert.load(tmp_path / "model.npz").fingerprint == model.fingerprint
    assert KERNELS["smoothest"] is Smoothest


def test_names_are_taken_once():
    class Other(SquaredExponential):
        pass

    with pytest.raises(InputError, match="taken by gpcert"):
        gpcert.kernels.register(Other)
    assert gpcert.kernels.register(Matern) is Matern  # again


@pytest.mark.parametrize("wrong", [Probit, SquaredExponential(1.0), 3, "white"])
def test_only_kernels_are_registered(wrong):
    with pytest.raises(InputError, match="expected a subclass of Kernel"):
        gpcert.kernels.register(wrong)


def test_a_kernel_needs_a_name():
    class Nameless(SquaredExponential):
        name = ""

    with pytest.raises(InputError, match=r"Nameless\.name"):
        gpcert.kernels.register(Nameless)
