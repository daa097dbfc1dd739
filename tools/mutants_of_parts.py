"""Mutants of likelihoods and regions."""

from __future__ import annotations

from mutant import Mutant

__all__ = ["OTHER_MUTANTS"]

ROUNDING = ("tests/search/test_search_rounding.py",)

OTHER_MUTANTS = (
    Mutant(
        "curvature-dropped",
        "likelihoods/smoothed_link.py",
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
        "likelihoods/segments.py",
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
        ROUNDING,
    ),
    Mutant(
        "dual-norm-exponent",
        "regions/intersection.py",
        "norm_upper(cells.raised(v), dual_exponent(cells.p))",
        "norm_upper(cells.raised(v), max(cells.p, dual_exponent(cells.p)))",
        "Hölder's inequality with the wrong exponent",
        ("tests/regions/test_regions_linear.py",),
    ),
    Mutant(
        "units-forgotten-in-the-dual-norm",
        "regions/intersection.py",
        "return up(namespace(v).abs(v) * self.unit, 1)",
        "return v",
        "a ball with a radius per feature is taken for one of radius 1",
        ("tests/regions/test_regions_linear.py",),
    ),
    Mutant(
        "units-not-squared",
        "regions/quadratic.py",
        "up(theta * cells.unit * cells.unit, 2)",
        "up(theta * cells.unit, 2)",
        "squared distances scale with the squares of the radii",
        ("tests/regions/test_regions_quadratic.py",),
    ),
    Mutant(
        "units-forgotten-in-contains",
        "regions/ball.py",
        "norm_upper(y / ball.unit, ball.p, 4)",
        "norm_upper(y / ball.unit.max(), ball.p, 4)",
        "points outside a ball with a radius per feature are called members",
        ("tests/regions/test_regions_membership.py",),
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
