"""Test functions on the unit cube and learned dynamics, with the models that are fitted to them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from gpcert.kernels import Matern as OwnMatern
from gpcert.models import GPRegressor

VARIANCES, LENGTHS = (1e-3, 1e5), (0.05, 10.0)
"""Bounds of the fit."""

SE, M52 = "squared exponential", "Matern 5/2"


def branin(X: np.ndarray) -> np.ndarray:
    """Branin's function of the square [-5, 10] x [0, 15]."""
    a, b = 15.0 * X[:, 0] - 5.0, 15.0 * X[:, 1]
    curve = b - 5.1 / (4.0 * np.pi**2) * a**2 + 5.0 / np.pi * a - 6.0
    return curve**2 + 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(a) + 10.0


def hartmann3(X: np.ndarray) -> np.ndarray:
    """Hartmann's function of three variables."""
    A = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
    P = [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
    squares = (X[:, None] - 1e-4 * np.array(P)) ** 2
    return -np.exp(-(squares * A).sum(axis=2)) @ np.array([1.0, 1.2, 3.0, 3.2])


def hartmann6(X: np.ndarray) -> np.ndarray:
    """Hartmann's function of six variables."""
    A = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14]]
    A += [[3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
    P = [[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991]]
    P += [[2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]]
    squares = (X[:, None] - 1e-4 * np.array(P)) ** 2
    return -np.exp(-(squares * np.array(A)).sum(axis=2)) @ np.array([1.0, 1.2, 3.0, 3.2])


def camel(X: np.ndarray) -> np.ndarray:
    """The six-hump camel on [-2, 2] x [-1, 1]."""
    a, b = 4.0 * X[:, 0] - 2.0, 2.0 * X[:, 1] - 1.0
    return (4.0 - 2.1 * a**2 + a**4 / 3.0) * a**2 + a * b + (4.0 * b**2 - 4.0) * b**2


def goldstein_price(X: np.ndarray) -> np.ndarray:
    """The logarithm of Goldstein and Price's function on [-2, 2]^2."""
    a, b = 4.0 * X.T - 2.0
    first = 19 - 14 * a + 3 * a**2 - 14 * b + 6 * a * b + 3 * b**2
    second = 18 - 32 * a + 12 * a**2 + 48 * b - 36 * a * b + 27 * b**2
    return np.log((1 + (a + b + 1) ** 2 * first) * (30 + (2 * a - 3 * b) ** 2 * second))


def ackley(X: np.ndarray) -> np.ndarray:
    """Ackley's function on [-2, 2]^d."""
    Z = 4.0 * X - 2.0
    bowl = -20.0 * np.exp(-0.2 * np.sqrt((Z**2).mean(axis=1)))
    return bowl - np.exp(np.cos(2.0 * np.pi * Z).mean(axis=1)) + 20.0 + np.e


def rosenbrock(X: np.ndarray) -> np.ndarray:
    """Rosenbrock's function on [-2, 2]^d."""
    Z = 4.0 * X - 2.0
    return (100.0 * (Z[:, 1:] - Z[:, :-1] ** 2) ** 2 + (1.0 - Z[:, :-1]) ** 2).sum(axis=1)


def forrester(X: np.ndarray) -> np.ndarray:
    """Forrester's function of one variable."""
    x = X[:, 0]
    return (6.0 * x - 2.0) ** 2 * np.sin(12.0 * x - 4.0)


def standardised(
    function: Callable[[np.ndarray], np.ndarray], N: int, d: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Uniform points, and observations of mean 0 and deviation 1 without noise of their own."""
    X = np.random.default_rng(seed).uniform(size=(N, d))
    y = function(X)
    return X, (y - y.mean()) / y.std()


def fitted(
    kernel: Any, X: np.ndarray, y: np.ndarray, noise: float, **options: Any
) -> GaussianProcessRegressor:
    """By scikit-learn; a variance or length at its bound is no news."""
    model = GaussianProcessRegressor(kernel, alpha=noise, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def shape_of(kernel: str, d: int) -> Any:
    """The kernel that is fitted: a factor and lengths within their bounds."""
    start = [0.3] * d
    shape = RBF(start, LENGTHS) if kernel == SE else Matern(start, LENGTHS, nu=2.5)
    return ConstantKernel(1.0, VARIANCES) * shape


@dataclass(frozen=True)
class Problem:
    """A range of mean +- 2 std over the unit cube, the most boxes that it may take, and how many it
    took before; `tuned` problems were looked at while bounds were made, the others never."""

    function: Callable[[np.ndarray], np.ndarray]
    dim: int
    kernel: str
    points: int
    noise: float
    target: int | None = None
    before: str = ""
    seed: int = 5
    tuned: bool = False

    @property
    def names(self) -> dict[str, Any]:
        return {
            "problem": self.function.__name__,
            "d": self.dim,
            "kernel": self.kernel,
            "N": self.points,
            "noise": self.noise,
            "seed": self.seed,
            "use": "tuned on" if self.tuned else "reported",
        }

    @cached_property
    def model(self) -> GaussianProcessRegressor:
        X, y = standardised(self.function, self.points, self.dim, self.seed)
        shape = shape_of(self.kernel, self.dim)
        return fitted(shape, X, y, self.noise, n_restarts_optimizer=3)


def _tuned() -> list[Problem]:
    rows: list[tuple[str, int, float, int | None, str]] = [
        (SE, 200, 1e-4, 300, "106229"),
        (SE, 40, 1e-6, 500, "15469"),
        (SE, 100, 1e-6, 500, "open"),
        (SE, 200, 1e-6, 500, "open"),
        (SE, 60, 1e-8, None, "open"),
        (M52, 100, 1e-4, 1500, "open"),
        (M52, 200, 1e-4, 1500, "open"),
        (M52, 40, 1e-6, 3000, "767"),
        (M52, 100, 1e-6, 3000, "open"),
        (M52, 200, 1e-6, 3000, "open"),
        (M52, 60, 1e-8, None, "open"),
    ]
    return [Problem(branin, 2, *row, tuned=True) for row in rows]


def _reported() -> list[Problem]:
    """Other functions and seeds; of Hartmann's the target is what it took before."""
    seeds = [
        Problem(branin, 2, SE, 200, 1e-4, 300, seed=11),
        Problem(branin, 2, SE, 100, 1e-6, 500, seed=12),
        Problem(branin, 2, M52, 200, 1e-4, 1500, seed=13),
        Problem(branin, 2, M52, 100, 1e-6, 3000, seed=14),
    ]
    hartmann = [
        Problem(hartmann3, 3, kernel, 60, noise, boxes, str(boxes))
        for noise, both in HARTMANN.items()
        for kernel, boxes in zip((SE, M52), both, strict=True)
    ]
    others = [
        Problem(function, d, kernel, N, noise, seed=seed)
        for seed, (function, d, N) in enumerate(OTHERS, start=21)
        for kernel, noise in ((SE, 1e-6), (M52, 1e-4))
    ]
    return [*seeds, *hartmann, *others]


HARTMANN = {1e-4: (433, 465), 1e-6: (445, 465)}
"""Boxes before, squared exponential and Matern 5/2."""

OTHERS = [
    (camel, 2, 100),
    (goldstein_price, 2, 100),
    (ackley, 2, 150),
    (rosenbrock, 2, 100),
    (rosenbrock, 3, 150),
    (forrester, 1, 20),
]

PROBLEMS = [*_tuned(), *_reported()]
QUICK = [0, 1, 5, 7, 15, 17, 29]
"""Places of problems that `--quick` asks."""


@dataclass(frozen=True)
class Dynamics:
    """One step of a vehicle or a pendulum, one state observed with noise; `before` are the CPU
    seconds that 20 000 boxes took when bounds were not better than the prior's."""

    name: str
    points: int
    noise_std: float
    sides: tuple[float, ...]
    before: float
    tuned: bool = False

    @cached_property
    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """Inputs (two states and a control) and one state after a step."""
        rng = np.random.default_rng(0)
        X = rng.uniform(-1.0, 1.0, (self.points, 3)) * np.array(self.sides)
        step = pendulum if self.name == "pendulum" else vehicle
        return X, step(X) + self.noise_std * rng.normal(size=self.points)

    @cached_property
    def model(self) -> GPRegressor:
        """Kernel and noise by the evidence."""
        return GPRegressor(noise=1e-2).fit(*self.data)


def _integrated(slope: Callable[[np.ndarray], np.ndarray], X: np.ndarray, step: float) -> Any:
    """Ten steps of Runge and Kutta; the control stays."""
    h = step / 10.0
    for _ in range(10):
        a = slope(X)
        b = slope(X + h / 2.0 * a)
        c = slope(X + h / 2.0 * b)
        X = X + h / 6.0 * (a + 2.0 * b + 2.0 * c + slope(X + h * c))
    return X


def pendulum(X: np.ndarray) -> np.ndarray:
    """Angular velocity of a damped pendulum after 0.05 s; inputs angle, velocity, torque."""

    def slope(S: np.ndarray) -> np.ndarray:
        pull = 9.81 * np.sin(S[:, 0]) - 0.1 * S[:, 1] + 2.0 * S[:, 2]
        return np.stack([S[:, 1], pull, 0.0 * S[:, 2]], axis=1)

    return _integrated(slope, X, 0.05)[:, 1]


def vehicle(X: np.ndarray) -> np.ndarray:
    """Place of Dubins' car after 0.1 s; inputs place, heading, turning rate."""

    def slope(S: np.ndarray) -> np.ndarray:
        return np.stack([np.cos(S[:, 1]), S[:, 2], 0.0 * S[:, 2]], axis=1)

    return _integrated(slope, X, 0.1)[:, 0]


DYNAMICS = [
    Dynamics("pendulum", 300, 5e-4, (1.0, 8.0, 2.0), 0.65, tuned=True),
    Dynamics("pendulum", 200, 1e-3, (np.pi, 2.0, 1.0), 0.34),
    Dynamics("vehicle", 300, 1e-3, (2.0, np.pi, 1.0), 0.50),
]


def rough_line() -> GPRegressor:
    """510 points on a line, Matern 3/2, kernel and noise by the evidence."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(size=(510, 1)), axis=0)
    y = np.sin(12.0 * X[:, 0]) + 0.3 * np.cos(30.0 * X[:, 0]) + 3e-3 * rng.normal(size=510)
    return GPRegressor(OwnMatern(0.2, 1.5), noise=1e-5).fit(X, y)
