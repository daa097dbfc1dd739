"""A weighted sum of class probabilities at a reference, with its derivatives."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpcert.enclosures.classes.reference import Reference, frobenius
from gpcert.integrals.moments import UNIMODAL_BOUNDS, ClassMoments
from gpcert.likelihoods import ClassLikelihood
from gpcert.numerics.arrays import Array, PerCell, namespace
from gpcert.numerics.rounding import gamma, root, up


@dataclass(frozen=True, eq=False)
class ClassJet:
    """`G = sum_c w_c pi_c` at (a_0, V_0): value (B,), derivatives in z (d = a_0 + L z) of order 1,
    2 and, where known, more, with the errors of `ClassMoments` (B, 1 + orders).

    `parts` are the classes with a weight and their own jets, probabilities in [0, 1]; the jet of
    one class has none. Where known, `products` (B, m) of one class c are the means of link_c link_k
    at the reference, each up to `products_error` (B,), and `square` (B,) is an upper bound of the
    mean of the squared sum.
    """

    value: Array
    derivatives: tuple[Array, ...]
    errors: Array
    parts: tuple[tuple[float, ClassJet], ...] = ()
    products: Array | None = None
    products_error: Array | None = None
    square: Array | None = None

    @property
    def order(self) -> int:
        """The highest derivative that is known."""
        return len(self.derivatives)

    @property
    def total(self) -> float:
        """`sum_c |w_c|`, rounded up."""
        return float(np.abs([w for w, _ in self.parts]).sum()) * (1.0 + 2.0**-40)


def derivative_norm(jet: ClassJet, order: int) -> PerCell:
    """Upper bound (B,) of the norm of the true derivative of that order."""
    xp = namespace(jet.value)
    tensor = jet.derivatives[order - 1]
    axes = tuple(range(1, tensor.ndim))
    count = int(np.prod(tensor.shape[1:]))
    return up(root(xp.sum(tensor * tensor, axis=axes)) + jet.errors[:, order], count + 8)


def weighted_jet(parts: tuple[tuple[float, ClassJet], ...]) -> ClassJet:
    """The sum of classes' jets with weights; its rounding is counted by the sizes of the terms."""
    xp, totals, sizes = namespace(parts[0][1].value), [], []
    tensors = [[w * tensor for tensor in (jet.value, *jet.derivatives)] for w, jet in parts]
    for terms in zip(*tensors, strict=True):
        axes = tuple(range(1, terms[0].ndim))
        lengths = [root(xp.sum(t * t, axis=axes)) if axes else xp.abs(t) for t in terms]
        totals.append(sum(terms[1:], terms[0]))
        sizes.append(sum(lengths[1:], lengths[0]))
    errors = sum(abs(w) * jet.errors for w, jet in parts)
    errors = up(errors + gamma(len(parts) + 4) * xp.stack(sizes, axis=1), len(parts) + 16)
    return ClassJet(totals[0], tuple(totals[1:]), errors, parts)


def class_jet(moments: ClassMoments, c: int) -> ClassJet:
    """One class of the moments."""
    derivatives = tuple(d[:, c] for d in moments.derivatives)
    return ClassJet(moments.value[:, c], derivatives, moments.errors)


def coupled_jet(
    likelihood: ClassLikelihood, moments: ClassMoments, place: Reference, c: int
) -> ClassJet:
    """The same with the means of products.

    The gradient in the latent means is `L^-T D1`, and `L^-1 = T R` with |T - I| at most the
    inflation: an entry of `R^T D1` errs by `|R e_k|` times the error of D1, its rounding and
    `|T - I| |D1|`; that of class 0 is minus their sum.
    """
    jet = class_jet(moments, c)
    first, R, off = jet.derivatives[0], place.R, place.inflation
    xp, n = namespace(R), R.shape[1]
    p = (xp.matrix_transpose(R) @ first[:, :, None])[:, :, 0]
    gradient = xp.concat([-xp.sum(p, axis=1, keepdims=True), p], axis=1)
    length = root(xp.sum(first * first, axis=1))
    error = (off + gamma(4 * n + 16)) * length + (1.0 + off) * jet.errors[:, 1]
    errors = xp.stack([jet.errors[:, 0], up(n**0.5 * frobenius(R) * error, n * n + 16)], axis=1)
    products, lost = likelihood.products(jet.value, gradient, errors, c)
    return replace(jet, products=products, products_error=lost)


def law_jet(weights: tuple[float, ...], parts: dict[int, ClassJet]) -> ClassJet:
    """`weighted_jet` of classes, with the mean square of the sum from their products."""
    whole = weighted_jet(tuple((weights[c], part) for c, part in parts.items()))
    xp, total, size = namespace(whole.value), 0.0, 0.0
    for c, jet in parts.items():
        assert jet.products is not None
        assert jet.products_error is not None
        for k in parts:
            weight = weights[c] * weights[k]
            total = total + weight * jet.products[:, k]
            size = size + abs(weight) * (xp.abs(jet.products[:, k]) * gamma(len(parts) ** 2 + 8))
            size = size + abs(weight) * jet.products_error
    square = up(xp.asarray(total) + up(xp.asarray(size), len(parts) ** 2 + 8), 2)
    return replace(whole, square=square)


def independent_jet(likelihood: ClassLikelihood, place: Reference, c: int) -> ClassJet:
    """One class for independent outputs, from one-dimensional integrals; orders 1 and 2.

    The integrals are taken at the reference's means and the variances `apart`, whose differences
    have a covariance V_1 that is V_0 up to rounding. A move by E changes a derivative of order j by
    at most `b_(j+2) |E|_nuclear / 2` in the metric of V_0 (b twice `UNIMODAL_BOUNDS` covers
    covariances between V_0 and V_1); this is added to the errors, and to that of the products,
    which are means of log-concave functions too.
    """
    xp = namespace(place.L)
    mu, L, R = place.apart_means, place.L, place.R
    n = L.shape[1]
    unit = xp.asarray(np.eye(mu.shape[1])[c], device=mu.device)
    moments = likelihood.independent_moments(mu, place.apart, unit)
    p, Q = moments.gradient[:, 1:], moments.hessian[:, 1:, 1:]
    Lt = xp.matrix_transpose(L)
    first, second = (Lt @ p[:, :, None])[:, :, 0], Lt @ Q @ L
    size = frobenius(L)
    metric = frobenius(R) * (1.0 + place.inflation)
    E = n**0.5 * metric**2 * place.mismatch
    b = [2.0 * bound for bound in UNIMODAL_BOUNDS]
    moved = [0.5 * b[j + 1] * E for j in range(3)]
    length = root(xp.sum(p * p, axis=1))
    errors = [
        moments.errors[:, 0] + moved[0],
        size * (n**0.5 * moments.errors[:, 1] + gamma(n + 2) * length) + moved[1],
        size**2 * (n * moments.errors[:, 2] + gamma(2 * n + 4) * frobenius(Q)) + moved[2],
    ]
    errors = up(xp.stack(errors, axis=1), 4 * n * n + 32)
    products, lost = likelihood.products(moments.value, moments.gradient, moments.errors, c)
    lost = up(lost + moved[0], 8)
    return ClassJet(moments.value, (first, second), errors, (), products, lost)
