"""Starts at the scale of the data: length-scales, variances, and what training gains by them."""

import numpy as np
import pytest

from gpcert import kernels as k
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.models import GPClassifier, GPRegressor
from gpcert.models.hyperparameters import kernel_at_data_scale

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 3)) * [1.0, 1e3, 1e-2] + [5.0, 0.0, 0.0]


def test_length_scales_follow_the_spread_of_the_features_that_a_kernel_sees():
    tree = k.Sum(
        [
            SquaredExponential([1.0, 1.0, 1.0]),
            k.ActiveDimensions(k.Matern(0.1, 2.5), (1,)),
            k.Product([k.Constant(2.0), k.RationalQuadratic(1.0, 2.0)]),
        ]
    )
    first, second, third = kernel_at_data_scale(tree, X).parts
    np.testing.assert_allclose(first.length_scale, np.sqrt(3) * X.std(0))
    np.testing.assert_allclose(second.kernel.length_scale, X[:, 1].std())
    root_mean_square = np.sqrt(np.mean(3 * X.var(0)))
    np.testing.assert_allclose(third.parts[1].length_scale, root_mean_square)


def test_a_feature_that_never_varies_counts_as_of_spread_1():
    constant = np.column_stack([X[:, 0], np.full(len(X), 7.0)])
    scaled = kernel_at_data_scale(SquaredExponential([3.0, 3.0]), constant)
    np.testing.assert_allclose(scaled.length_scale, np.sqrt(2) * np.array([X[:, 0].std(), 1.0]))


@pytest.mark.parametrize(
    "tree",
    [
        SquaredExponential(1.0, 2.0),
        k.Sum([SquaredExponential(1.0, 2.0), k.Constant(3.0), k.White(0.5)]),
        k.Product([SquaredExponential(1.0, 2.0), k.Periodic(1.0, 1.0)]),
        k.Scale(k.Linear([1.0, 1.0, 1.0]), 2.0),
    ],
    ids=lambda tree: type(tree).__name__,
)
def test_the_mean_variance_is_the_one_asked_for(tree):
    scaled = kernel_at_data_scale(tree, X, 50.0)
    assert np.diag(scaled.training_covariance(X)).mean() == pytest.approx(50.0)


def test_the_fit_does_not_depend_on_the_units_of_the_inputs():
    labels = (X[:, 0] + X[:, 1] / 1e3 > 5.0).astype(int)
    in_units = X / X.std(0)
    one, other = (GPClassifier(max_epochs=30).fit(points, labels) for points in (X, in_units))
    assert one.evidence_ == pytest.approx(other.evidence_, abs=0.5)
    assert GPClassifier(max_epochs=30, scaled_start=False).fit(X, labels).evidence_ < (
        one.evidence_ - 5.0
    )


def test_targets_in_large_units_are_fitted():
    targets = 200.0 * np.sin(2.0 * X[:, 0]) + 0.2 * RNG.standard_normal(len(X))
    model = GPRegressor(max_epochs=60).fit(X, targets)
    plain = GPRegressor(max_epochs=60, scaled_start=False).fit(X, targets)
    assert model.evidence_ >= plain.evidence_
    assert model.score(X, targets) > 0.99


def test_the_better_run_is_kept_and_both_are_in_the_trace():
    labels = (X[:, 0] > 5.0).astype(int)
    model = GPClassifier(max_epochs=5).fit(X, labels)
    runs = model.trace_.runs
    assert set(runs) == {0, 1}
    assert np.bincount(runs).max() <= 5
    np.testing.assert_allclose(model.trace_.parameters[0], 1.0)
    assert model.evidence_ == pytest.approx(model.trace_.evidence.max())


def test_fixed_parameters_are_trained_once():
    labels = (X[:, 0] > 5.0).astype(int)
    model = GPClassifier(k.SquaredExponential(500.0), parameter_bounds="fixed").fit(X, labels)
    assert len(model.trace_) == 1


def test_conjugate_gradients_find_the_same_maximum_within_the_bounds():
    targets = np.sin(2.0 * X[:, 0]) + 0.1 * RNG.standard_normal(len(X))
    one, other = (GPRegressor(optimizer=name).fit(X, targets) for name in ("l-bfgs-b", "cg"))
    assert other.evidence_ == pytest.approx(one.evidence_, abs=0.5)
    low, high = other.parameter_bounds
    assert np.all(
        (other.trace_.parameters[:, :-1] >= low) & (other.trace_.parameters <= high)[:, :-1]
    )
    with pytest.raises(InputError, match="expected one of 'l-bfgs-b', 'cg'"):
        GPClassifier(optimizer="newton").fit(X, targets > 0.0)
