"""A kernel inside a region, for tests: points, cells, and derivatives of its reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.kernels import Kernel
from gpcert.numerics.arrays import Array, Backend, to_numpy
from gpcert.regions import Ball, Box, Cells, Region
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells
from gpcert.testing.kernel_references import coefficients, exact, flint, reference_of, series_length


@dataclass(eq=False)
class NodeCase:
    """A kernel seen from a batch of cells; `rng` draws directions and points.

    `reference` is k in ball arithmetic, `targets` are the points and `centers` the cells' centres,
    fixed features included, as balls; `shape` is (B, N).
    """

    kernel: Kernel
    points: np.ndarray
    frame: Frame
    cells: Cells
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.reference = reference_of(self.kernel.name, self.kernel.config())
        self.geometry = ScaledCells.in_frame(self.cells, self.frame)
        self.node = self.kernel.node(self.points, self.frame)
        self.batch = self.node.at(self.geometry)
        self.targets = [exact(z) for z in self.points]
        self.centers = [exact(x) for x in self.cells.points_full(self.cells.center)]
        self.shape = len(self.cells), len(self.points)

    def host(self, values: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
        """Numbers of the node on the host, broadcast to (B, N); a NaN fails."""
        array = np.asarray(to_numpy(values), dtype=np.float64)
        assert not np.any(np.isnan(array)), "NaN"
        return np.broadcast_to(array, self.shape if shape is None else shape)

    def place(self, values: np.ndarray) -> Array:
        """Host numbers on the case's backend."""
        return self.frame.backend.asarray(values)

    def inside(self, b: int, most: int = 3) -> np.ndarray:
        """Points of cell b and of the region: centre, corners, random ones, training points."""
        near = self.points[:, self.frame.free]
        points = cell_points(self.cells, b, self.rng, near)
        return points if len(points) <= most else points[self.rng.permutation(len(points))[:most]]

    def directions(self, count: int) -> list[np.ndarray]:
        """Random directions in frame coordinates (f,), each with its opposite."""
        f = len(self.frame.free)
        drawn = [self.rng.normal(size=f) for _ in range(count)]
        return [s * d for d in drawn for s in (1.0, -1.0)]

    def raw(self, direction: Sequence[Any]) -> list[Any]:
        """A direction of frame coordinates as balls in the user's units, all features."""
        step = [flint().arb(0)] * self.points.shape[1]
        for j, unit, entry in zip(self.frame.free, exact(self.frame.unit), direction, strict=True):
            step[j] = unit * entry
        return step

    def derivatives(
        self, x: Sequence[Any], step: Sequence[Any], z: Sequence[Any], order: int
    ) -> list[Any]:
        """`D_step^n k(x, z)`, n = 0, ..., order; one-sided where k is not smooth."""
        with series_length(order + 3):
            tau = flint().arb_series([0, 1])
            at = [a + s * tau for a, s in zip(x, step, strict=True)]
            series = coefficients(self.reference(at, z), order + 1)
        return [math.factorial(n) * c for n, c in enumerate(series)]


def node_case(
    kernel: Kernel, units: np.ndarray, seed: int, backend: Backend, huge: float = 1e6
) -> NodeCase:
    """Random points and cells, in typical units: degenerate, tiny, huge, far, on points."""
    rng = np.random.default_rng(seed)
    d = len(units)
    points = units * (rng.normal(size=(4, d)) + rng.choice([0.0, 0.0, min(50.0, huge), huge]))
    points[-1] += units * min(1e3, huge) * rng.choice([0.0, 0.0, 1.0, -1.0], d)  # may lie far away
    if rng.random() < 0.2:
        points[1] = points[0]
    at = points[0] + units * rng.normal(size=d) * rng.choice([0.0, 1.0])
    width = units * rng.choice([1e-9, 0.01, 0.3, 0.3, 2.0, huge])
    width = np.where(rng.random(d) < 0.25, 0.0, width)
    region: Region = Box(at - width, at + width)
    if rng.random() < 0.3:
        features = np.flatnonzero(width > 0)
        region = Ball(at, float(width[features].min(initial=huge)), norm=2, features=features)
    frame = Frame.of(region, kernel.typical_lengths(d), backend)
    ends = np.sort(region.sample(2, rng)[:, region.free], axis=0)
    alone = np.clip(at, region.lower, region.upper)[region.free]
    root = region.root()
    cells = Cells(
        region,
        backend.asarray(np.stack([to_numpy(root.lower)[0], ends[0], alone])),
        backend.asarray(np.stack([to_numpy(root.upper)[0], ends[1], alone])),
    )
    return NodeCase(kernel, points, frame, cells, rng)


def cell_points(
    cells: Cells, index: int, rng: np.random.Generator, extra: np.ndarray | None = None
) -> np.ndarray:
    """Points (n, d) of the region in one cell: centre, corners, random, and free `extra` (n, f)."""
    low, high = to_numpy(cells.lower)[index], to_numpy(cells.upper)[index]
    center = to_numpy(cells.center)[index]
    f = len(low)
    corners = np.where(rng.random((3, f)) < 0.5, low, high)
    inside = low + rng.random((2, f)) * (high - low)
    near = center + rng.uniform(-1.0, 1.0, (2, f)) * 1e-3 * (high - low)
    rows = [center[None], corners, inside, near, *([] if extra is None else [extra])]
    points = cells.points_full(np.clip(np.concatenate(rows), low, high))
    region = cells.region
    if region.norm_constraint is not None:  # corners lie outside a ball: go to its sphere instead
        drawn = region.project(points)
        moved = drawn[:, region.free]
        points = np.concatenate([points, drawn[np.all((moved >= low) & (moved <= high), axis=1)]])
    return points[np.asarray(region.contains(points))]
