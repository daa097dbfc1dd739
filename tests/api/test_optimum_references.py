"""Proved optima of every quantity, kernel and kind of domain against dense samples, local searches
from many starts, and 200-bit values at the points that any of them found."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import gpcert
from gpcert import kernels as k
from gpcert.testing.arb_reference import ArbPosterior, normal_cdf, regression_posterior
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import flint

QUANTITIES = ("mean", "std", "variance", "ucb", "lcb", "ei", "log_ei", "pi", "log_pi")
KERNELS = {
    "squared exponential": k.SquaredExponential([0.4, 0.7, 0.5]),
    "matern 1/2": k.Matern(0.9, nu=0.5),
    "matern 3/2": k.Matern([0.6, 0.8, 0.7], nu=1.5),
    "matern 5/2": k.Matern(0.5, nu=2.5),
    "rational quadratic": k.RationalQuadratic(0.5, alpha=1.5),
    "periodic": k.Periodic(1.3, 1.0),
    "sum": k.Sum((k.SquaredExponential(0.5), k.Linear(1.0))),
    "product": k.Product((k.Matern(0.8, nu=2.5), k.SquaredExponential(1.0))),
}
CUBE = gpcert.Box([0.0] * 3, [1.0] * 3)
DOMAINS = {
    "box": CUBE,
    "ball": gpcert.Ball([0.5] * 3, 0.45, 2),
    "simplex": gpcert.Polytope(([0.0] * 3, [1.0] * 3), ([1, 1, 1], "==", 1.0)),
    "constraint": gpcert.Polytope(([0.0] * 3, [1.0] * 3), ([1, -1, 2], "<=", 0.7)),
    "values": gpcert.Discrete(CUBE, integers=[0], values={2: [0.1, 0.35, 0.8]}),
    "categories": gpcert.OneHot(CUBE, [[0, 2]]),
    "union": gpcert.Union(gpcert.Box([0.0] * 3, [0.3] * 3), gpcert.Ball([0.7] * 3, 0.2, 1)),
}


def posterior_of(kernel, seed):
    rng = np.random.default_rng(seed)
    X = rng.random((10, 3))
    y = np.sin(5.0 * X @ rng.normal(size=3)) + 0.2 * rng.normal(size=10)
    return regression_posterior(kernel, X, y[None], 1e-2)


def exact_value(reference, quantity, x, best):
    """The quantity at x as a ball; improvements count from `best`, larger values are better."""
    mu, v = reference.mean(x), reference.variance(x)
    std, arb = v.sqrt(), flint().arb
    if quantity in ("mean", "std", "variance"):
        return {"mean": mu, "std": std, "variance": v}[quantity]
    if quantity in ("ucb", "lcb"):
        return mu + (2 if quantity == "ucb" else -2) * std
    z = (mu - arb(best)) / std
    found = normal_cdf(z)
    if quantity.endswith("ei"):
        density = (-z * z / 2).exp() / (2 * arb.pi()).sqrt()
        found = std * (z * found + density)
    return found.log() if quantity.startswith("log") else found


def plain(posterior, quantity, X, best):
    """The quantity at points X in plain floating point."""
    mean, variance = (part[:, 0] for part in posterior.predict(X))
    std = np.sqrt(np.maximum(variance, 0.0))
    if quantity in ("mean", "std", "variance"):
        return {"mean": mean, "std": std, "variance": variance}[quantity]
    if quantity in ("ucb", "lcb"):
        return mean + (2.0 if quantity == "ucb" else -2.0) * std
    z = (mean - best) / std
    if quantity.endswith("pi"):
        return norm.logcdf(z)
    return np.log(np.maximum(std * (z * norm.cdf(z) + norm.pdf(z)), 1e-300))


def climbed(function, region, seed, starts=4):
    """The best of a dense sample, each moved as long as that is better."""
    rng = np.random.default_rng(seed)
    X = region.sample(1000, rng)
    X = X[np.argsort(-function(X))[:starts]]
    for step in 0.3 * 0.7 ** np.arange(20):
        tries = region.project(X + step * rng.normal(size=X.shape))
        better = function(tries) > function(X)
        X = np.where(better[:, None], tries, X)
    return X


@given(
    quantity=st.sampled_from(QUANTITIES),
    kernel=st.sampled_from(sorted(KERNELS)),
    domain=st.sampled_from(sorted(DOMAINS)),
    side=st.sampled_from(["maximum", "minimum"]),
    seed=st.integers(0, 99),
)
@settings(max_examples=examples(150, quick=6), deadline=None)
def test_bounds_hold_against_samples_searches_and_200_bits(quantity, kernel, domain, side, seed):
    posterior, region = posterior_of(KERNELS[kernel], seed), DOMAINS[domain]
    best = float(posterior.predict(posterior.points)[0].max())
    asked = {"best_f": best} if quantity.endswith(("ei", "pi")) else {}
    verb, sign = (gpcert.maximize, 1.0) if side == "maximum" else (gpcert.minimize, -1.0)
    budget = gpcert.Budget(boxes=150, seconds=None)
    found = verb(posterior, region, quantity, tol=0.02, budget=budget, progress=False, **asked)
    points = climbed(lambda X: sign * plain(posterior, quantity, X, best), region, seed)
    reference = ArbPosterior(posterior)
    for x in points:
        assert bool(region.contains(x))
        value = sign * exact_value(reference, quantity, x, best)
        assert float(value.lower()) <= sign * found.bound
        if found.converged:
            assert float(value.lower()) <= sign * found.value + 0.02
    if found.x is not None:
        at = sign * exact_value(reference, quantity, found.x, best)
        assert sign * found.value <= float(at.upper())
        assert bool(region.contains(found.x))
