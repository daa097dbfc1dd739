"""Random nearly noiseless regressions, as users fit them: hypothesis draws a shape and a seed.

Noise over the kernel's variance from 1e-2 to 1e-12, 1 to 60 points of which some are equal or
nearly so, every kernel that scikit-learn and gpcert share, boxes from a point to the whole domain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

import gpcert
from gpcert.errors import UnsupportedModelError
from gpcert.model.posterior import Posterior
from gpcert.models import GPRegressor
from gpcert.regions import Box
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.kernel_references import exact, flint
from tests.enclosures.variance_truth import ExactVariance

KERNELS: dict[str, Callable[[np.ndarray], Any]] = {
    "squared exponential": sk.RBF,
    "Matern 1/2": lambda lengths: sk.Matern(lengths, nu=0.5),
    "Matern 3/2": lambda lengths: sk.Matern(lengths, nu=1.5),
    "Matern 5/2": lambda lengths: sk.Matern(lengths, nu=2.5),
    "rational quadratic": lambda lengths: sk.RationalQuadratic(float(lengths[0]), 0.8),
    "linear": lambda lengths: sk.DotProduct(1.0),
    "sum": lambda lengths: sk.RBF(lengths) + 0.5 * sk.Matern(0.7 * lengths, nu=1.5),
    "product": lambda lengths: sk.RBF(2.0 * lengths) * sk.Matern(lengths, nu=2.5),
    "product with linear": lambda lengths: sk.RBF(lengths) * sk.DotProduct(1.0),
    "periodic": lambda lengths: sk.ExpSineSquared(0.7, 2.0 * float(lengths[0])),
}
"""By name, for length-scales (d,); scikit-learn's periodic kernel has one feature only."""

NOISES = tuple(10.0**-k for k in range(2, 13))
"""Over the kernel's variance."""

GAPS = (0.0, 1e-12, 1e-9, 1e-6, 1e-3)
"""Between a point and its neighbour, where there are pairs of them."""

HALVES = (0.0, 1e-9, 1e-6, 1e-4, 1e-2, 0.1, 0.5)
"""Half-widths of boxes; the domain is the unit cube."""

BETA = 2.0


@dataclass(frozen=True, eq=False)
class Regression:
    """A fitted model of either library, and what is certified of it: the exact process of the
    stored kernel, points and noise, or that of the stored factor where no noise is stored.

    `noise` is what the library was told, one or one for each point; `white` is what it adds to the
    variance of every prediction.
    """

    model: Any
    posterior: Posterior
    noise: Any
    white: float = 0.0

    def __repr__(self) -> str:
        library, kernel = type(self.model).__module__.split(".")[0], self.posterior.kernel
        N, d = self.posterior.points.shape
        return f"{library}: N={N}, d={d}, noise {self.noise!r}, {kernel!r}"

    @cached_property
    def stored(self) -> ArbPosterior:
        return ArbPosterior(self.posterior)

    def variances(self, X: np.ndarray) -> list[Any]:
        """`v` at every row, in the kernel's units."""
        noise = getattr(self.posterior, "training_noise", None)
        if noise is None:
            zero = flint().arb(0)
            return [self.stored.canonical_variance(x).max(zero) for x in X]
        return ExactVariance(self.posterior.kernel, self.posterior.points, noise[0]).variances(X)

    def truths(self, X: np.ndarray) -> list[dict[str, Any]]:
        """At every row: `variance`, `std`, and both ends of the `band`, as balls."""
        scale, white = exact([self.posterior.scale[0], self.white])
        found = []
        for x, v in zip(X, self.variances(X), strict=True):
            variance = scale**2 * v + white
            std, mean = variance.sqrt(), self.stored.mean(x)
            reach = flint().arb(BETA) * std
            row = {"variance": (variance,) * 2, "std": (std,) * 2}
            found.append({**row, "band": (mean - reach, mean + reach)})
        return found


@dataclass(frozen=True, eq=False)
class NoiselessCase:
    """One problem that is given to both libraries, and a box."""

    name: str
    kernel: Any
    X: np.ndarray
    y: np.ndarray
    ratio: float
    box: Box
    normalize: bool
    white: bool
    rng: np.random.Generator

    def __repr__(self) -> str:
        N, d = self.X.shape
        told = f"{self.name}, N={N}, d={d}, ratio={self.ratio:g}, {self.box!r}"
        return f"NoiselessCase({told}, normalize={self.normalize}, white={self.white})"

    @cached_property
    def noise(self) -> float:
        """A power of two, so that halves of it are exact."""
        largest = float(self.kernel.diag(self.X).max())
        return float(2.0 ** round(np.log2(self.ratio * largest)))

    def of(self, library: str) -> Regression:
        """By `sklearn`, `gpcert` or `laplace`; an example whose library predicts too far from the
        formulas of its class, so that the adapter refuses it, is none."""
        try:
            return getattr(self, library)()
        except UnsupportedModelError:
            reject()

    def sklearn(self) -> Regression:
        """By scikit-learn; with `white` half of the noise is a WhiteKernel's."""
        noise = self.noise
        while True:
            share = 0.5 * noise if self.white else 0.0
            kernel = self.kernel + sk.WhiteKernel(share) if self.white else self.kernel
            options: dict[str, Any] = {"optimizer": None, "normalize_y": self.normalize}
            try:
                model = GaussianProcessRegressor(kernel, alpha=noise - share, **options)
                model.fit(self.X, self.y)
                break
            except np.linalg.LinAlgError:
                noise *= 16.0
        posterior: Any = gpcert.as_posterior(model)
        return Regression(model, posterior, noise, float(posterior.noise[0]))

    def gpcert(self) -> Regression:
        """By our own regressor, without the jitter that it adds where it must."""
        bare = GaussianProcessRegressor(self.kernel, alpha=1e3 * self.noise, optimizer=None)
        converted: Any = gpcert.as_posterior(bare.fit(self.X[:1], self.y[:1]))
        kernel = converted.kernel
        noise = self.noise
        while True:
            options: dict[str, Any] = {"max_epochs": 0, "normalize_y": self.normalize}
            model = GPRegressor(kernel, noise=noise, **options).fit(self.X, self.y)
            if not model.fit_.jitter:
                return Regression(model, model.posterior_, noise)
            noise *= 16.0

    def laplace(self) -> Regression:
        """Two classes by scikit-learn: the noise of a site is `1 / W`."""
        labels = self.y > np.median(self.y)
        model = GaussianProcessClassifier(self.kernel, optimizer=None).fit(self.X, labels)
        base: Any = model.base_estimator_
        posterior: Any = gpcert.as_posterior(model)
        with np.errstate(divide="ignore", over="ignore"):
            return Regression(model, posterior, 1.0 / base.W_sr_**2)

    def samples(self, count: int) -> np.ndarray:
        """Both ends and the middle of the box, some corners, and points inside it."""
        low, high = self.box.lower, self.box.upper
        sides = self.rng.integers(2, size=(2, len(low))).astype(bool)
        corners = np.where(sides, low, high)
        inside = self.rng.uniform(low, high, (count, len(low)))
        middle = np.clip(0.5 * (low + high), low, high)
        return np.concatenate([[low, high, middle], corners, inside])


def points(rng: np.random.Generator, N: int, d: int, gap: float | None) -> np.ndarray:
    """(N, d) in the unit cube; with a gap the second half is that far from the first."""
    X = rng.uniform(size=(N, d))
    if gap is not None and N > 1:
        half = N // 2
        X[N - half :] = X[:half] + gap * rng.normal(size=(half, d))
    return X


@st.composite
def noiseless_cases(
    draw: st.DrawFn, max_points: int = 60, max_dim: int = 3, least: float = 1e-12
) -> NoiselessCase:
    """A problem with noise over scale of `least` or more, and a box near its points."""
    name = draw(st.sampled_from(sorted(KERNELS)))
    ratio = draw(st.sampled_from([noise for noise in NOISES if noise >= least]))
    N = draw(st.sampled_from([1, 2, 5, 12, 25, 60]).filter(lambda n: n <= max_points))
    d = 1 if name == "periodic" else draw(st.integers(1, max_dim))
    gap = draw(st.sampled_from([None, None, *GAPS]))
    half = draw(st.sampled_from(HALVES))
    place = draw(st.sampled_from(["anywhere", "at a point", "far"]))
    switches = [draw(st.integers(0, 3)) == 0 for _ in range(3)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lengths = 10.0 ** rng.uniform(-1.0, 0.5, d)
    kernel = sk.ConstantKernel(float(10.0 ** rng.uniform(-1.0, 5.0))) * KERNELS[name](lengths)
    X = points(rng, N, d, gap)
    center = X[rng.integers(N)] if place == "at a point" else rng.uniform(size=d)
    center = center + 3.0 * rng.normal(size=d) if place == "far" else center
    fixed = rng.random(d) < (0.5 if switches[2] else 0.0)
    reach = np.where(fixed, 0.0, half * rng.uniform(0.5, 1.0, d))
    box = Box(center - reach, center + reach)
    y = np.sin(5.0 * X.sum(axis=1)) + 0.1 * rng.normal(size=N)
    return NoiselessCase(name, kernel, X, y, ratio, box, switches[0], switches[1], rng)
