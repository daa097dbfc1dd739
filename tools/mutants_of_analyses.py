"""Mutants of the analyses: how bounds of single searches become curves, shares and differences."""

from __future__ import annotations

from mutant import Mutant

__all__ = ["ANALYSIS_MUTANTS"]

SHARES = ("tests/analyses/test_distributions.py",)
CURVE = ("tests/analyses/test_safety_curve.py",)
SUMS = ("tests/analyses/test_sums_of_bounds.py",)
REASONS = ("tests/explain/test_reasons.py",)

ANALYSIS_MUTANTS = (
    Mutant(
        "accuracy-undecided-robust",
        "analyses/accuracy_record.py",
        "        found = np.array([(row.right, row.lower) for row in self]).reshape(-1, 2)\n",
        "        found = np.array([(row.right, row.upper) for row in self]).reshape(-1, 2)\n",
        "undecided points counted as proved robust",
        SHARES,
    ),
    Mutant(
        "accuracy-zero-proved",
        "analyses/accuracy_record.py",
        "(found[:, :1] > 0) & (found[:, 1:] > 0) & (found[:, 1:] >= r)",
        "(found[:, :1] > 0) & (found[:, 1:] >= r)",
        "a point of which nothing is proved counted at radius 0",
        SHARES,
    ),
    Mutant(
        "accuracy-tie-is-wrong",
        "analyses/accuracy.py",
        "        wrong[k] = rule.decided and bool(rule.decision != labels[k])\n",
        "        wrong[k] = True\n",
        "a point at a tie called wrong without a proof",
        SUMS,
    ),
    Mutant(
        "robustness-delta-of-attained-ends",
        "analyses/robustness.py",
        "    upper = float(up(found.maximum.upper - found.minimum.lower, 1))\n",
        "    upper = float(up(found.maximum.lower - found.minimum.upper, 1))\n",
        "delta's upper end from the wrong ends",
        SUMS,
    ),
    Mutant(
        "robustness-delta-of-proved-ends",
        "analyses/robustness.py",
        "float(down(found.maximum.lower - found.minimum.upper, 1))",
        "float(down(found.maximum.upper - found.minimum.lower, 1))",
        "delta's lower end from the wrong ends",
        SUMS,
    ),
    Mutant(
        "robustness-delta-not-rounded",
        "analyses/robustness.py",
        "    upper = float(up(found.maximum.upper - found.minimum.lower, 1))\n",
        "    upper = float(found.maximum.upper - found.minimum.lower)\n",
        "delta's upper end not rounded outward",
        SUMS,
    ),
    Mutant(
        "safety-bound-of-a-smaller-radius",
        "analyses/safety.py",
        "        lower = max((r.minimum.lower for j, r in self.ranges.items() if j >= k), ",
        "        lower = max((r.minimum.lower for j, r in self.ranges.items() if j <= k), ",
        "a smaller radius's bound of the minimum used for a larger one",
        CURVE,
    ),
    Mutant(
        "safety-value-of-a-larger-radius",
        "analyses/safety.py",
        "        lower = max((r.maximum.lower for j, r in self.ranges.items() if j <= k), ",
        "        lower = max((r.maximum.lower for j, r in self.ranges.items() if j >= k), ",
        "a value attained at a larger radius said to be attained at a smaller one",
        CURVE,
    ),
    Mutant(
        "effects-not-rounded",
        "explain/effects.py",
        "        found = np.asarray(total + (gamma(8) * size + TINY))\n",
        "        found = np.asarray(total)\n",
        "the sum of four bounds not rounded outward",
        SUMS,
    ),
    Mutant(
        "effects-mean-not-rounded",
        "explain/effects_record.py",
        "            upper=self.upper.mean(axis=0, keepdims=True) + slack[1],\n",
        "            upper=self.upper.mean(axis=0, keepdims=True),\n",
        "the mean of upper ends not rounded outward",
        SUMS,
    ),
    Mutant(
        "reasons-undecided-called-needed",
        "explain/subsets.py",
        "            (found.needed if answer is False else found.undecided).append(block[0])\n",
        "            (found.needed if answer is not True else found.undecided).append(block[0])\n",
        "a feature whose step was undecided said to be proved necessary",
        REASONS,
    ),
)
