"""Certified class probabilities and their derivatives: what the integrals of this room return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from gpcert.arrays import Array, PerCell


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
