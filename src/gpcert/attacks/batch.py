"""Attacks on many points at once: all methods, and the best of them.

All points and starts are one batch. `Neighbourhoods` projects onto regions up to rounding only; a
point that is reported must be projected with `Region.project`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from gpcert.attacks.decisions import Margins
from gpcert.attacks.functions import ValuesAndGradients
from gpcert.errors import InputError
from gpcert.numerics.arrays import whole_number
from gpcert.numerics.rounding import norm
from gpcert.regions import Ball, Region
from gpcert.regions.norm_ball import unit_minimizer
from gpcert.regions.shapes import into_ball
from gpcert.utils.option_names import AttackName
from gpcert.utils.processes import checkpoint

MAX_ROWS = 4096
"""Largest number of points times starts in one batch."""


@dataclass(frozen=True)
class Effort:
    """Cost of an attack: `restarts` random starts of projected gradient, `iterations` steps from
    each (and ten times as many proposals of random search)."""

    restarts: int = 3
    iterations: int = 40

    def __post_init__(self) -> None:
        whole_number("restarts", self.restarts)
        whole_number("iterations", self.iterations, 1)


@np.errstate(all="ignore")  # huge latent functions overflow
def attack_points(
    margins: Margins,
    places: Neighbourhoods,
    starts: np.ndarray,
    method: AttackName,
    effort: Effort,
    random_state: int | np.random.Generator | None,
) -> np.ndarray:
    """(n, d): for each start a point of its region with a small margin.

    `starts` are the points whose decisions are attacked, one per region. Methods: "gpfgs", one step
    along the gradient of the latent mean, even if the margin grows; "gpfgs_probability", along that
    of the prediction; "pgd", projected gradient from both, from the start and from random points;
    "square", random search; "best". The last three are never worse than the start.
    """
    names = get_args(AttackName)
    if method not in names:
        raise InputError(f"method: expected one of {', '.join(names)}, got {method!r}")
    rng, rows = np.random.default_rng(random_state), np.arange(len(starts))
    if method in {"gpfgs", "gpfgs_probability"}:
        return gradient_sign(margins, places, starts, latent=method == "gpfgs")
    ends = [starts]
    if method in {"pgd", "best"}:
        ends += [gradient_sign(margins, places, starts, latent=which) for which in (True, False)]
        ends += _descents(margins, places, ends, effort, rng)
    if method in {"square", "best"}:
        search = random_search(margins, places, iterations=10 * effort.iterations, rng=rng)
        ends.append(search)
        if method == "best":
            ends += _descents(margins, places, [search], Effort(0, effort.iterations), rng)
    best, value = starts, margins.value(False, starts, rows)
    for other in ends[1:]:
        best, value = margins.better(best, value, other, rows)
    return best


def _descents(
    margins: Margins,
    places: Neighbourhoods,
    starts: list[np.ndarray],
    effort: Effort,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """Descents of the latent and of the predicted margin, from several starts per point."""
    rows = np.arange(len(places))
    all_starts = [*starts, *(places.sample(rows, rng) for _ in range(effort.restarts))]
    count = max(1, MAX_ROWS // max(1, len(places)))
    descents = []
    for start in range(0, len(all_starts), count):
        group = all_starts[start : start + count]
        owners = np.tile(rows, len(group))
        for latent in (True, False):
            checkpoint()
            arguments = (margins, places, np.concatenate(group), owners)
            ends = projected_gradient(*arguments, iterations=effort.iterations, latent=latent)
            descents += np.split(ends, len(group))
    return descents


def gradient_sign(
    margins: Margins, places: Neighbourhoods, starts: np.ndarray, *, latent: bool = True
) -> np.ndarray:
    """GPFGS (Grosse, Pfaff, Smith and Backes, *How wrong am I?*, 2017), one step (n, d): from every
    start to the point of its region that minimises the margin's gradient.

    In an l_inf ball that is `x - radius sign(gradient)`, clipped to the domain, as in the paper; in
    other norms, the vertex or the point of the sphere opposite to the gradient. The deviation from
    the start itself has the gradient 0 there: then each mean is raised and lowered, and the worst
    point counts. `latent=False`: the gradient of the prediction.
    """
    rows = np.arange(len(starts))
    best, value = starts, np.full(len(starts), np.inf)
    for gradient in margins.first_gradients(starts, rows, latent=latent):
        corners = places.linear_minimizers(gradient, rows)
        reached = margins.value(latent, corners, rows)
        best = np.where((reached < value)[:, None], corners, best)
        value = np.where(reached < value, reached, value)
    return best


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """One region per point, all of one norm p: `lower <= x <= upper` and, for finite p,
    `||((x - center) / unit)_j||_p <= 1` over the features with a unit > 0; arrays (n, d).

    >>> both = Neighbourhoods.of([Ball([0.0, 0.0], 1.0, norm=2), Ball([5.0, 5.0], 2.0, norm=2)])
    >>> both.project(np.array([[3.0, 0.0], [5.0, 9.0]]), np.array([0, 1])).tolist()
    [[1.0, 0.0], [5.0, 7.0]]
    """

    center: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    unit: np.ndarray
    p: float
    values: tuple[tuple[int, np.ndarray], ...] = ()
    """Features that take few values, such as categories, and those that they take in any region."""

    @staticmethod
    def of(regions: Sequence[Region]) -> Neighbourhoods:
        """Stack regions; a box, or a ball of one free feature, has the norm infinity."""
        norms = {region.norm for region in regions if isinstance(region, Ball)}
        if len(norms) > 1:
            raise InputError(f"regions: expected balls of one norm, got {sorted(norms)}")
        p = norms.pop() if norms else math.inf
        if p < math.inf and not all(isinstance(region, Ball) for region in regions):
            raise InputError("regions: expected balls of one norm, or boxes; got both")
        center, low, high = (
            np.stack([getattr(region, name) for region in regions])
            for name in ("center", "inner_lower", "inner_upper")
        )
        units = [
            np.broadcast_to(r.radius if isinstance(r, Ball) else r.upper - r.lower, r.center.shape)
            for r in regions
        ]
        units = np.where(low < high, np.stack(units), 0.0)
        values = {}
        for j in {int(j) for region in regions if not region.is_box_or_ball for j in region.free}:
            each = [region.values_of(j) for region in regions]
            few = [some for some in each if some is not None]
            if len(few) == len(each):
                values[j] = np.unique(np.concatenate(few))
        return Neighbourhoods(center, low, high, units, p, tuple(values.items()))

    def __len__(self) -> int:
        return len(self.center)

    def project(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """X (k, d) clipped to the boxes of the rows (k,), then scaled towards their centres."""
        x = np.clip(X, self.lower[rows], self.upper[rows])
        for j, values in self.values:
            nearest = values[np.argmin(np.abs(x[:, j, None] - values), axis=1)]
            x[:, j] = np.clip(nearest, self.lower[rows, j], self.upper[rows, j])
        if self.p == math.inf:
            return x
        size = norm(self._scaled(x - self.center[rows], rows), self.p)
        shrink = 1.0 / np.maximum(size, 1.0)
        return self.center[rows] + (x - self.center[rows]) * shrink[:, None]

    def linear_minimizers(self, g: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(k, d) the minimizers of `g.x` in each row's region, up to rounding."""
        low, high, center = self.lower[rows], self.upper[rows], self.center[rows]
        # gradients up to a positive factor per row; NaN becomes 0
        g = np.nan_to_num(g)
        largest = np.max(np.abs(g), axis=1, keepdims=True)
        g = g / np.where(largest > 0, largest, 1.0)
        if self.p == math.inf:
            return self.project(np.where(g > 0, low, np.where(g < 0, high, center)), rows)
        unit = self.unit[rows]
        a, b = self._scaled(low - center, rows), self._scaled(high - center, rows)
        y = unit_minimizer(g * unit, a, b, self.p)
        return self.project(center + unit * y, rows)

    def sample(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A random point in each row's region; see `Ball.sample`."""
        low, high, center = self.lower[rows], self.upper[rows], self.center[rows]
        v = rng.uniform(-1.0, 1.0, center.shape)
        if self.p == math.inf:
            return self.project(low + 0.5 * (1.0 + v) * (high - low), rows)
        unit = self.unit[rows]
        powers = rng.gamma(1.0 + 1.0 / self.p, size=v.shape) * (unit > 0)
        y = into_ball(v, powers, rng.exponential(size=len(v)), self.p)
        return self.project(center + unit * y, rows)

    def _scaled(self, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """`y / unit`, 0 where a feature is fixed."""
        unit = self.unit[rows]
        return np.divide(y, unit, out=np.zeros_like(y), where=unit > 0)


FIRST_STEP = 0.25
"""Length of the first step, as a fraction of the region's width."""

GROWTH, SHRINK = 1.3, 0.5
"""Factors of a step's length after a success and after a failure."""

JUMPS = 3
"""Number of first steps to the minimizer of the linearised margin (Frank-Wolfe): with nearly linear
margins, and in l_1 balls, they reach the best vertex."""

SMALLEST_STEP = 1e-7
"""A row is finished when its step is below this fraction of the width."""


def projected_gradient(
    margins: Margins,
    places: Neighbourhoods,
    starts: np.ndarray,
    rows: np.ndarray,
    *,
    iterations: int,
    latent: bool,
) -> np.ndarray:
    """(k, d): descent of the margin from starts (k, d) in the regions of rows (k,).

    Steps along the gradient, in units of the region's widths, are projected and accepted only if
    the margin decreases: a row never gets worse. Each row has its own step length.
    """
    x = places.project(starts, rows)
    value, gradient = _finite(margins.value_and_gradient(latent, x, rows))
    width = places.upper[rows] - places.lower[rows]
    step, active = np.full(len(x), FIRST_STEP), np.arange(len(x))
    for t in range(iterations):
        checkpoint()
        size = np.linalg.norm(gradient[active] * width[active], axis=1)
        moving = (size > 0) & (step[active] > SMALLEST_STEP)
        active, size = active[moving], size[moving] / np.sqrt(x.shape[1])
        if not len(active):
            break
        if t < JUMPS:
            y = places.linear_minimizers(gradient[active], rows[active])
        else:  # `step` times the width, in the mean over the features
            along = gradient[active] * width[active] * width[active]
            y = places.project(x[active] - along * (step[active] / size)[:, None], rows[active])
        reached, slope = _finite(margins.value_and_gradient(latent, y, rows[active]))
        better = reached < value[active]
        won, lost = active[better], active[~better]
        x[won], value[won], gradient[won] = y[better], reached[better], slope[better]
        if t >= JUMPS:
            step[won] = np.minimum(step[won] * GROWTH, 1.0)
            step[lost] *= SHRINK
    return x


def _finite(pair: ValuesAndGradients) -> ValuesAndGradients:
    value, gradient = pair
    return np.where(np.isnan(value), np.inf, value), np.nan_to_num(gradient)


FIRST_PART = 0.8
"""Fraction of the features that the first proposals change; it is halved during the search."""

HALVINGS = 5
"""How often this fraction is halved in a search."""


def random_search(
    margins: Margins, places: Neighbourhoods, *, iterations: int, rng: np.random.Generator
) -> np.ndarray:
    """(n, d): points found by changing random features to the ends of their intervals, after the
    Square attack (Andriushchenko, Croce, Flammarion and Hein, *Square Attack*, 2020), for vectors
    of features instead of images.

    Every iteration draws, for each point, a set of features and an end for each. In a norm ball,
    the change is the largest one of these features alone, the other features are scaled towards the
    centre by a random factor, and the sum is projected. A proposal is accepted if the predicted
    margin decreases, or if it is equal and the latent one decreases (predictions saturate).
    """
    rows, (n, d) = np.arange(len(places)), places.center.shape
    x = _ends(places, rng.choice([-1.0, 1.0], (n, d)), np.ones((n, d), bool))
    x = places.project(x, rows)
    value = margins.value(False, x, rows)
    free = places.upper > places.lower
    for t in range(iterations):
        checkpoint()
        part = FIRST_PART * 0.5 ** (HALVINGS * t / iterations)
        chosen = free & (rng.random((n, d)) < part)
        none = ~chosen.any(axis=1)
        # at least one feature
        chosen[none, rng.integers(0, d, none.sum())] = True
        chosen &= free
        proposal = _ends(places, rng.choice([-1.0, 1.0], (n, d)), chosen)
        others = x
        if places.p < math.inf:
            others = places.center + (x - places.center) * rng.random((len(x), 1))
        y = places.project(np.where(chosen, proposal, others), rows)
        x, value = margins.better(x, value, y, rows)
    return x


def _ends(places: Neighbourhoods, signs: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The centres with the chosen features moved up or down, as far as the ball allows for all."""
    if places.p == math.inf:
        return np.where(signs > 0, places.upper, places.lower)
    count = np.maximum((chosen & (places.unit > 0)).sum(axis=1, keepdims=True), 1)
    return places.center + signs * places.unit * count ** (-1.0 / places.p)
