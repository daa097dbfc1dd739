"""Mutants of lines, of the search for many questions, and of explanations."""

from __future__ import annotations

from mutant import Mutant

__all__ = ["EXPLANATION_MUTANTS"]

LINES = ("tests/enclosures/test_enclosure_lines.py",)
SHARED = ("tests/search/test_search_shared.py",)
EFFECTS = ("tests/explain/test_effects.py",)
REASONS = ("tests/explain/test_reasons.py",)
KERNEL = "kernels/expansions/squared_exponential_lines.py"

EXPLANATION_MUTANTS = (
    Mutant(
        "lines-own-feature-twice",
        KERNEL,
        "                others[np.arange(len(own)), features[own]] = 0.0\n",
        "",
        "a line's own feature counted among the fixed ones",
        LINES,
    ),
    Mutant(
        "lines-no-reach",
        KERNEL,
        "            reach = np.asarray(up(extent / lengths, 4))\n",
        "            reach = 0.0 * np.asarray(up(extent / lengths, 4))\n",
        "sizes of powers of p - c without |c|",
        LINES,
    ),
    Mutant(
        "lines-moments-exact",
        KERNEL,
        "        term = magnitudes * (gamma(N + 34) + self.relative_error)\n",
        "        term = 0.0 * magnitudes\n",
        "no rounding of the moments",
        LINES,
    ),
    Mutant(
        "lines-third-moment-missing",
        KERNEL,
        "        third = xp.sum(coefficients * u * u * u, axis=1)",
        "        third = 0.0 * xp.sum(coefficients * u * u * u, axis=1)",
        "the third degree left out",
        LINES,
    ),
    Mutant(
        "lines-norms-in-other-units",
        "enclosures/lines.py",
        "for b in local.unit.norms)",
        "for b in 0.01 * local.unit.norms)",
        "norms that are not those of the weights",
        LINES,
    ),
    Mutant(
        "lines-no-unit-of-length",
        KERNEL,
        "            squared_lengths=backend.asarray(up((unit / lengths) ** 2, 4)),\n",
        "            squared_lengths=backend.asarray(up((1.0 / lengths) ** 2, 4)),\n",
        "squared lengths that underflow",
        LINES,
    ),
    Mutant(
        "shared-known-forgotten",
        "search/shared.py",
        "    lower, upper = np.tile(low, (Q, 1)), np.tile(high, (Q, 1))\n",
        "    lower, upper = np.tile(low, (Q, 1)), np.tile(low, (Q, 1))\n",
        "values that nobody attained",
        SHARED,
    ),
    Mutant(
        "shared-boxes-forgotten",
        "search/shared.py",
        "        np.minimum.at(settled, rest.question, rest.lower)\n",
        "",
        "boxes set aside without their bound",
        SHARED,
    ),
    Mutant(
        "shared-half-dropped",
        "search/shared.py",
        "        first[rows, axis] = second[rows, axis] = middle\n",
        "        first[rows, axis] = middle\n        second[rows, axis] = self.high[rows, axis]\n",
        "the upper half of a box lost",
        SHARED,
    ),
    Mutant(
        "shared-outside-points",
        "search/shared.py",
        "        values = np.where(inside.all(axis=1), values, np.inf)\n",
        "        values = values - 0.01\n",
        "attained values that are not",
        SHARED,
    ),
    Mutant(
        "effects-sides-swapped",
        "explain/effects.py",
        "    above, below = 0, 1\n",
        "    above, below = 1, 0\n",
        "up and down exchanged",
        EFFECTS,
    ),
    Mutant(
        "effects-domain-ignored",
        "explain/sides.py",
        "                outer[..., side] = np.where(cut, np.minimum(more, free), free)\n",
        "",
        "intervals that leave the domain",
        EFFECTS,
    ),
    Mutant(
        "reasons-undecided-dropped",
        "explain/subsets.py",
        "        if answer is True:\n",
        "        if answer is not False:\n",
        "undecided features let go",
        REASONS,
    ),
    Mutant(
        "reasons-any-counterexample",
        "explain/reasons.py",
        "            if moved <= wanted:\n",
        "            if moved & wanted:\n",
        "a counter-example that also moves kept features",
        REASONS,
    ),
)
