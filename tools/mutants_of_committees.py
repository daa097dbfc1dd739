"""Mutants of committees' goals, and of the planes and plain models under them."""

from __future__ import annotations

from mutant import Mutant

__all__ = ["COMMITTEE_MUTANTS"]

COMMITTEE = ("tests/enclosures/test_committee_goals.py",)
PLANE = ("tests/enclosures/test_probability_plane.py",)

COMMITTEE_MUTANTS = (
    Mutant(
        "rest-rival-weight",
        "enclosures/goals/rest.py",
        "weights[rival] = -self.class_weight[rival]",
        "weights[rival] = -self.class_weight[self.winner]",
        "the rival's cost is forgotten",
        COMMITTEE,
    ),
    Mutant(
        "rest-extreme-of-others",
        "enclosures/goals/rest.py",
        "others = highs if self.sign > 0 else lows",
        "others = lows if self.sign > 0 else highs",
        "the other classes stand on the wrong side of a ratio",
        COMMITTEE,
    ),
    Mutant(
        "rest-level-divisor",
        "enclosures/goals/rest.py",
        "total = xp.where(n >= 0, up(sum(highs), count), least)",
        "total = xp.where(n < 0, up(sum(highs), count), least)",
        "the level is divided by the wrong sum",
        COMMITTEE,
    ),
    Mutant(
        "votes-all-against-are-lost",
        "enclosures/goals/votes.py",
        "total = total + xp.where(sure, 0.0 * total, weight + 0.0 * total)\n        return total\n"
        "\n    def _votes_at_center",
        "total = total + 0.0 * total\n        return total\n\n    def _votes_at_center",
        "an open vote does not count for the rival",
        COMMITTEE,
    ),
    Mutant(
        "votes-tie-break-slope",
        "enclosures/goals/votes.py",
        "xp.where(difference >= 0, gentle, 3.0 + 0.0 * gentle)",
        "xp.where(difference < 0, gentle, 3.0 + 0.0 * gentle)",
        "the steepest slope where the gentlest counts",
        COMMITTEE,
    ),
    Mutant(
        "votes-confidence-ends",
        "enclosures/goals/votes.py",
        "ends = (below, above) if weight > 0 else (-above, -below)",
        "ends = (below, above) if weight > 0 else (-below, -above)",
        "the ends of a range are not exchanged with its sign",
        COMMITTEE,
    ),
    Mutant(
        "members-wrong-side",
        "enclosures/goals/members.py",
        "parts = [down(xp.abs(sizes[k]) * probability(evaluation, k, signs[k]).lower, 1)"
        " for k in used]",
        "parts = [down(sizes[k] * probability(evaluation, k, 1).lower, 1) for k in used]",
        "a negative weight meets the least probability",
        COMMITTEE,
    ),
    Mutant(
        "plane-curvature-halved",
        "enclosures/probability_plane.py",
        "bend = 0.5 * D2 * r * r + 0.5 * D3 * r * s + 0.125 * D4 * s * s",
        "bend = 0.25 * D2 * r * r + 0.25 * D3 * r * s + 0.0625 * D4 * s * s",
        "half of the curvature between plane and probability",
        PLANE,
    ),
    Mutant(
        "plane-slopes-believed",
        "enclosures/probability_plane.py",
        "lost = up(first * r + second * s + bend + errors[0], 12)",
        "lost = up(bend + errors[0], 12)",
        "the plane is taken for the tangent of every piece",
        PLANE,
    ),
    Mutant(
        "plane-noise-forgotten",
        "enclosures/probability_plane.py",
        "shift = xp.where(rises, noise - self.variance, self.variance - noise)",
        "shift = xp.where(rises, -self.variance, self.variance)",
        "the outputs' noise is not part of the variance",
        COMMITTEE,
    ),
    Mutant(
        "slope-step-error",
        "enclosures/probability_plane.py",
        "by_mu_error = up(error / STEP + third * (STEP * STEP / 6.0), 4)",
        "by_mu_error = up(error / STEP, 4)",
        "a difference is taken for the derivative",
        PLANE,
    ),
    Mutant(
        "plain-weight-of-slopes",
        "enclosures/plain_quadratic.py",
        "error = error + finite_product(xp.minimum(x, zero + 1.0), most)",
        "error = error + 0.5 * finite_product(xp.minimum(x, zero + 1.0), most)",
        "half of what the weight does to the slopes",
        PLANE,
    ),
    Mutant(
        "plain-weight-of-value",
        "enclosures/plain_quadratic.py",
        "xp.where(value > 0, zero + model.rate, fall)",
        "xp.where(value < 0, zero + model.rate, fall)",
        "the weight lowers a positive value by less than it must",
        PLANE,
    ),
)
