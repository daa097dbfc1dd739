"""Certified class probabilities and their derivatives: what the integrals here return, and
how fast an average over a Gaussian can change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from gpcert.errors import InputError
from gpcert.numerics.arrays import Array, Gaps, PerCell

HIGHEST_ORDER = 4
"""Of the derivatives of class probabilities that are known."""


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Class probabilities at (a, L) and their derivatives in z, where `d = a + L z`, at z = 0.

    `value` (B, m); `derivatives[j - 1]` (B, m, n, ..., n), symmetric, of order j = 1, 2, ...;
    `errors` (B, 1 + orders): the true value is within errors[:, 0] of `value`, and the true form of
    order j, applied to j vectors of Euclidean length one, within errors[:, j] of the computed one,
    for every class. Rounding and the error of the rule are both in there.
    """

    value: Annotated[Array, "B m"]
    derivatives: tuple[Array, ...]
    errors: Annotated[Array, "B orders"]


@dataclass(frozen=True, eq=False)
class IndependentMoments:
    """`G = sum_c w_c pi_c` and its derivatives, for independent outputs `f_k ~ N(mu_k, v_k)`.

    `value` (B,); `gradient` (B, m) and `hessian` (B, m, m) in the means mu. `errors` (B, 3): bounds
    of the error of the value, of every entry of the gradient, and of every entry of the Hessian.
    """

    value: PerCell
    gradient: Annotated[Array, "B m"]
    hessian: Annotated[Array, "B m m"]
    errors: Annotated[Array, "B 3"]


def check_law(name: str, a: Gaps, L: Array, order: int, most: int) -> None:
    """An `InputError` unless a (B, n) and L (B, n, n), B >= 1, are of 2 to `most` classes, order
    0..4."""
    if a.ndim != 2 or tuple(L.shape) != (*a.shape, a.shape[1]) or a.shape[0] < 1:
        raise InputError(
            f"{name}: expected a (B, n) and L (B, n, n) of one law or more, got {tuple(a.shape)}, "
            f"{tuple(L.shape)}"
        )
    if not 2 <= a.shape[1] + 1 <= most:
        raise InputError(
            f"{name}: expected 2 to {most} classes, got {a.shape[1] + 1}; at most {most} classes "
            "may be coupled: use independent outputs (independent_moments) or merge classes"
        )
    if order not in range(HIGHEST_ORDER + 1):
        raise InputError(f"{name}: expected an order in 0..{HIGHEST_ORDER}, got {order!r}")


UNIMODAL_BOUNDS = (0.39895, 0.48395, 0.57703, 1.10121, 1.93695, 4.61448)
"""`e_j >= max phi^(j-1) - min phi^(j-1)`, j = 1..6, phi the standard normal density.

Statement: let `F(t) = E s(t + z)`, z standard normal, with s in [0, 1] rising first and falling
then (or only one of these). Then `|F^(j)| <= e_j`. The same for `E s(a + L (z + t u))`, |u| = 1, in
several dimensions, if s is so along every line, and for mixed derivatives (Banach 1938).
Reason: the rising and the falling part of ds have mass at most 1 each (Statement 9.3); log-concave
functions are of this kind.
"""
