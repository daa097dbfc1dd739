"""A box of the region in ball arithmetic: its centre, its half-widths, and how far a weighted
distance from the centre can reach in it."""

from __future__ import annotations

from flint import arb, arb_mat

from gpcert_check.balls import dot, largest, root, square, total
from gpcert_check.region import Region
from gpcert_check.tree import middle


class Frame:
    """What all boxes of a certificate share: the region, and the linear features z = W x + b.

    `slopes` (q, f) are the columns of W of the features that may move, `fixed` (q,) is z where
    those are 0.
    """

    def __init__(
        self, region: Region, matrix: list[list[float]] | None, shift: list[float] | None
    ) -> None:
        self.region, self.free = region, region.free
        self.plain = matrix is None
        d = region.dim
        if matrix is None:
            matrix = [[float(i == j) for j in range(d)] for i in range(d)]
        shift = [0.0] * len(matrix) if shift is None else shift
        self.slopes = arb_mat([[arb(row[j]) for j in self.free] for row in matrix])
        still = [j for j in range(d) if j not in set(self.free)]
        self.fixed = [
            total(arb(row[j]) * arb(region.center[j]) for j in still) + arb(b)
            for row, b in zip(matrix, shift, strict=True)
        ]

    def features(self, x: list[float]) -> list[arb]:
        """z of a point, by its free features."""
        moved = self.slopes * arb_mat(len(x), 1, [arb(v) for v in x])
        return [b + v for b, v in zip(self.fixed, moved.entries(), strict=True)]


class Cell:
    """The box `|x_j - center_j| <= widths_j` in the free features."""

    def __init__(self, frame: Frame, low: list[float], high: list[float]) -> None:
        self.frame, self.low, self.high = frame, low, high
        self.center = [middle(a, b) for a, b in zip(low, high, strict=True)]
        self.widths = [
            (arb(b) - arb(c)).max(arb(c) - arb(a))
            for a, b, c in zip(low, high, self.center, strict=True)
        ]
        self.z = frame.features(self.center)
        if frame.plain:
            place = dict(zip(frame.free, self.widths, strict=True))
            self.spans = [place.get(j, arb(0)) for j in range(frame.region.dim)]
        else:
            rows = frame.slopes.tolist()
            self.spans = [dot(map(abs, row), self.widths) for row in rows]
        """How far each linear feature can be from its value at the centre."""

    def reach(self, weights: list[arb], dims: list[int]) -> arb:
        """Upper bound of `(sum_j weights_j (z_j(x) - z_j(center))^2)^(1/2)` over the cell."""
        reach = root(dot(weights, (square(self.spans[j]) for j in dims)))
        region = self.frame.region
        if region.round and self.frame.plain:
            # |x - c| <= |x - b| + |b - c|, b the ball's centre; p <= 2, so |x - b|_w <= max r w
            apart, most = arb(0), arb(0)
            for w, j in zip(weights, dims, strict=True):
                if j in self.frame.free:
                    center = self.center[self.frame.free.index(j)]
                    apart += w * square(arb(center) - arb(region.center[j]))
                    most = most.max(root(w) * arb(region.radii[j]))
            reach = reach.min(root(apart) + most)
        return reach

    def linear_minimum(self, slopes: list[arb]) -> arb:
        """Lower bound of `slopes . (x - center)` over the cell."""
        least = -dot(map(abs, slopes), self.widths)
        region = self.frame.region
        if region.round:
            # over the ball: minus the dual norm of the slopes, from the ball's own centre
            shift, sizes = arb(0), []
            for s, c, j in zip(slopes, self.center, self.frame.free, strict=True):
                shift += s * (arb(region.center[j]) - arb(c))
                sizes.append(abs(s) * arb(region.radii[j]))
            dual = largest(sizes) if region.p == 1.0 else root(dot(sizes, sizes))
            least = least.max(shift - dual)
        return least
