"""GPyTorch models of several classes: probabilities, files, decisions."""

import numpy as np
import pytest

import gpcert
from gpcert.testing.effort import examples
from tests.adapters.gpytorch_examples import (
    THREE,
    gk,
    gl,
    gpytorch,
    mixed,
    softmax,
    torch,
    variational,
)


@pytest.mark.parametrize("own", [False, True], ids=["one kernel", "kernels of their own"])
def test_mixed_classes_are_those_that_the_likelihood_samples(own):
    """`likelihood(model(x))` averages over samples: equal up to their noise."""
    kernel = gk.RBFKernel(batch_shape=THREE) if own else None
    model, likelihood = mixed(4, 3, kernel=kernel)
    X = torch.rand(5, 2, generator=torch.Generator().manual_seed(5)).double()
    torch.manual_seed(0)
    with torch.no_grad(), gpytorch.settings.num_likelihood_samples(40_000):
        said = likelihood(model(X)).probs.mean(0).numpy()
    posterior = gpcert.as_posterior((model, likelihood))
    assert posterior.labels == (0, 1, 2, 3)
    np.testing.assert_allclose(posterior.prediction(X.numpy()), said, atol=0.01)
    region = gpcert.Ball(X[0].numpy(), 0.02)
    ranges = gpcert.prediction_ranges(
        posterior, region, budget=gpcert.Budget(boxes=examples(60, quick=10))
    )
    p = posterior.prediction(region.sample(examples(1000, quick=60), 0))
    for c, found in enumerate(ranges):
        assert found.minimum.lower <= p[:, c].min() + 1e-7
        assert found.maximum.upper >= p[:, c].max() - 1e-7
        assert found.maximum.upper - found.minimum.lower < np.ptp(p[:, c]) + 0.1
    cert = gpcert.certify((model, likelihood), X[0].numpy(), 1e-3)
    assert cert.status.name == "ROBUST"
    assert cert.decision == int(np.argmax(p.mean(0)))
    latent = gpcert.prediction_range(posterior, region, quantity="mean", output=2, tol=0.1)
    mean = posterior.mean(region.sample(100, 1))[:, 2]
    assert latent.minimum.lower <= mean.min() <= mean.max() <= latent.maximum.upper


def test_mixed_and_separate_classes_are_saved_and_read_again(tmp_path):
    for kernel in (lambda: None, lambda: gk.RBFKernel(batch_shape=THREE)):
        posterior = gpcert.as_posterior(mixed(4, 3, kernel=kernel()))
        posterior.save(tmp_path / "model.npz")
        again = gpcert.load_model(tmp_path / "model.npz")
        assert type(again) is type(posterior)
        assert again.likelihood == posterior.likelihood
        assert again.fingerprint == posterior.fingerprint
        X = np.random.default_rng(0).uniform(size=(4, 2))
        np.testing.assert_array_equal(again.prediction(X), posterior.prediction(X))
        other = gpcert.as_posterior(softmax(kernel=kernel()))
        assert other.fingerprint != posterior.fingerprint


def test_classes_are_certified_by_their_labels():
    pair = softmax()
    cert = gpcert.certify(pair, [1.0, 1.0], 0.02, budget=gpcert.Budget(boxes=20))
    assert cert.decision in (0, 1, 2)
    found = gpcert.certify((variational(), gl.BernoulliLikelihood()), np.ones(2), 1e-3)
    assert found.status.name == "ROBUST"
