"""Contracted gradients of every kernel against finite differences."""

from pathlib import Path

import numpy as np
import pytest

import gpcert.kernels as kernels
from gpcert.errors import InputError
from gpcert.kernels import KERNELS, Constant, SquaredExponential, kernel_from_config
from gpcert.models.kernel_gradients import LEAF_RULES
from gpcert.models.training import LogParameters

D = 3
SE = ["squared_exponential", {"length_scale": [0.7, 1.3, 2.1], "variance": 1.7}]
COSINE = ["cosine", {"frequency": [0.4, -1.1, 0.6], "variance": 0.8}]
PERIODIC = ["periodic", {"period": [2.0, 1.5, 3.0], "length_scale": 0.9, "variance": 0.6}]
WHITE = ["white", {"variance": 0.3}]
LINEAR = ["linear", {"weights": [0.5, 0.0, 2.0], "center": [0.1, 0.2, -0.3]}]
TWO = [[0.3, -0.4, 1.2], [0.9, 0.1, -0.6]]
SUM = ["sum", {"kernels": [SE, WHITE, ["product", {"kernels": [COSINE, LINEAR, PERIODIC]}]]}]

SAMPLES = {
    "squared_exponential": [SE[1], {"length_scale": 1.4, "variance": 0.6}],
    "rational_quadratic": [
        {"length_scale": [0.7, 1.3, 2.1], "alpha": 0.8, "variance": 1.7},
        {"length_scale": 0.9, "alpha": 3.0, "variance": 0.4},
    ],
    "matern": [
        {"length_scale": [0.7, 1.3, 2.1] if i % 2 else 1.1, "nu": nu, "variance": 1.3}
        for i, nu in enumerate((0.5, 0.5, 1.5, 1.5, 2.5, 3.5, 10.5))
    ],
    "periodic": [
        PERIODIC[1],
        {"period": 1.7, "length_scale": [0.7, 1.3, 2.1], "variance": 1.3},
    ],
    "cosine": [COSINE[1]],
    "spectral_mixture": [
        {
            "variances": [0.7, 1.2],
            "frequencies": TWO,
            "length_scales": [[0.7, 1.3, 2.1], [1.0, 0.8, 0.5]],
        }
    ],
    "generalised_spectral": [
        {
            "variances": [0.7, 1.2],
            "thetas": [[0.1, -0.2, 0.3], [0.2, 0.1, -0.1]],
            "first": TWO,
            "second": [[-0.2, 0.7, 0.5], [0.4, -0.9, 0.3]],
            "phases": [[0.3, -0.2], [1.0, 0.4]],
        }
    ],
    "exponential_tilt": [{"theta": [0.1, -0.2, 0.3]}],
    "cosine_pair": [{"first": TWO[0], "second": TWO[1], "phases": [0.4, -0.3]}],
    "linear": [LINEAR[1], {"weights": 0.7, "center": 0.2}],
    "polynomial": [
        {"degree": 3, "weights": [0.5, 1.2, 0.1], "offset": 0.8, "center": 0.1},
        {"degree": 1, "weights": 0.3, "offset": 0.0, "center": 0.0},
        {"degree": 2, "weights": 0.3, "offset": 0.4, "center": [0.1, 0.0, 1.0]},
    ],
    "constant": [{"variance": 1.4}],
    "white": [WHITE[1]],
    "scale": [{"kernel": SUM, "factor": 1.8}],
    "sum": [SUM[1]],
    "product": [
        {"kernels": [SUM, SE]},
        {"kernels": [["sum", {"kernels": [COSINE, WHITE]}], LINEAR]},
    ],
    "active_dimensions": [
        {
            "kernel": ["squared_exponential", {"length_scale": [0.7, 1.3], "variance": 1.7}],
            "dimensions": [2, 0],
        }
    ],
}


def samples():
    for name in sorted(KERNELS):
        for i, config in enumerate(SAMPLES.get(name, [])):  # a missing one fails by name below
            yield pytest.param(name, config, id=f"{name}-{i}")


def kernel_of(name, config):
    try:
        return kernel_from_config(name, config)
    except (InputError, KeyError) as error:  # a part is not registered
        pytest.fail(f"{name}: {error}")


def finite_differences(function, vector, step=1e-6):
    slopes = []
    for a in range(len(vector)):
        moved = np.zeros(len(vector))
        moved[a] = step
        slopes.append((function(vector + moved) - function(vector - moved)) / (2 * step))
    return np.array(slopes)


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(7, D)), random.normal(size=(5, D))
    Y[0] = X[0]  # points that coincide
    return X, Y, random.normal(size=(7, 5)), random.normal(size=(7, 7)), random.normal(size=7)


def test_every_kernel_has_a_rule_and_a_sample():
    recipe = "see the checklist for a new kernel in CONTRIBUTING.md"
    made = {"sum", "product", "scale", "active_dimensions"}
    ruled = {name for name, kind in KERNELS.items() if kind in LEAF_RULES or kind.radial}
    without = set(KERNELS) - ruled - made
    assert not without, f"no rule for the gradients of {sorted(without)} in models/; {recipe}"
    without = set(KERNELS) - set(SAMPLES)
    assert not without, f"SAMPLES in {Path(__file__).name} lacks {sorted(without)}; {recipe}"


@pytest.mark.parametrize(("name", "config"), list(samples()))
def test_gradients_agree_with_finite_differences(name, config, data):
    X, Y, W, square, w = data
    parameters = LogParameters.of(kernel_of(name, config))
    vector = parameters.values
    for found, function in (
        (parameters.gradient(X, Y, W), lambda t: np.vdot(W, parameters.rebuild(t).value(X, Y))),
        (
            parameters.training_gradient(X, square),
            lambda t: np.vdot(square, parameters.rebuild(t).training_covariance(X)),
        ),
        (
            parameters.diagonal_gradient(X, w),
            lambda t: np.vdot(w, parameters.rebuild(t).diagonal(X)),
        ),
    ):
        assert found.shape == vector.shape == (len(parameters.names),)
        np.testing.assert_allclose(
            found, finite_differences(function, vector), rtol=1e-6, atol=1e-7
        )


@pytest.mark.parametrize(("name", "config"), list(samples()))
def test_known_values_change_nothing(name, config, data):
    X, Y, W, square, _ = data
    kernel = kernel_of(name, config)
    parameters = LogParameters.of(kernel)
    np.testing.assert_array_equal(
        parameters.gradient(X, Y, W, kernel.value(X, Y)), parameters.gradient(X, Y, W)
    )
    np.testing.assert_array_equal(
        parameters.training_gradient(X, square, kernel.training_covariance(X)),
        parameters.training_gradient(X, square),
    )


@pytest.mark.parametrize(("name", "config"), list(samples()))
def test_rebuilding_at_the_same_vector_gives_the_same_kernel(name, config, data):
    X, Y, *_ = data
    kernel = kernel_of(name, config)
    parameters = LogParameters.of(kernel)
    again = parameters.rebuild(parameters.values)
    np.testing.assert_allclose(again.value(X, Y), kernel.value(X, Y), rtol=1e-12)
    moved = LogParameters.of(parameters.rebuild(parameters.values + 0.25))
    np.testing.assert_allclose(moved.values, parameters.values + 0.25, rtol=1e-12)
    assert moved.names == parameters.names


def test_names_are_distinct_and_say_where_a_parameter_is():
    kernel = kernels.SquaredExponential([1.0, 2.0], variance=3.0)
    assert LogParameters.of(kernel).names == ("variance", "length_scale[0]", "length_scale[1]")
    nested = kernel_of("scale", SAMPLES["scale"][0])
    names = LogParameters.of(nested).names
    assert len(set(names)) == len(names)
    assert names[:2] == ("factor", "1.variance")
    assert "3.2.weights[2]" in names


def test_a_weight_of_zero_stays_zero():
    kernel = kernel_of(*LINEAR)
    parameters = LogParameters.of(kernel)
    assert parameters.names == ("weights[0]", "weights[2]")
    np.testing.assert_allclose(parameters.rebuild([0.0, 1.0]).weights, [1.0, 0.0, np.e])


def test_one_length_scale_gets_the_sum_of_all_features(data):
    X, Y, W, *_ = data
    shared = LogParameters.of(SquaredExponential(1.3)).gradient(X, Y, W)
    apart = LogParameters.of(SquaredExponential([1.3] * D)).gradient(X, Y, W)
    np.testing.assert_allclose(shared, [apart[0], apart[1:].sum()], rtol=1e-12)


def test_far_from_the_origin_nothing_is_lost(data):
    X, Y, W, *_ = data
    parameters = LogParameters.of(SquaredExponential([0.7, 1.3, 2.1]))
    np.testing.assert_allclose(
        parameters.gradient(X + 1e4, Y + 1e4, W), parameters.gradient(X, Y, W), rtol=1e-8
    )


def test_a_vector_of_the_wrong_length_is_refused():
    with pytest.raises(InputError, match="expected 2 parameters"):
        LogParameters.of(SquaredExponential(1.0)).rebuild([1.0])


def test_an_unknown_kernel_is_refused_by_name():
    class Stranger(Constant):
        name = "stranger"

    with pytest.raises(InputError, match="kernel_gradients"):
        LogParameters.of(Stranger(1.0))
