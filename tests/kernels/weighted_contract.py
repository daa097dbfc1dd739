"""The contract of the weighted expansions of `LocalSquaredExponential`; see `KernelContract`."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpcert.kernels.expansions.squared_exponential import LocalSquaredExponential
from gpcert.numerics.arrays import Array, Backend, to_numpy
from gpcert.regions import Ball, Box, Cells, Region
from gpcert.testing.effort import backend_or_skip
from gpcert.testing.kernel_contract import KernelCase, drawn, seeds
from gpcert.testing.kernel_references import Surface, exact, flint, line_surface, remainder_length


class WeightedContract(KernelCase):
    """Inherit, set `kernel`, `dim` and `weight`."""

    weight: ClassVar[float] = 0.5
    """The rate of omega that `Kernel.localize` is expected to have."""

    def localized(
        self, points: np.ndarray, region: Region, backend: Backend
    ) -> LocalSquaredExponential:
        """The kernel's weighted expansion."""
        local = self.kernel.localize(points, region, backend)
        assert isinstance(local, LocalSquaredExponential)
        return local

    def weighted_surface(self, c: Any, d: Any, rate: float) -> Surface:
        """`K(s, t)` along d from c, times `exp(rate (s^2 + t^2) |d|^2)`, |d| scaled."""
        module = flint()
        scaled = [a / b for a, b in zip(exact(d), exact(self.units), strict=True)]
        square = sum((a * a for a in scaled), module.arb(0))
        plain = line_surface(self.reference, exact(c), exact(d))

        def K(s: Any, t: Any) -> Any:
            return plain(s, t) * (module.arb(rate) * square * (s * s + t * t)).exp()

        return K

    def local_case(
        self, seed: int, backend: str
    ) -> tuple[Region, np.ndarray, LocalSquaredExponential, Array]:
        """A region, points, the kernel bound to both, and float centres in the region (B, f)."""
        rng = np.random.default_rng(seed)
        points = self.points(5, rng) + self.units * rng.choice([0.0, 50.0])
        x = points[0] + self.units * rng.normal(size=self.dim) * rng.choice([0.0, 1.0])
        width = self.units * rng.choice([1e-9, 0.3, 2.0, 100.0])
        width = np.where(rng.random(self.dim) < 0.3, 0.0, width)
        region: Region = Box(x - width, x + width)
        if rng.random() < 0.3:
            region = Ball(x, float(width.max()), norm=2)
        place = backend_or_skip(backend)
        centers = region.sample(3, rng)[:, region.free]
        return region, points, self.localized(points, region, place), place.asarray(centers)

    @pytest.mark.parametrize("backend_name", ["numpy", "torch"])
    @drawn(25)
    @given(seed=seeds)
    def test_local_values(self, backend_name: str, seed: int) -> None:
        """`matrix` and its error, weighted with powers of the scaled distance."""
        module = flint()
        region, points, local, centers = self.local_case(seed, backend_name)
        assert local.weight_rate == self.weight
        _, K = local.values(local.scaled_centers(centers), local.fixed_distances)
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
    @drawn(25)
    @given(seed=seeds)
    def test_local_moments(self, backend_name: str, seed: int) -> None:
        """Moments against the power series of `omega k` along a line, within their errors."""
        module, rng = flint(), np.random.default_rng(seed)
        region, points, local, centers = self.local_case(seed, backend_name)
        f = len(region.free)
        xp = backend_or_skip(backend_name)
        weights = rng.normal(size=len(points))
        scaled = local.scaled_centers(centers)
        _, K = local.values(scaled, local.fixed_distances)
        a, errors = local.terms(K, xp.asarray(weights))
        value, gradient, hessian = (to_numpy(m) for m in local.moments_and_cubes(a, scaled)[0])
        errors = to_numpy(errors) + local.floor * float(abs(weights).sum())
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

    @drawn(30)
    @given(seed=seeds, size=st.sampled_from([0.0, 1e-9, 1e-3, 0.3, 1.0, 2.0, 8.0]))
    def test_local_tails(self, seed: int, size: float) -> None:
        """`tail(n, |d|^2)`, n = 0, 1, 2, and `zeroth_remainder` bound their lengths."""
        module, rng = flint(), np.random.default_rng(seed)
        points = self.points(2, rng)
        region = Box(points[0] - 10.0 * self.units, points[0] + 10.0 * self.units)
        local = self.localized(points, region, Backend())
        direction = rng.normal(size=self.dim)
        d = size * self.units * direction / np.linalg.norm(direction)
        with module.ctx.workprec(800):
            square = sum(((a / b) ** 2 for a, b in zip(exact(d), exact(self.units), strict=True)))
            rho2 = np.asarray([math.nextafter(float((module.arb(0) + square).upper()), math.inf)])
            plain = line_surface(self.reference, exact(points[0]), exact(d))
            weighted = self.weighted_surface(points[0], d, local.weight_rate)
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
