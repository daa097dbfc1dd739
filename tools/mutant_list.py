"""The seeded mutants: one wrong line each, and the tests that must notice."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MUTANTS", "Mutant"]


@dataclass(frozen=True)
class Mutant:
    """Replace `old` (found exactly once in `file`, under src/gpcert) by `new`; run `tests`."""

    name: str
    file: str
    old: str
    new: str
    why: str
    tests: tuple[str, ...]


SHARP = ("tests/search/test_search_sharp.py",)
SYNTHETIC = ("tests/search/test_search_synthetic.py",)
FRONTIER = ("tests/search/test_search_frontier.py",)
RANGES = ("tests/search/test_search_posteriors.py",)
QUADRATIC = ("tests/enclosures/test_enclosure_quadratic.py",)
GOALS = ("tests/enclosures/test_enclosure_goals.py",)
JOINT = ("tests/enclosures/test_enclosure_joint.py",)
MEAN = ("tests/enclosures/test_enclosure_mean.py",)
VARIANCE = ("tests/enclosures/test_enclosure_variance.py",)
CERTIFY = ("tests/api/test_api_certify.py",)

SEARCH_MUTANTS = (
    Mutant(
        "split-one-child-twice",
        "regions/cells.py",
        "            xp.concat([self.lower, second], axis=0),\n"
        "            xp.concat([first, self.upper], axis=0),\n",
        "            xp.concat([self.lower, self.lower], axis=0),\n"
        "            xp.concat([first, first], axis=0),\n",
        "the upper half of every box is never looked at",
        SYNTHETIC,
    ),
    Mutant(
        "replace-drops-last-child",
        "search/frontier.py",
        "low, high, lower, axes = children\n",
        "low, high, lower, axes = (p[:-1] if len(p) > 1 else p for p in children)\n",
        "one child is lost in every batch",
        FRONTIER,
    ),
    Mutant(
        "keep-forgets-settled",
        "search/frontier.py",
        "self.settled = np.minimum(self.settled, self.lower[~mask].min(axis=0, initial=np.inf))",
        "self.settled = self.settled.copy()",
        "bounds of boxes that were set aside no longer count",
        FRONTIER,
    ),
    Mutant(
        "bounds-forget-settled",
        "search/frontier.py",
        "return np.minimum(self.settled, self.lower.min(axis=0, initial=np.inf))",
        "return self.lower.min(axis=0, initial=np.inf)",
        "the lower bound is that of the live boxes only",
        FRONTIER,
    ),
    Mutant(
        "lower-from-incumbents-box",
        "search/branch_and_bound.py",
        "        lower = self.frontier.bounds()\n        goals = tuple(\n",
        "        at = self.incumbents.points[0][self.problem.region.free]\n"
        "        low, high = self.frontier.corners_low, self.frontier.corners_high\n"
        "        holds = np.all((low <= at) & (at <= high), axis=1)\n"
        "        own = self.frontier.lower[holds].max(axis=0, initial=-np.inf)\n"
        "        lower = own if holds.any() else self.frontier.bounds()\n"
        "        goals = tuple(\n",
        "the bound of the box of the best point is returned, not the least of all",
        SYNTHETIC,
    ),
    Mutant(
        "children-not-clipped",
        "search/branch_and_bound.py",
        "lower[:, g] = np.maximum(lower[:, g], values)",
        "lower[:, g] = values",
        "a child's looser bound replaces its parent's",
        SYNTHETIC,
    ),
    Mutant(
        "root-unknown-is-infinite",
        "search/branch_and_bound.py",
        "        self.frontier.settled[:] = -np.inf\n",
        "        self.frontier.settled[:] = np.inf\n",
        "an interrupt before the root leaves a lower bound of infinity",
        SYNTHETIC,
    ),
    Mutant(
        "nan-check-removed",
        "search/branch_and_bound.py",
        "if np.isnan(values).any():",
        "if False:",
        "NaN bounds are not named where they arise",
        SYNTHETIC,
    ),
    Mutant(
        "nan-becomes-settled",
        "search/branch_and_bound.py",
        "                if np.isnan(values).any():\n",
        "                values = np.where(np.isnan(values), np.inf, values)\n"
        "                if np.isnan(values).any():\n",
        "a NaN bound counts as proved",
        SYNTHETIC,
    ),
    Mutant(
        "crossed-check-removed",
        "search/branch_and_bound.py",
        "np.isnan(upper).any() or np.any(lower > upper):",
        "np.isnan(upper).any():",
        "a lower bound above an attained value is returned",
        SYNTHETIC,
    ),
    Mutant(
        "open-comparison-flipped",
        "search/branch_and_bound.py",
        "return (lower <= target) & ~refuted",
        "return (lower >= target) & ~refuted",
        "the boxes that are already proved are split instead of the others",
        SYNTHETIC,
    ),
    Mutant(
        "tolerance-doubled",
        "search/branch_and_bound.py",
        "np.all(gaps <= self.problem.tol)",
        "np.all(gaps <= 2 * self.problem.tol)",
        "CONVERGED is said too early",
        SYNTHETIC,
    ),
    Mutant(
        "stale-incumbent",
        "search/incumbents.py",
        "if values[best] < self.values[g]:",
        "if values[best] < np.inf:",
        "a worse point replaces a better one",
        FRONTIER,
    ),
    Mutant(
        "incumbent-outside",
        "search/incumbents.py",
        "points = points[np.asarray(self.region.contains(points))]",
        "points = np.asarray(points)",
        "points outside the region are taken as attained",
        FRONTIER,
    ),
    Mutant(
        "incumbent-centre-outside",
        "search/incumbents.py",
        "self._take(g, np.where(inside, values, np.inf), points)",
        "self._take(g, values, points)",
        "centres of cells outside a ball are taken as attained",
        FRONTIER,
    ),
    Mutant(
        "verdict-flipped",
        "api/certify.py",
        "    if goal.lower > target:\n",
        "    if goal.upper > target:\n",
        "ROBUST where only the attained value is above the threshold",
        ("tests/search/test_search_hidden.py::test_hidden_counter_examples_are_found",),
    ),
    Mutant(
        "radius-takes-unknown",
        "api/radius.py",
        "            if certificate.status is Status.ROBUST:\n                low = self.lower",
        "            if certificate.status is not Status.NOT_ROBUST:\n"
        "                low = self.lower",
        "a radius that was not decided counts as proved",
        ("tests/api/test_api_radius.py", "-k", "hidden_from_every_attack"),
    ),
    Mutant(
        "class-weights-swapped",
        "api/rules.py",
        "threshold = first / (first + second)",
        "threshold = second / (first + second)",
        "the costs of the two mistakes are exchanged",
        (*CERTIFY, "-k", "class_weights"),
    ),
    Mutant(
        "regression-sign-lost",
        "api/rules.py",
        "return Rule(MeanGoal(0, sign), sign * level, None",
        "return Rule(MeanGoal(0, sign), level, None",
        "the level of a regression is compared with the wrong sign",
        (*CERTIFY, "-k", "regression_threshold"),
    ),
)

ENCLOSURE_MUTANTS = (
    Mutant(
        "mean-gradient-sign",
        "enclosures/mean.py",
        "LocalQuadratic(value, gradient, hessian, lower_error, rate)",
        "LocalQuadratic(value, -gradient, hessian, lower_error, rate)",
        "a dropped sign in the mean's lower model",
        MEAN,
    ),
    Mutant(
        "mean-upper-hessian-sign",
        "enclosures/mean.py",
        "LocalQuadratic(-value, -gradient, -hessian,",
        "LocalQuadratic(-value, -gradient, hessian,",
        "a dropped sign in the mean's upper model",
        MEAN,
    ),
    Mutant(
        "mean-tail-halved",
        "enclosures/mean.py",
        "        local.tail(2, geometry.rho2),\n",
        "        0.5 * local.tail(2, geometry.rho2),\n",
        "half the remainder of the mean",
        SHARP,
    ),
    Mutant(
        "mean-tail-order",
        "enclosures/mean.py",
        "        local.tail(2, geometry.rho2),\n",
        "        local.tail(3, geometry.rho2),\n",
        "the tail begins one order late",
        SHARP,
    ),
    Mutant(
        "higher-tail-order",
        "enclosures/mean.py",
        "local.tail(higher.order, geometry.rho2)",
        "local.tail(higher.order + 1, geometry.rho2)",
        "the tail beyond the known degrees begins one order late",
        SHARP,
    ),
    Mutant(
        "higher-size-halved",
        "enclosures/mean.py",
        "finer = up(higher.size +",
        "finer = up(0.5 * higher.size +",
        "half of the known cubic terms",
        SHARP,
    ),
    Mutant(
        "mean-rounding-dropped",
        "enclosures/mean.py",
        "rounding = up(errors[:, 0] + errors[:, 1] * rho + errors[:, 2] * geometry.rho2, 8)",
        "rounding = 0.0 * rho",
        "the rounding of the moments is not counted",
        ("tests/enclosures/test_enclosure_mean.py", "tests/enclosures/test_enclosure_goals.py"),
    ),
    Mutant(
        "pointwise-halved",
        "kernels/local_squared_exponential.py",
        "cubic = Y**3 / 6.0",
        "cubic = Y**3 / 12.0",
        "half the pointwise remainder",
        SHARP,
    ),
    Mutant(
        "zeroth-remainder-halved",
        "kernels/local_squared_exponential.py",
        "xp.sqrt(-2.0 * self.variance * xp.expm1(-0.5 * up(rho2, 2)))",
        "xp.sqrt(-0.5 * self.variance * xp.expm1(-0.5 * up(rho2, 2)))",
        "half the order-0 remainder",
        SHARP,
    ),
    Mutant(
        "tail-one-term-late",
        "kernels/local_squared_exponential.py",
        "series = small ** (n + 1) / math.factorial(n + 1) * inner",
        "series = small ** (n + 2) / math.factorial(n + 2) * inner",
        "the series of the tail begins one term late",
        SHARP,
    ),
    Mutant(
        "slice-norm-too-small",
        "kernels/local_squared_exponential.py",
        "scaled_weights = t * half\n",
        "scaled_weights = t * half * half\n",
        "the norm on a slice is too small",
        ("tests/enclosures/test_enclosure_norms.py",),
    ),
    Mutant(
        "rkhs-norm-halved",
        "posterior.py",
        "bounds[c] = np.sqrt(",
        "bounds[c] = 0.5 * np.sqrt(",
        "half the norm of the mean",
        SHARP,
    ),
    Mutant(
        "variance-gradient-sign",
        "enclosures/variance.py",
        "            value, 2.0 * gradient,",
        "            value, -2.0 * gradient,",
        "a dropped sign in the variance's lower model",
        VARIANCE,
    ),
    Mutant(
        "variance-square-sign",
        "enclosures/variance.py",
        "-2.0 * (hessian + square.above)",
        "-2.0 * (hessian - square.above)",
        "the square enters the upper model with the wrong sign",
        VARIANCE,
    ),
    Mutant(
        "variance-tail-halved",
        "enclosures/variance.py",
        "remainder = 2.0 * tail_bound(",
        "remainder = tail_bound(",
        "half the remainder of the covariance with the centre",
        SHARP,
    ),
    Mutant(
        "square-tail-halved",
        "enclosures/square.py",
        "R = up((1.0 + excess) * local.tail(1, geometry.rho2), 4)",
        "R = up(0.5 * (1.0 + excess) * local.tail(1, geometry.rho2), 4)",
        "half the remainder of the square",
        SHARP,
    ),
    Mutant(
        "square-young-dropped",
        "enclosures/square.py",
        "        (1.0 + eta)[:, None, None] * G,\n",
        "        G,\n",
        "Young's inequality without its price",
        SHARP,
    ),
    Mutant(
        "excess-forgotten",
        "enclosures/square.py",
        "return Square(-up(excess * above, 2) if excess else 0.0 * above, zero, above, zero)",
        "return Square(0.0 * above, zero, above, zero)",
        "the square is taken as nonnegative although P is not",
        SHARP,
    ),
    Mutant(
        "excess-factor-dropped",
        "enclosures/variance.py",
        "whole = max(1.0, excess) * (nonnegative(value + error0) + 2.0 * excess * s2)",
        "whole = nonnegative(value + error0)",
        "Cauchy-Schwarz for P as if it were positive",
        SHARP,
    ),
    Mutant(
        "chord-is-rate",
        "enclosures/local_quadratic.py",
        "                growth_chord(self.rate, geometry.rho2),\n",
        "                xp.full_like(level, self.rate),\n",
        "the weight is bounded by its tangent, which lies below",
        QUADRATIC,
    ),
    Mutant(
        "level-not-shrunk",
        "enclosures/local_quadratic.py",
        "margin = xp.where(margin > 0, shrunk, margin)",
        "margin = xp.where(margin > 0, margin, margin)",
        "a positive margin is not divided by the weight",
        QUADRATIC,
    ),
    Mutant(
        "level-rounding-dropped",
        "enclosures/local_quadratic.py",
        "        margin = margin - gamma(8) * size\n",
        "        margin = margin + gamma(8) * size\n",
        "the rounding of the margin is counted on the wrong side",
        (*QUADRATIC, *MEAN, *GOALS),
    ),
    Mutant(
        "mccormick-sign",
        "enclosures/quadratic_minimum.py",
        "_parabola_minimum(facing - negative, curvature, 2.0 * w)",
        "_parabola_minimum(facing + negative, curvature, 2.0 * w)",
        "the bilinear terms help instead of hurting",
        QUADRATIC,
    ),
    Mutant(
        "mccormick-half-width",
        "enclosures/quadratic_minimum.py",
        "_parabola_minimum(facing - negative, curvature, 2.0 * w)",
        "_parabola_minimum(facing - negative, curvature, w)",
        "only half of the box is looked at from the vertex",
        QUADRATIC,
    ),
    Mutant(
        "centre-relaxation-halved",
        "enclosures/quadratic_minimum.py",
        "xp.sum(separable, axis=1) - 0.5 * (magnitude - own)",
        "xp.sum(separable, axis=1) - 0.25 * (magnitude - own)",
        "half of the off-diagonal terms",
        QUADRATIC,
    ),
    Mutant(
        "joint-sides-swapped",
        "enclosures/joint.py",
        "value = xp.where(positive, above.value, below.value)",
        "value = xp.where(positive, below.value, above.value)",
        "the variance enters with the wrong side",
        JOINT,
    ),
    Mutant(
        "joint-weight-sign",
        "enclosures/joint.py",
        "shift = xp.where(positive, v_low * _fall(mean.rate, geometry.rho2), -lost)",
        "shift = xp.where(positive, v_low * _fall(mean.rate, geometry.rho2), lost)",
        "the change of weight is credited where it is a debt",
        JOINT,
    ),
    Mutant(
        "ceiling-is-a-floor",
        "enclosures/goals/mean.py",
        "q = -self.sign * enclosure.center - enclosure.center_error",
        "q = -self.sign * enclosure.center + 2.0 * enclosure.center_error",
        "an attained value is rounded down",
        GOALS,
    ),
    Mutant(
        "noise-sign",
        "enclosures/goals/probability.py",
        "alpha = down(alpha - up(beta * noise, 1), 2)",
        "alpha = down(alpha + up(beta * noise, 1), 2)",
        "the noise moves the line the wrong way",
        GOALS,
    ),
    Mutant(
        "deviation-errors-dropped",
        "enclosures/goals/deviation.py",
        "above = up(up(-sides[1].lower - value, 2) + self.errors[c], 1)",
        "above = up(-sides[1].lower - value, 2)",
        "the error of the reference is not counted",
        GOALS,
    ),
    Mutant(
        "deviation-one-sided",
        "enclosures/goals/deviation.py",
        "spreads.append(nonnegative(xp.where(wide, above, below)))",
        "spreads.append(nonnegative(above))",
        "only upward deviations count",
        GOALS,
    ),
)

OTHER_MUTANTS = (
    Mutant(
        "curvature-dropped",
        "likelihoods/smoothed.py",
        "pieces = down(xp.minimum(first, second) - up(loss))",
        "pieces = down(xp.minimum(first, second))",
        "the minimum of a bent piece is taken at its ends",
        ("tests/likelihoods",),
    ),
    Mutant(
        "probit-interior-dropped",
        "likelihoods/probit.py",
        "z = xp.where(inside, xp.minimum(ends, down(2.0 * roots, 3)), ends)",
        "z = ends",
        "the interior minimum along a line is overlooked",
        ("tests/likelihoods/test_probit.py",),
    ),
    Mutant(
        "monotone-variance-swapped",
        "likelihoods/lines.py",
        "xp.where(m > 0.0, v_high, v_low)",
        "xp.where(m > 0.0, v_low, v_high)",
        "the monotone bound takes the wrong variance",
        ("tests/likelihoods",),
    ),
    Mutant(
        "region-rounded-inwards",
        "regions/ball.py",
        '"lower": np.maximum(add_down(x0, -reach), low),',
        '"lower": np.maximum(add_up(x0, -reach), low),',
        "points of a ball lie outside its bounding box",
        ("tests/regions/test_regions_membership.py",),
    ),
    Mutant(
        "dual-norm-exponent",
        "regions/intersection.py",
        "norm_upper(v, dual_exponent(cells.p))",
        "norm_upper(v, max(cells.p, dual_exponent(cells.p)))",
        "Hölder's inequality with the wrong exponent",
        ("tests/regions/test_regions_linear.py",),
    ),
    Mutant(
        "cell-dropped-too-early",
        "regions/cells.py",
        "return norm_lower(gap, ball.p, 2) > ball.radius",
        "return norm_lower(gap, ball.p, 2) > 0.9 * ball.radius",
        "cells that meet the ball are dropped as empty",
        ("tests/regions/test_regions_cells.py",),
    ),
    Mutant(
        "half-width-rounded",
        "regions/cells.py",
        "wide = xp.maximum(self.upper - self.center, self.center - self.lower)",
        "wide = 0.5 * (self.upper - self.lower)",
        "the centre is not always in the middle",
        ("tests/regions/test_regions_cells.py", "tests/regions/test_regions_linear.py"),
    ),
    Mutant(
        "squared-norm-box",
        "regions/quadratic.py",
        "    return up(xp.sum(weights * half * half, axis=-1), f + 3)",
        "    return up(0.5 * xp.sum(weights * half * half, axis=-1), f + 3)",
        "half the radius of a box",
        ("tests/regions/test_regions_quadratic.py",),
    ),
)

MUTANTS = SEARCH_MUTANTS + ENCLOSURE_MUTANTS + OTHER_MUTANTS
