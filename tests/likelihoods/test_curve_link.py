"""Predictions that are an increasing function of the latent mean."""

import numpy as np
import pytest
from flint import arb

import gpcert
from gpcert.errors import InputError
from gpcert.functions import Affine, Bilog, Curve, Exp, InversePowerBend
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import CurveLink, ExpLink, Gaussian, Probit
from gpcert.model.multi_output import SeparateOutputs
from gpcert.quantities import Quantile
from gpcert.testing.likelihood_contract import LikelihoodContract


class TestCurveLink(LikelihoodContract):
    likelihood = CurveLink(
        Curve((Affine(0.375, 1.0), InversePowerBend(0.5, 1.5), Affine(1.0, 2.0)))
    )
    width = 1e-12

    def reference(self, mu: arb, v: arb) -> arb:
        mu = mu - arb("0.375")
        size = (1 + arb("1.5") * -mu).log() / arb("-1.5") if mu < 0 else None
        inner = 2 * (1 + mu / 2).log() if size is None else size
        return (inner - 1) / 2


def model(likelihood, seed=0, **more):
    random = np.random.default_rng(seed)
    Z = random.normal(size=(12, 2))
    kernel = SquaredExponential([0.9, 1.3])
    weights = np.linalg.solve(kernel.value(Z, Z) + 0.1 * np.eye(12), random.normal(size=12))
    return gpcert.Posterior(kernel, Z, weights, likelihood=likelihood, **more)


BALL = gpcert.Ball([0.1, -0.2], 0.3)
LINKS = {
    "none": Gaussian(),
    "exp": ExpLink(),
    "curve": CurveLink(Curve((Bilog(), Exp()))),
}


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("level", [0.05, 0.5, 0.9])
def test_quantiles(name: str, level: float) -> None:
    """Statement 7.8: between those of samples of the latent law, point by point."""
    posterior = model(LINKS[name], training_noise=0.1, noise=0.05)
    X = BALL.sample(1000, 0)
    mean, variance = posterior.predict(X)
    draws = np.sort(np.random.default_rng(1).standard_normal(200_000))
    z = draws[int(level * len(draws))]
    values = LINKS[name].curve(mean[:, 0] + z * np.sqrt(variance[:, 0]))
    found = gpcert.prediction_range(posterior, BALL, quantity=Quantile(level))
    slack = 0.02 * (1.0 + np.abs(values).max())  # of the samples
    assert found.minimum.lower <= values.min() + slack
    assert values.max() - slack <= found.maximum.upper
    assert found.maximum.upper - found.minimum.lower <= np.ptp(values) + 0.1 * (1 + np.ptp(values))
    plain = Quantile(level).of(posterior.likelihood)
    function = plain.value(mean[:, 0], variance[:, 0])
    assert found.minimum.lower <= function.min() <= function.max() <= found.maximum.upper
    decided = gpcert.certify(
        posterior, BALL.center, 0.3, quantity=Quantile(level), threshold=float(values.max() + 1.0)
    )
    assert decided.robust


def test_slopes_of_quantiles() -> None:
    quantity = Quantile(0.9, curve=Curve((Exp(),)))
    for each in (quantity, quantity.negative):
        q, v = np.array([0.3, -0.4]), np.array([0.5, 1.0])
        by_q, by_v = each.slopes(q, v)
        step = 1e-6
        np.testing.assert_allclose(
            by_q, (each.value(q + step, v) - each.value(q - step, v)) / (2 * step), rtol=1e-6
        )
        np.testing.assert_allclose(
            by_v, (each.value(q, v + step) - each.value(q, v - step)) / (2 * step), rtol=1e-5
        )


def test_a_mean_alone_has_a_prediction_and_no_quantiles(tmp_path) -> None:
    link = CurveLink(Curve((Exp(),)), with_variance=False)
    posterior = model(link)
    posterior.save(tmp_path / "model.npz")
    posterior = gpcert.load(tmp_path / "model.npz")
    assert posterior.likelihood == link
    values = posterior.prediction(BALL.sample(2000, 0))
    found = gpcert.prediction_range(posterior, BALL)
    assert found.quantity == "response"
    assert found.minimum.lower <= values.min() <= values.max() <= found.maximum.upper
    with pytest.raises(InputError, match="without a variance"):
        gpcert.prediction_range(posterior, BALL, quantity=Quantile(0.9))


def test_outputs_with_kernels_of_their_own_share_a_link(tmp_path) -> None:
    members = tuple(model(Gaussian(), seed, training_noise=0.1) for seed in (0, 1))
    outputs = SeparateOutputs(members, ExpLink())
    outputs.save(tmp_path / "model.npz")
    outputs = gpcert.load(tmp_path / "model.npz")
    values = outputs.prediction(BALL.sample(2000, 0))
    for found, column in zip(gpcert.prediction_ranges(outputs, BALL), values.T, strict=True):
        assert found.quantity == "response"
        assert found.minimum.lower <= column.min() <= column.max() <= found.maximum.upper


def test_errors() -> None:
    with pytest.raises(InputError, match="probability between 0 and 1"):
        Quantile(1.0)
    with pytest.raises(InputError, match="expected a regression"):
        gpcert.prediction_range(model(Probit(), training_noise=0.1), BALL, quantity=Quantile(0.5))
    with pytest.raises(InputError, match="threshold="):
        gpcert.certify(model(ExpLink(), training_noise=0.1), BALL.center, 0.1, delta=0.1)
