"""The contract of a kernel: a new one inherits its soundness tests from here.

Subclass `KernelContract`, give `kernel` and `dim`, add the kernel's formula in ball arithmetic to
`gpcert.testing.arb_reference` (or override `reference`), and pytest collects the rest. Needs
pytest, hypothesis and python-flint.

Lengths in feature space come from the kernel alone. With `K(s, t) = k(c + s d, c + t d)`,

    <D_d^i phi(c), D_d^j phi(c)> = i! j! a_ij,       K(s, t) = sum a_ij s^i t^j,

and the a_ij follow from power series of K along the lines t = lambda s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpcert.arrays import Array, Backend, backend_from_name, to_numpy
from gpcert.errors import InputError
from gpcert.kernels import Kernel, LocalKernel, kernel_from_config
from gpcert.posterior import Posterior
from gpcert.regions import Ball, Box, Cells, Region
from gpcert.testing.arb_reference import exact, flint, kernel_reference

__all__ = ["KernelContract", "diagonal_coefficients", "remainder_length"]

seeds = st.integers(0, 2**32 - 1)
sizes = st.sampled_from([0.0, 1e-12, 1e-4, 0.1, 0.9, 1.1, 3.0, 40.0, 1e6])


def examples(n: int) -> settings:
    """Settings of an inherited test: one function serves several classes, on purpose."""
    return settings(
        max_examples=n, deadline=None, suppress_health_check=[HealthCheck.differing_executors]
    )


Surface = Callable[[Any, Any], Any]
"""`K(s, t)` for numbers or power series s and t."""


def _line(surface: Surface, ratio: int, degree: int) -> Any:
    """Coefficient of tau^degree of `K(tau, ratio tau)`."""
    module = flint()
    tau = module.arb_series([0, 1])
    coefficients = surface(tau, ratio * tau).coeffs()
    return coefficients[degree] if degree < len(coefficients) else module.arb(0)


def _side(surface: Surface, degree: int) -> Any:
    """Coefficient of t^degree of `K(0, t)`."""
    tau = flint().arb_series([0, 1])
    coefficients = surface(0 * tau, tau).coeffs()
    return coefficients[degree] if degree < len(coefficients) else flint().arb(0)


def diagonal_coefficients(surface: Surface) -> dict[tuple[int, int], Any]:
    """`a_ij` for i, j <= 2 and a_33 of a symmetric surface K(s, t) = K(t, s)."""
    a = {(0, 0): _side(surface, 0), (0, 1): _side(surface, 1), (0, 2): _side(surface, 2)}
    a[1, 1] = _line(surface, 1, 2) - 2 * a[0, 2]
    even = (_line(surface, 1, 3) + _line(surface, -1, 3)) / 2  # a_30 + a_12
    a[1, 2] = even - _side(surface, 3)
    even = (_line(surface, 1, 4) + _line(surface, -1, 4)) / 2  # a_40 + a_22 + a_04
    a[2, 2] = even - 2 * _side(surface, 4)
    odd = [(_line(surface, n, 6) - _line(surface, -n, 6)) / 2 for n in (1, 2)]
    a[3, 3] = (17 * odd[0] - odd[1]) / 9  # odd_n = a_51 n + a_33 n^3 + a_15 n^5, a_51 = a_15
    return {**a, **{(j, i): value for (i, j), value in a.items()}}


def remainder_length(surface: Surface, order: int) -> Any:
    """`||Phi(1) - sum_{i <= order} Phi^(i)(0) / i!||` where `<Phi(s), Phi(t)> = K(s, t)`."""
    module = flint()
    one, tau = module.arb(1), module.arb_series([0, 1])
    a = diagonal_coefficients(surface)
    at_end = [*surface(tau, one + 0 * tau).coeffs(), *[module.arb(0)] * 3]
    total = surface(one, one)
    for i in range(order + 1):
        total -= 2 * at_end[i]
        for j in range(order + 1):
            total += a[i, j]
    return total.max(module.arb(0)).sqrt()


class KernelContract:
    """Inherit, set `kernel` and `dim`."""

    kernel: ClassVar[Kernel]
    dim: ClassVar[int]

    typical: ClassVar[float | Sequence[float]] = 1.0
    """Length-scales of the inputs: points and displacements are drawn in these units."""

    weight: ClassVar[float] = 0.0
    """The rate of omega that `localize` is expected to have."""

    def reference(self, x: Sequence[Any], z: Sequence[Any]) -> Any:
        """`k(x, z)` in ball arithmetic."""
        return kernel_reference(self.kernel, x, z)

    @property
    def units(self) -> np.ndarray:
        """`typical`, one a feature."""
        return np.broadcast_to(np.asarray(self.typical, dtype=np.float64), (self.dim,))

    def points(self, n: int, rng: np.random.Generator, spread: float = 1.0) -> np.ndarray:
        """Random points (n, d)."""
        return self.units * rng.normal(size=(n, self.dim)) * spread

    def surface(self, c: Any, d: Any, rate: float = 0.0) -> Surface:
        """`K(s, t)` along d from c; with a rate, times `exp(rate (s^2 + t^2) |d|^2)`."""
        module = flint()
        center, step, lengths = exact(c), exact(d), exact(self.units)
        square = sum(((a / b) ** 2 for a, b in zip(step, lengths, strict=True)), module.arb(0))

        def K(s: Any, t: Any) -> Any:
            x = [a + s * b for a, b in zip(center, step, strict=True)]
            y = [a + t * b for a, b in zip(center, step, strict=True)]
            value = self.reference(x, y)
            if rate:
                value = value * (module.arb(rate) * square * (s * s + t * t)).exp()
            return value

        return K

    def backend(self, name: str) -> Backend:
        """The backend called `name`; skips the test where torch is missing."""
        if name == "torch":
            pytest.importorskip("torch")
        return backend_from_name(name)

    @examples(20)
    @given(seed=seeds)
    def test_value(self, seed: int) -> None:
        """Symmetric, equal to the reference, `diagonal` included, and positive semi-definite."""
        rng = np.random.default_rng(seed)
        X, Y = self.points(5, rng), self.points(4, rng)
        K = self.kernel.value(X, Y)
        np.testing.assert_allclose(K, self.kernel.value(Y, X).T, rtol=1e-12)
        np.testing.assert_allclose(self.kernel.diagonal(X), np.diag(self.kernel.value(X, X)))
        for i, x in enumerate(X):
            for j, y in enumerate(Y):
                real = float(self.reference(exact(x), exact(y)))
                assert K[i, j] == pytest.approx(real, rel=1e-11, abs=1e-290)
        gram = self.kernel.value(X, X)
        assert np.linalg.eigvalsh(gram)[0] >= -1e-12 * np.trace(gram)

    @examples(20)
    @given(seed=seeds)
    def test_gradient(self, seed: int) -> None:
        """The derivative of the reference, and `gradient_product` its contraction."""
        module, rng = flint(), np.random.default_rng(seed)
        X, Y, C = self.points(3, rng), self.points(4, rng), rng.normal(size=(3, 4))
        gradient = self.kernel.gradient(X, Y)
        scale = float(self.kernel.diagonal(X).max()) / self.units
        for i, j, k in np.ndindex(3, 4, self.dim):
            x: list[Any] = exact(X[i])
            x[k] = module.arb_series([x[k], 1])
            real = float(self.reference(x, exact(Y[j])).coeffs()[1])
            assert gradient[i, j, k] == pytest.approx(real, rel=1e-9, abs=1e-12 * float(scale[k]))
        np.testing.assert_allclose(
            self.kernel.gradient_product(X, Y, C) / scale,
            np.einsum("ij,ijk->ik", C, gradient) / scale,
            atol=1e-11,
        )

    @examples(40)
    @given(seed=seeds, size=sizes)
    def test_feature_map_remainders(self, seed: int, size: float) -> None:
        """R0, R1, b2, b3 are at least the lengths they bound; no tolerance."""
        module, rng = flint(), np.random.default_rng(seed)
        c, d = self.points(2, rng) * [[1.0], [size]]
        with module.ctx.workprec(800):  # the lengths cancel for tiny displacements
            K = self.surface(c, d)
            a = diagonal_coefficients(K)
            real = {
                "R0": remainder_length(K, 0),
                "R1": remainder_length(K, 1),
                "b2": (4 * a[2, 2]).max(module.arb(0)).sqrt(),
                "b3": (36 * a[3, 3]).max(module.arb(0)).sqrt(),
            }
            for name, length in real.items():
                bound = float(getattr(self.kernel, name)(d))
                assert not math.isnan(bound)
                assert not module.arb(bound) < length, f"{name} = {bound} < {length.str(20)}"
                if math.isfinite(bound) and size in {0.1, 0.9, 3.0}:
                    slack = 1.5 if name == "R1" else 1 + 1e-9  # R1 may be b2 / 2
                    assert bound <= float(length) * slack, f"{name} is not tight"

    @examples(15)
    @given(seed=seeds, spread=st.sampled_from([1e-6, 1.0, 30.0]))
    def test_gram_with_error(self, seed: int, spread: float) -> None:
        """`|fl(k) - k| <= e fl(k) + TINY` for every entry."""
        module, rng = flint(), np.random.default_rng(seed)
        points = self.points(6, rng, spread)
        gram, error = self.kernel.gram_with_error(points)
        for i, j in np.ndindex(gram.shape):
            gap = abs(self.reference(exact(points[i]), exact(points[j])) - module.arb(gram[i, j]))
            assert not gap > module.arb(error) * module.arb(gram[i, j]) + module.arb(2) ** -1000

    def test_config_and_saving(self, tmp_path: Any) -> None:
        """The registry rebuilds the kernel, also through a saved posterior, bit for bit."""
        rng = np.random.default_rng(0)
        X, Y = self.points(4, rng), self.points(3, rng)
        again = kernel_from_config(self.kernel.name, self.kernel.config())
        assert np.array_equal(again.value(X, Y), self.kernel.value(X, Y))
        Posterior(self.kernel, X, np.ones(4)).save(tmp_path / "model.npz")
        loaded = Posterior.load(tmp_path / "model.npz").kernel
        assert np.array_equal(loaded.value(X, Y), self.kernel.value(X, Y))

    def test_rescaled(self) -> None:
        """`k'(x, y) = k(x / s, y / s)`."""
        rng = np.random.default_rng(0)
        X, Y, s = self.points(4, rng), self.points(3, rng), rng.uniform(0.5, 2.0, self.dim)
        np.testing.assert_allclose(
            self.kernel.rescaled(s).value(X * s, Y * s), self.kernel.value(X, Y), rtol=1e-11
        )

    def test_checks_its_dimension(self) -> None:
        """It fits its own dimension, and says so of a wrong one (a scalar length fits all)."""
        self.kernel.check_dimension(self.dim)
        if np.ndim(getattr(self.kernel, "length_scale", 1.0)) == 1:
            with pytest.raises(InputError):
                self.kernel.check_dimension(self.dim + 1)

    def local_case(self, seed: int, backend: str) -> tuple[Region, np.ndarray, LocalKernel, Array]:
        """A region, points, the kernel bound to both, and float centres in the region (B, f)."""
        rng = np.random.default_rng(seed)
        points = self.points(5, rng) + self.units * rng.choice([0.0, 50.0])
        x = points[0] + self.units * rng.normal(size=self.dim) * rng.choice([0.0, 1.0])
        width = self.units * rng.choice([1e-9, 0.3, 2.0, 100.0])
        width = np.where(rng.random(self.dim) < 0.3, 0.0, width)
        region: Region = Box(x - width, x + width)
        if rng.random() < 0.3:
            region = Ball(x, float(width.max()), norm=2)
        place = self.backend(backend)
        centers = region.sample(3, rng)[:, region.free]
        return region, points, self.kernel.localize(points, region, place), place.asarray(centers)

    @pytest.mark.parametrize("backend_name", ["numpy", "torch"])
    @examples(25)
    @given(seed=seeds)
    def test_local_values(self, backend_name: str, seed: int) -> None:
        """`matrix` and its error, weighted with powers of the scaled distance."""
        module = flint()
        region, points, local, centers = self.local_case(seed, backend_name)
        assert local.weight_rate == self.weight
        K = local.matrix(local.squared_distances(local.scaled_centers(centers)))
        bounds = [to_numpy(a) for a in local.squared_sizes(K)]
        rows = Cells(region, centers, centers).points_full(centers)
        for b, x in enumerate(rows):
            total = [[module.arb(0)] * 3, [module.arb(0)] * 3]
            for i, z in enumerate(points):
                real = self.reference(exact(x), exact(z))
                gap = real - module.arb(float(to_numpy(K)[b, i]))
                for n in range(3):
                    m = self._squared_distance(x, z, region) ** n
                    total[0][n] += real**2 * m
                    total[1][n] += gap**2 * m
            for n in range(3):
                for k in range(2):
                    assert not module.arb(float(bounds[k][b, n])) < total[k][n]

    @pytest.mark.parametrize("backend_name", ["numpy", "torch"])
    @examples(25)
    @given(seed=seeds)
    def test_local_moments(self, backend_name: str, seed: int) -> None:
        """Moments against the power series of `omega k` along a line, within their errors."""
        module, rng = flint(), np.random.default_rng(seed)
        region, points, local, centers = self.local_case(seed, backend_name)
        f = len(region.free)
        xp = self.backend(backend_name)
        weights = rng.normal(size=len(points))
        scaled = local.scaled_centers(centers)
        K = local.matrix(local.squared_distances(scaled))
        a = K * xp.asarray(weights)
        value, gradient, hessian = (to_numpy(m) for m in local.moments(a, scaled))
        errors = to_numpy(local.moment_errors(abs(a))) + local.floor * float(abs(weights).sum())
        step = rng.normal(size=f) / (np.linalg.norm(rng.normal(size=f)) + 1.0)
        d, lengths = exact(step), exact(self.units[region.free])
        size = (module.arb(0) + sum(s * s for s in d)).sqrt()
        tau = module.arb_series([0, 1])
        for b, x in enumerate(Cells(region, centers, centers).points_full(centers)):
            at: list[Any] = exact(x)
            for j, s, w in zip(region.free, d, lengths, strict=True):
                at[j] = at[j] + s * w * tau
            omega = (module.arb(local.weight_rate) * size**2 * tau * tau).exp()
            total = sum(
                (
                    t * self.reference(at, exact(z))
                    for t, z in zip(exact(weights), points, strict=True)
                ),
                0 * tau,
            )
            real = [*(total * omega).coeffs(), *[module.arb(0)] * 3]
            found = [module.arb(float(value[b])), module.arb(0), module.arb(0)]
            for j in range(f):
                found[1] += d[j] * module.arb(float(gradient[b, j]))
                for k in range(f):
                    found[2] += d[j] * module.arb(float(hessian[b, j, k])) * d[k] / 2
            allowed = [1, size, size**2 / 2]
            for n in range(3):
                error = module.arb(float(errors[b, n])) * allowed[n]
                assert not abs(found[n] - real[n]) > error, f"moment {n} is off"

    @examples(30)
    @given(seed=seeds, size=st.sampled_from([0.0, 1e-9, 1e-3, 0.3, 1.0, 2.0, 8.0]))
    def test_local_tails(self, seed: int, size: float) -> None:
        """`tail(n, |d|^2)`, n = 0, 1, 2, and `zeroth_remainder` bound their lengths."""
        module, rng = flint(), np.random.default_rng(seed)
        points = self.points(2, rng)
        region = Box(points[0] - 10.0 * self.units, points[0] + 10.0 * self.units)
        local = self.kernel.localize(points, region, Backend())
        direction = rng.normal(size=self.dim)
        d = size * self.units * direction / np.linalg.norm(direction)
        with module.ctx.workprec(800):
            square = sum(((a / b) ** 2 for a, b in zip(exact(d), exact(self.units), strict=True)))
            rho2 = np.asarray([math.nextafter(float((module.arb(0) + square).upper()), math.inf)])
            plain = self.surface(points[0], d)
            weighted = self.surface(points[0], d, local.weight_rate)
            bound = float(local.zeroth_remainder(rho2)[0])
            assert not module.arb(bound) < remainder_length(plain, 0)
            for n in range(3):
                bound = float(local.tail(n, rho2)[0])
                length = remainder_length(weighted, n)
                assert not module.arb(bound) < length, f"tail {n}: {bound} < {length.str(20)}"

    def _squared_distance(self, x: np.ndarray, z: np.ndarray, region: Region) -> Any:
        """Squared scaled distance in the free features."""
        rows = zip(exact(x), exact(z), exact(self.units), strict=True)
        parts = [((a - b) / c) ** 2 for a, b, c in rows]
        return sum((parts[j] for j in region.free), flint().arb(0))
