"""Regions in which some features take whole numbers, or a few ordered values, only.

Proofs: docs/mathematics.md, statement 13.13.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.arrays import (
    Array,
    Inputs,
    PerCell,
    PerCellAndFeature,
    finite_array,
    namespace,
)
from gpcert.regions.base import PULLS, Region
from gpcert.regions.cells import Cells
from gpcert.regions.polytope import Polytope
from gpcert.regions.shapes import check_features
from gpcert.regions.within import Within, first_point

ROUNDS = 2
"""How often cells are contracted: what values leave may be excluded by the other region."""

STEPS = 64
"""Steps to a neighbouring value that `Discrete.project` takes to satisfy linear constraints."""


@dataclass(frozen=True, eq=False, init=False)
class Discrete(Within):
    """The points of a region whose coordinates in some features are whole numbers, or one of a few
    values.

    Cells shrink to the values inside them, and are cut between values; every attained value is at a
    point with such coordinates. Between the values the model is bounded as if they were there, so a
    proof holds for them too; the search goes on until cells hold one value.

    Args:
        region: any other region; its bounds need not be values.
        integers: the features (numbers or a mask) that are whole numbers.
        values: `{feature: values}`, for features with a few ordered values.

    >>> from gpcert.regions import Box
    >>> counts = Discrete(Box([0.0, 0.0], [2.5, 1.0]), integers=[0])
    >>> counts.upper.tolist(), counts.contains([[1.0, 0.3], [1.5, 0.3]]).tolist()
    ([2.0, 1.0], [True, False])
    >>> Discrete(Box([0.0], [9.0]), values={0: [1, 5, 20]}).project([3.5]).tolist()
    [5.0]
    """

    kind = "discrete"

    integers: np.ndarray
    values: Mapping[int, np.ndarray]

    def __init__(
        self, region: Region, integers: Any = (), values: Mapping[int, Any] | None = None
    ) -> None:
        if not isinstance(region, Region) or isinstance(region, Within):
            raise InputError(f"region: expected a region that is not discrete, got {region!r}")
        whole = check_features(integers, region.dim)
        levels = _check_values(values or {}, whole, region.dim)
        if not len(whole) and not levels:
            raise InputError("integers, values: expected a feature in one of them, got none")
        self._set(region=region, integers=whole, values=levels, names=region.names)
        lower, upper = _inwards(self._levels, region.lower[None], region.upper[None])
        crossed = np.flatnonzero(lower[0] > upper[0])
        if len(crossed):
            j = int(crossed[0])
            raise InputError(
                f"the region is empty: feature {j} has no value between {region.lower[j]} and "
                f"{region.upper[j]}"
            )
        self._set(lower=lower[0], upper=upper[0])
        self._set(center=self._rounded(region.center[None].copy())[0])
        self._set(center=first_point(self, "with the values asked for"))

    @classmethod
    def from_record(cls, **fields: Any) -> Discrete:
        values = {int(j): each for j, each in fields["values"]}
        return cls(fields["region"], fields["integers"], values)

    def describe(self) -> dict[str, Any]:
        """`{"kind": "discrete", "region", "integers", "values"}`; values as pairs."""
        return {
            "kind": self.kind,
            "region": self.region.describe(),
            "integers": self.integers.tolist(),
            "values": [[j, each.tolist()] for j, each in self.values.items()],
        }

    def summary(self) -> str:
        count = len(self.integers)
        told = [f"{count} integer"] if count else []
        told += [f"{len(self.values)} with ordered values"] if self.values else []
        return f"{self.region.summary()}, {' and '.join(told)}"

    def renamed(self, names: Sequence[str]) -> Discrete:
        """The same region with the features in this order; see `Polytope.renamed`."""
        if not isinstance(self.region, Polytope) or self.names in (None, tuple(names)):
            return self
        place = [list(names).index(name) for name in self.region.names or ()]
        values = {place[j]: each for j, each in self.values.items()}
        whole = [place[j] for j in self.integers]
        return Discrete(self.region.renamed(names), whole, values)

    def values_of(self, feature: int) -> Annotated[np.ndarray, "k"] | None:
        values = self.values.get(feature)
        if values is None or self.lower[feature] == self.upper[feature]:
            return super().values_of(feature)
        return values[(values >= self.lower[feature]) & (values <= self.upper[feature])]

    # ---- points

    @cached_property
    def _levels(self) -> dict[int, np.ndarray | None]:
        """The discrete features: their values, or None for all whole numbers."""
        return {**dict.fromkeys(self.integers.tolist()), **self.values}

    def contains(self, X: Any) -> Annotated[Array, "..."]:
        """Whether each row of X (n, d), or the point X (d,), is proved to lie in the region."""
        points, single = self._points(X)
        inside = np.array(self.region.contains(points), dtype=bool)
        for j, values in self._levels.items():
            x = points[:, j]
            inside &= x == np.rint(x) if values is None else np.isin(x, values)
        return inside[0] if single else inside

    def settled(self, X: Inputs) -> Inputs:
        """The nearest values, then whatever else is in the way; what cannot be satisfied is drawn
        to the centre."""
        movable = np.ones(self.dim)
        movable[list(self._levels)] = 0.0
        x = self._rounded(np.asarray(self.region.project(X)))
        if isinstance(self.region, Polytope):
            x = self._walked(x, self.region, movable)
        points, left = x.copy(), np.flatnonzero(~np.asarray(self.contains(x)))
        for part in (*PULLS[1:], 0.0):
            if len(left) == 0:
                break
            for every in (False, True):  # the other features first, so that the values stay
                drawn = self.center + part * (x[left] - self.center)
                moved = self._rounded(drawn) if every else np.where(movable, drawn, x[left])
                held = np.asarray(self.contains(moved))
                points[left[held]] = moved[held]
                left = left[~held]
        points[left] = self.center
        return points

    def _walked(self, x: Inputs, region: Polytope, movable: np.ndarray) -> Inputs:
        """Points x (n, d) moved to neighbouring values while that lessens how far they miss linear
        constraints; then the other features."""
        constraints = region.constraints
        size = np.maximum(np.abs(region.A) @ (region.upper - region.lower), 1e-300)

        def missed(points: np.ndarray) -> np.ndarray:
            return np.sum(np.abs(constraints.violations(points)) / size, axis=-1)

        x = constraints.repaired(x, self.lower, self.upper, movable)
        left = np.flatnonzero(~np.asarray(self.contains(x)))
        for _ in range(STEPS):
            if len(left) == 0:
                break
            tries = [x[left]]
            for j in self._levels:
                for side in (-1, 1):
                    tried = x[left].copy()
                    tried[:, j] = self._neighbour(j, tried[:, j], side)
                    tries.append(constraints.repaired(tried, self.lower, self.upper, movable))
            costs = np.stack([missed(each) for each in tries])
            best = np.argmin(costs, axis=0)
            rows = np.arange(len(left))
            better = costs[best, rows] < costs[0]
            x[left] = np.where(better[:, None], np.stack(tries)[best, rows], x[left])
            left = left[better & ~np.asarray(self.contains(x[left]))]
        return x

    def _neighbour(self, j: int, x: np.ndarray, side: int) -> np.ndarray:
        """The next value of feature j above (1) or below (-1)."""
        values = self._levels[j]
        if values is None:
            moved = x + side
        else:
            place = np.searchsorted(values, x, side="right" if side > 0 else "left")
            moved = values[np.clip(place if side > 0 else place - 1, 0, len(values) - 1)]
        return np.clip(moved, self.lower[j], self.upper[j])

    def _rounded(self, X: Inputs) -> Inputs:
        """X (n, d) at the nearest values inside the bounds."""
        X = np.clip(X, self.lower, self.upper)
        for j, values in self._levels.items():
            if values is None:
                X[:, j] = np.clip(np.rint(X[:, j]), self.lower[j], self.upper[j])
            else:
                inside = values[(values >= self.lower[j]) & (values <= self.upper[j])]
                X[:, j] = inside[np.argmin(np.abs(X[:, j, None] - inside), axis=1)]
        return X

    def linear_minimizer(self, g: Any) -> Annotated[np.ndarray, "... d"]:
        """A point of the region near that of the region without values."""
        rows, single = self._points(g, "g")
        x = self.settled(np.asarray(self.region.linear_minimizer(rows)))
        return x[0] if single else x

    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> Inputs:
        """Return n random points (n, d) of the region: those of the other one, at values."""
        return self.settled(self.region.sample(n, random_state))

    # ---- cells: the other region's, whose free features may be more

    def contract(self, cells: Cells) -> tuple[Cells, PerCell]:
        """Cells shrunk to the values inside them; those that hold none are empty.

        Statement 13.13: no float is lost by a ceiling, a floor or a look-up.
        """
        xp = namespace(cells.lower)
        columns, inner = self.columns_of(cells), cells
        empty = xp.zeros_like(xp.sum(cells.lower, axis=-1)) > 0
        for _ in range(ROUNDS):
            wide, none = self.region.contract(self.of_region(inner))
            ends = wide.lower[:, columns], wide.upper[:, columns]
            lower, upper = _inwards(self._free_levels, *ends)
            empty = empty | none | xp.any(lower > upper, axis=-1)
            lower = xp.where(empty[:, None], cells.lower, lower)
            upper = xp.where(empty[:, None], cells.upper, upper)
            inner = cells.with_ends(lower, upper)
        return inner, empty | self.region.contract(self.of_region(inner))[1]

    def cuts(self, middle: PerCellAndFeature) -> PerCellAndFeature:
        """Halfway between whole numbers, and between values."""
        xp = namespace(middle)
        columns = []
        for place, values in enumerate(self._free_levels.get(k) for k in range(len(self.free))):
            x = middle[:, place]
            if place not in self._free_levels:
                columns.append(x)
            elif values is None:
                columns.append(xp.floor(x) + 0.5)
            else:
                grid = _placed(0.5 * values[1:] + 0.5 * values[:-1], middle)
                near = xp.argmin(xp.abs(x[:, None] - grid[None, :]), axis=1)
                columns.append(grid[near])
        return xp.stack(columns, axis=1) if columns else middle

    @cached_property
    def _free_levels(self) -> dict[int, np.ndarray | None]:
        """The discrete features by their numbers among the free ones."""
        place = {int(j): k for k, j in enumerate(self.free)}
        return {place[j]: values for j, values in self._levels.items() if j in place}


def _check_values(values: Any, integers: np.ndarray, d: int) -> dict[int, np.ndarray]:
    """Distinct values by feature, in order."""
    if not isinstance(values, Mapping):
        raise InputError(f"values: expected {{feature: values}}, got {values!r}")
    features = check_features(list(values), d).tolist()
    both = set(features) & set(integers.tolist())
    if both:
        raise InputError(f"values: feature {min(both)} is among integers= too; name it in one")
    checked = {}
    for j in features:
        levels = np.unique(finite_array(f"values of feature {j}", values[j], 1))
        if len(levels) == 0:
            raise InputError(f"values of feature {j}: expected at least one, got none")
        levels.setflags(write=False)
        checked[int(j)] = levels
    return checked


def _inwards(
    levels: Mapping[int, np.ndarray | None], lower: Array, upper: Array
) -> tuple[Array, Array]:
    """The least and greatest values inside [lower, upper] (B, f) of the features with values; they
    cross where there is none."""
    xp = namespace(lower)
    lows = [lower[:, k] for k in range(lower.shape[1])]
    highs = [upper[:, k] for k in range(upper.shape[1])]
    for k, values in levels.items():
        if values is None:
            lows[k], highs[k] = xp.ceil(lows[k]), xp.floor(highs[k])
            continue
        grid = _placed(values, lower)
        # 1.0 times: searched columns must lie together in memory
        first = xp.searchsorted(grid, 1.0 * lows[k])
        last = xp.searchsorted(grid, 1.0 * highs[k], side="right") - 1
        most = len(values) - 1
        none = (first > most) | (last < 0)
        one = xp.ones_like(lows[k])
        lows[k] = xp.where(none, one, grid[xp.clip(first, 0, most)])
        highs[k] = xp.where(none, 0.0 * one, grid[xp.clip(last, 0, most)])
    if not lows:
        return lower, upper
    return xp.stack(lows, axis=1), xp.stack(highs, axis=1)


def _placed(host: np.ndarray, like: Array) -> Array:
    if isinstance(like, np.ndarray):
        return host
    return namespace(like).asarray(np.array(host), device=like.device)
