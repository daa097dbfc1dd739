"""The whole contract of a kernel: `KernelContract`, and what it does inside a region.

Subclass `NodeContract`, give `kernel`, `dim` and `typical` (and the flags of `KernelContract` where
they differ), and pytest collects the rest. A kernel that is not in the registry `KERNELS`, has no
formula in `gpcert.testing.kernel_references`, no configuration in `partner_configs` or no subclass
of this class fails `tests/kernels/test_kernel_completeness.py`.
"""

from __future__ import annotations

import importlib.util
import math
import zlib
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpcert.kernels import kernel_from_config
from gpcert.numerics.arrays import Backend
from gpcert.paper.lines import affine_relaxation, has_lines
from gpcert.regions import Box, Cells
from gpcert.regions.cells import Frame
from gpcert.testing.effort import backend_or_skip, variants
from gpcert.testing.kernel_contract import KernelContract, drawn, seeds
from gpcert.testing.kernel_references import REFERENCES, partner_configs
from gpcert.testing.node_case import NodeCase, node_case
from gpcert.testing.node_checks import CHECKS, check_lines_at_points

TESTED: dict[str, type] = {}
"""The first contract class of each kernel, by the kernel's name."""

TILTED = {"exponential_tilt", "generalised_spectral"}
"""Kernels that grow exponentially."""

LARGEST_TILT = 30.0
"""Half-widths, in typical lengths, at which these do not overflow."""

QUICK_PARTNERS = 2
"""Kernels that each is added to and multiplied with in a quick run; all of them in a slow one."""

BACKENDS = ["numpy", "torch"] if importlib.util.find_spec("torch") else ["numpy"]


class NodeContract(KernelContract):
    """What a kernel does inside a region. Inherit, set `kernel`, `dim` and `typical`."""

    huge: ClassVar[float] = 1e6
    """Half-width, in typical lengths, of the largest regions; less for kernels that overflow."""

    accuracy: ClassVar[float] = 2e-12
    """Errors of values near the points, relative to `sqrt(k(x, x) k(z, z))`, are at most this."""

    carriers_depend_on_cell: ClassVar[bool] = False
    """True where `phi(x, z_i)` is written relative to the cell: lines then are tested as sums."""

    compose: ClassVar[bool]
    """Whether sums and products with all other kernels are tried: for the first class of a kernel.

    A class that sets this to False does not count as the test of its kernel."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.formula is not None:
            REFERENCES.setdefault(cls.kernel.name, cls.formula)
        if "kernel" in vars(cls) and vars(cls).get("compose", True):
            cls.compose = TESTED.setdefault(cls.kernel.name, cls) is cls

    def case(self, seed: int, backend: str = "numpy") -> NodeCase:
        """A random case."""
        return node_case(self.kernel, self.units, seed, backend_or_skip(backend), self.huge)

    @pytest.mark.parametrize("check", sorted(CHECKS))
    @drawn(20, quick=3)
    @given(seed=seeds, backend=st.sampled_from(BACKENDS))
    def test_node(self, check: str, seed: int, backend: str) -> None:
        """One line of the contract of a node, see `gpcert.testing.node_checks`."""
        CHECKS[check](self.case(seed, backend))

    @drawn(20, quick=2)
    @given(seed=seeds)
    def test_lines_at_points(self, seed: int) -> None:
        """The lines, where the kernel has some, lie on their sides of k, point by point."""
        if self.carriers_depend_on_cell:
            pytest.skip("tested as sums only")
        check_lines_at_points(self.case(seed))

    def small_case(self, half: float) -> NodeCase:
        """One cell of half-width `half`, in typical lengths, near the points."""
        rng = np.random.default_rng(3)
        points, at = self.points(4, rng), self.points(1, rng)[0]
        return self._whole(points, Box(at - half * self.units, at + half * self.units), rng)

    def _whole(self, points: np.ndarray, region: Box, rng: np.random.Generator) -> NodeCase:
        """The region as one cell."""
        frame = Frame.of(region, self.kernel.typical_lengths(self.dim), Backend())
        return NodeCase(self.kernel, points, frame, region.root(), rng)

    def test_errors_are_small(self) -> None:
        """Near the points, rounding errors are a small multiple of the unit roundoff."""
        case = self.small_case(0.5)
        centers = case.cells.points_full(case.cells.center)
        allowed = self.accuracy * self._sizes(centers, case.points)
        assert np.all(case.host(case.batch.errors[0]) <= allowed)
        for n in (1, 2):
            if n <= 2 * self.smooth_orders:
                size = case.host(case.batch.sizes[n])
                assert np.all(np.isfinite(size))
                wide = np.maximum(size.max(), allowed / self.accuracy)
                assert np.all(case.host(case.batch.errors[n]) <= 10.0 * self.accuracy * wide)

    def test_variations_shrink(self) -> None:
        """S_n falls with the half-width like its n-th power, the lines' interval like the first."""
        large, small = (self.small_case(h) for h in (1e-2, 1e-4))
        wide, narrow = ([c.host(part) for part in c.batch.variations()] for c in (large, small))
        for n in range(4):
            if n > 2 * self.smooth_orders:
                continue
            assert np.all(np.isfinite(wide[n])), f"S_{n}"
            present = wide[n] > 1e-200
            ratio = wide[n][present] / np.maximum(narrow[n][present], 1e-300)
            assert np.all(np.log(ratio) >= (n - 0.1) * math.log(100.0)), f"S_{n}"
        if not has_lines(large.batch):
            return
        lines = [affine_relaxation(c.batch) for c in (large, small)]
        bands = [large.host(line.high) - large.host(line.low) for line in lines]
        size = self._sizes(self.points(1, np.random.default_rng(0)), large.points).max()
        assert np.all(bands[1] <= 0.02 * bands[0] + 1e-11 * size)

    def test_bounds_grow_with_the_cell(self) -> None:
        """A smaller cell with the same centre is never bounded worse, up to rounding."""
        cases = [self.small_case(h) for h in (0.05, 0.1, 0.4, 1.6)]
        remainders = []
        for case in cases:
            bounds = [case.host(part) for part in case.batch.variations()]
            sizes = case.node.derivative_bounds(case.geometry)
            bounds += [case.host(sizes.remainder(n), (1,)) for n in range(3)]
            if has_lines(case.batch):
                lines = affine_relaxation(case.batch)
                bounds += [case.host(lines.high), -case.host(lines.low)]
            remainders.append(bounds)
        for smaller, larger in pairwise(remainders):
            for n, (a, b) in enumerate(zip(smaller, larger, strict=True)):
                assert np.all(a <= b + 1e-11 * (np.abs(b) + 1e-200)), f"bound {n}"

    def test_no_free_feature(self) -> None:
        """A region that is one point: values, no derivatives."""
        rng = np.random.default_rng(5)
        points = self.points(3, rng)
        case = self._whole(points, Box(points[0], points[0]), rng)
        for check in CHECKS.values():
            check(case)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Partners of `test_composition`: all, or one if another class of the kernel has all."""
        if "partner" in metafunc.fixturenames:
            every = self.partners() if self.compose else ["squared_exponential"]
            mark = variants("partner", every, quick=QUICK_PARTNERS)
            metafunc.parametrize(*mark.args)

    def partners(self) -> list[str]:
        """All kernels, from this one on in the order of the alphabet: their first few are others
        for every kernel, and the last are tried from the other side."""
        every = sorted(partner_configs(1))
        place = every.index(self.kernel.name) if self.kernel.name in every else 0
        return every[place:] + every[:place]

    def test_composition(self, partner: str) -> None:
        """The sum or the product with one kernel of every class, whose own test tries the other."""
        name = self.kernel.name
        for kind in ("sum", "product"):
            if partner == name or (partner < name) == (kind == "product"):
                self.check_composition(kind, partner)

    def check_composition(self, kind: str, partner: str) -> None:
        """Every check for `kind` of this kernel and a partner, on few cells and points."""
        other = kernel_from_config(partner, partner_configs(self.dim)[partner])
        other = other.rescaled(np.array(self.units), np.zeros(self.dim))
        parts = [[k.name, k.config()] for k in (self.kernel, other)]
        kernel = kernel_from_config(kind, {"kernels": parts})
        huge = min(self.huge, LARGEST_TILT) if partner in TILTED else self.huge
        seed = zlib.crc32(f"{type(self).__name__} {kind} {partner}".encode())
        case = node_case(kernel, self.units, seed, Backend(), huge)
        some = Cells(case.cells.region, case.cells.lower[:2], case.cells.upper[:2])
        case = NodeCase(kernel, case.points[:2], case.frame, some, case.rng)
        for check in CHECKS.values():
            check(case)
