"""Random classifiers, cells of them, and their true class probabilities at points."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from gpcert.enclosures import Evaluation
from gpcert.enclosures.classes.bounds import ClassBounds
from gpcert.enclosures.local_posterior import local_model
from gpcert.kernels import Matern, SquaredExponential
from gpcert.likelihoods import Gaussian, MultinomialProbit, Softmax
from gpcert.model.class_layout import class_layout
from gpcert.model.multi_output import SeparateOutputs
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import backend_from_name, to_numpy
from gpcert.regions import Ball, Box, Region
from gpcert.testing.kernel_references import exact
from gpcert.testing.node_case import cell_points
from tests.strategies import random_cells

LATENT_ERROR = 1e-7
"""Change of a probability by what floating point loses in latent means and covariances of ordinary
models, and by eigenvalues raised to 1e-10 (the second derivative of a smooth link is below 1)."""


@dataclass(frozen=True)
class ClassCase:
    """A classifier, a region near its points, and a generator for cells and points."""

    posterior: Posterior
    region: Region
    rng: np.random.Generator


def evaluation_of(posterior, region, cells=None, optional=True):
    """`ClassBounds` of some cells; the region's root by default."""
    layout, searched = class_layout(posterior)
    local = local_model(searched, region, backend_from_name("numpy"), True)
    evaluation = Evaluation(local, region.root() if cells is None else cells, optional)
    return ClassBounds(evaluation, layout, posterior.likelihood)


def random_evaluation(case, optional=True, splits=5, keep=4):
    cells = random_cells(case.region, case.rng, splits, keep)
    return evaluation_of(case.posterior, case.region, cells, optional)


def true_sums(posterior, X, weights):
    """(n,) lower and upper bounds of `sum_c w_c pi_c` at single points, by the certified moments.

    Latent means and covariances are those of plain floating point: see `LATENT_ERROR`.
    """
    w = np.asarray(weights)
    mean, variance = posterior.predict(X)
    likelihood = posterior.likelihood
    margin = np.abs(w).sum() * LATENT_ERROR
    if not posterior.coupled and not likelihood.mixes:
        found = likelihood.independent_moments(mean, variance, w)
        margin = margin + found.errors[:, 0]
        return found.value - margin, found.value + margin
    mixing = likelihood.mixed(posterior.outputs)
    T = mixing[1:] - mixing[:1]
    own = variance[:, :, None] * np.eye(T.shape[1])
    V = T @ (posterior.covariances(X) if posterior.coupled else own) @ T.T
    V = V + likelihood.noise * (np.eye(len(T)) + 1.0)
    values, vectors = np.linalg.eigh(V)
    raised = (vectors * np.maximum(values, 1e-10)[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    found = likelihood.moments(mean @ T.T, np.linalg.cholesky(raised), 0)
    value = found.value @ w
    margin = margin + np.abs(w).sum() * found.errors[:, 0]
    return value - margin, value + margin


def sums_of(m, rng):
    """Weights: a class, its negative, a margin, and anything."""
    e = np.eye(m)
    i, j = rng.choice(m, 2, replace=False)
    rows = (e[i], -e[i], e[i] - e[j], rng.normal(size=m))
    return [tuple(map(float, row)) for row in rows]


def coupled_by_one(K, p):
    """Factors (m, N, N) of every class and what couples them, as softmax Laplace has them at
    probabilities p (m, N)."""
    m, N = p.shape
    roots = np.sqrt(p)
    B = roots[:, :, None] * K * roots[:, None, :] + np.eye(N)
    F = np.linalg.inv(np.linalg.cholesky(B)) * roots[:, None, :]
    Q = np.linalg.qr(np.concatenate(list(F)))[0]
    return F, np.stack([Q[c * N : (c + 1) * N].T @ F[c] for c in range(m)])


def random_classifier(rng, coupled, m, likelihood, dim):
    """Few points; amplitudes 0.1 to 30, offsets up to 20, noise, ridges 1e-6 to 0.3."""
    N = int(rng.integers(1, 6))
    amplitude = float(rng.choice([0.1, 1.0, 5.0, 30.0]))
    lengths = 10.0 ** rng.uniform(-0.3, 0.3, dim)
    kernel = [SquaredExponential(lengths, amplitude), Matern(lengths, 2.5, amplitude)][
        int(rng.integers(2))
    ]
    Z = rng.normal(size=(N, dim))
    K = kernel.value(Z, Z)
    ridge = amplitude * float(rng.choice([1e-6, 1e-2, 0.3]))
    options = {
        "offset": rng.normal(size=m) * float(rng.choice([0.0, 1.0, 20.0])),
        "noise": rng.random(m) * float(rng.choice([0.0, 0.5])),
        "likelihood": likelihood,
    }
    apart = rng.spawn(1)[0]
    if apart.random() < 0.4:
        options["slope"] = apart.normal(size=(m, dim)) * float(apart.choice([0.3, 3.0, 1e-300]))
    if not coupled:
        scale = float(rng.choice([0.5, 1.0, 2.0])) * np.exp(0.5 * rng.normal(size=m))
        L = np.linalg.cholesky(K + ridge * np.eye(N))
        A = np.linalg.inv(L)
        targets = np.sqrt(amplitude) * rng.normal(size=(m, N))
        factor = np.stack([rng.uniform(0.0, 1.0) * A for _ in range(m)])
        return Posterior(kernel, Z, (targets @ A.T) @ A, factor, scale=scale, **options)
    if apart.random() < 0.4:
        logits = apart.normal(size=(m, N)) * float(apart.choice([0.5, 3.0, 20.0]))
        p = np.exp(logits - logits.max(axis=0))
        F, C = coupled_by_one(K, p / p.sum(axis=0))
        options |= {"scale": float(rng.choice([0.5, 1.0, 2.0])), "negative_factor": C}
        weights = np.sqrt(amplitude) * apart.normal(size=(m, N)) / amplitude
        return Posterior(kernel, Z, weights, F, coupled=True, **options)
    # independent priors, noisy observations of random mixtures of the outputs
    mixed = rng.normal(size=(int(rng.integers(1, m + 1)), m))
    if rng.random() < 0.2:
        mixed = mixed + 50.0  # only their common part is observed
    H = np.kron(mixed, np.eye(N))
    S = H @ np.kron(np.eye(m), K) @ H.T
    S = S + max(ridge, 1e-9 * float(np.trace(S)) / len(S)) * np.eye(len(S))
    L = np.linalg.cholesky(S)
    A = np.linalg.solve(L, H)
    targets = rng.normal(size=len(S)) * float(np.sqrt(np.diag(S)).mean())
    weights = (A.T @ np.linalg.solve(L, targets)).reshape(m, N)
    factor = np.moveaxis(A.reshape(len(A), m, N), 1, 0)
    scale = float(rng.choice([0.5, 1.0, 2.0]))
    return Posterior(kernel, Z, weights, factor, scale=scale, coupled=True, **options)


def random_region(rng, posterior):
    """Boxes and balls, among them single points."""
    d = posterior.dim
    center = posterior.places[rng.integers(len(posterior.places))] + rng.normal(size=d) * 0.5
    r = float(rng.choice([0.0, 1e-6, 0.02, 0.05, 0.1, 0.2, 0.4, 1.0]))
    if rng.random() < 0.5:
        return Box(center - r * rng.random(d), center + r * rng.random(d))
    return Ball(center, r, float(rng.choice([1.0, 2.0, np.inf])))


@st.composite
def class_cases(draw, coupled=None):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    together = draw(st.booleans()) if coupled is None else coupled
    probit = draw(st.booleans())
    likelihood = MultinomialProbit(draw(st.sampled_from([1.0, 0.3]))) if probit else Softmax()
    largest = (2, 3) if together and probit else (2, 3, 4) if together else (2, 3, 5, 8)
    m, dim = draw(st.sampled_from(largest)), draw(st.integers(1, 3))
    posterior = random_classifier(rng, together, m, likelihood, dim)
    return ClassCase(posterior, random_region(rng, posterior), rng)


def random_weights(rng, classes, outputs):
    """Mixing weights of several sizes; sometimes few, equal, or of one sign."""
    weights = rng.normal(size=(classes, outputs)) * 10.0 ** rng.uniform(-1.0, 0.5, outputs)
    if rng.random() < 0.3:
        weights[rng.random(weights.shape) < 0.4] = 0.0
    if rng.random() < 0.2:
        weights = weights + 3.0
    if rng.random() < 0.1:
        weights[-1] = weights[0]  # two classes that are always as probable
    return weights if weights.any() else weights + 1.0


def random_separate(rng, outputs, likelihood, dim):
    """Latent functions with kernels, points and units of their own."""
    found = []
    for _ in range(outputs):
        own = random_classifier(rng, False, 2, Softmax(), dim)
        names = ("weights", "offset", "scale", "noise", "slope")
        changed = {name: getattr(own, name)[:1] for name in names}
        found.append(replace(own, factor=own.factor[:1], likelihood=Gaussian(), **changed))
    return SeparateOutputs(tuple(found), likelihood)


@st.composite
def mixed_cases(draw):
    """Softmax of sums of independent outputs with real coefficients, and kernels of their own."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    separate, mixes = draw(st.sampled_from([(False, True), (True, True), (True, False)]))
    m, dim = draw(st.sampled_from([2, 3, 4])), draw(st.integers(1, 3))
    outputs = draw(st.integers(2 if separate else 1, 4)) if mixes else m
    likelihood = Softmax(random_weights(rng, m, outputs)) if mixes else Softmax()
    if not mixes and draw(st.booleans()):
        likelihood = MultinomialProbit(0.5)
    if separate:
        model = random_separate(rng, outputs, likelihood, dim)
    else:
        plain = random_classifier(rng, False, max(outputs, 2), Softmax(), dim)
        names = ("weights", "factor", "offset", "scale", "noise", "slope")
        fields = {name: getattr(plain, name)[:outputs] for name in names}
        model = replace(plain, likelihood=likelihood, **fields)
    return ClassCase(model, random_region(rng, model), rng)


def difference_map(m):
    """(n, m): latent values to their differences from the first."""
    return np.concatenate([-np.ones((m - 1, 1)), np.eye(m - 1)], axis=1)


def displacement(evaluation, index, x):
    """`d = (x - c) / l` in the free features, as balls; l is exact in a kernel's frame."""
    region, kernel = evaluation.cells.region, evaluation.local.posterior.kernel
    if isinstance(kernel, SquaredExponential):
        lengths = np.broadcast_to(kernel.length_scale, (region.dim,))[region.free]
    else:
        lengths = 1.0 / to_numpy(evaluation.local.kernel.inverse_length)
    center = exact(to_numpy(evaluation.cells.center)[index])
    return [
        (a - c) / w
        for a, c, w in zip(exact(np.asarray(x)[region.free]), center, exact(lengths), strict=True)
    ]


def points_of_cells(evaluation, rng):
    """Points of every cell, one list a cell."""
    return [cell_points(evaluation.cells, b, rng) for b in range(len(evaluation.cells))]


def observed_once(likelihood, size, amplitude=1.0, coupled=True):
    """Three outputs that explain `2.04 size^2` of the prior's variance together."""
    A = size / np.sqrt(amplitude) * np.array([[[1.0]], [[-1.0]], [[0.2]]])
    kernel = SquaredExponential(1.0, amplitude)
    weights = np.array([[0.8], [-0.3], [0.1]]) / amplitude
    return Posterior(kernel, [[0.0]], weights, A, likelihood=likelihood, coupled=coupled)


def diagonal_posterior(m, rng, likelihood, spread=1.0, factor=None):
    """Coupled outputs whose factors do not overlap, or overlap as `factor` says."""
    N = 4
    Z = rng.normal(size=(N, 2))
    kernel = SquaredExponential(1.5, 4.0)
    K = kernel.value(Z, Z)
    if factor is None:
        A = np.linalg.inv(np.linalg.cholesky(K + 0.5 * np.eye(N)))
        factor = np.zeros((m, m * N, N))
        for c in range(m):
            factor[c, c * N : (c + 1) * N] = A * rng.uniform(0.3, 1.0)
    weights = spread * rng.normal(size=(m, N))
    return Posterior(kernel, Z, weights, factor, likelihood=likelihood, coupled=True)
