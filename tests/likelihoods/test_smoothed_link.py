"""The shared mechanism: smoothing constants, derivative bounds, the registry."""

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from gpcert.errors import InputError
from gpcert.likelihoods import (
    LIKELIHOODS,
    Discretised,
    Likelihood,
    Logistic,
    ScalarLikelihood,
    SklearnLogistic,
    likelihood_from_config,
)
from gpcert.likelihoods.base import monotone_minimum
from gpcert.likelihoods.logistic import SMOOTHING_BOUNDS, split_segment
from gpcert.likelihoods.probit import StepLink
from gpcert.testing.effort import variants
from gpcert.testing.kernel_references import BITS
from gpcert.testing.likelihood_contract import LikelihoodContract, variances


def test_smoothing_bounds_in_closed_form():
    def phi(z):
        return (-(z**2) / 2).exp() / (2 * arb.pi()).sqrt()

    with ctx.workprec(BITS):
        r = (3 - arb(6).sqrt()).sqrt()
        exact = [phi(arb(0)), phi(arb(1)), phi(arb(0)), arb(6).sqrt() * r * phi(r)]
        for bound, value in zip(SMOOTHING_BOUNDS, exact, strict=True):
            assert arb(bound) > value
            assert float(value) == pytest.approx(bound, rel=1e-4)


def test_smoothing_bounds_are_the_largest_derivatives_of_the_density():
    z = np.linspace(-12.0, 12.0, 200001)
    phi = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    for bound, hermite in zip(
        SMOOTHING_BOUNDS, [1.0 + 0 * z, z, z**2 - 1, z**3 - 3 * z], strict=True
    ):
        assert np.abs(hermite * phi).max() <= bound


@pytest.mark.parametrize("likelihood", [Logistic(), SklearnLogistic()])
@pytest.mark.parametrize("v", [0.0, 0.5, 3.0, 50.0])
def test_derivative_bounds_hold_for_differences(likelihood, v):
    # nth differences of F / step^n are averages of the nth derivative; both carry value's error
    step = 0.05
    mu = np.arange(-600, 601) * step
    values = likelihood.value(mu, np.full_like(mu, v))
    for order in range(1, 5):
        slack = 2**order * likelihood.error / step**order
        bound = float(likelihood.derivative_bound(order, np.array([v]))[0])
        assert np.abs(np.diff(values, order)).max() / step**order <= bound + slack


@given(v_low=variances, width=variances)
def test_split_segment_covers(v_low, width):
    v_high = v_low + width
    points = split_segment(np.array([v_low]), np.array([v_high]))[0]
    assert points[0] == v_low
    assert points[-1] == v_high
    assert np.all((points >= v_low) & (points <= v_high))


@given(
    alpha=st.floats(-(2.0**200), 2.0**200),
    beta=st.floats(-(2.0**200), 2.0**200),
    v=st.floats(0, 2.0**200),
)
def test_largest_segments_stay_finite(alpha, beta, v):
    for kind in LIKELIHOODS.values():
        if not issubclass(kind, ScalarLikelihood):
            continue  # several classes have no line
        arguments = [np.array([x]) for x in (alpha, beta, 0.0, v)]
        assert np.isfinite(kind().line_minimum(*arguments)[0])
        most = kind().line_maximum(*arguments)[0]
        assert np.isfinite(most) or (most == kind.range[1] == np.inf)


@pytest.mark.parametrize("name", sorted(LIKELIHOODS))
def test_registry_round_trip(name):
    likelihood = LIKELIHOODS[name]()
    assert likelihood.name == name
    assert likelihood_from_config(name, likelihood.config()) == likelihood


def test_registry_is_complete():
    def every(kind):
        return {kind}.union(*map(every, kind.__subclasses__()))

    ours = {
        kind
        for kind in every(Likelihood)
        if kind.__module__.startswith("gpcert.") and "name" in vars(kind)
    }
    # a user's link cannot be saved, and a step is only part of another likelihood
    assert ours - {Discretised, StepLink} == set(LIKELIHOODS.values())


def test_registry_errors_say_what_to_do():
    with pytest.raises(InputError, match="expected one of"):
        likelihood_from_config("cauchit")
    with pytest.raises(InputError, match="config"):
        likelihood_from_config("probit", {"scale": 2.0})


@variants("likelihood", [Logistic(), SklearnLogistic()])
def test_contract_notices_too_small_a_curvature(likelihood, monkeypatch):
    kind = type(likelihood)
    contract = type("Contract", (LikelihoodContract,), {"likelihood": likelihood})()
    honest = kind.half_bend
    contract.test_bounds_hold_along_tangents("numpy")
    monkeypatch.setattr(kind, "half_bend", lambda self, *rest: 0.1 * honest(self, *rest))
    with pytest.raises(AssertionError):
        contract.test_bounds_hold_along_tangents("numpy")


@pytest.mark.parametrize("likelihood", [Logistic(), SklearnLogistic()])
def test_curvature_bound_beats_the_monotone_one(likelihood):
    # a tangent of a level curve at v = 2: F is nearly constant, the monotone bound is not
    by_mu, by_variance = likelihood.slopes(np.array([1.0]), np.array([2.0]))
    beta = -by_variance / by_mu
    segment = (1.0 - 2.0 * beta, beta, np.array([1.5]), np.array([2.5]))
    truth = float(likelihood.value(np.array([1.0]), np.array([2.0]))[0])
    loss = truth - float(likelihood.line_minimum(*segment)[0])
    assert loss < 0.02 * (truth - float(monotone_minimum(likelihood, *segment)[0]))
