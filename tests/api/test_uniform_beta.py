"""Factors of error bounds: functions of known norm stay within them; determinants and quadratic
forms are on the safe side of those in high precision."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import Linear, Matern, SquaredExponential
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import flint

arb, arb_mat = flint().arb, flint().arb_mat


def problem(seed, noise, level, n=12):
    """A function of the kernel's space with its norm, noisy values of it, and the exact fit."""
    rng = np.random.default_rng(seed)
    kernel = (SquaredExponential([0.5]), Matern([0.6], nu=2.5))[seed % 2]
    X, Z = rng.uniform(-1, 1, (n, 1)), rng.uniform(-1, 1, (5, 1))
    a = rng.normal(size=5)
    norm = math.sqrt(a @ kernel.value(Z, Z) @ a)
    y = 3.0 + 2.0 * (kernel.value(X, Z) @ a) + level * rng.uniform(-1, 1, n)
    K = kernel.value(X, X) + noise * np.eye(n)
    model = gpcert.Posterior(
        kernel, X, np.linalg.solve(K, (y - 3.0) / 2.0), offset=3.0, scale=2.0, training_noise=noise
    )
    return model, y, norm, lambda x: 3.0 + 2.0 * (kernel.value(x, Z) @ a)


@given(seed=st.integers(0, 10**6), noise=st.sampled_from([1e-4, 0.01, 0.5, 4.0]))
@settings(max_examples=examples(100, quick=30), deadline=None)
def test_functions_of_known_norm_stay_within(seed, noise):
    level = 0.3
    model, y, norm, f = problem(seed, noise, level)
    x = np.linspace(-1.5, 1.5, 301)[:, None]
    mean, variance = model.predict(x)
    apart = np.abs(f(x) - mean[:, 0]) / np.sqrt(variance[:, 0] + 1e-14)
    sure = gpcert.uniform_beta(model, norm_bound=norm, noise_bound=level, y=y)
    assert np.all(apart <= sure.beta * (1 + 1e-9) + 1e-6)
    likely = gpcert.uniform_beta(model, norm_bound=norm, noise_bound=level, delta=1e-3, y=y)
    assert np.all(apart <= likely.beta * (1 + 1e-9) + 1e-6)  # of noise in [-R, R]
    larger = gpcert.uniform_beta(
        model, norm_bound=norm, noise_bound=level, delta=1e-3, y=y, rule="chowdhury_gopalan"
    )
    assert larger.beta > likely.beta
    assert (sure.delta, likely.delta) == (0.0, 1e-3)


@given(seed=st.integers(0, 10**6), noise=st.sampled_from([1e-9, 1e-3, 1.0, 1e3]))
@settings(max_examples=examples(40, quick=10), deadline=None)
def test_numbers_against_ball_arithmetic(seed, noise):
    model, _, norm, _ = problem(seed, noise, 0.1, n=8)
    kernel, X, t = model.kernel, model.points[:, 0], model.weights[0]
    entries = [[_value(kernel, a, b) for b in X] for a in X]
    K = arb_mat(entries)
    one = arb_mat(8, 8, [float(i == j) for i in range(8) for j in range(8)])
    det = (one + K * (1 / arb(noise))).det().log()
    found = gpcert.uniform_beta(model, norm_bound=norm, noise_bound=0.1, delta=0.05)
    assert not arb(found.information[0]) < det
    assert float(arb(found.information[0]) - det) < 1e-3 * float(det) + 1e-9
    r = arb(0.05) / arb(noise).sqrt()
    exact = arb(norm) + r * (det + 2 * (1 / arb(0.05)).log()).sqrt()
    assert not arb(found.beta) < exact
    assert found.beta < float(exact) * 1.01
    column = arb_mat(8, 1, [arb(float(v)) for v in t])
    form = (column.transpose() * (K + one * arb(noise)) * column)[0, 0]
    square = arb(norm) ** 2 + 8 * arb(0.05) ** 2 / arb(noise) - form
    if square > 0:
        sure = gpcert.uniform_beta(model, norm_bound=norm, noise_bound=0.1)
        assert not arb(sure.beta) ** 2 < square


def _value(kernel, a, b):
    r = abs(arb(float(a)) - arb(float(b))) / arb(float(kernel.length_scale[0]))
    if isinstance(kernel, SquaredExponential):
        return (-r * r / 2).exp()
    s = arb(5).sqrt() * r
    return (1 + s + s * s / 3) * (-s).exp()


def test_a_constant_noise_that_no_function_explains_is_said():
    model, _, norm, _ = problem(0, 0.01, 0.1)
    with pytest.raises(InputError, match="no function within both bounds explains the data"):
        gpcert.uniform_beta(model, norm_bound=1e-3 * norm, noise_bound=1e-3)


def test_what_the_weights_leave_is_counted():
    model, y, norm, _ = problem(1, 0.01, 0.1)
    words = {"norm_bound": norm, "noise_bound": 0.1, "delta": 0.1}
    plain = gpcert.uniform_beta(model, **words)
    exact = gpcert.uniform_beta(model, y=y, **words)
    off = gpcert.uniform_beta(model, y=y + 0.02 * np.arange(12), **words)
    assert plain.beta <= exact.beta < plain.beta + 1e-9
    assert off.beta > exact.beta + 1.0
    assert len(plain.assumptions) == len(exact.assumptions) + 1


def test_several_outputs_share_the_risk():
    models = [problem(seed, 0.01, 0.1)[0] for seed in (2, 3)]
    both = gpcert.uniform_beta(models, norm_bound=[1.0, 2.0], noise_bound=0.1, delta=0.1)
    one = gpcert.uniform_beta(models[1], norm_bound=2.0, noise_bound=0.1, delta=0.05)
    assert both.betas[1] == one.beta
    assert float(both) == max(both.betas)
    assert "with probability 0.1" in str(both)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"norm_bound": -1.0}, "norm_bound: expected a number >= 0"),
        ({"noise_bound": [1.0, 2.0]}, "noise_bound: expected a number >= 0"),
        ({"delta": 1.5}, "delta: expected a probability"),
        ({"rule": "other"}, "rule: expected one of"),
        ({"rule": "chowdhury_gopalan", "delta": None}, "rule: 'chowdhury_gopalan' is a choice"),
        ({"y": [1.0]}, "y: expected the observations, of shape"),
        ({"model": gpcert.Posterior(Linear([1.0]), [[1.0]], [1.0])}, "model: expected an exact"),
        ({"model": []}, "model: expected a regression"),
    ],
)
def test_bad_input_is_an_error_in_words(words, message):
    given = {"model": problem(0, 0.01, 0.1)[0], "norm_bound": 1.0, "noise_bound": 0.1}
    given |= {"delta": 0.1} | words
    with pytest.raises(InputError, match=message):
        gpcert.uniform_beta(given.pop("model"), **given)
