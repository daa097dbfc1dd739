"""Mutants of the search and of the verbs."""

from __future__ import annotations

from mutant import Mutant

__all__ = ["SEARCH_MUTANTS"]

SYNTHETIC = ("tests/search/test_search_synthetic.py",)
DEADLINE = ("tests/search/test_search_deadline.py",)
FRONTIER = ("tests/search/test_search_frontier.py",)
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
        "np.concatenate([old[mask], new]) for old",
        "np.concatenate([old[mask], new[:-1] if len(new) > 1 else new]) for old",
        "one child is lost in every batch",
        FRONTIER,
    ),
    Mutant(
        "keep-forgets-settled",
        "search/frontier.py",
        "aside = np.minimum(settled, boxes.lower[~mask].min(axis=0, initial=np.inf))",
        "aside = settled.copy()",
        "bounds of boxes that were set aside no longer count",
        FRONTIER,
    ),
    Mutant(
        "bounds-forget-settled",
        "search/frontier.py",
        "return np.minimum(state.settled, state.boxes.lower.min(axis=0, initial=np.inf))",
        "return state.boxes.lower.min(axis=0, initial=np.inf)",
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
        "known = np.array([goal.known[0] for goal in problem.goals], dtype=float)",
        "known = np.array([np.inf for goal in problem.goals], dtype=float)",
        "an interrupt before the root leaves a lower bound of infinity",
        SYNTHETIC,
    ),
    Mutant(
        "parents-dropped-before-their-children",
        "search/branch_and_bound.py",
        "        children, points = self._evaluate(\n"
        "            cells.split(axis), frontier.lower[parents], frontier.axes[parents], active\n"
        "        )\n"
        "        frontier.replace(index, children)\n",
        "        lower, axes = frontier.lower[parents], frontier.axes[parents]\n"
        "        frontier.replace(index, Boxes(*(part[:0] for part in frontier._state.boxes)))\n"
        "        children, points = self._evaluate(cells.split(axis), lower, axes, active)\n"
        "        frontier.replace(np.empty(0, dtype=int), children)\n",
        "a batch that the deadline ends leaves a hole in the region",
        DEADLINE,
    ),
    Mutant(
        "interrupted-search-goes-on",
        "search/interrupts.py",
        "    if reason is StopReason.INTERRUPTED:\n        raise KeyboardInterrupt\n",
        "    del reason\n",
        "what runs several searches goes on after Ctrl-C",
        ("tests/api/test_api_radius.py", "tests/api/test_api_many.py"),
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
        "if values[best] < self._best[g][0]:",
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
        "    if margin.lower > 0:\n",
        "    if margin.upper > 0:\n",
        "ROBUST where only the attained value is above the threshold",
        ("tests/search/test_search_hidden.py::test_hidden_counter_examples_are_found",),
    ),
    Mutant(
        "radius-takes-unknown",
        "api/radius.py",
        "        if certificate.status is Status.ROBUST:\n            self.lower",
        "        if certificate.status is not Status.NOT_ROBUST:\n            self.lower",
        "a radius that was not decided counts as proved",
        ("tests/api/test_api_radius.py", "-k", "hidden_from_every_attack"),
    ),
    Mutant(
        "class-weights-swapped",
        "api/rules.py",
        "quotient = first / (first + second)",
        "quotient = second / (first + second)",
        "the costs of the two mistakes are exchanged",
        (*CERTIFY, "-k", "class_weights"),
    ),
    Mutant(
        "regression-sign-lost",
        "api/rules.py",
        "goal, bar = MeanGoal(0, sign), sign * Fraction(level)",
        "goal, bar = MeanGoal(0, sign), Fraction(level)",
        "the level of a regression is compared with the wrong sign",
        (*CERTIFY, "-k", "regression_threshold"),
    ),
)
