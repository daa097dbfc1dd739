"""Exact Gaussian processes with known noise: their precisions (K + Sigma)^-1 in ball arithmetic,
and cases for the bounds that are made of float weights and residuals.

A `FeatureCase` is one in a space of a few dimensions, whose inner products are floats: the errors
of kernel values are then known, and may be as bad as they are said to be. A `KernelCase` is one of
a kernel, at the centres of cells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from gpcert import kernels as k
from gpcert.enclosures import LocalPosterior
from gpcert.enclosures.precision import CenterVariance, Degree
from gpcert.enclosures.residual import ResidualPrecision, Weights
from gpcert.enclosures.square import pair_counts
from gpcert.enclosures.weight_basis import WeightBasis
from gpcert.kernels import Kernel
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import Array, Backend, to_numpy
from gpcert.numerics.pairs import Pair
from gpcert.numerics.spectral import absolute_norm
from gpcert.numerics.triangular import is_triangular
from gpcert.regions import Box, Cells
from gpcert.testing.arb_reference import ArbPosterior, kernel_reference
from gpcert.testing.kernel_references import (
    coefficients,
    dot,
    exact,
    flint,
    line_surface,
    series_length,
)
from tests.strategies import seeds

arb, arb_mat = flint().arb, flint().arb_mat

NOISES = tuple(10.0**e for e in (4, 0, -1, -2, -3, -4, -6, -8, -10, -12, -13))
"""Relative to the kernel's variance."""

FACTORS = ("exact", "exact", "wrong digits", "wrong", "dense", "none", "huge")
"""What the stored factor is: any weights are good for a bound."""


def precisely(bits: int = 500) -> Any:
    """A context of so many bits: weights of useless factors reach 1e60, and cancel."""
    return flint().ctx.workprec(bits)


def at_most(value: Any, bound: Any, what: str) -> None:
    """`value <= bound`, a float or a ball, for balls that are narrow enough to tell."""
    allowed = arb(bound)
    assert allowed.is_finite(), f"{what}: {bound}"
    assert value.is_finite(), f"{what}: the reference is not finite"
    gap = allowed - value
    size = abs(allowed.mid()) + abs(value.mid())
    assert gap.rad() <= 1e-9 * size + 1e-306, f"{what}: the reference {value} is too wide"
    assert not gap < 0, f"{what}: {value.str(12)} is above {allowed.str(12)}"


class TruePrecision:
    """`S = (K + Sigma)^-1`, K in rows of balls; noise is infinite where a point says nothing."""

    def __init__(self, gram: list[list[Any]], noise: np.ndarray) -> None:
        self.gram, self.noise = gram, exact(np.where(np.isfinite(noise), noise, 0.0))
        self.seen = np.flatnonzero(np.isfinite(noise)).tolist()
        M = arb_mat([[gram[i][j] for j in self.seen] for i in self.seen])
        for place, i in enumerate(self.seen):
            M[place, place] += self.noise[i]
        self.inverse = M.inv() if self.seen else None

    def solved(self, row: list[Any]) -> list[Any]:
        """`S k`."""
        found = [arb(0)] * len(row)
        if self.inverse is not None:
            y = self.inverse * arb_mat([[row[i]] for i in self.seen])
            for place, i in enumerate(self.seen):
                found[i] = y[place, 0]
        return found

    def form(self, first: list[Any], second: list[Any]) -> Any:
        """`k.S k'`."""
        return dot(first, self.solved(second))

    def squared(self, step: list[Any]) -> Any:
        """The squared norm of `sum_i step_i k(., z_i)`."""
        return dot(step, [dot(row, step) for row in self.gram])

    def residual(self, weights: list[Any], row: list[Any]) -> list[Any]:
        """`(K + Sigma) w - k`, zero where there is no observation."""
        found = [arb(0)] * len(row)
        for i in self.seen:
            found[i] = dot(self.gram[i], weights) + self.noise[i] * weights[i] - row[i]
        return found

    def noisy(self, weights: list[Any]) -> Any:
        """`w.Sigma w`."""
        return dot(self.noise, [w * w for w in weights])


def explained_of(found: CenterVariance, b: int) -> Any:
    """k.S k of cell b: two parts."""
    return arb(float(found.explained[b])) + float(np.broadcast_to(found.rest, found.error.shape)[b])


def check_center(
    truth: TruePrecision, prior: Any, row: list[Any], found: CenterVariance, b: int
) -> None:
    """What `Precision.center` says of cell b: `k(c, c)` and the true kernel row are given."""
    w, y = exact(found.weights[b]), truth.solved(row)
    error, missed, deviation, noisy = (
        arb(float(part[b])) for part in (found.error, found.missed, found.deviation, found.noisy)
    )
    explained = explained_of(found, b)
    r, length = truth.residual(w, row), truth.squared(w)
    # J(w) = k(c, c) - 2 w.k + w.(K + Sigma) w, and what it is above v(c)
    least = 2 * dot(w, row) - length - truth.noisy(w)
    at_most(abs(least - explained), error, "J")
    at_most(truth.form(r, r), missed, "missed")
    at_most(explained - error, dot(row, y), "k.S k from below")
    at_most(dot(row, y), explained + error + missed, "k.S k from above")
    step = truth.squared([a - c for a, c in zip(y, w, strict=True)])
    at_most(step, deviation**2, "deviation")
    # of p = k(., c) - sum_i w_i k(., z_i)
    at_most(prior - 2 * dot(w, row) + length, prior - explained + error - noisy, "|p|^2")


class Unit(SimpleNamespace):
    """What is asked of a unit form; precisions are kept by it."""

    __hash__ = object.__hash__


@dataclass(eq=False)
class FeatureCase:
    """Points and derivatives as vectors of a small space: (N, r) points, (r,) the centre, (f, r)
    first and (f (f + 1) / 2, r) second derivatives; and float noise (N,)."""

    points: np.ndarray
    center: np.ndarray
    first: np.ndarray
    second: np.ndarray
    noise: np.ndarray
    factor: np.ndarray
    rng: np.random.Generator

    def __repr__(self) -> str:
        (N, r), f = self.points.shape, len(self.first)
        return f"FeatureCase(N={N}, r={r}, f={f}, noise={self.noise.tolist()})"

    @property
    def vectors(self) -> np.ndarray:
        """(c, r): of all derivatives."""
        return np.concatenate([self.first, self.second])

    @cached_property
    def gram(self) -> np.ndarray:
        """K (N, N), exactly."""
        return self.points @ self.points.T

    @cached_property
    def truth(self) -> TruePrecision:
        return TruePrecision([exact(row) for row in self.gram], self.noise)

    def row(self, vector: np.ndarray) -> np.ndarray:
        """(N,), exactly."""
        return self.points @ vector

    def weights(self, vector: np.ndarray) -> np.ndarray:
        """About S times its row."""
        with precisely():
            return np.array([float(y) for y in self.truth.solved(exact(self.row(vector)))])

    def precision(
        self,
        gram: np.ndarray,
        exact_sums: bool,
        backend: Backend,
        row: np.ndarray | None = None,
        directions: np.ndarray | None = None,
    ) -> RecordingPrecision:
        """That of a computed K, whose entries are off by as much as is said; so are those of a row
        that the kernel gives for the centre. Weights out of `directions` (N, m) if there are
        some."""
        A, known = self.factor, self.points

        class Known:
            """The kernel: of its points, or of anything else, which is then the centre."""

            def sharp_values(self, X: Any, Z: Any) -> tuple[np.ndarray, np.ndarray]:
                found, true = (gram, case.gram) if X is known else (row[None], center[None])
                return found, np.nextafter(np.abs(found - true), np.inf)

            def pair_values(self, X: Any, Z: Any) -> tuple[Pair, np.ndarray]:
                found, error = self.sharp_values(X, Z)
                high = np.nextafter(found, np.inf)
                return Pair(high, found - high), error

        case, center = self, self.row(self.center)
        unit: Any = Unit(
            factor=[A],
            training_noise=[self.noise],
            factor_sizes=[(absolute_norm(A), 0.0)],
            is_triangular=lambda index: is_triangular(A),
            kernel=Known(),
            points=known,
            smallest_variances=(-np.inf if exact_sums else np.inf,),
        )
        built = ResidualPrecision.build(unit, 0, backend)
        assert (built.gram.high is not None) == exact_sums
        parts = {field.name: getattr(built, field.name) for field in fields(built)}
        parts["basis"] = None
        if directions is not None:
            noise, roots, seen = map(to_numpy, (built.noise, built.roots, built.seen))
            known = (built.gram, built.gram_error, noise, roots)
            parts["basis"] = WeightBasis.of(seen[:, None] * directions, *known, backend)
        return RecordingPrecision(**parts)

    def degrees(self, rows: np.ndarray, true: np.ndarray, backend: Backend) -> list[Degree]:
        """Of all derivatives: the first, and the second."""
        f, found = len(self.first), []
        for part, often in (
            (slice(0, f), np.ones(f)),
            (slice(f, len(rows)), np.asarray(pair_counts(f))),
        ):
            sizes = [length_up(often, each[part]) for each in (rows, rows - true)]
            found.append(Degree(part, *(backend.asarray(x) for x in (often, *sizes))))
        return found


def length_up(often: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(1,): at least the Frobenius norm of rows that count so often."""
    return np.nextafter([np.sqrt(np.sum(often[:, None] * rows**2)) * (1.0 + 1e-14)], np.inf)


class RecordingPrecision(ResidualPrecision):
    """Keeps the weights of the last call."""

    def weights(
        self, rows: Array, exact: bool = True, low: Array | None = None, few: bool = False
    ) -> Weights:
        found = super().weights(rows, exact, low, few)
        vars(self)["kept"] = found
        return found


@st.composite
def feature_cases(draw: st.DrawFn, max_points: int = 9) -> FeatureCase:
    """Entries are multiples of 2^-10 below 2, so that inner products are floats."""
    N, f = draw(st.integers(1, max_points)), draw(st.integers(1, 3))
    r, noise = draw(st.integers(1, 8)), draw(st.sampled_from(NOISES))
    spread, kind = draw(st.sampled_from([0.0, 0.0, 3.0])), draw(st.sampled_from(FACTORS))
    few = draw(st.integers(0, 3)) == 0
    rng = np.random.default_rng(draw(seeds))

    def vectors(count: int) -> np.ndarray:
        return rng.integers(-2047, 2048, (count, r)) / 1024.0

    points = vectors(N)
    if draw(st.booleans()):
        points[N // 2 :] = points[: N - N // 2]  # duplicates
    sigma = noise * 10.0 ** rng.uniform(-spread, spread, N)
    if few:
        sigma[rng.random(N) < 0.4] = rng.choice([np.inf, 1e70])
    K = points @ points.T
    return FeatureCase(
        points,
        vectors(1)[0],
        vectors(f),
        vectors(f * (f + 1) // 2),
        sigma,
        some_factor(kind, K, sigma, rng),
        rng,
    )


def some_factor(kind: str, K: np.ndarray, noise: np.ndarray, rng: np.random.Generator) -> Any:
    """(N, N), or fewer rows: about the inverse of a Cholesky factor of K + Sigma, or wrong."""
    N = len(K)
    seen, amount, A = np.flatnonzero(np.isfinite(noise)), 0.0, np.zeros((N, N))
    while len(seen):
        try:
            L = np.linalg.cholesky((K + np.diag(noise + amount))[np.ix_(seen, seen)])
            A[np.ix_(seen, seen)] = np.tril(np.linalg.inv(L))
            break
        except np.linalg.LinAlgError:
            amount = max(10.0 * amount, 1e-16 * float(np.trace(K)))
    if kind == "wrong digits":
        A = A * (1.0 + 1e-6 * rng.normal(size=A.shape))
    elif kind == "wrong":
        A = A * rng.uniform(0.5, 1.5)
    elif kind == "dense":
        A = np.linalg.qr(rng.normal(size=(N, N)))[0] @ A
    elif kind == "none":
        A = np.zeros((1, N))
    elif kind == "huge":
        A = 1e15 * np.tril(rng.normal(size=(N, N))) / np.sqrt(np.trace(K) / N)
    return A


KERNELS: dict[str, Callable[[Any, float], Kernel]] = {
    "squared exponential": k.SquaredExponential,
    "Matern 1/2": lambda lengths, variance: k.Matern(lengths, 0.5, variance),
    "Matern 3/2": lambda lengths, variance: k.Matern(lengths, 1.5, variance),
    "Matern 5/2": lambda lengths, variance: k.Matern(lengths, 2.5, variance),
    "rational quadratic": lambda lengths, variance: k.RationalQuadratic(lengths, 0.8, variance),
    "sum": lambda lengths, variance: k.Sum(
        (k.SquaredExponential(lengths, variance), k.Matern(0.5 * lengths, 1.5, 0.3 * variance))
    ),
    "product": lambda lengths, variance: k.Product(
        (k.SquaredExponential(2.0 * lengths, variance), k.RationalQuadratic(lengths, 2.0))
    ),
}
"""By name, for length-scales and a variance."""


@dataclass(eq=False)
class KernelCase:
    """A posterior with training noise, and places: points of the region, cells of no width."""

    posterior: Posterior
    places: np.ndarray
    rng: np.random.Generator

    def __repr__(self) -> str:
        p = self.posterior
        return f"KernelCase({p.kernel!r}, N={len(p.points)}, noise={p.training_noise[0].tolist()})"

    @cached_property
    def region(self) -> Box:
        """About all places."""
        reach = self.posterior.kernel.typical_lengths(self.posterior.dim)
        return Box(self.places.min(axis=0) - reach, self.places.max(axis=0) + reach)

    @cached_property
    def local(self) -> LocalPosterior:
        return LocalPosterior.build(self.posterior, self.region, Backend(), False)

    @cached_property
    def expansion(self) -> Any:
        """At the places."""
        return self.local.expand(Cells(self.region, self.places, self.places))

    def precision(self) -> ResidualPrecision:
        return ResidualPrecision.build(self.posterior.unit, 0, Backend())

    def center(self, anew: bool) -> CenterVariance:
        """By the kernel values of the expansion, or by others where sums are exact."""
        places = self.places if anew else None
        return self.precision().center(self.local.kernel, self.expansion, places)

    @cached_property
    def reference(self) -> ArbPosterior:
        """In unit form, as the enclosures are."""
        return ArbPosterior(self.posterior.unit)

    @cached_property
    def truth(self) -> TruePrecision:
        noise = self.posterior.unit.training_noise
        assert noise is not None
        return TruePrecision(self.reference.gram().tolist(), noise[0])

    def prior(self, place: np.ndarray) -> Any:
        """`k(c, c)`."""
        x = exact(place)
        return kernel_reference(self.posterior.unit.kernel, x, x)

    def along(self, place: np.ndarray, step: np.ndarray) -> tuple[list[Any], Any]:
        """The row `D_d k(c, z_i)`, d of scaled displacements, and `|D_d phi(c)|^2`."""
        unit = exact(1.0 / self.local.kernel.inverse_length)
        kernel = self.posterior.unit.kernel
        if isinstance(kernel, k.SquaredExponential):
            unit = exact(np.broadcast_to(kernel.length_scale, step.shape))
        d = [a * u for a, u in zip(exact(step), unit, strict=True)]
        c = exact(place)

        def value(x: Any, z: Any) -> Any:
            return kernel_reference(kernel, x, z)

        with series_length(5):
            tau = flint().arb_series([0, 1])
            at = [a + tau * b for a, b in zip(c, d, strict=True)]
            row = [coefficients(value(at, z), 2)[1] for z in self.reference.points]
            surface = line_surface(value, c, d)
            both, side = (coefficients(surface(tau, s * tau), 3)[2] for s in (1, 0))
        return row, both - 2 * side


@st.composite
def kernel_cases(
    draw: st.DrawFn, max_points: int = 12, names: Sequence[str] = tuple(sorted(KERNELS))
) -> KernelCase:
    """Regressions of every noise: duplicated and nearly duplicated points, points that say nothing,
    and sizes beyond all usual ones; places among the points, at them, beside them and far away."""
    name, d = draw(st.sampled_from(names)), draw(st.integers(1, 3))
    N = draw(st.sampled_from([1, 2, 4, max_points]))
    noise, spread = draw(st.sampled_from(NOISES)), draw(st.sampled_from([0.0, 0.0, 2.0]))
    kind, gap = draw(st.sampled_from(FACTORS)), draw(st.sampled_from([None, None, 0.0, 1e-9, 1e-3]))
    size, variance = (draw(st.sampled_from([1.0, 1.0, 1e-150, 1e150])) for _ in range(2))
    few = draw(st.integers(0, 4)) == 0
    rng = np.random.default_rng(draw(seeds))
    lengths = size * 10.0 ** rng.uniform(-0.5, 0.5, d)
    kernel = KERNELS[name](lengths, variance * float(rng.uniform(0.5, 2.0)))
    points = lengths * rng.normal(size=(N, d))
    if gap is not None:
        points[N // 2 :] = points[: N - N // 2] + gap * lengths * rng.normal(size=(N - N // 2, d))
    sigma = variance * noise * 10.0 ** rng.uniform(-spread, spread, N)
    if few:
        sigma[rng.random(N) < 0.4] = np.inf
    K = kernel.value(points, points) / variance
    factor = some_factor(kind, K, sigma / variance, rng) / np.sqrt(variance)
    posterior = Posterior(
        kernel, points, rng.normal(size=N) / variance, factor, training_noise=sigma
    )
    places = np.stack(
        [
            points[0],
            points[-1] + 1e-6 * lengths * rng.normal(size=d),
            lengths * rng.normal(size=d),
            points[0] + lengths * rng.choice([3.0, 30.0, 1e4]) * rng.normal(size=d),
        ]
    )
    return KernelCase(posterior, places, rng)
