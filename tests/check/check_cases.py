"""Random models, regions and questions, and how their certificates are checked."""

import contextlib
import io

import numpy as np

import gpcert
from gpcert.kernels import (
    Constant,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    SquaredExponential,
)
from gpcert.likelihoods import Probit
from gpcert.regions import LinearMap
from gpcert_check.cli import main

CHECKED, REFUTED, NOT_COVERED, BAD_FILE = range(4)


def verdict(path, *options):
    """The exit code of the checker, which is quiet here."""
    with contextlib.redirect_stdout(io.StringIO()):
        return main([str(path), *options])


def random_kernel(rng, d, deep=True):
    """A kernel of any kind that is covered."""
    lengths = rng.uniform(0.7, 2.0, d)
    leaves = [
        lambda: SquaredExponential(lengths, rng.uniform(0.5, 2.0)),
        lambda: SquaredExponential(1.3),
        lambda: Matern(lengths, 2.5, rng.uniform(0.5, 2.0)),
        lambda: Matern(1.5, 3.5),
        lambda: RationalQuadratic(lengths, rng.uniform(0.5, 3.0), 1.2),
        lambda: Periodic(rng.uniform(3.0, 5.0), 1.5, 0.8),
    ]
    first = leaves[rng.integers(len(leaves))]()
    if not deep:
        return first
    second = random_kernel(rng, d, deep=False)
    choices = [
        lambda: first,
        lambda: first,
        lambda: first + second,
        lambda: first * second,
        lambda: first + Linear(rng.uniform(0.1, 0.5, d)),
        lambda: first * Polynomial(degree=2, weights=[0.2] * d, offset=1.0) + Constant(0.3),
        lambda: 0.7 * first + 0.4 * second,
    ]
    return choices[rng.integers(len(choices))]()


def random_model(rng, probit=False):
    """A small exact posterior, some by its noise and some by its factor, some behind a map."""
    d, N = int(rng.integers(1, 4)), int(rng.integers(3, 15))
    kernel = random_kernel(rng, d)
    points = rng.normal(size=(N, d))
    noise = rng.uniform(0.01, 0.2)
    K = kernel.value(points, points) + noise * np.eye(N)
    weights = np.linalg.solve(K, rng.normal(size=N))
    options = {"training_noise": noise}
    if rng.random() < 0.4:
        options = {"factor": np.linalg.inv(np.linalg.cholesky(K))}
    if rng.random() < 0.3:
        options["features"] = LinearMap(rng.normal(size=(d, d)), rng.normal(size=d))
    if probit:
        options |= {"likelihood": Probit(), "classes": ("no", "yes")}
    else:
        options |= {"offset": rng.normal(), "scale": rng.uniform(0.5, 2), "noise": 0.01}
    return gpcert.Posterior(kernel, points, weights, **options)


def random_region(rng, d):
    """A small box or ball."""
    x, radius = rng.normal(size=d), rng.uniform(0.02, 0.15)
    kind = rng.integers(5)
    if kind == 0:
        return gpcert.Box(x - radius, x + rng.uniform(0.02, 0.1, d))
    if kind == 1:
        return gpcert.Ball(x, radius * rng.uniform(0.2, 1.0, d))
    if kind == 2:
        return gpcert.Ball(x, radius, features=[0], domain=(-10.0, 10.0))
    return gpcert.Ball(x, radius, norm=kind - 2)


def random_certificate(rng):
    """A range or a decision with its proof; None where nothing was decided in time."""
    if rng.random() < 0.5:
        model = random_model(rng)
        region = random_region(rng, model.dim)
        quantity = str(rng.choice(["mean", "variance", "std", "lcb", "ucb", "band"]))
        return gpcert.prediction_range(model, region, quantity=quantity, tol=0.02, proof=True)
    model = random_model(rng, probit=True)
    region = random_region(rng, model.dim)
    if rng.random() < 0.3:
        return gpcert.prediction_range(model, region, tol=0.02, output="no", proof=True)
    threshold = None if rng.random() < 0.5 else float(rng.uniform(0.3, 0.7))
    options = {"threshold": threshold, "proof": True}
    cert = gpcert.certify(model, region.center, region=region, budget=10, **options)
    return None if cert.proof is None else cert
