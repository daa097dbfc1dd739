"""First and total Sobol' indices of a mean."""

import numpy as np
import pytest
from scipy.stats import expon, multivariate_normal, norm, poisson, triang, uniform

import gpcert
from gpcert.kernels import Constant, Linear, Matern, RationalQuadratic, SquaredExponential

LENGTHS = [2.0, 1.2, 2.0]
ISHIGAMI = (0.3139, 0.4424, 0.0), (0.5576, 0.4424, 0.2437)
"""Of the function itself."""


def ishigami(X):
    return np.sin(X[:, 0]) + 7 * np.sin(X[:, 1]) ** 2 + 0.1 * X[:, 2] ** 4 * np.sin(X[:, 0])


def fitted(kernel, n, noise):
    X = np.random.default_rng(0).uniform(-np.pi, np.pi, (n, 3))
    t = np.linalg.solve(kernel.value(X, X) + noise * np.eye(n), ishigami(X) - 3.5)
    return gpcert.Posterior(kernel, X, t, offset=3.5, feature_names=("a", "b", "c"))


MODEL = fitted(SquaredExponential(LENGTHS, 200.0), 200, 1e-4)
LAWS = [uniform(-np.pi, 2 * np.pi)] * 3


def sampled(model, laws, n=2**14):
    """Both indices by Saltelli's and Jansen's estimators."""
    rng = np.random.default_rng(1)
    A, B = (np.stack([law.rvs(n, random_state=rng) for law in laws], axis=1) for _ in range(2))
    ya, yb = (model.predict(X)[0][:, 0] for X in (A, B))
    whole, first, total = np.var(np.concatenate([ya, yb])), [], []
    for j in range(len(laws)):
        C = A.copy()
        C[:, j] = B[:, j]
        yc = model.predict(C)[0][:, 0]
        first.append(np.mean(yb * (yc - ya)) / whole)
        total.append(0.5 * np.mean((ya - yc) ** 2) / whole)
    return np.array(first), np.array(total), whole


def test_a_surrogate_of_ishigamis_function():
    found = gpcert.sobol_indices(MODEL, LAWS)
    assert found.converged
    assert np.all(found.first[:, 1] - found.first[:, 0] < 1e-3)
    for ends, truth in zip((found.first, found.total), ISHIGAMI, strict=True):
        assert np.allclose(ends.mean(axis=1), truth, atol=0.04)
    assert np.all(found.first[:, 0] <= found.total[:, 1])
    assert found.variance.lower == pytest.approx(13.84, rel=0.05)
    # the same in other units, and with another offset
    other = gpcert.Posterior(MODEL.kernel, MODEL.points, MODEL.weights, offset=-1.0, scale=1e-3)
    again = gpcert.sobol_indices(other, LAWS)
    assert np.all(again.first[:, 0] <= found.first[:, 1])
    assert np.all(found.first[:, 0] <= again.first[:, 1])
    assert again.variance.upper == pytest.approx(1e-6 * found.variance.upper, rel=1e-3)


@pytest.mark.parametrize(
    "kernel",
    [
        Matern(LENGTHS, nu=2.5, variance=100.0),
        RationalQuadratic(2.0, alpha=3.0, variance=100.0),
        SquaredExponential(LENGTHS, 100.0) * Matern(5.0, nu=2.5) + Constant(9.0),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_other_kernels_and_laws_agree_with_samples(kernel):
    model, laws = fitted(kernel, 40, 1e-1), [norm(0, 1), triang(0.3, -3, 6), expon(-2, 1.0)]
    found = gpcert.sobol_indices(model, laws, tol=0.05)
    assert found.converged
    first, total, whole = sampled(model, laws)
    assert np.all(np.abs(first - found.first.mean(axis=1)) < 0.06)
    assert np.all(np.abs(total - found.total.mean(axis=1)) < 0.06)
    assert whole == pytest.approx(found.variance.lower, rel=0.2)


def test_an_additive_mean_in_closed_form():
    """g = f(x) + h(y), as length-scales that differ by far make products: here one bump each."""
    kernel = SquaredExponential([1.0, 1e8])
    model = gpcert.Posterior(kernel, [[0.0, 0.0]], [1.0])
    found = gpcert.sobol_indices(model, [norm(0, 1), norm(0, 1)])
    assert found.first[0, 0] > 0.999999
    assert found.total[1, 1] < 1e-6
    # E exp(-x^2 / 2) = 2^-1/2, E exp(-x^2) = 3^-1/2
    assert found.variance.lower <= 3**-0.5 - 0.5 <= found.variance.upper
    assert found.mean.lower <= 2**-0.5 <= found.mean.upper
    assert found.variance.width < 1e-7


def test_fixed_features_have_no_index():
    found = gpcert.sobol_indices(MODEL, {"a": norm(0, 1), "b": 0.5, "c": uniform(-1, 2)})
    assert found.features == ("a", "c")
    assert found.first.shape == (2, 2)
    held = MODEL.points.copy()
    factor = np.exp(-0.5 * ((held[:, 1] - 0.5) / 1.2) ** 2)
    plain = gpcert.Posterior(
        SquaredExponential([2.0, 2.0], 200.0), held[:, [0, 2]], MODEL.weights[0] * factor
    )
    other = gpcert.sobol_indices(plain, [norm(0, 1), uniform(-1, 2)])
    assert np.all(found.first[:, 0] <= other.first[:, 1])
    assert np.all(other.first[:, 0] <= found.first[:, 1])


def test_the_record(tmp_path):
    found = gpcert.sobol_indices(MODEL, LAWS)
    found.save(tmp_path / "sobol.json")
    again = gpcert.load(tmp_path / "sobol.json")
    assert np.array_equal(again.first, found.first)
    assert "a" in str(found)
    pd = pytest.importorskip("pandas")
    frame = found.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["feature"]) == ["a", "b", "c"]
    assert np.all(frame["total lower"] <= frame["total upper"])


@pytest.mark.parametrize("seed", range(4))
def test_coarse_sums_of_gaussians_hold_what_fine_ones_do(seed):
    rough = fitted(Matern(LENGTHS, nu=0.5, variance=1.0), 20, 1e-2 * (1 + seed))
    coarse, fine = (gpcert.sobol_indices(rough, LAWS, tol=tol, budget=20.0) for tol in (0.99, 0.05))
    assert fine.variance.width < coarse.variance.width
    assert coarse.variance.lower <= fine.variance.upper
    assert fine.variance.lower <= coarse.variance.upper


def test_what_is_not_known_is_open():
    rough = fitted(Matern(LENGTHS, nu=0.5, variance=50.0), 30, 1e-3)
    found = gpcert.sobol_indices(rough, LAWS, tol=1e-12, budget=0.3)
    assert np.all((found.first >= 0) & (found.total <= 1))
    assert not found.converged
    flat = gpcert.sobol_indices(gpcert.Posterior(SquaredExponential(1.0), [[0.0]], [0.0]), [norm()])
    assert flat.variance.upper < 1e-200
    assert flat.first.tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize(
    ("model", "laws", "message"),
    [
        (MODEL, LAWS[:2], "one distribution or number for each of 3"),
        (MODEL, [poisson(3), 0.0, 0.0], "discrete"),
        (MODEL, [float("nan"), norm(), norm()], "got nan"),
        (MODEL, multivariate_normal(np.zeros(3), np.eye(3)), "independent"),
        (gpcert.Posterior(Linear([1.0]), [[1.0]], [1.0]), [norm()], "products over the features"),
        (gpcert.Posterior(SquaredExponential(1.0), [[1.0]], [1.0], slope=[1.0]), [norm()], "trend"),
    ],
)
def test_bad_input(model, laws, message):
    with pytest.raises(gpcert.InputError, match=message):
        gpcert.sobol_indices(model, laws)


def test_bad_options():
    with pytest.raises(gpcert.InputError, match="tol"):
        gpcert.sobol_indices(MODEL, LAWS, tol=float("nan"))
    with pytest.raises(gpcert.InputError, match="output"):
        gpcert.sobol_indices(MODEL, LAWS, output=3)
    with pytest.raises(gpcert.UnknownArgumentError, match="n_samples"):
        gpcert.sobol_indices(MODEL, LAWS, n_samples=100)


def test_the_error_of_the_kernel_counts():
    """One bump of a Matern kernel whose sum is coarse: the exact variance lies in between."""
    model = gpcert.Posterior(Matern(1.0, nu=1.5), [[0.0]], [1.0])
    # of (1 + t) e^-t, t = 3^1/2 |x|, x in [0, 1], by parts
    s = np.sqrt(3.0)
    mean = (2 - (2 + s) * np.exp(-s)) / s
    square = (1.25 - (1.25 + 1.5 * s + 0.5 * s * s) * np.exp(-2 * s)) / s
    for tol in (0.9, 1e-2, 1e-4):
        found = gpcert.sobol_indices(model, [uniform(0, 1)], tol=tol)
        assert found.variance.lower <= square - mean**2 <= found.variance.upper
        assert found.mean.lower <= mean <= found.mean.upper
        if tol == 0.9:  # wide: a sum whose error did not count would be narrow, and elsewhere
            assert found.variance.width > 1e-3 * found.variance.upper


def test_the_budget_ends_it():
    model = fitted(Matern(LENGTHS, nu=2.5, variance=100.0), 40, 1e-1)
    once = gpcert.sobol_indices(model, LAWS, tol=1e-4, budget=gpcert.Budget(boxes=1))
    assert (once.boxes, once.reason.name, once.converged) == (1, "BOXES", False)
    none = gpcert.sobol_indices(model, LAWS, tol=1e-4, budget=gpcert.Budget(memory=1e5))
    assert not none.converged
    short = gpcert.sobol_indices(model, LAWS, tol=1e-9, budget=0.05)
    assert short.reason.name in {"TIME", "RESOLUTION"}
    whole = gpcert.sobol_indices(model, LAWS, tol=1e-3)
    for found in (once, none, short):
        assert np.all(found.first[:, 0] <= whole.first[:, 1])
        assert np.all(whole.first[:, 0] <= found.first[:, 1])
