"""`E[sigma(t + s z) He_r(z)]`, z standard normal, r = 0..4: the logistic mixture in closed form.

Proofs: docs/mathematics.md, statements 8.5 and 9.8.
"""

from __future__ import annotations

import math
from typing import Annotated

import array_api_compat
import numpy as np

from gpcert.arrays import Array, PerCell, namespace
from gpcert.integrals.special import erf
from gpcert.rounding import gamma

LOGISTIC_ERROR = 6e-14
"""`|sigma(x) - (1 + sum_i c_i erf(x / sqrt d_i)) / 2| <= 6e-14` for all x and `LOGISTIC_TERMS`.

Reason: the logistic law is a scale mixture of normal laws (Andrews & Mallows 1974), cut here to 18
geometrically spaced scales, weights by least squares in 40 digits. How the terms were found does
not matter: the tests prove the bound for these floats in interval arithmetic, with Taylor models on
[0, 64] and monotonicity beyond. Reference: Monahan & Stefanski 1992, "Normal scale mixture
approximations to F*(z) and computation of the logistic-normal integral", with eight terms."""

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


LOGISTIC_MOMENT_ERROR = 1.001 * LOGISTIC_ERROR + gamma(1024)
"""Error of `logistic_moments` for order r, divided by `sqrt(r!)`; see there."""

_FAR = 700.0
"""Beyond this many units of the narrowest term's width every term is constant: with the ratio of
the widths above 0.08 the exponentials are below exp(-3000)."""

_HERMITE = ((1.0,), (-1.0,), (1.0, -1.0), (-1.0, 3.0))
"""Coefficients of `(-1)^(r-1) He_{r-1}`, r = 1..4: of the powers r - 1, r - 3, ..."""

_SCALES = np.array([d for d, _ in LOGISTIC_TERMS])
_MASSES = np.array([c for _, c in LOGISTIC_TERMS])


def logistic_moments(t: Annotated[Array, "B Q"], s: PerCell, order: int) -> list[Array]:
    """`G_r(t) = E[sigma(t + s z) He_r(z)]`, r = 0..order, for t (B, Q) and s (B,), |t|, |s| < 1e60.

    Statement: the error is at most `LOGISTIC_MOMENT_ERROR * sqrt(r!)`, r <= 4.
    Reason: the mixture differs from sigma by at most `LOGISTIC_ERROR`, and `E|He_r| <= sqrt(r!)`;
    the closed form of its terms is Statement 9.8, with `D = d + 2 s^2`, `x = t sqrt(2 / D)` and
    `rho = s sqrt(2 / D)`.
    Rounding, r >= 1: with `sum c = 1.0000...` and `|rho| <= 1` the terms' sizes add up to at most
    `T = phi(x) h(x)`, h being He_{r-1} with the absolute values of its coefficients; `T <= 0.4
    sqrt(r!)` and `x^2 T <= 1.3 sqrt(r!)`. Each carries fewer than 130 roundings, the sum of 18
    among them, and exp, of an argument of relative error 17 U, another `9 x^2`: together below
    gamma(64). r = 0: 8 for erf, 4 for its argument (`|y erf'(y)| <= 1/2`), 20 for the sum.
    """
    xp = namespace(t)
    device = array_api_compat.device(t)
    scales = xp.asarray(_SCALES, dtype=xp.float64, device=device)
    masses = xp.asarray(_MASSES, dtype=xp.float64, device=device)
    widths = scales[None, :] + 2.0 * (s * s)[:, None]
    narrowest = widths[:, :1]
    ratio = xp.sqrt(narrowest / widths)
    unit = xp.clip(t / xp.sqrt(narrowest), -_FAR, _FAR)
    y = ratio[:, :, None] * unit[:, None, :]
    sums = xp.matmul(0.5 * masses[None, :], erf(y))
    moments = [0.5 + sums[:, 0, :]]
    if order == 0:
        return moments
    rho = s[:, None] * xp.sqrt(2.0 / widths)
    rows = xp.stack(_coefficients(masses[None, :], rho, math.sqrt(2.0) * ratio, order), axis=1)
    sums = xp.matmul(rows, xp.exp(-(y * y)))
    square = unit * unit
    first = 0
    for r, polynomial in enumerate(_HERMITE[:order], start=1):
        moment = sums[:, first, :]
        for row in range(first + 1, first + len(polynomial)):
            moment = square * moment + sums[:, row, :]
        moments.append(moment if r % 2 else unit * moment)
        first += len(polynomial)
    return moments


def _coefficients(masses: Array, rho: Array, slope: Array, order: int) -> list[Array]:
    """Factors (B, 18) of `exp(-x^2 / 2)` and the powers of `unit`, `x = slope * unit`, by order."""
    powers = [namespace(slope).ones_like(slope)]
    for _ in range(order - 1):
        powers.append(powers[-1] * slope)
    rows = []
    factor = masses * (1.0 / math.sqrt(2.0 * math.pi))
    for r, polynomial in enumerate(_HERMITE[:order], start=1):
        factor = factor * rho
        rows += [(c * factor) * powers[r - 1 - 2 * i] for i, c in enumerate(polynomial)]
    return rows
