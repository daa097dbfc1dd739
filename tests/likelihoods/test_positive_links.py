"""Links exp and softplus: contracts, what overflows, and regressions that predict by them."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from flint import acb, arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert.certificates import Status
from gpcert.errors import InputError
from gpcert.integrals.softmax_moments import LOGISTIC_TERMS
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import ExpLink, Gaussian, SoftplusLink
from gpcert.likelihoods.positive_links import exponential_bounds
from gpcert.numerics.arrays import to_numpy
from gpcert.testing.arb_reference import regression_posterior
from gpcert.testing.effort import backend_or_skip, examples
from gpcert.testing.kernel_references import BITS
from gpcert.testing.likelihood_contract import LikelihoodContract
from tests.drawn import drawn

END = 30
"""Standard deviations within which a Gaussian is integrated; beyond is below exp(-450)."""


class TestExpLink(LikelihoodContract):
    likelihood = ExpLink()
    width = 1e-12
    reach = 1e-6  # exponents up to about 150

    def reference(self, mu: arb, v: arb) -> arb:
        return (mu + v / 2).exp()


def softplus_mean(mu: arb, v: arb) -> arb:
    """`E log(1 + exp(f))`, split where softplus is not analytic on wide discs."""
    if v == 0:
        return mu.exp().log1p() if mu < 30 else mu + (-mu).exp().log1p()
    s = v.sqrt()

    def integrand(z: Any, analytic: Any) -> Any:
        f = mu + s * z
        # of either sign the exponential is small: log(1 + e^f) = f + log(1 + e^-f)
        tail = f + (1 + (-f).exp()).log(analytic) if f.real > 0 else (1 + f.exp()).log(analytic)
        return tail * (-z * z / 2).exp()

    kink = max(min(-mu / s, arb(END)), arb(-END))
    steps = sorted({float(kink), *np.linspace(-END, END, 61)})
    pieces = [arb(kink) if x == float(kink) else arb(x) for x in steps]
    total = acb(0)
    for low, high in pairwise(pieces):
        total += acb.integral(integrand, low, high)
    beyond = arb(0, 1e-180) * (1 + abs(mu) + s)
    return total.real / (2 * arb.pi()).sqrt() + beyond


class TestSoftplusLink(LikelihoodContract):
    likelihood = SoftplusLink()
    width = 1e-11
    reach = 1e-6

    def reference(self, mu: arb, v: arb) -> arb:
        return softplus_mean(mu, v)

    @pytest.mark.parametrize("mu", [-1.2, 0.4, 2.0])
    @pytest.mark.parametrize("v", [0.5, 3.0])
    def test_second_order_on_level_curves(self, backend_name: str, mu: float, v: float) -> None:
        """The least value may lie at an end, where nothing is lost: a bound instead of a rate."""
        backend = backend_or_skip(backend_name)
        by_mu, by_v = self.likelihood.slopes(np.array([mu]), np.array([v]))
        beta = -by_v / by_mu
        for half in (0.4, 0.1, 0.025):
            line = map(backend.asarray, (mu - beta * v, beta, [v - half], [v + half]))
            grid = np.linspace(v - half, v + half, 401)
            least = self.likelihood.value((mu - beta * v) + beta * grid, grid).min()
            slack = least - float(to_numpy(self.likelihood.line_minimum(*line))[0])
            assert -1e-11 <= slack <= 1e-3 * half**2


@settings(deadline=None, max_examples=examples(200))
@given(x=st.floats(-800.0, 800.0), width=st.sampled_from([0.0, 1.0, 1e4]))
def test_exponentials_that_overflow_or_vanish(x, width):
    low, high = (float(end) for end in exponential_bounds(np.float64(x), np.float64(x + width)))
    with ctx.workprec(BITS):
        assert not arb(low) > arb(x).exp()
        assert not arb(high) < arb(x + width).exp()
    assert 0.0 <= low < math.inf


def test_the_mixture_at_zero():
    # Statement 8.10: what the integrals of the two links differ by at 0
    with ctx.workprec(BITS):
        apart = arb(2).log()
        for d, c in LOGISTIC_TERMS:
            apart -= arb(c) * (arb(d) / arb.pi()).sqrt() / 2
        assert abs(apart) < arb(2e-13)
    assert sum(c for _, c in LOGISTIC_TERMS) < 1.001


def model(likelihood, outputs=1, seed=1, **more):
    rng = np.random.default_rng(seed)
    points, targets = rng.normal(size=(10, 2)), rng.normal(size=(outputs, 10))
    kernel = SquaredExponential([0.9, 1.3])
    return regression_posterior(kernel, points, targets, 0.1, likelihood=likelihood, **more)


X0, BALL = np.array([0.1, -0.2]), gpcert.Ball([0.1, -0.2], 0.3)


@pytest.mark.parametrize("likelihood", [ExpLink(), SoftplusLink()])
@pytest.mark.parametrize("outputs", [1, 2])
def test_a_regression_predicts_its_response(likelihood, outputs, tmp_path):
    posterior = model(likelihood, outputs, noise=[0.1] * outputs)
    posterior.save(tmp_path / "model.npz")
    posterior = gpcert.load(tmp_path / "model.npz")
    assert posterior.likelihood == likelihood
    inside = posterior.prediction(np.vstack([X0, BALL.sample(2000, 0)]))
    every = gpcert.prediction_ranges(posterior, BALL)
    assert [rng.quantity for rng in every] == ["response"] * outputs
    for rng, values in zip(every, inside.T, strict=True):
        assert rng.converged
        assert rng.minimum.lower <= values.min()
        assert values.max() <= rng.maximum.upper
        assert rng.maximum.upper - rng.minimum.lower <= np.ptp(values) + 0.05 * values.max()
        assert type(likelihood).__name__ in rng.meaning
        drawn(rng)
    mean = gpcert.prediction_range(posterior, BALL, quantity="mean")
    assert mean.minimum.lower < every[0].minimum.lower  # another question
    corners = X0[None] - 0.3, X0[None] + 0.3
    bounds = gpcert.bound_boxes(posterior, *corners, quantity="response")
    assert np.all(bounds["response"][0, :, 0] <= inside.min(0))
    value, gradient = gpcert.predict_gradient(posterior, X0[None])
    np.testing.assert_allclose(value[0], posterior.prediction(X0[None])[0], rtol=1e-12)
    moved = posterior.prediction(X0[None] + [1e-6, 0.0])[0]
    np.testing.assert_allclose((moved - value[0]) / 1e-6, gradient[0, :, 0], atol=1e-4)


@pytest.mark.parametrize("likelihood", [ExpLink(), SoftplusLink()])
def test_a_threshold_is_one_of_the_response(likelihood):
    posterior = model(likelihood)
    values = posterior.prediction(np.vstack([X0, BALL.sample(2000, 0)]))[:, 0]
    above = float(values.max()) * 1.05
    cert = gpcert.certify(posterior, X0, 0.3, threshold=above)
    assert cert.status is Status.ROBUST
    assert cert.rule == f"response below {above!r}"
    between = float(0.5 * (values[0] + values.max()))
    assert gpcert.certify(posterior, X0, 0.3, threshold=between).status is Status.NOT_ROBUST
    rad = gpcert.certified_radius(posterior, X0, threshold=between, rtol=0.1)
    assert 0.0 < rad.lower <= rad.upper < 0.3
    assert gpcert.attack(posterior, [X0], 0.3, threshold=between).confirmed.all()
    paper = gpcert.prediction_range(posterior, BALL, method="paper", budget=gpcert.Budget(boxes=4))
    assert paper.minimum.lower <= values.min() <= values.max() <= paper.maximum.upper


def test_a_response_beyond_float64_is_infinite_above():
    posterior = model(ExpLink(), offset=[800.0])
    rng = gpcert.prediction_range(posterior, BALL, budget=gpcert.Budget(boxes=4))
    assert rng.maximum.upper == math.inf
    assert math.isfinite(rng.minimum.lower)


def test_others_have_no_response():
    with pytest.raises(InputError, match="'response' is the mean of a target behind"):
        gpcert.prediction_range(model(Gaussian()), BALL, quantity="response")
    with pytest.raises(InputError, match="use 'response'"):
        gpcert.prediction_range(model(ExpLink()), BALL, quantity="probability")
