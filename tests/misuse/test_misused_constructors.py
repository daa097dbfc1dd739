"""Constructors: every wrong argument is refused in words, whatever is accepted works."""

import numpy as np
import pytest

import gpcert
from gpcert import kernels as k
from gpcert import likelihoods as lik
from gpcert.model.committee import Committee
from gpcert.regions import Ball, Box, region_from_dict
from tests.misuse.wrong_values import misused

SE = k.SquaredExponential(1.0)
X = np.array([[0.0, 1.0], [0.5, -0.5], [2.0, 1.0]])

KERNELS = [
    (k.SquaredExponential, {"length_scale": 1.0, "variance": 1.0}),
    (k.Matern, {"length_scale": 1.0, "nu": 1.5, "variance": 1.0}),
    (k.RationalQuadratic, {"length_scale": 1.0, "alpha": 1.0, "variance": 1.0}),
    (k.Periodic, {"period": 1.0, "length_scale": 1.0, "variance": 1.0}),
    (k.Linear, {"weights": 1.0, "center": 0.0}),
    (k.Polynomial, {"degree": 2, "offset": 1.0, "weights": 1.0, "center": 0.0}),
    (k.Constant, {"variance": 1.0}),
    (k.White, {"variance": 1.0}),
    (k.Cosine, {"frequency": [1.0, 2.0], "variance": 1.0}),
    (k.CosinePair, {"first": [1.0, 2.0], "second": [0.5, 1.0], "phases": (0.0, 0.0)}),
    (k.ExponentialTilt, {"theta": [1.0, 2.0], "log_factor": 0.0}),
    (k.ActiveDimensions, {"kernel": SE, "dimensions": (0,)}),
    (
        k.GeneralisedSpectral,
        {
            "variances": [1.0],
            "thetas": [[0.1, 0.2]],
            "first": [[1.0, 2.0]],
            "second": [[0.5, 1.0]],
            "phases": None,
        },
    ),
    (k.Scale, {"kernel": SE, "factor": 2.0}),
    (k.Sum, {"kernels": (SE, SE)}),
    (k.Product, {"kernels": (SE, SE)}),
    (
        k.SpectralMixture,
        {"variances": [1.0], "frequencies": [[1.0, 2.0]], "length_scales": [[1.0, 1.0]]},
    ),
]


def _usable(kernel):
    """A kernel either does not fit two features, or gives numbers."""
    try:
        kernel.check_dimension(2)
    except gpcert.errors.InputError:
        return True
    with np.errstate(all="ignore"):
        return kernel.value(X, X).shape == (3, 3) and kernel.config() is not None


@pytest.mark.parametrize(("make", "good"), KERNELS, ids=lambda each: getattr(each, "name", ""))
def test_kernels(make, good):
    assert _usable(make(**good))
    assert misused(make, good, _usable) == []


@pytest.mark.parametrize("operation", ["add", "mul", "pow"])
def test_kernel_algebra(operation):
    makers = {"add": lambda other: SE + other, "mul": lambda other: other * SE}
    make = makers.get(operation, lambda other: SE**other)
    assert misused(make, {"other": 2.0}, _usable) == []


LIKELIHOODS = [
    (lik.MultinomialProbit, {"noise": 1.0}),
    (
        lik.Discretised,
        {
            "link": lambda f: 0.5 + np.arctan(f) / np.pi,
            "inverse": None,
            "pieces": 16,
            "link_ulps": 16.0,
        },
    ),
]


@pytest.mark.parametrize(("make", "good"), LIKELIHOODS, ids=lambda each: getattr(each, "name", ""))
def test_likelihoods(make, good):
    assert misused(make, good) == []


REGIONS = [
    (Box, {"lower": [0.0, 0.0], "upper": [1.0, 2.0]}),
    (Ball, {"center": [0.0, 1.0], "radius": 0.5, "norm": 2, "features": [0], "domain": (-9, 9)}),
]


@pytest.mark.parametrize(("make", "good"), REGIONS, ids=lambda each: getattr(each, "__name__", ""))
def test_regions(make, good):
    assert misused(make, good, lambda region: bool(region.contains(region.center))) == []
    region = make(**good)
    for verb in (region.contains, region.project, region.linear_minimizer):
        assert misused(lambda value, verb=verb: verb(value), {"value": [0.0, 0.0]}) == []
    record = region.describe()
    for name in record:
        assert misused(lambda **r: region_from_dict(r), record, only=[name]) == []
    assert misused(region_from_dict, {"record": record}) == []


def test_budgets():
    good = {"seconds": 1.0, "boxes": 10, "memory": 1e9}
    assert misused(gpcert.Budget, good) == []
    assert gpcert.Budget(boxes=np.int64(5)).boxes == 5
    assert gpcert.Budget(seconds=np.float32(0.5), memory=float("inf")).memory is None
    assert type(gpcert.Budget(seconds=np.float32(0.5)).seconds) is float


POSTERIOR = {
    "kernel": SE,
    "points": X,
    "weights": [1.0, -1.0, 2.0],
    "factor": 0.1 * np.eye(3),
    "offset": 0.0,
    "scale": 1.0,
    "noise": 0.1,
    "likelihood": lik.Probit(),
    "classes": ("a", "b"),
    "negative_factor": 0.1 * np.eye(3),
    "coupled": False,
    "feature_names": ("u", "v"),
}


def _predicts(posterior):
    with np.errstate(all="ignore"):
        return posterior.predict(X)[0].shape[0] == 3


def test_posteriors():
    assert misused(gpcert.Posterior, POSTERIOR, _predicts) == []
    good = {name: POSTERIOR[name] for name in ("kernel", "points", "weights")}
    precision = {**good, "precision": 0.1 * np.eye(3)}
    assert misused(gpcert.Posterior.from_precision, precision) == []
    posterior = gpcert.Posterior(**POSTERIOR)
    for verb in (posterior.predict, posterior.prediction, posterior.check_inputs):
        assert misused(lambda X, verb=verb: verb(X), {"X": X}) == []


@pytest.mark.parametrize("likelihood", ["probit", None, lik.Probit, "a"])
def test_likelihoods_by_name_are_refused(likelihood):
    with pytest.raises(gpcert.errors.InputError, match="likelihood: expected a likelihood of"):
        gpcert.Posterior(**{**POSTERIOR, "likelihood": likelihood})


def test_committees():
    member = gpcert.Posterior(**POSTERIOR)
    good = {"members": (member, member), "classes": ("a", "b"), "scheme": "one_vs_rest"}
    assert misused(Committee, good) == []
