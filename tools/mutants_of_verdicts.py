"""Mutants of what a verdict rests on: the decision at x, exact levels, complements, labels."""

from __future__ import annotations

from mutant import Mutant

__all__ = ["VERDICT_MUTANTS"]

TIES = ("tests/api/test_api_ties.py",)
LABELS = ("tests/api/test_api_labels.py",)

VERDICT_MUTANTS = (
    Mutant(
        "guess-not-verified",
        "api/decisions.py",
        "            if margin.lower > 0:\n                return rule",
        "            if margin.upper > -1.0:\n                return rule",
        "the plain guess of the decision at x is taken for the truth",
        (*TIES, "-k", "many_classes or exact_tie"),
    ),
    Mutant(
        "guess-kept-without-proof",
        "api/certify.py",
        "if candidates.near or first.status is Status.ROBUST:",
        "if candidates.near or first.status is not Status.UNKNOWN:",
        "a refutation for a guessed decision that nobody proved at x",
        (*TIES, "-k", "wrong_guess"),
    ),
    Mutant(
        "level-rounded",
        "api/rules.py",
        "quotient = first / (first + second)",
        "quotient = Fraction(float(first / (first + second)))",
        "the quotient of two weights is rounded to nearest",
        (*TIES, "-k", "quotient"),
    ),
    Mutant(
        "half-is-the-sign",
        "likelihoods/base.py",
        "return self.total == 1.0 and self.total_error == 0.0",
        "return self.total > 0.0",
        "a threshold of 1/2 becomes the sign of the mean where F(0) is not 1/2",
        (*TIES, "-k", "a_half"),
    ),
    Mutant(
        "difference-to-nearest",
        "rounding.py",
        "return near if Fraction(near) <= exact else math.nextafter(near, -math.inf)",
        "return near",
        "a margin is rounded to nearest",
        (*TIES, "-k", "differences or quotient"),
    ),
    Mutant(
        "complement-sides",
        "api/ranges.py",
        "for sign, side in ((-sign, side) for sign, side in found.items())",
        "for sign, side in found.items()",
        "the first class has its least where the second has its least",
        LABELS,
    ),
    Mutant(
        "truth-value-as-label",
        "api/questions.py",
        "    if len(truths) > 1:\n        return False\n",
        "",
        "True stands for the class 1",
        LABELS,
    ),
)
