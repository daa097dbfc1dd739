"""The contract of a kernel: a new one inherits its soundness tests from here.

Subclass `gpcert.testing.node_contract.NodeContract` (which adds what a kernel does inside a region
to what stands here), give `kernel`, `dim` and the kernel's `formula` in ball arithmetic (those of
the package stand in `gpcert.testing.kernel_references`), and pytest collects the rest. Needs
pytest, hypothesis and python-flint.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpcert.errors import InputError
from gpcert.kernels import Kernel, kernel_from_config
from gpcert.model.posterior import Posterior
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import (
    Formula,
    coefficients,
    diagonal_coefficients,
    exact,
    flint,
    line_surface,
    reference_of,
    remainder_length,
)

seeds = st.integers(0, 2**32 - 1)
sizes = st.sampled_from([0.0, 1e-12, 1e-4, 0.1, 0.9, 1.1, 3.0, 40.0, 1e6])

COMPARED_SIZES = {0.1, 0.9, 3.0}
"""Displacements, in typical lengths, at which bounds must also be close."""

NEGLIGIBLE = 1e-140
"""A remainder below this is as good as zero: roots of what outward rounding adds (`TINY`)."""


def drawn(count: int, quick: int | None = None) -> settings:
    """Settings of an inherited test: one function serves several classes, on purpose."""
    return settings(
        max_examples=examples(count, quick),
        deadline=None,
        suppress_health_check=[HealthCheck.differing_executors],
    )


class KernelCase:
    """A kernel, where its inputs lie, and its reference: what all contracts share."""

    kernel: ClassVar[Kernel]
    dim: ClassVar[int]

    typical: ClassVar[float | Sequence[float]] = 1.0
    """Length-scales of the inputs: points and displacements are drawn in these units."""

    formula: ClassVar[Formula | None] = None
    """`k(x, z)` in ball arithmetic from the kernel's `config()`, as those of
    `gpcert.testing.kernel_references`, for a kernel that has none there."""

    def reference(self, x: Sequence[Any], z: Sequence[Any]) -> Any:
        """`k(x, z)` in ball arithmetic."""
        return reference_of(self.kernel.name, self.kernel.config())(x, z)

    @property
    def units(self) -> np.ndarray:
        """`typical`, one per feature."""
        return np.broadcast_to(np.asarray(self.typical, dtype=np.float64), (self.dim,))

    def points(self, n: int, rng: np.random.Generator, spread: float = 1.0) -> np.ndarray:
        """Random points (n, d)."""
        return self.units * rng.normal(size=(n, self.dim)) * spread


class KernelContract(KernelCase):
    """What every kernel has. Inherit, set `kernel` and `dim`."""

    smooth_orders: ClassVar[int] = 3
    """Largest n <= 3 for which `D^n phi` exists: p for a Matern kernel of order p + 1/2."""

    tight: ClassVar[float] = math.inf
    """R0 and the b_n may be this factor above the largest length at a corner of the box
    (1 + 1e-9 for radial kernels); infinite where nothing is claimed."""

    tight_remainders: ClassVar[float] = math.inf
    """The same for R1 and R2, which may be replaced by b2 / 2 and b3 / 6."""

    orders: ClassVar[tuple[float, ...]] = (1.0, 2.0, 3.0)
    """R_n shrinks at least like the half-width to this power: min(n + 1, nu) for Matern."""

    @drawn(10, quick=2)
    @given(seed=seeds)
    def test_value(self, seed: int) -> None:
        """Symmetric, equal to the reference, `diagonal` included, and positive semi-definite."""
        rng = np.random.default_rng(seed)
        X, Y = self.points(5, rng), self.points(4, rng)
        K = self.kernel.value(X, Y)
        size = self._sizes(X, Y)
        assert K.shape == (5, 4)
        np.testing.assert_array_less(np.abs(K - self.kernel.value(Y, X).T), 1e-12 * size)
        np.testing.assert_allclose(self.kernel.diagonal(X), self._diagonal(X), rtol=1e-12)
        for i, j in np.ndindex(5, 4):
            real = float(self.reference(exact(X[i]), exact(Y[j])))
            assert K[i, j] == pytest.approx(real, rel=1e-11, abs=1e-13 * float(size[i, j]))
        gram = self.kernel.value(X, X)
        noise = self.kernel.training_covariance(X) - gram
        assert np.all(noise >= 0.0)
        assert np.array_equal(noise, np.diag(np.diag(noise))), "only noise may be added"
        assert np.linalg.eigvalsh(gram)[0] >= -1e-12 * np.trace(gram)

    @drawn(10, quick=2)
    @given(seed=seeds)
    def test_gradient(self, seed: int) -> None:
        """The derivative of the reference, and `gradient_product` its contraction."""
        module, rng = flint(), np.random.default_rng(seed)
        X, Y, C = self.points(3, rng), self.points(4, rng), rng.normal(size=(3, 4))
        gradient = self.kernel.gradient(X, Y)
        scale = self._sizes(X, Y)[:, :, None] / self.units
        for i, j, k in np.ndindex(3, 4, self.dim):
            x: list[Any] = exact(X[i])
            x[k] = module.arb_series([x[k], 1])
            real = float(coefficients(self.reference(x, exact(Y[j])), 2)[1])
            assert gradient[i, j, k] == pytest.approx(
                real, rel=1e-9, abs=1e-11 * float(scale[i, j, k])
            )
        product = self.kernel.gradient_product(X, Y, C)
        gap = np.abs(product - np.einsum("ij,ijk->ik", C, gradient))
        assert np.all(gap <= 1e-10 * np.einsum("ij,ijk->ik", np.abs(C), scale))
        assert np.all(np.isfinite(self.kernel.gradient(X, X))), "coincident points"

    @drawn(30, quick=4)
    @given(seed=seeds, size=sizes)
    def test_feature_map_remainders(self, seed: int, size: float) -> None:
        """R0, R1, R2, b2, b3 are at least the lengths they bound, all over the box; no tolerance.

        Remainders are taken from the centre to points of the box; b_n at points of the box.
        """
        module, rng = flint(), np.random.default_rng(seed)
        c, delta = self.points(2, rng) * [[1.0], [size]]
        bounds = self._bounds(c, delta)
        with module.ctx.workprec(800):  # the lengths cancel for tiny displacements
            corners = rng.choice([-1.0, 1.0], (2, 2, self.dim))
            inside = rng.uniform(-1.0, 1.0, (2, self.dim))
            # where to go from the centre, and from where in the box, as shares of delta
            for pair in ((corners[0, 0], 0 * corners[0, 0]), corners[1], inside):
                share, start = map(exact, pair)
                center, step = exact(c), [s * d for s, d in zip(share, exact(delta), strict=True)]
                real = self._lengths(center, step, "R")
                moved = [a + s * d for a, s, d in zip(center, start, exact(delta), strict=True)]
                real |= self._lengths(moved, step, "b")
                for name, length in real.items():
                    bound = bounds[name]
                    assert not math.isnan(bound), name
                    assert not module.arb(bound) < length, f"{name} = {bound} < {length.str(20)}"
        if size > 0:
            for n in range(self.smooth_orders + 1, 3):
                assert bounds[f"R{n}"] == math.inf, f"R{n} does not exist"
            for n in range(max(2, self.smooth_orders + 1), 4):
                assert bounds[f"b{n}"] == math.inf, f"b{n} does not exist"

    @drawn(6, quick=2)
    @given(seed=seeds, size=st.sampled_from(sorted(COMPARED_SIZES)))
    def test_remainders_are_tight(self, seed: int, size: float) -> None:
        """By at most the claimed factors above the largest length at the box's corners."""
        module, rng = flint(), np.random.default_rng(seed)
        c, delta = self.points(2, rng) * [[1.0], [size]]
        bounds = self._bounds(c, delta)
        largest: dict[str, float] = {}
        with module.ctx.workprec(400):
            for rest in itertools.product([1, -1], repeat=self.dim - 1):
                step = [s * d for s, d in zip((1, *rest), exact(delta), strict=True)]
                for kind in ("R", "b"):
                    for name, length in self._lengths(exact(c), step, kind).items():
                        largest[name] = max(largest.get(name, 0.0), float(length))
        for name, length in largest.items():
            factor = self.tight_remainders if name in {"R1", "R2"} else self.tight
            if math.isfinite(factor):
                assert bounds[name] <= length * factor + NEGLIGIBLE, f"{name} is not tight"

    def test_remainders_shrink(self) -> None:
        """R_n falls with the half-width at the claimed order."""
        rng = np.random.default_rng(7)
        c, delta = self.points(2, rng)
        for n in range(min(2, self.smooth_orders) + 1):
            small, large = (self._bounds(c, h * delta)[f"R{n}"] for h in (1e-4, 1e-2))
            assert math.isfinite(large), f"R{n}"
            if large > NEGLIGIBLE:
                exponent = math.log(large / max(small, 1e-300)) / math.log(100.0)
                assert exponent >= self.orders[n] - 0.05, f"R{n} shrinks at order {exponent:.2f}"

    @drawn(8, quick=2)
    @given(seed=seeds, spread=st.sampled_from([1e-6, 1.0, 30.0]))
    def test_gram_with_error(self, seed: int, spread: float) -> None:
        """`|fl(k) - k| <= error` for every entry."""
        module, rng = flint(), np.random.default_rng(seed)
        points = self.points(5, rng, spread)
        gram, error = self.kernel.gram_with_error(points)
        error = np.broadcast_to(error, gram.shape)
        for i, j in np.ndindex(gram.shape):
            gap = abs(self.reference(exact(points[i]), exact(points[j])) - module.arb(gram[i, j]))
            assert not math.isnan(error[i, j])
            assert not gap > module.arb(error[i, j])

    def test_config_and_saving(self, tmp_path: Any) -> None:
        """The registry rebuilds the kernel, also through a saved posterior, bit for bit."""
        rng = np.random.default_rng(0)
        X, Y = self.points(4, rng), self.points(3, rng)
        lengths = self.kernel.typical_lengths(self.dim)
        assert lengths.shape == (self.dim,)
        assert np.all(lengths > 0)
        again = kernel_from_config(self.kernel.name, self.kernel.config())
        assert again.config() == self.kernel.config()
        assert np.array_equal(again.value(X, Y), self.kernel.value(X, Y))
        Posterior(self.kernel, X, np.ones(4)).save(tmp_path / "model.npz")
        loaded = Posterior.load(tmp_path / "model.npz").kernel
        assert loaded.config() == self.kernel.config()
        assert np.array_equal(loaded.value(X, Y), self.kernel.value(X, Y))

    def test_rescaled(self) -> None:
        """`k'(x, y) = k((x - shift) / s, (y - shift) / s)`."""
        rng = np.random.default_rng(0)
        X, Y, s = self.points(4, rng), self.points(3, rng), rng.uniform(0.5, 2.0, self.dim)
        shift = self.units * rng.normal(size=self.dim)
        moved = self.kernel.rescaled(s, shift)
        gap = np.abs(moved.value(X * s + shift, Y * s + shift) - self.kernel.value(X, Y))
        assert np.all(gap <= 1e-10 * self._sizes(X, Y))

    def test_checks_its_dimension(self) -> None:
        """It fits its own dimension; another one is refused, or it has values there too."""
        self.kernel.check_dimension(self.dim)
        more = np.ones((2, self.dim + 1))
        try:
            self.kernel.check_dimension(self.dim + 1)
        except InputError:
            return
        assert self.kernel.value(more, more).shape == (2, 2)
        assert self.kernel.gradient(more, more).shape == (2, 2, self.dim + 1)

    def _diagonal(self, X: np.ndarray) -> np.ndarray:
        """`k(x, x)` by the reference."""
        return np.asarray([float(self.reference(exact(x), exact(x))) for x in X])

    def _sizes(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """`sqrt(k(x, x) k(y, y))`, the natural size of k(x, y); never zero."""
        return np.sqrt(np.outer(self._diagonal(X), self._diagonal(Y))) + 1e-290

    def _bounds(self, c: np.ndarray, delta: np.ndarray) -> dict[str, float]:
        """The kernel's bounds over one box."""
        bounds = self.kernel.derivative_bounds(delta[None, :], c[None, :])
        names = {f"R{n}": bounds.remainder(n) for n in range(3)}
        names |= {f"b{n}": bounds.lengths[n] for n in range(4)}
        for name in ("R0", "R1", "b2", "b3"):
            again = getattr(self.kernel, name)(delta[None, :], c[None, :])
            assert np.array_equal(np.ravel(again), np.ravel(names[name]))
        return {name: float(np.ravel(value)[0]) for name, value in names.items()}

    def _lengths(self, center: list[Any], step: list[Any], kind: str) -> dict[str, Any]:
        """The true R0 ... R2 or b0 ... b3, as far as they exist."""
        K = line_surface(self.reference, center, step)
        a = diagonal_coefficients(K)
        top = self.smooth_orders
        if kind == "R":
            return {f"R{n}": remainder_length(K, n, a) for n in range(min(2, top) + 1)}
        squares = {n: math.factorial(n) ** 2 * a[n, n] for n in range(top + 1)}
        return {f"b{n}": square.max(flint().arb(0)).sqrt() for n, square in squares.items()}
