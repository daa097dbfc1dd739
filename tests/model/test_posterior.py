"""The canonical posterior: what it accepts, predicts, saves, and refuses."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings

from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Gaussian, Logistic, Probit, SklearnLogistic
from gpcert.model.posterior import Posterior
from gpcert.testing.effort import examples
from tests.strategies import posteriors

GOOD = {
    "kernel": SquaredExponential(1.0),
    "points": [[0.0, 1.0], [2.0, 3.0]],
    "weights": [1.0, -1.0],
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"points": [[0.0, np.nan], [1.0, 1.0]]}, "points.*finite"),
        ({"points": [[0.0, np.inf], [1.0, 1.0]]}, "points.*finite"),
        ({"points": [0.0, 1.0]}, "points.*2 dimension"),
        ({"points": np.zeros((0, 2)), "weights": []}, "at least one point"),
        ({"points": np.zeros((2, 0))}, "at least one point"),
        ({"points": "abc"}, "points: expected numbers"),
        ({"weights": [1.0]}, r"weights.*\(2,\)"),
        ({"weights": [1.0, np.nan]}, "weights.*finite"),
        ({"weights": np.zeros((1, 1, 2))}, "weights"),
        ({"kernel": SquaredExponential([1.0, 1.0, 1.0])}, "entries of length_scale"),
        ({"factor": [[1.0]]}, "factor"),
        ({"factor": [1.0, 2.0]}, "factor"),
        ({"factor": np.zeros((3, 2, 2))}, "factor"),
        ({"factor": [[np.inf, 0.0]]}, "factor.*finite"),
        ({"offset": [1.0, 2.0]}, "offset"),
        ({"offset": np.nan}, "offset.*finite"),
        ({"scale": 0.0}, "scale > 0"),
        ({"scale": -1.0}, "scale > 0"),
        ({"noise": -1e-9}, "noise >= 0"),
        ({"noise": [[0.1]]}, "noise"),
        ({"classes": ("a", "b", "c")}, "two labels"),
        ({"classes": ("a", "b"), "weights": np.zeros((2, 2))}, "two labels"),
    ],
)
def test_refuses(changes, message):
    with pytest.raises(InputError, match=message):
        Posterior(**{**GOOD, **changes})


@pytest.mark.parametrize(
    ("precision", "message"),
    [
        ([[1.0, 0.5], [0.4, 1.0]], "symmetric"),
        ([[1.0, 0.0]], "square"),
        ([[1.0, np.nan], [np.nan, 1.0]], "finite"),
        ([1.0, 1.0], "dimension"),
        (np.eye(3), "factor"),
    ],
)
def test_from_precision_refuses(precision, message):
    with pytest.raises(InputError, match=message):
        Posterior.from_precision(GOOD["kernel"], GOOD["points"], GOOD["weights"], precision)


def test_from_precision():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 4))
    S = root.T @ root  # of rank 3: the smallest eigenvalue is rounding
    points = rng.normal(size=(4, 2))
    posterior = Posterior.from_precision(
        SquaredExponential(1.0), points, np.ones(4), S, offset=2.0, noise=0.5
    )
    np.testing.assert_allclose(posterior.precisions[0], S, atol=1e-13)
    assert posterior.offset.tolist() == [2.0]
    assert posterior.noise.tolist() == [0.5]


def test_inputs_are_copied():
    points, weights = np.zeros((1, 1)), np.ones(1)
    posterior = Posterior(SquaredExponential(1.0), points, weights)
    points[0, 0] = weights[0] = 7.0
    assert posterior.points[0, 0] == 0.0
    assert posterior.weights[0, 0] == 1.0


@settings(max_examples=examples(40))
@given(posterior=posteriors())
def test_predict_is_the_formula(posterior):
    """Loops over points and outputs, without vectorisation."""
    rng = np.random.default_rng(len(posterior.points))
    X = posterior.points[:3] + rng.normal(size=(min(3, len(posterior.points)), posterior.dim))
    mean, variance = posterior.predict(X)
    lengths = np.broadcast_to(posterior.kernel.length_scale, (posterior.dim,))
    s2 = posterior.kernel.variance
    for i, x in enumerate(X):
        k = np.array(
            [
                s2
                * np.exp(
                    -0.5 * sum(((a - b) / w) ** 2 for a, b, w in zip(x, z, lengths, strict=True))
                )
                for z in posterior.points
            ]
        )
        for c in range(posterior.outputs):
            g = sum(t * v for t, v in zip(posterior.weights[c], k, strict=True))
            g += sum(s * v for s, v in zip(posterior.slope[c], x, strict=True))
            size = np.abs(posterior.weights[c]) @ k + np.abs(posterior.slope[c]) @ np.abs(x)
            size = size * posterior.scale[c] + abs(posterior.offset[c])
            expected = posterior.offset[c] + posterior.scale[c] * g
            assert mean[i, c] == pytest.approx(expected, rel=1e-9, abs=1e-9 * size + 1e-280)
            A, _ = posterior.factors_of(c)
            v = max(s2 - float(np.sum((A @ k) ** 2)), 0.0)
            slack = 1e-9 * (s2 + float(np.sum((np.abs(A) @ k) ** 2))) * posterior.scale[c] ** 2
            expected = posterior.scale[c] ** 2 * v + posterior.noise[c]
            assert variance[i, c] == pytest.approx(expected, rel=1e-9, abs=slack)


def test_predict_without_a_factor_has_the_prior_variance():
    posterior = Posterior(**GOOD)
    _, variance = posterior.predict([[0.0, 0.0]])
    assert variance[0, 0] == 1.0
    assert posterior.excess == 0.0
    assert np.array_equal(posterior.precisions[0], np.zeros((2, 2)))


@pytest.mark.parametrize("X", [[0.0, 1.0], [[0.0]], [[0.0, np.nan]]])
def test_predict_checks_its_inputs(X):
    with pytest.raises(InputError, match="X"):
        Posterior(**GOOD).predict(X)


@pytest.mark.parametrize("likelihood", [Gaussian(), Probit(), Logistic(), SklearnLogistic()])
def test_prediction_goes_through_the_likelihood(likelihood):
    posterior = Posterior(**GOOD, factor=[[0.1, 0.2]], likelihood=likelihood)
    X = np.array([[0.5, 0.5]])
    mean, variance = posterior.predict(X)
    assert np.array_equal(posterior.prediction(X), likelihood.value(mean, variance))


@settings(max_examples=examples(20))
@given(posterior=posteriors())
def test_saving_is_exact(tmp_path_factory, posterior):
    path = tmp_path_factory.mktemp("models") / "model.npz"
    posterior.save(path)
    again = Posterior.load(path)
    for name in ("points", "weights", "factor", "offset", "scale", "noise"):
        assert np.array_equal(getattr(again, name), getattr(posterior, name)), name
    assert again.kernel.config() == posterior.kernel.config()
    assert again.likelihood == posterior.likelihood


@pytest.mark.parametrize("likelihood", [Gaussian(), Probit(), Logistic(), SklearnLogistic()])
@pytest.mark.parametrize(
    "classes", [None, ("no", "yes"), (np.int64(0), np.int64(1)), (False, True)]
)
def test_saving_keeps_likelihood_and_classes(tmp_path, likelihood, classes):
    posterior = Posterior(**GOOD, likelihood=likelihood, classes=classes)
    posterior.save(tmp_path / "model.npz")
    again = Posterior.load(tmp_path / "model.npz")
    assert again.likelihood == likelihood
    assert again.classes == classes
    assert again.factor.shape == (1, 0, 2)  # no factor: the prior's variance


class Bomb:
    """Unpickling it would raise, and say so."""

    def __reduce__(self):
        return (eval, ("1/0",))


def test_load_never_unpickles(tmp_path):
    path = tmp_path / "model.npz"
    with path.open("wb") as stream:
        pickle.dump(Bomb(), stream)
    with pytest.raises(InputError, match=r"Posterior\.save"):
        Posterior.load(path)
    with path.open("wb") as stream:
        np.savez(stream, header=np.array([Bomb()], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"Posterior\.save"):
        Posterior.load(path)


@pytest.mark.parametrize("content", [b"", b"garbage", b"PK\x03\x04 broken zip"])
def test_load_refuses_garbage(tmp_path, content):
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"Posterior\.save"):
        Posterior.load(path)


@pytest.mark.parametrize(
    "header", ['{"format": "other"}', "[]", "not json", '{"format": "gpcert-posterior-1"}']
)
def test_load_refuses_other_archives(tmp_path, header):
    path = tmp_path / "model.npz"
    np.savez(path, header=np.array(header), points=np.zeros((1, 1)))
    with pytest.raises(InputError):
        Posterior.load(path)


def test_load_refuses_a_bare_array(tmp_path):
    with (tmp_path / "model.npz").open("wb") as stream:
        np.save(stream, np.zeros(3))
    with pytest.raises(InputError, match=r"Posterior\.save"):
        Posterior.load(tmp_path / "model.npz")


def test_load_refuses_a_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"Posterior\.save"):
        Posterior.load(tmp_path / "nowhere.npz")


def test_coupled_outputs(tmp_path):
    """`cov_cc' = [c = c'] k(x, x) - (A_c k).(A_c' k)`, scaled, and kept by saving."""
    rng = np.random.default_rng(0)
    points, A = rng.normal(size=(4, 2)), 0.2 * rng.normal(size=(3, 5, 4))
    kernel = SquaredExponential(1.0, 2.0)
    scale = np.array([1.0, 2.0, 0.5])
    posterior = Posterior(
        kernel, points, rng.normal(size=(3, 4)), A, scale=scale, noise=0.1, coupled=True
    )
    posterior.save(tmp_path / "model.npz")
    X = rng.normal(size=(6, 2))
    for each in (posterior, Posterior.load(tmp_path / "model.npz")):
        found = each.covariances(X)
        for x, C in zip(X, found, strict=True):
            q = A @ kernel.value(points, x[None])[:, 0]
            expected = scale[:, None] * (2.0 * np.eye(3) - q @ q.T) * scale + 0.1 * np.eye(3)
            np.testing.assert_allclose(C, expected, rtol=1e-12)
        diagonal = np.diagonal(found, axis1=1, axis2=2)
        np.testing.assert_allclose(diagonal, each.predict(X)[1], rtol=1e-12)
    apart = Posterior(kernel, points, rng.normal(size=(3, 4)), A)
    np.testing.assert_array_equal(apart.covariances(X)[:, 0, 1], 0.0)
    with pytest.raises(InputError, match="coupled"):
        Posterior(kernel, points, rng.normal(size=(3, 4)), A[0], coupled=True)
