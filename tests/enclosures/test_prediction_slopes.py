"""Slopes of variances, deviations and probabilities over cells, against ball arithmetic."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpcert import Posterior
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.goals import QuantityGoal
from gpcert.enclosures.local_posterior import local_model
from gpcert.errors import InputError
from gpcert.kernels import (
    ActiveDimensions,
    Constant,
    Linear,
    Matern,
    RationalQuadratic,
    SquaredExponential,
)
from gpcert.likelihoods import LapseProbit, Logistic, Probit, Softmax
from gpcert.likelihoods.logistic import COEFS, LAMBDAS, SklearnLogistic
from gpcert.likelihoods.probit import StepLink
from gpcert.model.slopes import slope_model, slopes_beside
from gpcert.numerics.arrays import Backend
from gpcert.quantities import Deviation, PredictionSlope, PredictionSteepness
from gpcert.quantities.differentiable import (
    DENSITY_BOUNDS,
    HERMITE,
    LAST_EXTREMA,
    LOGISTIC_BOUNDS,
    LinkedMean,
    RootOfVariance,
    VarianceItself,
)
from gpcert.regions import Box, Cells, LinearMap
from gpcert.testing.arb_reference import ArbPosterior, kernel_reference
from gpcert.testing.effort import backend_or_skip
from gpcert.testing.kernel_contract import drawn
from gpcert.testing.kernel_references import dot, exact, flint, total
from gpcert.testing.node_contract import BACKENDS
from tests.kernels.slope_references import slope

KERNELS = {
    "squared exponential": SquaredExponential([0.7, 1.5], 2.0),
    "matern 3/2": Matern([0.7, 1.5], 1.5),
    "matern 5/2": Matern(1.0, 2.5, 3.0),
    "sum": SquaredExponential(1.0) + RationalQuadratic([0.5, 2.0], 0.7) + Constant(2.0),
    "product": SquaredExponential([1.0, 3.0]) * ActiveDimensions(Matern(1.0, 2.5), (1,)),
}

FUNCTIONS = {
    "variance": VarianceItself(),
    "std": RootOfVariance(),
    "probit": LinkedMean(Probit()),
    "lapse": LinkedMean(LapseProbit(0.1)),
    "step": LinkedMean(StepLink()),
    "logistic of scikit-learn": LinkedMean(SklearnLogistic()),
}

seeds = st.integers(0, 2**32 - 1)


def model_of(kernel, rng, known, features=None):
    """A posterior of ten points, its variance by the noise or by a factor; with a negative one."""
    Z, y = rng.normal(size=(10, 2)), 2.0 * rng.normal(size=10)
    ridge = float(10.0 ** rng.uniform(-4, 0))
    K = kernel.value(Z, Z) + ridge * np.eye(10)
    parts = {"training_noise": ridge} if known else {"factor": np.linalg.inv(np.linalg.cholesky(K))}
    if not known and rng.random() < 0.5:
        parts["negative_factor"] = 0.2 * rng.normal(size=(2, 10))
    trend = [0.5, -1.0] if rng.random() < 0.5 and features is None else None
    scale, noise = float(rng.choice([0.5, 2.0])), float(rng.choice([0.0, 0.3]))
    weights = np.linalg.solve(K, y)
    return Posterior(
        kernel, Z, weights, scale=scale, noise=noise, slope=trend, features=features, **parts
    )


class Slopes:
    """`D_j` of mean and variance in balls, from the kernel's own slopes."""

    def __init__(self, posterior):
        self.posterior, self.reference = posterior, ArbPosterior(posterior)
        self.parts = (posterior.kernel.name, posterior.kernel.config())

    def at(self, x, j):
        posterior, reference = self.posterior, self.reference
        direction = np.eye(len(x))[j]
        if posterior.features is not None:
            direction = posterior.features.matrix @ direction
        u, at = exact(direction), reference.seen(x)
        turned = [slope(self.parts, u, at, z) for z in reference.points]
        mean = dot(reference.weights[0], turned) + dot(exact(posterior.slope[0]), u)
        if posterior.training_noise is not None:
            both = [a + b for a, b in zip(reference.row(x), turned, strict=True)]
            rows = (both, reference.row(x), turned)
            whole, first, second = (reference._explained(0, row) for row in rows)
            v = -(whole - first - second)
        else:
            row = reference.row(x)
            v = -2 * total(dot(A, row) * dot(A, turned) for A in reference.factors[0])
            v += 2 * total(dot(C, row) * dot(C, turned) for C in reference.negative[0])
        scale = exact(posterior.scale)[0]
        return scale * mean, scale**2 * v

    def slope(self, function, x, j):
        """Of G."""
        arb = flint().arb
        by_mean, by_variance = self.at(x, j)
        mu, V = self.reference.mean(x), self.reference.variance(x)
        if isinstance(function, VarianceItself):
            return by_variance
        if isinstance(function, RootOfVariance):
            return by_variance / (2 * V.sqrt())
        first = second = arb(0)
        for r, c in exact_terms(function.likelihood):
            w = r + V
            density = (-mu * mu / (2 * w)).exp() / (2 * arb.pi() * w).sqrt()
            first, second = first + c * density, second - c * density * mu / w
        return first * by_mean + second * by_variance / 2


def exact_terms(likelihood):
    arb = flint().arb
    if isinstance(likelihood, SklearnLogistic):
        return [(1 / (2 * arb(s) ** 2), arb(c)) for s, c in zip(LAMBDAS, COEFS, strict=True)]
    if isinstance(likelihood, LapseProbit):
        return [(arb(1), 1 - 2 * arb(likelihood.lapse))]
    return [(arb(0 if isinstance(likelihood, StepLink) else 1), arb(1))]


def evaluation_of(model, seed, backend="numpy"):
    """Cells of many sizes, some of them points, some at training points."""
    rng, where = np.random.default_rng(seed), backend_or_skip(backend)
    both = slopes_beside(model, list(np.eye(2)), 0)
    centers = np.concatenate([rng.uniform(-1.5, 1.5, (3, 2)), np.clip(model.places[:1], -1.5, 1.5)])
    half = 10.0 ** rng.uniform(-6, -0.3, (4, 1)) * rng.choice([0.0, 1.0, 1.0, 0.3], (4, 2))
    box = Box([-2.0, -2.0], [2.0, 2.0])
    cells = Cells(box, where.asarray(centers - half), where.asarray(centers + half))
    return Evaluation(local_model(both, box, where, True), cells), centers, half


@pytest.mark.parametrize("name", sorted(KERNELS))
@drawn(60, quick=4)
@given(
    seed=seeds,
    known=st.booleans(),
    backend=st.sampled_from(BACKENDS),
    function=st.sampled_from(sorted(FUNCTIONS)),
)
def test_slopes_of_predictions(name, function, seed, known, backend):
    """Bounds over cells and at centres hold at points of them, on both sides."""
    rng = np.random.default_rng(seed)
    features = LinearMap(rng.normal(size=(2, 2)), rng.normal(size=2)) if seed % 5 == 0 else None
    model = model_of(KERNELS[name], rng, known, features)
    evaluation, centers, half = evaluation_of(model, seed, backend)
    slopes, G = Slopes(model), FUNCTIONS[function]
    for j, sign in ((0, 1.0), (1, -1.0)):
        quantity = PredictionSlope(G, tuple(sign * np.eye(2)[j]))
        lower = np.asarray(QuantityGoal(quantity).bound(evaluation, None).lower)
        upper = np.asarray(QuantityGoal(quantity).ceiling(evaluation))
        for cell in range(len(centers)):
            low, high = (centers[cell] + side * half[cell] for side in (-1, 1))
            for x in (centers[cell], high, rng.uniform(low, high)):
                value = int(sign) * slopes.slope(G, np.clip(x, low, high), j)
                if value.is_finite():
                    assert not flint().arb(float(lower[cell])) > value
            value = int(sign) * slopes.slope(G, 0.5 * (low + high), j)
            if value.is_finite() and np.isfinite(upper[cell]):
                assert not flint().arb(float(upper[cell])) < value


@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("function", ["std", "probit"])
@drawn(20, quick=3)
@given(seed=seeds, known=st.booleans())
def test_steepness(function, norm, seed, known):
    rng = np.random.default_rng(seed)
    model = model_of(KERNELS["matern 5/2"], rng, known)
    evaluation, centers, half = evaluation_of(model, seed)
    slopes, G = Slopes(model), FUNCTIONS[function]
    goal = QuantityGoal(PredictionSteepness(G, 2, norm))
    lower, upper = goal.bound(evaluation, None).lower, goal.ceiling(evaluation)
    for cell in range(len(centers)):
        low, high = (centers[cell] + side * half[cell] for side in (-1, 1))
        for x in (0.5 * (low + high), low, rng.uniform(low, high)):
            sizes = [abs(slopes.slope(G, np.clip(x, low, high), j)) for j in range(2)]
            value = {1.0: sizes[0] + sizes[1], math.inf: sizes[0].max(sizes[1])}.get(
                norm, (sizes[0] ** 2 + sizes[1] ** 2).sqrt()
            )
            assert not value < 0.0
            assert not flint().arb(float(-lower[cell])) < value
            if np.array_equal(x, 0.5 * (low + high)):
                assert not flint().arb(float(-upper[cell])) > value


@drawn(60, quick=12)
@given(seed=seeds, name=st.sampled_from(sorted(KERNELS)))
def test_lengths_of_gradients_of_means(seed, name):
    """Where the gradient's part across its direction at the centre counts: at corners of cells."""
    rng = np.random.default_rng(seed)
    model = model_of(KERNELS[name], rng, True)
    searched, box = slope_model(model, list(np.eye(2)), 0), Box([-2.0, -2.0], [2.0, 2.0])
    centers, half = rng.uniform(-1.5, 1.5, (8, 2)), 10.0 ** rng.uniform(-4, -0.7, (8, 2))
    both = local_model(searched, box, Backend(), False)
    evaluation = Evaluation(both, Cells(box, centers - half, centers + half))
    quantity = Deviation((0.0, 0.0), (0.0, 0.0), 2.0)
    lower, slopes = QuantityGoal(quantity).bound(evaluation, None).lower, Slopes(model)
    for cell, signs in itertools.product(range(8), itertools.product((-1, 1), (-1, 1))):
        x = centers[cell] + np.array(signs) * half[cell] * (1.0 - 1e-9)
        sizes = [slopes.at(x, j)[0] ** 2 for j in range(2)]
        assert not flint().arb(float(-lower[cell])) < (sizes[0] + sizes[1]).sqrt()


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_the_gap_falls_with_the_square_of_the_cell(name):
    """Joint models are of second order (Matern 3/2: of order 3/2)."""
    rng = np.random.default_rng(5)
    model = model_of(KERNELS[name], rng, True)
    box, searched = Box([-2.0, -2.0], [2.0, 2.0]), slopes_beside(model, [np.eye(2)[0]], 0)
    both = local_model(searched, box, Backend(), True)
    goal, gaps = QuantityGoal(PredictionSlope(LinkedMean(Probit()))), []
    for half in (0.02, 0.005):
        low, high = (np.array([[0.3 + side * half, 0.1]]) for side in (-1.0, 1.0))
        lower = goal.bound(Evaluation(both, Cells(box, low, high)), None).lower[0]
        X = np.column_stack([np.linspace(low[0, 0], high[0, 0], 41), np.full(41, 0.1)])
        gaps.append(goal.function(searched)(X)[0].min() - lower)
    assert gaps[1] < gaps[0] / (5.0 if name == "matern 3/2" else 10.0)


def derivative_of_density(m, z):
    """phi^(m)(z) in balls, by a power series."""
    arb, series = flint().arb, flint().arb_series
    x = series([z, 1], prec=m + 1)
    density = (-x * x / 2).exp() / (2 * arb.pi()).sqrt()
    return density[m] * math.factorial(m)


def test_constants_of_densities():
    """Largest values of derivatives, where they fall, and of the logistic function's."""
    arb = flint().arb
    for m, bound in enumerate(DENSITY_BOUNDS):
        roots = np.roots(np.polynomial.hermite_e.herme2poly([0] * (m + 1) + [1])[::-1])
        assert np.max(np.abs(roots)) <= LAST_EXTREMA[m]
        assert np.polynomial.hermite_e.herme2poly([0] * m + [1]).tolist() == list(HERMITE[m])
        sizes = [abs(derivative_of_density(m, arb(float(r)))) for r in np.append(roots.real, 0.0)]
        assert all(size < bound for size in sizes)
        assert any(size > 0.999 * bound for size in sizes)
    # sigma^(n) is a polynomial in s = sigma: p' = p'(s) s (1 - s)
    p = np.polynomial.Polynomial([0.0, 1.0])
    for n in range(1, 7):
        p = p.deriv() * np.polynomial.Polynomial([0.0, 1.0, -1.0])
        if n >= 5:
            inner = p.deriv().roots()
            ends = p(inner.real[(np.abs(inner.imag) < 1e-9) & (inner.real > 0) & (inner.real < 1)])
            assert 0.999 * LOGISTIC_BOUNDS[n - 5] < np.abs(ends).max()
            assert np.abs(ends).max() <= LOGISTIC_BOUNDS[n - 5] + 1e-12


@drawn(40, quick=6)
@given(mu=st.floats(-6.0, 6.0), v=st.floats(1e-3, 20.0), n=st.integers(1, 4))
def test_derivatives_of_the_logistic_mean(mu, v, n):
    """`d^n F / dmu^n` by quadrature, and below its bounds."""
    G, library = LinkedMean(Logistic()), flint()
    value, error = G.derivative(n, np.array([mu]), np.array([v]))
    arb, acb = library.arb, library.acb
    scale = arb(v).sqrt()

    def integrand(t, _analytic):
        s = 1 / (1 + (-(arb(mu) + scale * t)).exp())
        turned = [s * (1 - s)]
        turned.append(turned[0] * (1 - 2 * s))
        turned.append(turned[0] * (1 - 6 * s + 6 * s * s))
        turned.append(turned[1] * (1 - 12 * s + 12 * s * s))
        return (-t * t / 2).exp() / (2 * acb.pi()).sqrt() * turned[n - 1]

    real = acb.integral(integrand, -12, 12, rel_tol=1e-20, abs_tol=1e-20).real + arb(0, 1e-28)
    assert abs(real - arb(float(value[0]))) < arb(float(error[0]))
    bound = G.bound(n, (np.array([mu]), np.array([mu])), (np.array([v]), np.array([v])))
    assert not abs(real) > arb(float(bound[0]))


def test_what_has_no_slopes_is_refused_in_words():
    Z = np.zeros((1, 2))
    with pytest.raises(InputError, match="stationary"):
        slopes_beside(Posterior(Linear(1.0), Z + 1.0, [1.0]), [np.eye(2)[0]], 0)
    with pytest.raises(InputError, match="smooth link"):
        LinkedMean(Softmax())
    assert kernel_reference(SquaredExponential(1.0), exact([0.0]), exact([0.0])) == 1
