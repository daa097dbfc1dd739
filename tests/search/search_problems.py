"""Random posteriors, and synthetic goals whose minimum is known exactly."""

from dataclasses import dataclass, field

import numpy as np
import scipy.linalg

from gpcert.enclosures.goals import GoalBound
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit, SklearnLogistic
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import to_numpy
from gpcert.regions import Ball, Box


def random_posterior(seed, d=2, n=8, outputs=1, binary=False):
    """An exact posterior of noisy data with random length-scales."""
    rng = np.random.default_rng(seed)
    kernel = SquaredExponential(rng.uniform(0.4, 1.2, d), variance=float(rng.uniform(0.5, 2.0)))
    points = rng.uniform(-1.0, 1.0, (n, d))
    noise = rng.uniform(0.01, 0.3)
    K = kernel.value(points, points) + noise * np.eye(n)
    y = rng.normal(size=(outputs, n))
    options = {"likelihood": (Probit(), SklearnLogistic())[seed % 2]} if binary else {}
    if not binary:
        options = {"offset": rng.normal(size=outputs), "scale": rng.uniform(0.5, 2.0, outputs)}
    factor = scipy.linalg.solve_triangular(np.linalg.cholesky(K), np.eye(n), lower=True)
    return Posterior(kernel, points, y @ np.linalg.inv(K), factor, **options)


def random_region(seed, d=2):
    """A box, some with a fixed coordinate, or a ball in one of several norms."""
    rng = np.random.default_rng(seed + 1000)
    center = rng.uniform(-0.5, 0.5, d)
    if seed % 3 == 0:
        half = rng.uniform(0.1, 0.8, d)
        if d > 1 and seed % 2:
            half[rng.integers(d)] = 0.0
        return Box(center - half, center + half)
    return Ball(center, float(rng.uniform(0.2, 0.8)), norm=[1, 2, 3, np.inf][seed % 4])


def function_of(goal, posterior, points):
    """Values of a goal at points, in plain floating point."""
    return goal.function(posterior)(points)[0]


def bump(d=1):
    """A posterior that synthetic goals never look at."""
    return Posterior(SquaredExponential(1.0), points=np.zeros((1, d)), weights=[1.0])


@dataclass(eq=False)
class ConesGoal:
    """`f(x) = min_k (height_k + slope |x - tip_k|_1)`, bounded by its Lipschitz constant.

    The bound on a cell is `f(center) - slope * |half|_1 * looseness`, looseness >= 1 pseudo-random
    from cell to cell: valid, loose, and not monotone from parents to children.
    """

    tips: np.ndarray
    heights: np.ndarray
    slope: float = 1.0
    looseness: float = 3.0
    blind: bool = True
    """Local search sees a constant, so that only cell centres give attained values."""

    calls: int = field(default=0)
    needs_variance = False
    known = (-np.inf, np.inf)

    def most_cells(self, model, f):
        return None

    def value(self, x):
        distance = np.abs(x[:, None, :] - self.tips[None]).sum(2)
        return (self.heights + self.slope * distance).min(1)

    def bound(self, evaluation, target):
        self.calls += 1
        cells = evaluation.cells
        center, half = to_numpy(cells.center), to_numpy(cells.half)
        noise = np.abs(np.sin(1e4 * (center.sum(1) + 7.0 * half.sum(1))))
        loss = self.slope * half.sum(1) * (1.0 + self.looseness * noise)
        return GoalBound(self.value(center) - loss - 1e-12, 0.0 * center, half)

    def ceiling(self, evaluation):
        return self.value(to_numpy(evaluation.cells.center)) + 1e-12

    def function(self, posterior):
        if self.blind:
            return lambda X: (np.zeros(len(X)), np.zeros_like(X))
        return lambda X: (self.value(X), np.zeros_like(X))


def cones(seed, d=1, **options):
    """A cones goal with its exact minimum over the box [-1, 1]^d."""
    rng = np.random.default_rng(seed)
    goal = ConesGoal(rng.uniform(-1, 1, (4, d)), rng.uniform(0, 1, 4), **options)
    return goal, float(goal.heights.min())


def cube(d=1):
    return Box(np.full(d, -1.0), np.full(d, 1.0))
