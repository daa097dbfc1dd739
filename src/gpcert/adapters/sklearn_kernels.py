"""scikit-learn kernel expressions as sums of terms; one small converter a kernel class.

Every supported expression is a sum of terms `variance * exp(-|x - y|^2_L / 2)`, some of them white
(zero unless the two points are the same sample), and sums of such terms are closed under `+`, `*`
and integer powers:

    RBF(l1) RBF(l2) = RBF(l), 1/l^2 = 1/l1^2 + 1/l2^2,    RBF(l)^p = RBF(l / sqrt p),
    white * k = k(x, x) white,    Constant = RBF with infinite length-scale.

scikit-learn's `WhiteKernel` is zero in `k(X, Z)` even at x = z, and counts in `k(X, X)` and
`diag(X)`: at new points it is an addition to the variance, the `noise` of a `Posterior`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as sk

from gpcert.arrays import finite_array
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.kernels import Kernel, SquaredExponential

__all__ = ["Term", "CONVERTERS", "convert_kernel"]


@dataclass(frozen=True, eq=False)
class Term:
    """`variance` times an RBF of these `lengths` (None: a constant), or times a white kernel."""

    variance: float
    lengths: np.ndarray | None = None
    white: bool = False

    def times(self, other: Term) -> Term:
        """The product of two terms, again a term."""
        variance = self.variance * other.variance
        if self.white or other.white:
            return Term(variance, white=True)
        if self.lengths is None or other.lengths is None:
            return Term(variance, other.lengths if self.lengths is None else self.lengths)
        return Term(variance, 1.0 / np.sqrt(self.lengths**-2.0 + other.lengths**-2.0))

    def power(self, p: float) -> Term:
        """This term to a power p > 0."""
        lengths = None if self.lengths is None else self.lengths / np.sqrt(p)
        return Term(self.variance**p, lengths, self.white)


def convert_kernel(kernel: Any) -> tuple[Kernel, float]:
    """`(k, white)`: the squared exponential part and the variance of the white part of a kernel.

    >>> k, white = convert_kernel(2.0 * sk.RBF([1.0, 3.0]) + sk.WhiteKernel(0.5))
    >>> k.config(), white
    ({'length_scale': [1.0, 3.0], 'variance': 2.0}, 0.5)
    """
    try:
        terms = _terms(kernel)
        term = _only([term for term in terms if not term.white])
    except UnsupportedModelError as error:
        raise UnsupportedModelError(
            f"kernel: {error}; got the expression {kernel}. "
            "Fit the model with a kernel such as ConstantKernel() * RBF() + WhiteKernel()"
        ) from None
    white = sum(term.variance for term in terms if term.white)
    return SquaredExponential(term.lengths, term.variance), float(white)


def _only(terms: list[Term]) -> Term:
    """The one RBF term, after terms of the same length-scales are added up."""
    totals: dict[tuple[float, ...] | None, Term] = {}
    for term in terms:
        key = None if term.lengths is None else tuple(np.ravel(term.lengths))
        before = totals[key].variance if key in totals else 0.0
        totals[key] = Term(before + term.variance, term.lengths)
    if None in totals and len(totals) > 1:
        raise UnsupportedModelError(
            "an additive ConstantKernel (ConstantKernel + RBF) is not supported; "
            "multiply by it, or use normalize_y=True"
        )
    if len(totals) != 1 or None in totals:
        count = len(totals.keys() - {None})
        raise UnsupportedModelError(f"expected one RBF term, got {count} different ones")
    return next(iter(totals.values()))


def _terms(kernel: Any) -> list[Term]:
    # By exact type: a subclass (Matern is one of RBF) is another function.
    converter = CONVERTERS.get(type(kernel))
    if converter is None:
        names = ", ".join(cls.__name__ for cls in CONVERTERS)
        raise UnsupportedModelError(
            f"{type(kernel).__name__} is not supported (supported: {names})"
        )
    return converter(kernel)


def _parameter(kernel: Any, name: str) -> np.ndarray:
    values = finite_array(f"{type(kernel).__name__}.{name}", getattr(kernel, name))
    if np.any(values < 0):
        raise InputError(
            f"{type(kernel).__name__}.{name}: expected numbers >= 0, got {values}; "
            "fit the model again with positive hyper-parameters"
        )
    return values


def _constant(kernel: sk.ConstantKernel) -> list[Term]:
    return [Term(float(_parameter(kernel, "constant_value")))]


def _white(kernel: sk.WhiteKernel) -> list[Term]:
    return [Term(float(_parameter(kernel, "noise_level")), white=True)]


def _rbf(kernel: sk.RBF) -> list[Term]:
    lengths = _parameter(kernel, "length_scale")
    return [Term(1.0, lengths.reshape(()) if lengths.size == 1 else lengths)]


def _sum(kernel: sk.Sum) -> list[Term]:
    return _terms(kernel.k1) + _terms(kernel.k2)


def _product(kernel: sk.Product) -> list[Term]:
    return _expanded(_terms(kernel.k1), _terms(kernel.k2))


def _power(kernel: sk.Exponentiation) -> list[Term]:
    terms, p = _terms(kernel.kernel), float(_parameter(kernel, "exponent"))
    if p > 0 and len(terms) == 1:
        return [terms[0].power(p)]
    if not (p >= 1 and p.is_integer()):
        raise UnsupportedModelError(
            f"Exponentiation of a sum by {p:g} is not supported (supported: a single term to a "
            "positive power, a sum to a positive whole power)"
        )
    result = terms
    for _ in range(int(p) - 1):
        result = _expanded(result, terms)
    return result


def _expanded(left: list[Term], right: list[Term]) -> list[Term]:
    if len(left) * len(right) > LARGEST_EXPANSION:
        raise UnsupportedModelError(
            f"a product or power of sums with more than {LARGEST_EXPANSION} terms is not supported"
        )
    return [a.times(b) for a in left for b in right]


LARGEST_EXPANSION = 1000
"""A sum of m terms to a power p has m^p terms: a few are meant, many would only take memory."""

CONVERTERS: dict[type, Callable[[Any], list[Term]]] = {
    sk.ConstantKernel: _constant,
    sk.WhiteKernel: _white,
    sk.RBF: _rbf,
    sk.Sum: _sum,
    sk.Product: _product,
    sk.Exponentiation: _power,
}
