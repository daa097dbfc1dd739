"""A goal: a quantity whose minimum over a region is asked for, and how it is bounded; bounds of a
quantity G(q, v) of a latent mean and variance, over cells and at their centres.

What bounds other kinds of quantities over cells and at their centres registers itself here, one
interpreter a file; attacks have their own (`attacks.functions`), and so has the paper.

Proofs: docs/mathematics.md, statements 2.1, 7.1 and 7.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import NamedTuple, Protocol

import numpy as np
from array_api_compat import device

from gpcert.attacks.functions import PlainFunction, plain_function
from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.inner_search import Level, stays_above
from gpcert.enclosures.lower_model import QuadraticLowerModel
from gpcert.enclosures.mean import MeanEnclosure, Units, unit_slope
from gpcert.enclosures.polynomials import Minimum
from gpcert.enclosures.variance import VarianceEnclosure
from gpcert.kernels.expansions.base import finite_product
from gpcert.likelihoods.base import LARGEST_SEGMENT
from gpcert.model.committee import Model
from gpcert.model.unit_form import UnitForm
from gpcert.numerics.arrays import Array, Index, Inputs, PerCell, PerCellAndFeature, namespace
from gpcert.numerics.rounding import TINY, down, gamma, given, nonnegative, up
from gpcert.quantities import OutputQuantity, Quantity
from gpcert.regions.scaled import ScaledCells


@dataclass(frozen=True, eq=False)
class GoalBound:
    """For each cell: `lower` <= goal on the cell; `point`, a displacement from the centre (user's
    units) where the goal may be small; `scores`, what halving each axis would gain."""

    lower: PerCell
    point: PerCellAndFeature
    scores: PerCellAndFeature

    @staticmethod
    def of(geometry: ScaledCells, least: Minimum, units: Units | None = None) -> GoalBound:
        """From a minimum in a geometry's displacements, to an output's units."""
        lower = least.lower if units is None else units.below(least.lower)
        return GoalBound(lower, geometry.unscaled(least.point), geometry.split_scores())


@singledispatch
def lower_bound(quantity: Quantity, evaluation: Evaluation, target: float | None) -> GoalBound:
    """Certified lower bound of a quantity over each cell, best near `target` where one is given."""
    raise NotImplementedError(f"no bound over cells is known for {type(quantity).__name__}")


@singledispatch
def upper_at_center(quantity: Quantity, evaluation: Evaluation) -> PerCell:
    """Certified upper bound of a quantity at each cell's centre point."""
    raise NotImplementedError(f"no value at points is known for {type(quantity).__name__}")


class CellMethod(Protocol):
    """Another method that bounds quantities over cells."""

    def most_cells(self, quantity: Quantity, model: Model, f: int) -> int:
        """How many boxes of f free features a search should split at a time."""
        ...

    def bound(
        self, quantity: Quantity, evaluation: Evaluation
    ) -> tuple[PerCell, PerCellAndFeature, PerCellAndFeature]:
        """What a `GoalBound` consists of."""
        ...


@dataclass(frozen=True, eq=False)
class QuantityGoal:
    """A quantity to minimise, bounded over cells by Taylor enclosures, by the paper's intervals
    (with `paper` and without `taylor`), or by both: the larger bound holds, points and splits are
    Taylor's. `paper` is a `gpcert.paper.method.PaperMethod`."""

    quantity: Quantity
    paper: CellMethod | None = None
    taylor: bool = True
    paper_pays: Callable[[int, Sequence[UnitForm]], bool] | None = None
    """Whether the paper's intervals pay beside the Taylor enclosures, for a number of free features
    and the members of a model; None where they are taken whatever they cost."""

    @property
    def needs_variance(self) -> bool:
        """Whether the quantity depends on it."""
        return self.quantity.by_variance

    @property
    def known(self) -> tuple[float, float]:
        """Bounds of the goal that hold for every x whatever the model: a search that ends before
        its first box still knows them."""
        return self.quantity.known

    def most_cells(self, model: Model, f: int) -> int | None:
        """How many boxes of f free features a search should split at a time: few where the paper's
        method bounds variances, as budgets are looked at between batches; None leaves it open."""
        if self.paper is None or not self.needs_variance:
            return None
        if not self._takes_paper(f, [part.unit for part in model.members]):
            return None
        return self.paper.most_cells(self.quantity, model, f)

    @np.errstate(over="ignore", invalid="ignore")  # huge models: bounds become trivial
    def bound(self, evaluation: Evaluation, target: float | None) -> GoalBound:
        """Certified lower bound over each cell, the better of what was asked for."""
        taylor = lower_bound(self.quantity, evaluation, target) if self.taylor else None
        if self.paper is None:
            assert taylor is not None, "bounded by neither method"
            return taylor
        units = [part.unit for part in evaluation.members]
        sliced = evaluation.cells.choice is not None  # of which the paper's intervals know nothing
        if taylor and (sliced or not self._takes_paper(evaluation.cells.lower.shape[1], units)):
            return taylor
        paper = GoalBound(*self.paper.bound(self.quantity, evaluation))
        if taylor is None:
            return paper
        return replace(taylor, lower=namespace(taylor.lower).maximum(taylor.lower, paper.lower))

    def _takes_paper(self, f: int, units: Sequence[UnitForm]) -> bool:
        return self.paper_pays is None or self.paper_pays(f, units)

    @np.errstate(over="ignore", invalid="ignore")
    def ceiling(self, evaluation: Evaluation) -> PerCell:
        """Certified upper bound at each cell's centre point, which owes nothing to a method."""
        return upper_at_center(self.quantity, evaluation)

    def function(self, model: Model) -> PlainFunction:
        """The goal and its gradient in plain floating point, for local search."""
        return plain_function(model, self.quantity)

    def plain_values(self, model: Model, X: Inputs) -> list[float | None]:
        """The goal at points (n, d), for pictures, never for verdicts; None where plain floating
        point has no finite value."""
        with np.errstate(all="ignore"):  # extreme models overflow; bounds do not rest on this
            values = self.function(model)(X)[0].tolist()
        return [value if math.isfinite(value) else None for value in values]


Goal = QuantityGoal
"""What a search minimises."""


def chosen(bounds: Sequence[GoalBound], number: PerCell) -> GoalBound:
    """For each cell the bound with that number (B,)."""
    xp = namespace(number)
    rows = xp.arange(len(number), device=number.device)
    parts = zip(*((bound.lower, bound.point, bound.scores) for bound in bounds), strict=True)
    return GoalBound(*(xp.stack(part, axis=1)[rows, number] for part in parts))


def worst_of(bounds: Sequence[GoalBound]) -> GoalBound:
    """The bound of the minimum of several goals; point and scores are those of the least one."""
    xp = namespace(bounds[0].lower)
    lower = xp.stack([bound.lower for bound in bounds], axis=1)
    return chosen(bounds, xp.argmin(lower, axis=1))


RELEVANT_SHARE = 0.5
"""Part of the slack that must come from the variance for its expensive bound to be worth it."""

LARGEST_SLOPE = 2.0**600
"""Slopes between mean and variance in unit form are cut here: their products stay floats."""

TRIAL = 4
"""Cells on which a bound that gained nothing when last tried is tried again."""

FEW_FEATURES = 3
"""Up to here further lines are always tried: their quadratics cost little beside the kernel."""


def least_mean(
    evaluation: Evaluation,
    output: int,
    sign: int,
    target: float | None = None,
    enough: float | None = None,
) -> GoalBound:
    """`sign mu >= lower`: the best of the orders 2, 1 and 0 and the paper's bound of q = sign g.

    Order 1: `q >= q(c) + min grad.d - B R1(rho2)`; order 0: `q >= q(c) - B R0(rho2)` and
    `q >= -B s`; all Cauchy-Schwarz. They matter on large cells only, where the second order's
    weight has grown: below, it dominates order 1 term by term. A trend is added to lines and
    quadratics before their minimum is taken, and to what is constant by its own.
    """
    key = ("least mean", output, sign, target, enough)
    return evaluation.once(key, lambda: _least_mean(evaluation, output, sign, target, enough))


def _least_mean(
    evaluation: Evaluation, output: int, sign: int, target: float | None, enough: float | None
) -> GoalBound:
    mean, local, expansion = evaluation.mean(output), evaluation.local, evaluation.expansion
    geometry, kernel, norm = expansion.geometry, local.kernel, local.norm(output)
    model, units = mean.side(sign), mean.units.signed(sign)
    xp = namespace(mean.center)
    level = None if target is None else xp.zeros_like(model.value) + units.level(target)
    best = model.minimum(level)
    reach = finite_product(xp.full_like(geometry.rho2, norm), kernel.remainder(expansion, 0))
    rounding = gamma(8) * (xp.abs(model.value) + mean.center_error + reach)
    zeroth = down(model.value - mean.center_error - reach - rounding, 2)
    linear, size = geometry.least(model.gradient), model.slopes + xp.abs(model.value)
    first = down(model.value + linear - mean.linear_error - gamma(8) * size, 4)
    q = -up(norm * xp.sqrt(kernel.largest_variance(expansion)), 4)
    if mean.trend is not None:
        zeroth, q = (down(each + mean.trend.least(sign), 1) for each in (zeroth, q))
    for other in (zeroth, first, best.lower):
        q = xp.where(other > q, other, q)  # an overflow to NaN on huge cells loses
    level = xp.zeros_like(q) + (math.inf if enough is None else units.safe_level(enough))
    if bool(xp.any(q < level)) and evaluation.wants("paper"):
        q = _with_lines(evaluation, output, sign, q, q < level)
    if enough is not None:
        q = _refined(evaluation, f"inner {output} {sign}", model, q, level)
    return GoalBound.of(geometry, Minimum(q, best.point), units)


def _with_lines(evaluation: Evaluation, output: int, sign: int, q: Array, asked: Array) -> Array:
    """Bounds q (B,), raised where the paper's are better. Where those gained nothing before they
    are tried on some of the cells where that is asked."""
    xp, local = namespace(q), evaluation.local
    if len(q) > 2 * TRIAL and not evaluation.gained("paper") and not local.one_batch:
        index = xp.nonzero(asked)[0]
        index = index[:: -(-len(index) // TRIAL)]
        few = local.lines_mean(local.expand(evaluation.cells.take(index)), output, sign)
        if few is None or not bool(xp.any(few > q[index])):
            evaluation.report("paper", False)
            return q
    lines = local.lines_mean(evaluation.expansion, output, sign)
    evaluation.report("paper", lines is not None and bool(xp.any(lines > q)))
    return q if lines is None else xp.where(lines > q, lines, q)


def _refined(
    evaluation: Evaluation, name: str, model: QuadraticLowerModel, q: Array, level: Array
) -> Array:
    """Bounds q (B,), raised to the level where sub-boxes prove that (Statement 5.9)."""
    xp = namespace(q)
    asked = (q < level) & xp.isfinite(model.error)
    if not bool(xp.any(asked)) or not evaluation.optional:
        return q
    if not evaluation.gained(name):
        short = xp.where(asked, level - q, xp.full_like(q, math.inf))
        nearest = xp.argsort(short, stable=True)[:TRIAL]
        trial = xp.zeros_like(asked)
        trial[nearest] = asked[nearest]
        if not bool(xp.any(stays_above(model, level, trial))):
            evaluation.report(name, False)
            return q
    proved = stays_above(model, level, asked)
    evaluation.report(name, bool(xp.any(proved)))
    return xp.where(proved, level, q)


@lower_bound.register(OutputQuantity)
def output_bound(
    quantity: OutputQuantity, evaluation: Evaluation, target: float | None
) -> GoalBound:
    """By the mean alone, by the range of the variance alone, or by both jointly."""
    enough = evaluation.enough
    evaluation, c = evaluation.output(quantity.output)
    geometry = evaluation.expansion.geometry
    zero = namespace(geometry.rho2).zeros_like(geometry.rho2)
    if quantity.by_mean and quantity.by_variance:
        return _Joint(quantity, evaluation, c).bound(enough)
    if quantity.by_mean:
        mean = least_mean(evaluation, c, quantity.sign, target, enough)
        return replace(mean, lower=quantity.lowest(mean.lower, zero, zero, zero))
    variance = evaluation.variance(c)
    shape = variance.side(quantity.sign).minimum(steps=1)
    evaluation.report_derivatives(variance, relevant=True)
    low, high = variance.units.range(*variance.range)
    return GoalBound.of(geometry, Minimum(quantity.lowest(zero, zero, low, high), shape.point))


@upper_at_center.register(OutputQuantity)
def output_at_center(quantity: OutputQuantity, evaluation: Evaluation) -> PerCell:
    """G at the centre, on the other side of the rounding errors of mean and variance."""
    evaluation, c = evaluation.output(quantity.output)
    rho2 = evaluation.expansion.geometry.rho2
    q = v_low = v_high = namespace(rho2).zeros_like(rho2)
    if quantity.by_mean:
        low, high = evaluation.mean_at_center(c)
        q = high if quantity.sign > 0 else -low
    if quantity.by_variance:
        v_low, v_high = evaluation.variance(c).output_at_center
    most = evaluation.few
    if most is None or len(q) <= most or not quantity.by_variance:
        return quantity.highest(q, v_low, v_high)
    # certified where it is least in plain floating point
    xp = namespace(q)
    index = xp.argsort(quantity.value(q, v_high), stable=True)[:most]
    highest = xp.full_like(q, quantity.known[1])
    highest[index] = quantity.highest(q[index], v_low[index], v_high[index])
    return highest


class _Line(NamedTuple):
    """`model` of `sign g - slope v` in unit form, and from its bounds to those of the outputs."""

    model: QuadraticLowerModel
    best: Minimum
    units: Units
    cost: Array
    shift: Array

    def alpha(self, q: PerCell) -> PerCell:
        """`sign mu - beta (scale^2 max(v, 0) + noise) >= alpha` where the model's is at least q."""
        return down(self.units.below(down(q - self.cost, 2)) - self.shift, 2)

    def take(self, rows: Index) -> _Line:
        """That of some of the cells; the model stays whole."""
        units, cost, shift = self.units.take(rows), self.cost[rows], self.shift[rows]
        return self._replace(units=units, cost=cost, shift=shift)


class _Joint:
    """The paper's monotone bound and the threshold form, joined.

    Threshold form: for any beta, if `q - beta v >= alpha` on the cell then, as G does not decrease
    in q, `G(q, v) >= min_v G(alpha + beta v, v)` over the range of v (Statement 7.2); beta = 0 is
    the monotone bound, the slope of G's level curve best. Where v varies a lot so does that slope:
    it is taken at the vertex against the gradient and at two variances of the range. All lines hold
    at once, and the best one counts.
    """

    def __init__(self, quantity: OutputQuantity, evaluation: Evaluation, output: int) -> None:
        self.quantity, self.evaluation, self.output = quantity, evaluation, output
        self.mean: MeanEnclosure = evaluation.mean(output)
        self.variance: VarianceEnclosure = evaluation.variance(output)
        self.signed_mean = self.mean.side(quantity.sign)
        self.name = f"further slopes {output} {quantity.sign}"

    def bound(self, enough: float | None = None) -> GoalBound:
        """See the class."""
        evaluation, variance = self.evaluation, self.variance
        xp, geometry = namespace(evaluation.cells.lower), evaluation.expansion.geometry
        least = least_mean(evaluation, self.output, self.quantity.sign)
        v_ends = variance.units.range(*variance.range)
        beta = self._usable_slope(self._level_slope(self._steepest()))
        line = self._line(beta)
        alpha, best = line.alpha(line.best.lower), line.best
        # whether the variance's slack, or the mean's, keeps the bound apart
        slack = abs(unit_slope(self.mean.units, variance.units, beta)) * variance.spread
        relevant = bool(xp.any(slack > RELEVANT_SHARE * (slack + self.signed_mean.error)))
        evaluation.report_derivatives(variance, relevant)
        lines = [(least.lower, 0.0 * beta), (alpha, beta)]
        lines += self._further_lines(least.lower, best.point, v_ends)
        values = self._by_lines(lines, *v_ends)
        lower = xp.max(values, axis=1)
        if len(lines) > 2:
            gain = lower - xp.max(values[:, :2], axis=1)
            gained = bool(xp.any(gain > self.quantity.worthwhile(v_ends[1])))
            evaluation.report(self.name, gained)
        name = f"inner line {self.output} {self.quantity.sign}"
        if enough is not None and bool(xp.any(lower < enough)) and evaluation.wants(name):

            def with_line(q: Array, rows: Array) -> Array:
                by_line = [(line.take(rows).alpha(q), beta[rows])]
                bound = self._by_lines(by_line, *(end[rows] for end in v_ends))[:, 0]
                return xp.maximum(bound, lower[rows])

            # raised where sub-boxes prove the level from which they are enough
            raised = Level(with_line, line.model, best).reached(lower, enough)
            evaluation.report(name, bool(xp.any(raised > lower)))
            lower = raised
        # where G may be small is asked of the line that is better by itself
        joint = (values[:, 1] > values[:, 0])[:, None]
        point = xp.where(joint, geometry.unscaled(best.point), least.point)
        return GoalBound(lower, point, geometry.split_scores())

    def _line(self, beta: Array, near: Array | None = None, rows: Index | None = None) -> _Line:
        """The line of slope beta, on some of the cells.

        A displacement `near` the minimum, if known, gives a level that needs no second step.
        """
        units, variance = self.mean.units.signed(self.quantity.sign), self.variance.units
        mean = self.signed_mean
        if rows is not None:
            units, variance, mean = units.take(rows), variance.take(rows), mean.take(rows)
        beta = given(beta)
        slope = given(unit_slope(units, variance, beta))
        model = mean + self.variance.times(-slope, rows)
        level = None if near is None else model.value_at(near)
        # the rounding (and underflow) of the slope itself acts on a variance of at most gain s^2
        cost = up((abs(slope) * gamma(8) + TINY) * self.variance.largest, 4)
        shift = up(beta * variance.shift, 1)
        return _Line(model, model.minimum(level), units, cost, shift)

    def _further_lines(
        self, q_low: Array, near: Array, v_ends: tuple[Array, Array]
    ) -> list[tuple[Array, Array]]:
        """Lines with the slopes of G's level curves at the smallest q and the corners of v.

        Any slope would be valid; the range of v may hold slopes of very different size.
        """
        xp = namespace(q_low)
        wanted = self.evaluation.wants(self.name) or near.shape[1] <= FEW_FEATURES
        if not (self.evaluation.optional and wanted):
            return []
        q = xp.clip(q_low, -LARGEST_SEGMENT, LARGEST_SEGMENT)
        slopes = [self.quantity.level_slope(q, v) for v in self.quantity.corners(*v_ends)]
        slopes = [self._usable_slope(slope) for slope in slopes]
        count, B = len(slopes), len(q)
        # in one batch
        rows = xp.arange(count * B, device=device(q)) % B
        line = self._line(xp.concat(slopes, axis=0), near[rows], rows)
        alpha = xp.reshape(line.alpha(line.best.lower), (count, B))
        return [(alpha[k], slope) for k, slope in enumerate(slopes)]

    def _by_lines(self, lines: list[tuple[Array, Array]], v_low: Array, v_high: Array) -> Array:
        """(B, lines): bounds of G by each line on the range of v."""
        xp = namespace(v_low)
        alpha, beta = (xp.stack(part, axis=1) for part in zip(*lines, strict=True))
        spread = (alpha, beta, v_low[:, None], v_high[:, None])
        return self.quantity.lowest(*(xp.broadcast_to(each, alpha.shape) for each in spread))

    def _usable_slope(self, beta: Array) -> Array:
        """The slope, cut where it would leave float64 in unit form, and 0 where it is so small that
        it would be rounded as a subnormal number first; any slope is valid."""
        xp = namespace(beta)
        beta = xp.where(xp.abs(beta) < TINY, xp.zeros_like(beta), beta)
        ratio = self.mean.units.factor / self.variance.units.factor
        return xp.clip(beta, -LARGEST_SLOPE * ratio, LARGEST_SLOPE * ratio)

    def _steepest(self) -> Array:
        """The vertex of each cell that lies against the gradient of G at the centre."""
        mean, variance, half = self.mean, self.variance, self.signed_mean.geometry.half
        by_q, by_v = self.quantity.slopes(*self._latent(self.signed_mean.value, variance.center))
        slope = by_q[:, None] * mean.units.factor * self.signed_mean.gradient
        slope = slope + by_v[:, None] * variance.units.factor * variance.below.gradient
        return namespace(half).where(slope > 0, -half, half)

    def _level_slope(self, d: Array) -> Array:
        """Slope d q / d v of G's level curve at the displacement d; any value would be valid."""
        xp, (v_low, v_high) = namespace(d), self.variance.range
        shrink = xp.exp(-self.signed_mean.rate * xp.sum(d**2, axis=1))
        v = xp.minimum(xp.maximum(self.variance.below.at(d) * shrink**2, v_low), v_high)
        return self.quantity.level_slope(*self._latent(self.signed_mean.at(d) * shrink, v))

    def _latent(self, q: Array, v: Array) -> tuple[Array, Array]:
        """sign mu and the variance in output units, in plain floating point."""
        units = self.mean.units.signed(self.quantity.sign)
        return units.about(q), self.variance.units.about(nonnegative(v))
