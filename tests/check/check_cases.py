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
from gpcert.likelihoods import Logistic, MeanOnly, Probit, SklearnLogistic, Softmax
from gpcert.model.committee import Committee
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


def random_ball(rng, d):
    """A small ball."""
    x, radius = rng.normal(size=d), rng.uniform(0.02, 0.15)
    kind = rng.integers(4)
    if kind == 0:
        return gpcert.Ball(x, radius * rng.uniform(0.2, 1.0, d))
    if kind == 1:
        return gpcert.Ball(x, radius, features=[0], domain=(-10.0, 10.0))
    return gpcert.Ball(x, radius, norm=kind - 1)


def random_region(rng, d):
    """A small box or ball, a polytope, whole numbers and values, a union."""
    x, kind = rng.normal(size=d), rng.integers(8)
    if kind > 3:
        return random_ball(rng, d)
    box = gpcert.Box(x - rng.uniform(0.02, 0.15), x + rng.uniform(0.02, 0.1, d))
    if kind == 1:
        row = rng.normal(size=d)
        at = row @ box.center
        return gpcert.regions.Polytope(box, (row, "in", (at - 0.02, at + 0.03)))
    if kind == 2:
        values = np.sort(rng.uniform(box.lower[0], box.upper[0], 3))
        return gpcert.regions.Discrete(box, values={0: values})
    if kind == 3:
        return gpcert.regions.Union(box, random_ball(rng, d))
    return box


def several_classes(rng):
    """A model that decides between three classes: by votes, one against the rest, by means."""
    d, N, kind = int(rng.integers(1, 4)), int(rng.integers(4, 12)), rng.integers(4)
    points, noise = rng.normal(size=(N, d)), rng.uniform(0.01, 0.2)

    def member(outputs=1, **options):
        kernel = random_kernel(rng, d)
        K = kernel.value(points, points) + noise * np.eye(N)
        weights = np.linalg.solve(K, rng.normal(size=(N, outputs))).T
        if options["likelihood"].has_variance:
            options["training_noise"] = noise
        return gpcert.Posterior(kernel, points, weights, **options)

    labels = ("a", "b", "c")
    if kind == 0:
        return member(3, likelihood=Softmax(), classes=labels)
    if kind == 1:
        return Committee((member(3, likelihood=MeanOnly()),), labels, "pair_votes")
    links = [Probit(), Logistic(), SklearnLogistic()]
    members = tuple(member(likelihood=links[rng.integers(3)]) for _ in labels)
    return Committee(members, labels, "one_vs_rest" if kind == 2 else "one_vs_one")


def by_confidence(cert):
    """Whether votes alone do not decide between three classes: they differ by less than one."""
    margins = (cert.margin.lower, cert.margin.upper, cert.margin_at_x)
    return "one-vs-one" in cert.rule and min(map(abs, margins)) < 0.5


def random_certificate(rng):
    """A range or a decision with its proof; None where nothing was decided in time."""
    kind = rng.integers(4)
    if kind < 2:
        model = random_model(rng)
        region = random_region(rng, model.dim)
        quantity = str(rng.choice(["mean", "variance", "std", "lcb", "ucb", "band"]))
        return gpcert.prediction_range(model, region, quantity=quantity, tol=0.02, proof=True)
    if kind == 2:
        return further_certificate(rng)
    model = random_model(rng, probit=True)
    region = random_region(rng, model.dim)
    if rng.random() < 0.3:
        return gpcert.prediction_range(model, region, tol=0.02, output="no", proof=True)
    threshold = None if rng.random() < 0.5 else float(rng.uniform(0.3, 0.7))
    options = {"threshold": threshold, "proof": True}
    cert = gpcert.certify(model, region.center, region=region, budget=10, **options)
    return None if cert.proof is None else cert


def between_classes(rng):
    """A decision between three classes; None where nothing was decided in time, or by votes."""
    model = several_classes(rng)
    ball = random_ball(rng, model.dim)
    weights = rng.uniform(0.5, 2.0, 3) if getattr(model, "scheme", "") == "one_vs_rest" else None
    options = {"class_weight": weights, "budget": 10, "proof": True}
    cert = gpcert.certify(model, ball.center, region=ball, **options)
    return None if cert.proof is None or by_confidence(cert) else cert


def further_certificate(rng):
    """Of another verb, or between several classes; None where nothing was decided in time."""
    kind, options = rng.integers(6), {"budget": 10, "proof": True}
    if kind < 2:
        return between_classes(rng)
    model = random_model(rng, probit=kind == 2)
    x = rng.normal(size=model.dim)
    if kind == 2:
        options |= {"norm": int(rng.integers(1, 3)), "rtol": 0.1, "max_radius": 0.5}
        rad = gpcert.certified_radius(model, x, **options)
        return None if rad.proof is None else rad
    bounds = [(v, v + 0.2) for v in x]
    if kind == 3:
        return gpcert.regret_bound(model, bounds, [x], side="minimum", rtol=0.1, **options)
    if kind == 4:
        return gpcert.maximize(model, bounds, "ucb", rtol=0.1, **options)
    level = float(model.mean(x[None])[0, 0]) - 0.05
    X = x + rng.normal(size=(4, model.dim)) * 0.1
    table = gpcert.certify_many(model, X, 0.03, threshold=level, **options)
    return table if any(row.proof is not None for row in table) else None
