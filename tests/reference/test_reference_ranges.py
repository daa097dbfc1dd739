"""`prediction_range` on models at the edge of float64 encloses ball arithmetic, end to end."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

import gpcert
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit, SklearnLogistic
from gpcert.testing.arb_reference import ArbPosterior, assert_encloses
from gpcert.testing.effort import crossed, examples
from gpcert.testing.kernel_references import flint
from tests.strategies import cases, ill_conditioned

KINDS = ("noise", "duplicates", "short", "long", "weights")
BUDGET = gpcert.Budget(seconds=30.0, boxes=examples(64, quick=24))
arb = flint().arb


def region_of(kind, posterior):
    width = 2e-3 if kind == "short" else 0.3
    center = posterior.points.mean(axis=0)
    return gpcert.Box(center - width, center + width * np.array([1.0, 0.5]))


def samples(region, rng, found):
    """Corners, random points, and the points that the search itself reports."""
    ends = zip(region.lower, region.upper, strict=True)
    corners = np.array(list(itertools.product(*ends)))
    corners = corners[np.asarray(region.contains(corners))]
    return np.concatenate([corners, region.sample(6, rng), np.stack(found)])


def check_range(posterior, region, quantity, rng, tol=1e-3):
    reference = ArbPosterior(posterior)
    function = getattr(reference, quantity)
    result = gpcert.prediction_range(posterior, region, tol=tol, quantity=quantity, budget=BUDGET)
    for x in samples(region, rng, [result.argmin, result.argmax]):
        assert_encloses(result.minimum.lower, result.maximum.upper, function(x))
    # the attained side: a point of the region whose value is proved to be at most this
    assert bool(region.contains(result.argmin))
    assert not arb(result.minimum.upper) < function(result.argmin)
    assert not arb(result.maximum.lower) > function(result.argmax)
    return result


@crossed(
    {
        "quantity": ["mean", "variance", "probability"],
        "kind": KINDS,
        "likelihood": [Probit(), SklearnLogistic()],
    }
)
def test_ill_conditioned_models(kind, quantity, likelihood):
    posterior = ill_conditioned(kind, likelihood)
    check_range(posterior, region_of(kind, posterior), quantity, np.random.default_rng(0))


@crossed({"quantity": ["mean", "variance"], "kind": KINDS}, quick=2)
def test_ill_conditioned_models_on_torch(kind, quantity):
    pytest.importorskip("torch")
    posterior = ill_conditioned(kind)
    region = region_of(kind, posterior)
    reference = ArbPosterior(posterior)
    result = gpcert.prediction_range(
        posterior, region, tol=1e-3, quantity=quantity, budget=BUDGET, backend="torch"
    )
    for x in samples(region, np.random.default_rng(0), [result.argmin, result.argmax]):
        assert_encloses(result.minimum.lower, result.maximum.upper, getattr(reference, quantity)(x))


@pytest.mark.parametrize("quantity", ["mean", "variance", "probability"])
@settings(max_examples=examples(12, quick=3))
@given(case=cases(max_points=6, likelihood=Probit()))
def test_random_models(quantity, case):
    check_range(case.posterior, case.region, quantity, case.rng)


def test_a_reference_by_hand():
    """The reference itself, against values worked out on paper."""
    posterior = gpcert.Posterior(
        SquaredExponential(2.0, 3.0),
        points=[[0.0], [2.0]],
        weights=[1.0, -2.0],
        factor=[[0.5, 0.0]],
        offset=1.0,
        scale=2.0,
        noise=0.25,
        likelihood=Probit(),
    )
    reference = ArbPosterior(posterior)
    e = (-arb(1) / 2).exp()
    assert reference.mean([0.0]).overlaps(1 + 2 * (3 - 6 * e))
    assert reference.variance([2.0]).overlaps(4 * (3 - (3 * e / 2) ** 2) + arb(0.25))
    mean, variance = posterior.predict([[0.0], [2.0]])
    assert float(reference.mean([0.0])) == pytest.approx(mean[0, 0], rel=1e-14)
    assert float(reference.variance([2.0])) == pytest.approx(variance[1, 0], rel=1e-14)
    assert float(reference.probability([2.0])) == pytest.approx(
        posterior.prediction([[2.0]])[0, 0], rel=1e-13
    )


def test_assert_encloses_has_no_tolerance():
    root = arb(2).sqrt()
    below, above = 1.414213562373095, 1.4142135623730951
    assert_encloses(below, above, root)
    for lower, upper in ((above, 2.0), (1.0, below), (2.0, 1.0), (np.nan, 2.0)):
        with pytest.raises(AssertionError):
            assert_encloses(lower, upper, root)
    with pytest.raises(AssertionError, match="too wide"):
        assert_encloses(0.0, 2.0, arb(1, 0.1))


def test_a_huge_region():
    """Cells whose second-order bounds overflow fall back on order 0; no error, no warning."""
    posterior = gpcert.Posterior(
        SquaredExponential(1.0, 0.4),
        points=[[0.04], [0.04]],
        weights=[0.1, -5.6],
        factor=[[0.22, -0.16], [-0.29, -0.15]],
        likelihood=Probit(),
    )
    region = gpcert.Box([-343.6], [45.7])
    for quantity in ("mean", "variance", "probability"):
        result = check_range(posterior, region, quantity, np.random.default_rng(0))
        assert np.isfinite([result.minimum.lower, result.maximum.upper]).all()
