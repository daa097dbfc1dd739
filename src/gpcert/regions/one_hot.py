"""Groups of one-hot columns: exactly one column of each group is 1, the others are 0; or all are 0
for a category whose column was dropped.

A cell holds a set of categories of each group, those whose columns may be 1 in it. Over them linear
functions and weighted squared distances are bounded category by category, which is exact up to
rounding: the box around the points of k categories has 2^k corners, k of which are points.

Proofs: docs/mathematics.md, statement 13.15.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.arrays import (
    Array,
    Index,
    Inputs,
    PerCell,
    PerCellAndFeature,
    PerVector,
    Rows,
    Vectors,
    namespace,
)
from gpcert.numerics.rounding import gamma, up
from gpcert.regions.base import Halves, Region
from gpcert.regions.cells import Cells
from gpcert.regions.polytope import Polytope
from gpcert.regions.within import Within, first_point


@dataclass(frozen=True, eq=False)
class OneHotGroups:
    """Groups of columns, by their numbers among those of the arrays that the methods take."""

    columns: tuple[np.ndarray, ...]
    dropped: tuple[bool, ...]
    """Whether all columns of a group may be 0: one of its categories has none."""

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def every(self) -> Annotated[np.ndarray, "i"]:
        """The columns of all groups."""
        return np.concatenate([np.empty(0, dtype=int), *self.columns])

    def among(self, features: Annotated[np.ndarray, "f"]) -> OneHotGroups:
        """The same groups by their numbers among some features; columns that are not among them are
        left out, and so are groups that have none there."""
        place = {int(j): k for k, j in enumerate(features)}
        groups = [[place[int(j)] for j in group if int(j) in place] for group in self.columns]
        left = [pair for pair in zip(groups, self.dropped, strict=True) if pair[0]]
        return OneHotGroups(tuple(np.array(g) for g, _ in left), tuple(each for _, each in left))

    def __iter__(self) -> Iterator[tuple[np.ndarray, bool]]:
        """Columns of every group, and whether all may be 0."""
        return zip(self.columns, self.dropped, strict=True)

    # ---- points

    def holds(self, points: Inputs) -> Annotated[np.ndarray, "n"]:
        """Whether each point (n, d) has exactly one 1, and else 0, in every group; or none."""
        inside = np.ones(len(points), dtype=bool)
        for group, dropped in self:
            x = points[:, group]
            ones = np.sum(x, axis=1)
            inside &= np.all((x == 0.0) | (x == 1.0), axis=1)
            inside &= (ones == 1.0) | (dropped & (ones == 0.0))
        return inside

    def settled(self, points: Inputs, upper: Annotated[np.ndarray, "d"]) -> Inputs:
        """Points (n, d) at the category, of those that `upper` allows, with the largest entry; at
        the one without a column, if there is one, where no entry is above 1/2."""
        points, rows = points.copy(), np.arange(len(points))
        for group, dropped in self:
            score = np.where(upper[group] >= 1.0, points[:, group], -np.inf)
            best = np.argmax(score, axis=1)
            points[:, group] = 0.0
            points[rows, group[best]] = np.where(dropped & (score[rows, best] <= 0.5), 0.0, 1.0)
        return points

    def least(self, x: Inputs, g: Inputs, upper: Annotated[np.ndarray, "d"]) -> Inputs:
        """Points x (n, d) with the categories of least g (n, d); where all have the same, that of x
        stays."""
        x = x.copy()
        for group, dropped in self:
            slope = np.where(upper[group] >= 1.0, g[:, group], np.inf)
            if dropped:  # whose slope is 0
                least = np.minimum(slope.min(axis=1), 0.0)[:, None]
                moves = np.any(slope != 0.0, axis=1)[:, None]
                x[:, group] = np.where(moves, (slope == least) & (least < 0.0), x[:, group])
                continue
            moves = slope.min(axis=1) < np.max(np.where(np.isinf(slope), -np.inf, slope), axis=1)
            x[:, group] = np.where(moves[:, None], -slope, x[:, group])
        return self.settled(x, upper)

    def sampled(self, points: Inputs, rng: np.random.Generator) -> Inputs:
        """Points (n, d) with random entries in the groups' columns."""
        points = points.copy()
        points[:, self.every] = rng.random((len(points), len(self.every)))
        return points

    # ---- cells

    def allowed(
        self, lower: PerCellAndFeature, upper: PerCellAndFeature, group: Index
    ) -> Annotated[Array, "B k"]:
        """Which categories of a group have their point in [lower, upper] (B, f)."""
        xp = namespace(lower)
        low, high = lower[:, group], upper[:, group]
        possible = (low <= 1.0) & (high >= 1.0)
        others = (low <= 0.0) & (high >= 0.0)
        missed = xp.sum(xp.astype(~others, lower.dtype), axis=1)[:, None]
        return possible & (missed - xp.astype(~others, lower.dtype) == 0.0)

    def without(
        self, lower: PerCellAndFeature, upper: PerCellAndFeature, group: Index, dropped: bool
    ) -> PerCell:
        """Whether the category without a column, if the group has one, has its point in
        [lower, upper] (B, f)."""
        xp = namespace(lower)
        zero = xp.all((lower[:, group] <= 0.0) & (upper[:, group] >= 0.0), axis=1)
        return zero & dropped

    def contract(
        self, lower: PerCellAndFeature, upper: PerCellAndFeature
    ) -> tuple[PerCellAndFeature, PerCellAndFeature, PerCell]:
        """Ends (B, f) of the boxes around the categories in [lower, upper], and which hold none."""
        xp = namespace(lower)
        lower, upper = 1.0 * lower, 1.0 * upper
        empty = xp.zeros_like(xp.sum(lower, axis=-1)) > 0
        for group, dropped in self:
            may = xp.astype(self.allowed(lower, upper, group), lower.dtype)
            zero = self.without(lower, upper, group, dropped)
            count = xp.sum(may, axis=1) + xp.astype(zero, lower.dtype)
            none = count == 0.0
            only = (count == 1.0)[:, None]
            lower[:, group] = xp.where(none[:, None], lower[:, group], xp.where(only, may, 0 * may))
            upper[:, group] = xp.where(none[:, None], upper[:, group], may)
            empty = empty | none
        return lower, upper, empty

    def centers(self, cells: Cells, centers: PerCellAndFeature) -> PerCellAndFeature:
        """Centres (B, f) with the mean of the categories in the groups' columns."""
        xp, centers = namespace(centers), 1.0 * centers
        for group, dropped in self:
            may = xp.astype(self.allowed(cells.lower, cells.upper, group), centers.dtype)
            zero = self.without(cells.lower, cells.upper, group, dropped)
            count = (xp.sum(may, axis=1) + xp.astype(zero, centers.dtype))[:, None]
            mean = may / xp.maximum(count, xp.ones_like(count))
            centers[:, group] = xp.where(count > 0.0, mean, centers[:, group])
        return centers

    def linear_minimum(self, cells: Cells, g: Vectors) -> tuple[PerVector, Vectors]:
        """A lower bound of the groups' part of `g.(x - c)` over the points of each cell, and g with
        zeros there, g (B, f) or (B, m, f).

        Statement 13.15: the least `g_a - g.c` of the categories a in the cell; the error counts the
        roundings of the products and of their sum. At least the bound of the box.
        """
        xp = namespace(g)
        many, g = g.ndim == 3, (g if g.ndim == 3 else g[:, None, :])
        total, rest = xp.zeros_like(g[..., 0]), 1.0 * g
        for group, dropped in self:
            slopes, c = g[..., group], cells.center[:, None, group]
            may = self.allowed(cells.lower, cells.upper, group)[:, None, :]
            zero = self.without(cells.lower, cells.upper, group, dropped)[:, None]
            along = xp.sum(slopes * c, axis=-1)
            least = xp.min(xp.where(may, slopes, xp.full_like(slopes, xp.inf)), axis=-1)
            least = xp.where(zero & (least > 0.0), 0.0 * along, least) - along
            size = xp.max(xp.abs(slopes), axis=-1) + xp.sum(xp.abs(slopes) * c, axis=-1)
            n = len(group)
            exact = least - up(gamma(n + 4) * size, n + 4)
            box = -up(xp.sum(xp.abs(slopes) * cells.half[:, None, group], axis=-1), n + 1)
            # no category at all: any bound is one, that of the box is finite
            exact = xp.where(xp.isfinite(exact), exact, box)
            total = total + xp.maximum(exact, box)
            rest[..., group] = 0.0
        lost = up(gamma(len(self) + 1) * xp.abs(total), 2)
        total = xp.where(total == 0.0, total, total - lost)
        return (total, rest) if many else (total[:, 0], rest[:, 0])

    def squared_norm_maximum(self, cells: Cells, weights: Array, unit: Array | None) -> PerCell:
        """An upper bound (B,) of the groups' part of `sum_j weights_j ((x_j - c_j) / unit_j)^2`.

        Statement 13.15: `sum_j w_j c_j^2 + max over a of w_a ((1 - c_a)^2 - c_a^2)`, each number
        over its unit; all terms are sums of numbers >= 0 before the one subtraction, whose rounding
        is counted by the size of what is subtracted from. At most the bound of the box.
        """
        xp = namespace(cells.center)
        scale = weights if unit is None else weights / unit / unit
        total = xp.zeros_like(cells.center[:, 0])
        for group, dropped in self:
            c, w, n = cells.center[:, group], scale[group], len(group)
            may = self.allowed(cells.lower, cells.upper, group)
            zero = self.without(cells.lower, cells.upper, group, dropped)
            near, far = w * c * c, w * (1.0 - c) * (1.0 - c)
            whole = xp.sum(near, axis=1)[:, None]
            each = (whole - near) + far + gamma(n + 8) * (whole + near + far)
            most = xp.max(xp.where(may, each, 0.0 * each), axis=1)
            alone = whole[:, 0] * (1.0 + gamma(n + 8))
            most = xp.where(zero & (alone > most), alone, most)
            box = up(xp.sum(w * cells.half[:, group] ** 2, axis=1), n + 6)
            known = (xp.any(may, axis=1) | zero) & ~xp.isnan(most)
            total = total + xp.where(known, xp.minimum(up(most, n + 8), box), box)
        return up(total, len(self) + 1)

    # ---- halves

    def divided(
        self, low: Rows, high: Rows, axis: Annotated[np.ndarray, "n"], halves: Halves
    ) -> Halves:
        """Of boxes [low, high] (n, f) that are divided along a group's column: half of the group's
        categories in either part, whose other columns are 0. The one without a column lies in
        both; beside a single other one it is a part of its own."""
        first, second, last = halves[0], halves[1], 1.0 * high
        for group, dropped in self:
            rows = np.flatnonzero(np.isin(axis, group))
            may = self.allowed(low[rows], high[rows], group)
            order = np.cumsum(may, axis=1)
            early = may & (order <= (order[:, -1:] + 1) // 2)
            block = np.ix_(rows, group)
            first[block] = np.where(early, high[block], np.minimum(high[block], 0.0))
            last[block] = np.where(may & ~early, high[block], np.minimum(high[block], 0.0))
            second[block] = low[block]
            one = dropped & (np.sum(may, axis=1) == 1)
            alone = np.ix_(rows[one], group)
            first[alone], last[alone] = np.minimum(high[alone], 0.0), high[alone]
            second[alone] = np.where(may[one], high[alone], low[alone])
        return first, second, last


def read_groups(groups: Any, d: int, dropped: Any = False) -> OneHotGroups:
    """Groups as given: lists of at least two distinct columns each, no column in two; of one at
    least where a category has none."""
    if isinstance(groups, str | bytes) or not isinstance(groups, Sequence | np.ndarray):
        raise InputError(f"groups: expected a list of lists of columns, got {groups!r}")
    each = [dropped] * len(groups) if isinstance(dropped, bool) else dropped
    flags = isinstance(each, Sequence | np.ndarray) and all(
        isinstance(flag, bool | np.bool_) for flag in each
    )
    if not flags or len(each) != len(groups):
        raise InputError(
            f"dropped: expected True, False or one of them for each of {len(groups)} groups, got "
            f"{dropped!r}"
        )
    read, seen = [], set()
    for group, none in zip(groups, each, strict=True):
        least, wanted = (1, "one") if none else (2, "two")
        try:
            columns = [int(j) for j in group if not isinstance(j, bool)]
            whole = len(columns) >= least and columns == list(group)
        except (TypeError, ValueError):
            columns, whole = [], False
        if not whole or min(columns) < 0 or max(columns) >= d:
            raise InputError(
                f"groups: expected lists of {wanted} or more columns in 0..{d - 1}, got {group!r}"
            )
        if len(set(columns)) < len(columns) or seen & set(columns):
            raise InputError(f"groups: expected every column once, got {group!r}")
        seen |= set(columns)
        read.append(np.array(sorted(columns)))
    return OneHotGroups(tuple(read), tuple(bool(flag) for flag in each))


@dataclass(frozen=True, eq=False, init=False)
class OneHot(Within):
    """The points of a region whose columns in each of some groups have exactly one 1, and else 0:
    categories as one-hot columns.

    Cells hold sets of categories, which are halved; what a bound over a cell says holds for all its
    categories and, where it rests on the box around them, for what lies between them too. Every
    attained value is at a point with one category of each group.

    Args:
        region: any other region, a `Discrete` one too; bounds of 0 exclude a category.
        groups: lists of columns, e.g. `[[0, 1, 2], [3, 4]]`.
        dropped: True, or one of True and False for every group, where a category has no column and
            all columns are 0 for it, as by `OneHotEncoder(drop="first")`.

    >>> from gpcert.regions import Box
    >>> mixed = OneHot(Box([0, 0, 0, 5.0], [1, 1, 1, 6.0]), [[0, 1, 2]])
    >>> mixed.contains([[0, 1, 0, 5.5], [0, 1, 1, 5.5], [0, 0.5, 0.5, 5.5]]).tolist()
    [True, False, False]
    >>> mixed.project([0.2, 0.9, 0.4, 7.0]).tolist()
    [0.0, 1.0, 0.0, 6.0]
    """

    kind = "one_hot"

    groups: OneHotGroups

    def __init__(self, region: Region, groups: Any, dropped: Any = False) -> None:
        if not isinstance(region, Region) or isinstance(region, OneHot):
            raise InputError(
                f"region: expected a region without groups of its own, got {region!r}; list all "
                "groups in one OneHot"
            )
        read = read_groups(groups, region.dim, dropped)
        self._set(region=region, groups=read, names=region.names)
        lower, upper, empty = read.contract(region.lower[None], region.upper[None])
        if bool(empty[0]):
            raise InputError(
                "the region is empty: the bounds exclude every category of a group; expected "
                "columns between 0 and 1, one of which may be 1 in each group"
            )
        self._set(lower=lower[0], upper=upper[0])
        self._set(center=read.settled(region.center[None], self.upper)[0])
        self._set(center=first_point(self, "with one category of each group"))

    @classmethod
    def from_record(cls, **fields: Any) -> OneHot:
        groups = [[int(j) for j in group] for group in fields["groups"]]
        dropped = fields.get("dropped", [0] * len(groups))
        return cls(fields["region"], groups, [bool(each) for each in dropped])

    def describe(self) -> dict[str, Any]:
        """`{"kind": "one_hot", "region", "groups"}`, and "dropped" where a category has no
        column."""
        groups = [group.tolist() for group in self.groups.columns]
        whole = {"kind": self.kind, "region": self.region.describe(), "groups": groups}
        dropped = [int(each) for each in self.groups.dropped]
        return whole | ({"dropped": dropped} if any(dropped) else {})

    def summary(self) -> str:
        count = len(self.groups)
        return f"{self.region.summary()}, {count} one-hot group{'' if count == 1 else 's'}"

    def renamed(self, names: Sequence[str]) -> OneHot:
        """The same region with the features in this order; see `Polytope.renamed`."""
        if self.names in (None, tuple(names)):
            return self
        place = [list(names).index(name) for name in self.names]
        groups = [[place[j] for j in group] for group in self.groups.columns]
        return OneHot(self.region.renamed(names), groups, self.groups.dropped)

    @property
    def bounds_cells(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return True

    # ---- points

    def contains(self, X: Any) -> Annotated[Array, "..."]:
        """Whether each row of X (n, d), or the point X (d,), is proved to lie in the region."""
        points, single = self._points(X)
        inside = np.asarray(self.region.contains(points)) & self.groups.holds(points)
        return inside[0] if single else inside

    def settled(self, X: Inputs) -> Inputs:
        """The categories with the largest entries, then the other features; what cannot be
        satisfied is the centre."""
        x = self.groups.settled(X, self.upper)
        near = self.groups.settled(np.asarray(self.region.project(x)), self.upper)
        if isinstance(self.region, Polytope):  # the categories stay, the others move
            movable = np.ones(self.dim)
            movable[self.groups.every] = 0.0
            restored = self.region.restored(x, movable)
            good = np.asarray(self.contains(restored))
            near = np.where(good[:, None], restored, near)
        held = np.asarray(self.contains(near))
        return np.where(held[:, None], near, self.center)

    def linear_minimizer(self, g: Any) -> Annotated[np.ndarray, "... d"]:
        """A point of the region near that of the other one, with the categories of least g."""
        rows, single = self._points(g, "g")
        x = np.asarray(self.region.linear_minimizer(rows))
        x = self.settled(self.groups.least(x, rows, self.upper))
        return x[0] if single else x

    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> Inputs:
        """Return n random points (n, d) of the region: those of the other one, at random
        categories."""
        rng = np.random.default_rng(random_state)
        return self.settled(self.groups.sampled(self.region.sample(n, rng), rng))

    # ---- cells

    @cached_property
    def free_groups(self) -> OneHotGroups:
        """The groups by the numbers of their free columns; the others are 0, or 1 of their own."""
        return self.groups.among(self.free)

    def contract(self, cells: Cells) -> tuple[Cells, PerCell]:
        """Cells shrunk to what the other region leaves of the boxes around their categories."""
        columns = self.columns_of(cells)
        lower, upper, empty = self.free_groups.contract(cells.lower, cells.upper)
        wide, none = self.region.contract(self.of_region(cells.with_ends(lower, upper)))
        xp, empty = namespace(lower), empty | none
        lower, upper, lost = self.free_groups.contract(
            wide.lower[:, columns], wide.upper[:, columns]
        )
        outside: Any = empty | lost
        row = outside[:, None]
        lower, upper = xp.where(row, cells.lower, lower), xp.where(row, cells.upper, upper)
        return cells.with_ends(lower, upper), outside

    def linear_minimum(self, cells: Cells, g: Vectors) -> PerVector:
        least, rest = self.free_groups.linear_minimum(cells, g)
        others = super().linear_minimum(cells, rest)
        apart = least + others - gamma(2) * (abs(least) + abs(others))
        return namespace(g).maximum(apart, super().linear_minimum(cells, g))

    def squared_norm_maximum(self, cells: Cells, weights: Array, unit: Array | None) -> PerCell:
        xp, rest = namespace(cells.lower), namespace(cells.lower).zeros_like(weights) + weights
        rest[self.free_groups.every] = 0.0
        groups = self.free_groups.squared_norm_maximum(cells, weights, unit)
        apart = up(groups + super().squared_norm_maximum(cells, rest, unit), 1)
        return xp.minimum(apart, super().squared_norm_maximum(cells, weights, unit))

    def cell_centers(self, cells: Cells) -> PerCellAndFeature:
        return self.free_groups.centers(cells, cells.middle)

    def cuts(self, middle: PerCellAndFeature) -> PerCellAndFeature:
        """As the other region says; a group's columns between 0 and 1."""
        whole = self.region.cuts(self.of_region(Cells(self, middle, middle)).lower)
        return whole[:, self.columns_of(Cells(self, middle, middle))]

    def halves(self, low: Rows, high: Rows, axis: Annotated[np.ndarray, "n"]) -> Halves:
        """Half of the categories in either part, or as the other region divides its cells."""
        halves = super().halves(low, high, axis)
        return self.free_groups.divided(low, high, axis, halves)
