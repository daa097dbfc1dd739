"""Models of extreme magnitudes against ball arithmetic, and what cannot be represented."""

import numpy as np
import pytest
import scipy.linalg

import gpcert
from gpcert import Ball, Box, Posterior, Status
from gpcert.enclosures import Evaluation, LocalPosterior
from gpcert.enclosures.polynomials import smallest_eigenvalue
from gpcert.errors import InputError
from gpcert.kernels import Linear, Matern, SquaredExponential, White
from gpcert.kernels.parameters import even_exponent, exactly_scaled
from gpcert.likelihoods import Probit
from gpcert.numerics.arrays import Backend
from gpcert.numerics.rounding import on_grid, root, scaled_to_one
from gpcert.numerics.spectral import largest_eigenvalue, symmetric_eigh
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import crossed
from gpcert.testing.kernel_references import flint

arb = flint().arb


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-162, 1e-100, 1e140, 1e200, 1e300])
@pytest.mark.parametrize("kernel", [SquaredExponential(0.05), Matern(0.05, nu=1.5)])
def test_hidden_bumps_are_never_proved_away(kernel, size):
    """A narrow bump at the region's rim; everything else is far on the other side."""
    points = np.array([[0.0, 0.0], [0.9, 0.9]])
    weights = size * np.array([-1.0, 2.0])
    model = Posterior(kernel, points, weights, scale=1.0 / size, offset=-0.5)
    found = gpcert.certify(model, [0.0, 0.0], radius=1.0, threshold=0.0, budget=gpcert.Budget(10))
    assert found.status is not Status.ROBUST
    ends = gpcert.prediction_range(model, Ball([0.0, 0.0], 1.0, norm=np.inf), tol=0.1)
    assert ends.maximum.lower <= 1.5 + 1e-9
    assert ends.maximum.upper >= 1.5 - 1e-9


@crossed({"length": [1e-300, 1e-160, 1e160, 1e300], "size": [1e-290, 1e290]})
def test_bounds_hold_at_any_magnitude(length, size):
    """Mean and variance of every cell contain the real values, in 200 bits."""
    rng = np.random.default_rng(7)
    Z, t = rng.normal(size=(4, 2)) * length, rng.normal(size=4)
    for kernel in (
        SquaredExponential(length, size),
        Matern(length, nu=1.5, variance=size) + SquaredExponential(2.0 * length, 1e-3 * size),
    ):
        A = 0.3 * rng.normal(size=(3, 4)) / np.sqrt(size)
        model = Posterior(kernel, Z, t * 1e-5 / size, A, scale=1e5)
        reference = ArbPosterior(model)
        for norm in (2.0, np.inf):
            region = Ball(0.1 * length * np.ones(2), 0.5 * length, norm=norm)
            for quantity, function in (("mean", reference.mean), ("variance", reference.variance)):
                if quantity == "variance" and size > 1.0:
                    continue  # 1e300 and more
                unit = 1.0 if quantity == "mean" else 1e10 * size
                found = gpcert.prediction_range(
                    model, region, quantity=quantity, tol=0.2 * unit, budget=gpcert.Budget(20)
                )
                for x in [*region.sample(6, rng), found.argmin, found.argmax]:
                    value = function(x)
                    assert not arb(found.minimum.lower) > value
                    assert not arb(found.maximum.upper) < value


@pytest.mark.parametrize("method", ["taylor", "paper"])
def test_slopes_far_from_the_data_do_not_vanish_with_the_lengths(method):
    """A mean of 1e-25, ten lengths of 2^1000 from its point: its slope in the units of x is no
    float, so that a ball's linear part counted for nothing."""
    length = 2.0**1000
    model = Posterior(SquaredExponential(length), [[0.0, 0.0]], weights=[1.0])
    center, radius = np.full(2, 7.5 * length), 0.1 * length
    found = gpcert.prediction_range(
        model, Ball(center, radius, norm=2.0), method=method, tol=1.0, budget=gpcert.Budget(1)
    )
    away, reference = np.full(2, 0.7 * radius), ArbPosterior(model)
    assert arb(found.minimum.lower) <= reference.mean(center + away)
    assert arb(found.maximum.upper) >= reference.mean(center - away)


def test_predictions_beyond_float64_are_refused_in_words():
    huge = Posterior(SquaredExponential(1.0), [[0.0]], [1e300], scale=1e100)
    with pytest.raises(InputError, match="beyond float64"):
        gpcert.prediction_range(huge, Box([-1.0], [1.0]))
    wide = Posterior(SquaredExponential(1.0, 1e300), [[0.0]], [0.0], scale=1e100)
    with pytest.raises(InputError, match="prior variance"):
        gpcert.prediction_range(wide, Box([-1.0], [1.0]), quantity="variance")
    short = Posterior(SquaredExponential(1e-309), [[0.0]], [1.0])
    with pytest.raises(InputError, match="length"):
        gpcert.prediction_range(short, Box([-1e-309], [1e-309]))
    steep = Posterior(SquaredExponential(1.0), [[0.0]], [1.0], factor=[[1e200]])
    with pytest.raises(InputError, match="factor"):
        gpcert.prediction_range(steep, Box([-1.0], [1.0]), quantity="variance")


def test_means_too_small_for_float64_are_the_offset():
    model = Posterior(SquaredExponential(1.0, 1e-300), [[0.0]], [1e-300], scale=1e-300, offset=2.0)
    found = gpcert.prediction_range(model, Box([-1.0], [1.0]))
    assert found.minimum.lower == pytest.approx(2.0, abs=1e-14)
    assert found.minimum.lower <= 2.0 <= found.maximum.upper


def test_saturated_probabilities_are_valid():
    for size in (1e150, 1e300):
        model = Posterior(SquaredExponential(1.0), [[0.0]], [size], likelihood=Probit())
        found = gpcert.prediction_range(model, Box([-0.1], [0.1]), budget=gpcert.Budget(2))
        assert 0.0 <= found.minimum.lower <= 1.0 <= found.maximum.upper


def test_latent_classes_of_any_size_are_valid():
    for size in (1e-200, 1e250):
        model = Posterior(
            SquaredExponential(1.0),
            [[0.0], [1.0]],
            size * np.array([[1.0, 0.0], [0.0, 1.0], [0.5, -0.5]]),
            factor=[[0.5, 0.0], [0.0, 0.5]],
            likelihood=gpcert.likelihoods.Softmax(),
        )
        found = gpcert.prediction_range(
            model, Box([-0.1], [0.1]), output=0, budget=gpcert.Budget(boxes=1)
        )
        assert 0.0 <= found.minimum.lower <= found.minimum.upper <= 1.0


def test_regions_without_a_length_scale_may_be_huge():
    model = Posterior(Linear([1.0, 0.0]), [[1.0, 1.0]], [1.0])
    found = gpcert.prediction_range(model, Box([0.0, -1e250], [1.0, 1e250]))
    assert found.minimum.lower <= 0.0 <= 1.0 <= found.maximum.upper <= 1.0 + 1e-9


@pytest.mark.parametrize("exponent", [-1074, -1000, -3, 0, 1, 999])
def test_unit_kernels_are_exact(exponent):
    points = np.array([[0.5], [1.0]])
    base = SquaredExponential(1.0, 1.5) + 0.25 * Linear([2.0]) + White(0.1)
    scaled = base.in_units(points)
    assert scaled[1] % 2 == 0
    assert np.array_equal(
        np.ldexp(scaled[0].value(points, points), scaled[1]), base.value(points, points)
    )
    variance = float(np.ldexp(1.0, exponent))
    kernel, e = SquaredExponential(1.0, variance).in_units(points)
    assert np.ldexp(kernel.variance, e) == variance
    assert 0.5 <= kernel.variance < 2.0
    assert e == even_exponent(variance)


def test_products_of_tiny_kernels_have_whole_exponents():
    kernel = Matern(1.0, nu=0.5, variance=2.0**-1000) * Matern(1.0, nu=1.5, variance=2.0**-1000)
    assert kernel.in_units(np.zeros((1, 1)))[1] == -2000


def test_sums_beyond_the_range_of_float64_are_refused():
    kernel = SquaredExponential(1.0, 1e300) + Matern(1.0, nu=0.5, variance=1e-300)
    with pytest.raises(InputError, match="orders of magnitude"):
        kernel.in_units(np.zeros((1, 1)))
    with pytest.raises(InputError, match="x: "):
        exactly_scaled("x", [1.0, 5e-324], -1)


def test_grids_of_subnormal_numbers_have_exact_halves():
    values = np.array([5e-324, -1.5e-323, 2e-320])
    halves = on_grid(values) / 2.0
    assert np.array_equal(halves * 2.0, on_grid(values))


def test_roots_and_scaling():
    assert float(root(np.float64(1e-170) ** 2)) >= 1e-170
    scaled, e = scaled_to_one(np.array([5e-324, 0.0]))
    assert scaled.tolist() == [0.5, 0.0]
    assert e == -1073


def test_eigenvalues_survive_a_failing_lapack(monkeypatch):
    """The bound falls back to row sums; with LAPACK it is tight."""
    rng = np.random.default_rng(0)
    A, K = rng.normal(size=(4, 4)), np.eye(4)
    errors = np.zeros((4, 4))
    true = float(np.linalg.eigvalsh(A @ A.T)[-1])
    assert true <= largest_eigenvalue((A,), K, errors) <= true * (1 + 1e-12)

    def fails(*args, **kwargs):
        raise np.linalg.LinAlgError("no convergence")

    monkeypatch.setattr(scipy.linalg, "eigvalsh", fails)
    assert true <= largest_eigenvalue((A,), K, errors) <= np.abs(A @ A.T).sum(axis=1).max() * 1.01
    monkeypatch.setattr(scipy.linalg, "eigvalsh", lambda M, driver: np.full(len(M), np.nan))
    assert true <= largest_eigenvalue((A,), K, errors)
    monkeypatch.setattr(scipy.linalg, "eigvalsh", lambda M, driver: np.full(len(M), -1e9))
    assert true <= largest_eigenvalue((A,), K, errors)
    monkeypatch.setattr(scipy.linalg, "cholesky", fails)
    assert true <= largest_eigenvalue((A,), K, errors)
    monkeypatch.setattr(scipy.linalg, "eigh", fails)
    with pytest.raises(InputError, match="precision"):
        symmetric_eigh(np.eye(2), "precision")


def test_eigenvalues_of_factors_of_any_size():
    K, errors = np.eye(3), np.zeros((3, 3))
    for size in (1e-300, 1e-160, 1e-100, 1e100):
        found = largest_eigenvalue((size * np.eye(3),), K, errors)
        assert size * size <= found <= size * size * (1 + 1e-12) + 1e-300
    with pytest.raises(InputError, match="beyond float64"):
        largest_eigenvalue((1e160 * np.eye(3),), K, errors)


def test_near_identities_as_of_little_noise():
    """Default scikit-learn noise: LAPACK's dsyevr found no eigenvalue of some of these."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        n = int(rng.integers(5, 40))
        Z = rng.normal(size=(n, 2))
        kernel = SquaredExponential(rng.uniform(0.3, 2.0))
        L = np.linalg.cholesky(kernel.value(Z, Z) + 1e-10 * np.eye(n))
        A = scipy.linalg.solve_triangular(L, np.eye(n), lower=True)
        assert 0.0 <= Posterior(kernel, Z, np.ones(n), A).excess < 1.0


def test_smallest_eigenvalues_survive_a_failing_lapack(monkeypatch):
    H = np.array(
        [[[1.0, 2.0], [2.0, -1.0]], [[np.inf, 0.0], [0.0, 1.0]], [[1e-170, 0], [0, -1e-170]]]
    )
    bound = smallest_eigenvalue(H)
    assert bound[0] <= -np.sqrt(5.0)
    assert bound[1] == -np.inf
    assert bound[2] <= -1e-170

    def fails(*args, **kwargs):
        raise np.linalg.LinAlgError("no convergence")

    monkeypatch.setattr(np.linalg, "eigh", fails)
    assert smallest_eigenvalue(H[:1])[0] <= -np.sqrt(5.0)


def test_norms_of_any_weights_are_upper_bounds():
    for size in (5e-324, 1e-310, 1e-200, 1e-160, 1e150, 1e300):
        model = Posterior(SquaredExponential(1.0), [[0.0], [0.5]], [size, size])
        square = ArbPosterior(model).squared_norm()
        assert not arb(float(model.norms[0])) ** 2 < square
        assert float(model.norms[0]) <= 2.01 * size + 1e-300
        local = LocalPosterior.build(model, Box([-1.0], [1.0]), Backend(), False)
        assert local.norm(0) > 0.0
        assert Evaluation(local, Box([-1.0], [1.0]).root()).mean(0).below.error[0] > 0.0


def test_a_point_infinitely_many_lengths_away_has_no_weight():
    model = Posterior(SquaredExponential(1e-160), points=[[0.0], [1.0]], weights=[1.0, -1.0])
    found = gpcert.prediction_range(model, Box([1.0], [1.0]))
    assert found.minimum.lower <= -1.0 <= found.maximum.upper
    assert found.maximum.upper - found.minimum.lower < 1e-9
