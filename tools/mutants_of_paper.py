"""Mutants of the paper's own method."""

from __future__ import annotations

from mutant import Mutant

__all__ = ["PAPER_MUTANTS"]

PAPER = ("tests/enclosures/paper",)

PAPER_MUTANTS = (
    Mutant(
        "dual-curve-dropped",
        "enclosures/paper/safe_dual.py",
        "total = total + least + rest",
        "total = total + rest",
        "the minimum over the lifted coordinates is forgotten",
        PAPER,
    ),
    Mutant(
        "dual-wrong-end",
        "enclosures/paper/safe_dual.py",
        "terms = signed_times(rho, xp.where(rho > 0, low, high))",
        "terms = signed_times(rho, xp.where(rho > 0, high, low))",
        "the other end of a kernel value's interval",
        PAPER,
    ),
    Mutant(
        "dual-negative-multipliers",
        "enclosures/paper/safe_dual.py",
        "good = (multipliers > 0) & (multipliers <= LARGEST_MULTIPLIER)",
        "good = abs(multipliers) <= LARGEST_MULTIPLIER",
        "a solver's multipliers of the wrong sign are believed",
        PAPER,
    ),
    Mutant(
        "tangent-too-high",
        "enclosures/paper/square_form.py",
        "lost = xp.sum(off * sizes, axis=1) + xp.sum(p * p, axis=1)",
        "lost = xp.sum(off * sizes, axis=1) + 0.5 * xp.sum(p * p, axis=1)",
        "a tangent plane that cuts the quadratic form",
        PAPER,
    ),
    Mutant(
        "chord-too-low",
        "enclosures/paper/square_form.py",
        "constant = -xp.sum(values * low * high, axis=1)",
        "constant = -2.0 * xp.sum(values * low * high, axis=1)",
        "chords that cut the quadratic form",
        PAPER,
    ),
    Mutant(
        "integral-wrong-variance",
        "integrals/gaussian_integral.py",
        "best = xp.where(inside, v_low, xp.minimum(xp.maximum(critical, v_low), v_high))",
        "best = xp.where(inside, v_high, xp.minimum(xp.maximum(critical, v_low), v_high))",
        "Lemma Gaussian with the other end of the variance",
        ("tests/likelihoods/test_discretised.py",),
    ),
    Mutant(
        "nan-becomes-a-bound",
        "rounding.py",
        "return xp.where(x <= 0, xp.zeros_like(x), x)",
        "return xp.where(x > 0, x, xp.zeros_like(x))",
        "an overflow is taken for zero",
        ("tests/test_rounding.py",),
    ),
)
