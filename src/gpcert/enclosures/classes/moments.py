"""A weighted sum of class probabilities at a reference, with its derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.enclosures.classes.reference import Reference, frobenius
from gpcert.integrals.derivative_bounds import UNIMODAL_BOUNDS
from gpcert.integrals.moments import ClassMoments
from gpcert.likelihoods import ClassLikelihood
from gpcert.rounding import gamma, root, up


@dataclass(frozen=True, eq=False)
class ClassJet:
    """`G = sum_c w_c pi_c` at (a_0, V_0): value (B,), derivatives in z (d = a_0 + L z) of order 1,
    2 and, where known, more, with the errors of `ClassMoments` (B, 1 + orders).

    `parts` are the classes with a weight and their own jets, probabilities in [0, 1]; the jet of
    one class has none.
    """

    value: Array
    derivatives: tuple[Array, ...]
    errors: Array
    parts: tuple[tuple[float, ClassJet], ...] = ()

    @property
    def order(self) -> int:
        """The highest derivative that is known."""
        return len(self.derivatives)

    @property
    def total(self) -> float:
        """`sum_c |w_c|`, rounded up."""
        return float(np.abs([w for w, _ in self.parts]).sum()) * (1.0 + 2.0**-40)


def weighted_jet(parts: tuple[tuple[float, ClassJet], ...]) -> ClassJet:
    """The sum of classes' jets with weights; its rounding is counted by the sizes of the terms."""
    xp = namespace(parts[0][1].value)
    orders = parts[0][1].order

    def summed(pick: Callable[[ClassJet], Array]) -> tuple[Array, Array]:
        terms = [w * pick(jet) for w, jet in parts]
        axes = tuple(range(1, terms[0].ndim))
        sizes = [root(xp.sum(t * t, axis=axes)) if axes else xp.abs(t) for t in terms]
        return sum(terms[1:], terms[0]), sum(sizes[1:], sizes[0])

    value, size = summed(lambda jet: jet.value)
    found = [summed(lambda jet, j=j: jet.derivatives[j]) for j in range(orders)]
    sizes = xp.stack([size, *(each for _, each in found)], axis=1)
    errors = sum(abs(w) * jet.errors for w, jet in parts)
    errors = up(errors + gamma(len(parts) + 4) * sizes, len(parts) + 16)
    return ClassJet(value, tuple(tensor for tensor, _ in found), errors, parts)


def class_jet(moments: ClassMoments, c: int) -> ClassJet:
    """One class of the moments."""
    return ClassJet(
        moments.value[:, c], tuple(d[:, c] for d in moments.derivatives), moments.errors
    )


def independent_jet(likelihood: ClassLikelihood, place: Reference, c: int) -> ClassJet:
    """One class for independent outputs, from one-dimensional integrals; orders 1 and 2.

    The integrals are taken at the outputs' means mu and variances `raised`: there the differences
    have mean a_1 and covariance V_1, which are (a_0, V_0) up to rounding. A move by (da, E) changes
    a derivative of order j by at most `b_(j+1) |da| + b_(j+2) |E|_nuclear / 2` in the metric of V_0
    (b twice `UNIMODAL_BOUNDS` covers covariances between V_0 and V_1); this is added to the errors.
    """
    xp = namespace(place.L)
    mu, L, R = place.outputs.reference, place.L, place.R
    n = L.shape[1]
    unit = xp.asarray(np.eye(mu.shape[1])[c], device=mu.device)
    found = likelihood.independent_moments(mu, place.raised, unit)
    p, Q = found.gradient[:, 1:], found.hessian[:, 1:, 1:]
    Lt = xp.matrix_transpose(L)
    first, second = (Lt @ p[:, :, None])[:, :, 0], Lt @ Q @ L
    size = frobenius(L)
    gaps = gamma(2) * (xp.abs(mu[:, 1:]) + xp.abs(mu[:, :1]))
    metric = frobenius(R) * (1.0 + place.inflation)
    da = metric * root(xp.sum(gaps * gaps, axis=1))
    E = n**0.5 * metric**2 * place.mismatch
    b = [2.0 * bound for bound in UNIMODAL_BOUNDS]
    moved = [b[j] * da + 0.5 * b[j + 1] * E for j in range(3)]
    length = root(xp.sum(p * p, axis=1))
    errors = [
        found.errors[:, 0] + moved[0],
        size * (n**0.5 * found.errors[:, 1] + gamma(n + 2) * length) + moved[1],
        size**2 * (n * found.errors[:, 2] + gamma(2 * n + 4) * frobenius(Q)) + moved[2],
    ]
    errors = up(xp.stack(errors, axis=1), 4 * n * n + 32)
    return ClassJet(found.value, (first, second), errors)
