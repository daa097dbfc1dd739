"""The questions of the exam (`benchmarks/exam.py`): those of `check_cases`, and more kernels,
links, claims and sizes."""

import numpy as np

import gpcert
from gpcert.kernels import (
    ActiveDimensions,
    Constant,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    SquaredExponential,
    Sum,
)
from gpcert.likelihoods import Logistic, MeanOnly, SignOnly, SklearnLogistic
from tests.check.check_cases import (
    between_classes,
    random_ball,
    random_certificate,
    random_kernel,
    random_region,
)


def exam_certificate(rng):
    """A record with a proof; None where nothing was decided in time."""
    kinds = [
        rough_means,
        chosen_features,
        explicit_features,
        other_links,
        machines,
        between_classes,
        in_float64,
        large,
        level_set,
        categories,
    ]
    kind = int(rng.integers(2 * len(kinds)))
    return kinds[kind](rng) if kind < len(kinds) else random_certificate(rng)


def fitted(rng, kernel, N, d, noisy=True, **options):
    """A posterior of random data."""
    points, noise = rng.normal(size=(N, d)), rng.uniform(0.01, 0.2)
    K = kernel.value(points, points) + noise * np.eye(N)
    if noisy:
        options["training_noise"] = noise
    weights = np.linalg.solve(K, rng.normal(size=N))
    return gpcert.Posterior(kernel, points, weights, **options)


def sizes(rng, most=4):
    """Of the data and of the inputs."""
    return int(rng.integers(3, 15)), int(rng.integers(1, most))


def rough_means(rng):
    """Kernels that are hardly smooth; of these means."""
    N, d = sizes(rng)
    lengths = rng.uniform(0.7, 2.0, d)
    first = Matern(lengths, [0.5, 1.5][rng.integers(2)], rng.uniform(0.5, 2.0))
    others = [first, 0.7 * first, first + SquaredExponential(1.0), first + Matern(1.2, 1.5)]
    model = fitted(rng, others[rng.integers(4)], N, d)
    region = random_region(rng, d)
    return gpcert.prediction_range(model, region, quantity="mean", tol=0.05, proof=True)


def chosen_features(rng):
    """Kernels that see some of the inputs."""
    N, d = sizes(rng, 3)
    some = ActiveDimensions(random_kernel(rng, 1, deep=False), (int(rng.integers(d + 1)),))
    several = ActiveDimensions(Matern(rng.uniform(0.7, 2.0, d), 1.5), tuple(range(1, d + 1)))
    kernels = [
        some,
        some + several,
        some * random_kernel(rng, d + 1, deep=False),
        some + Constant(0.5),
    ]
    model = fitted(rng, kernels[rng.integers(4)], N, d + 1)
    quantity = str(rng.choice(["mean", "variance", "std", "ucb"]))
    region = random_region(rng, d + 1)
    return gpcert.prediction_range(model, region, quantity=quantity, tol=0.05, proof=True)


def explicit_features(rng):
    """Kernels of finitely many features."""
    N, d = sizes(rng)
    linear = Linear(rng.uniform(0.1, 0.5, d), center=rng.normal(size=d))
    kernels = [
        linear,
        Polynomial(degree=int(rng.integers(2, 5)), weights=[0.2] * d, offset=1.0),
        Sum([linear, Constant(1.0), Periodic(4.0, 1.5, 0.8)]),
    ]
    model = fitted(rng, kernels[rng.integers(3)], N, d, slope=rng.normal(size=(1, d)))
    quantity = str(rng.choice(["mean", "variance", "std", "band"]))
    region = random_region(rng, d)
    return gpcert.prediction_range(model, region, quantity=quantity, tol=0.05, proof=True)


def other_links(rng):
    """Probabilities and decisions of two classes by the logistic links."""
    N, d = sizes(rng)
    link = [Logistic(), SklearnLogistic()][rng.integers(2)]
    model = fitted(rng, random_kernel(rng, d), N, d, likelihood=link, classes=("no", "yes"))
    if rng.random() < 0.3:
        return gpcert.prediction_range(model, random_region(rng, d), tol=0.05, proof=True)
    threshold = None if rng.random() < 0.5 else float(rng.uniform(0.3, 0.7))
    return decided(rng, model, threshold)


def machines(rng):
    """Signs of means without variances."""
    N, d = sizes(rng)
    link = [SignOnly(), MeanOnly()][rng.integers(2)]
    kernel = random_kernel(rng, d)
    model = fitted(rng, kernel, N, d, False, likelihood=link, offset=rng.normal() * 0.3)
    return decided(rng, model, None if isinstance(link, SignOnly) else 0.0)


def decided(rng, model, threshold):
    """A decision in a ball, large enough for a counter-example at times."""
    ball = random_ball(rng, model.dim)
    options = {"region": ball, "threshold": threshold, "budget": 10, "proof": True}
    cert = gpcert.certify(model, ball.center, **options)
    return None if cert.proof is None else cert


def level_set(rng):
    """Where a condition or two hold."""
    N, d = sizes(rng, 3)
    model = fitted(rng, random_kernel(rng, d), N, d)
    x = rng.normal(size=d)
    place = gpcert.Ball(x, 0.2, norm=2) if rng.random() < 0.3 else gpcert.Box(x - 0.2, x + 0.2)
    mean, std = (part.ravel()[0] for part in model.predict(x[None]))
    asked = [
        (None, ">=", float(mean)),
        (None, "<=", float(mean + 2 * std**0.5), {"quantity": "ucb"}),
    ]
    asked = asked[: 1 + rng.integers(2)]
    return gpcert.level_set(model, place, asked, tol=0.3, budget=10, proof=True)


def categories(rng):
    """One-hot columns beside others."""
    groups, d = int(rng.integers(2, 4)), int(rng.integers(0, 3))
    N = int(rng.integers(3, 15))
    points = np.hstack([np.eye(groups)[rng.integers(groups, size=N)], rng.normal(size=(N, d))])
    kernel = random_kernel(rng, groups + d, deep=False)
    model = gpcert.Posterior(kernel, points, 0.3 * rng.normal(size=N))
    x = rng.normal(size=d)
    box = gpcert.Box([*[0.0] * groups, *(x - 0.1)], [*[1.0] * groups, *(x + 0.1)])
    region = gpcert.OneHot(box, [list(range(groups))])
    return gpcert.prediction_range(model, region, quantity="mean", tol=0.05, proof=True)


def in_float64(rng):
    """Claims of kind B."""
    N, d = sizes(rng)
    lengths = rng.uniform(0.7, 2.0, d)
    kernels = [
        SquaredExponential(lengths) + Constant(0.2),
        Matern(lengths, [1.5, 2.5, 3.5][rng.integers(3)]),
        RationalQuadratic(1.0, 1.5) * Matern(1.1, 2.5),
    ]
    model = fitted(rng, kernels[rng.integers(3)], N, d, offset=0.3, scale=1.5)
    ball = random_ball(rng, d)
    if rng.random() < 0.5:
        options = {"region": ball, "quantity": "mean", "tol": 0.05, "proof": "B"}
        return gpcert.prediction_range(model, **options)
    level = float(model.mean(ball.center[None])[0, 0]) - 0.1
    options = {"region": ball, "threshold": level, "budget": 10, "proof": "B"}
    cert = gpcert.certify(model, ball.center, **options)
    return None if cert.proof is None else cert


def large(rng):
    """More data, more inputs, more boxes."""
    N, d = int(rng.integers(50, 200)), int(rng.integers(2, 9))
    kernel = [SquaredExponential(1.2 * d**0.5), Matern(1.5 * d**0.5, 2.5)][rng.integers(2)]
    model = fitted(rng, kernel, N, d)
    x = rng.normal(size=d) * 0.5
    quantity = str(rng.choice(["mean", "std"]))
    options = {"quantity": quantity, "tol": 0.05, "budget": 20, "proof": True}
    return gpcert.prediction_range(model, x, radius=rng.uniform(0.05, 0.3), **options)
