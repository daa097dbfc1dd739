"""The logistic function as a mixture of error functions, with a proved uniform error.

Statement: `|sigma(x) - (1 + sum_i c_i erf(x / sqrt d_i)) / 2| <= 6e-14` for all real x.
Reason: the logistic law is a scale mixture of normal laws (Andrews & Mallows 1974), cut here to
18 geometrically spaced scales, weights by least squares in 40 digits. How the terms were found
does not matter: the tests prove the bound for these floats in interval arithmetic, with Taylor
models on [0, 64] and monotonicity beyond.
Reference: Monahan & Stefanski 1992, "Normal scale mixture approximations to F*(z) and
computation of the logistic-normal integral", with eight terms.

Proofs: docs/mathematics.md, statement 8.5.
"""

from __future__ import annotations

LOGISTIC_ERROR = 6e-14
"""Bound of the difference between the mixture and the logistic function."""

LOGISTIC_TERMS = (
    (0.4802, 7.258174699161886e-08),
    (0.64604299, 8.966297604672217e-06),
    (0.86916191, 0.00028670757380946986),
    (1.1693377, 0.0033356229649710075),
    (1.5731829, 0.018253512160855478),
    (2.116501, 0.056796939702864174),
    (2.8474608, 0.11549028690278278),
    (3.8308665, 0.16969118540295663),
    (5.1539034, 0.19315999576600415),
    (6.9338676, 0.17770176330757229),
    (9.3285643, 0.13385043113554723),
    (12.550299, 0.08074491277953792),
    (16.8847, 0.036769518524959764),
    (22.716039, 0.01151345876635843),
    (30.561303, 0.0021789539199839787),
    (41.116026, 0.00020948966625837002),
    (55.315953, 8.089184387837072e-06),
    (74.42, 9.3361792929912e-08),
)
"""The pairs `(d_i, c_i)`."""
