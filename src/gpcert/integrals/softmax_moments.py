"""`E softmax(0, d)` for `d = a + L z` and its derivatives in z, with proved errors.

The last difference is integrated in closed form: given z_1..z_{n-1}, softmax_n is the logistic
function of `t + L_nn z_n`, `t = a_n + sum_j L_nj z_j - log(1 + sum_{k<n} exp d_k)`, and the other
classes share the rest in the fixed proportions `p_c = softmax_c(0, d_1..d_{n-1})`. The other n - 1
coordinates are left to the trapezoidal rule. So two classes need no rule at all.

Proofs: docs/mathematics.md, statements 8.5, 9.2, 9.7 and 9.8.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import array_api_compat
import numpy as np

from gpcert.errors import InputError
from gpcert.integrals.moments import ClassMoments, check_law
from gpcert.integrals.normal_rule import REACH, SPREADS, NormalRule, graded_indices, normal_rule
from gpcert.integrals.special import erf
from gpcert.numerics.arrays import Array, Gaps, PerCell, namespace, to_numpy
from gpcert.numerics.rounding import gamma, given, up, up_float
from gpcert.utils.processes import checkpoint

LOGISTIC_ERROR = 6e-14
"""`|sigma(x) - (1 + sum_i c_i erf(x / sqrt d_i)) / 2| <= 6e-14` for all x and `LOGISTIC_TERMS`.

Reason: the logistic law is a scale mixture of normal laws (Andrews & Mallows 1974), cut here to 18
geometrically spaced scales, weights by least squares in 40 digits; the tests prove the bound for
these floats in interval arithmetic (Statement 8.5). Reference: Monahan & Stefanski 1992, "Normal
scale mixture approximations to F*(z)...", with eight terms."""

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
    terms = xp.asarray(np.array(LOGISTIC_TERMS).T.copy(), device=array_api_compat.device(t))
    scales, masses = terms[0], terms[1]
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


LARGEST_GRID_DIMENSION = 3
"""Largest number n of differences."""

_BLOCK_NUMBERS = 400_000
"""Numbers in one of the largest arrays; a few of these live at once, and stay in the cache."""

_TERMS = 18
_FARTHEST = 1e30
"""Latent values are cut here: rounding makes larger ones meaningless, and the errors say so."""


@dataclass(frozen=True, eq=False)
class _Group:
    """Cells that share a rule; `fixed` and `factors` (1 + order,) of the error, see `_errors`."""

    rows: np.ndarray
    rule: NormalRule
    fixed: np.ndarray
    factors: np.ndarray


def softmax_moments(a: Gaps, L: Array, order: int) -> ClassMoments:
    """Certified moments for a (B, n) and lower triangular L (B, n, n), order 0..4, n <= 3.

    Statement: see `ClassMoments`. The derivative of index alpha of `z0 -> E softmax(a + L(z + z0))`
    at 0 is `E[softmax(a + L z) He_alpha(z)]` (move the shift into the density and differentiate).
    The softmax is in the class of `normal_rule` for the spreads
    `max_k(0, L_kj) - min_k(0, L_kj)` (Statement 9.7).
    """
    check_law("softmax moments", a, L, order, LARGEST_GRID_DIMENSION + 1)
    xp = namespace(a)
    if not bool(xp.all(xp.isfinite(a))) or not bool(xp.all(xp.isfinite(L))):
        raise InputError("softmax moments: expected finite means and factors, got NaN or infinity")
    # what is found is put into arrays like a, whose precision it would get
    a, L = (xp.astype(x, xp.float64, copy=False) for x in (a, L))
    a, L = xp.clip(a, -_FARTHEST, _FARTHEST), xp.clip(L, -_FARTHEST, _FARTHEST)
    n = a.shape[1]
    device = array_api_compat.device(a)
    flat = xp.zeros((len(a), n + 1, len(graded_indices(n, order))), dtype=a.dtype, device=device)
    errors = xp.empty((len(a), order + 1), dtype=a.dtype, device=device)
    for group in _groups(a, L, order):
        both = (group.rule.nodes, group.rule.weights)
        nodes, weights = (xp.asarray(part, dtype=xp.float64, device=device) for part in both)
        across = min(len(nodes), _BLOCK_NUMBERS // (4 * _TERMS))
        down = max(1, _BLOCK_NUMBERS // (_TERMS * across))
        for start in range(0, len(group.rows), down):
            rows = xp.asarray(group.rows[start : start + down], device=device)
            mean, factor = xp.take(a, rows, axis=0), xp.take(L, rows, axis=0)

            for q in range(0, len(nodes), across):
                checkpoint()
                block = slice(q, q + across)
                flat[rows] += _sums(mean, factor, nodes[block, :], weights[block, :], order)
            errors[rows] = _errors(mean, factor, group, order)
    tensors = tuple(_tensor(flat, n, order, j) for j in range(1, order + 1))
    value = xp.clip(flat[:, :, 0], 0.0, 1.0)  # where the true value lies
    return ClassMoments(value, tensors, _no_worse_than_nothing(errors, tensors))


def _groups(a: Array, L: Array, order: int) -> Iterator[_Group]:
    """Cells by the classes of their spreads; a spread beyond the last class has no rule's error."""
    lower = np.tril(to_numpy(L))
    n = a.shape[1]
    spreads = up(np.maximum(lower.max(axis=1), 0.0) - np.minimum(lower.min(axis=1), 0.0))
    kinds = np.searchsorted(np.array(SPREADS), spreads[:, : n - 1])
    for kind in np.unique(kinds, axis=0):
        rows = np.flatnonzero((kinds == kind).all(axis=1))
        within = all(i < len(SPREADS) for i in kind)
        rule = normal_rule(tuple(SPREADS[min(i, len(SPREADS) - 1)] for i in kind))
        fixed, factors = frobenius_norms(rule, order)
        yield _Group(rows, rule, fixed if within else fixed + math.inf, factors)


def frobenius_norms(
    rule: NormalRule, order: int
) -> tuple[Annotated[np.ndarray, "orders"], Annotated[np.ndarray, "orders"]]:
    """Frobenius norms over the entries of each order of `sqrt(r!) errors` and `sqrt(r!) sizes`.

    r is the degree in the last coordinate, whose mean of `softmax He_r` is at most `E|He_r| <=
    sqrt(r!)`. The norm of a form on unit vectors is at most its Frobenius norm.
    """
    errors = dict(zip(rule.indices, rule.errors, strict=True))
    sizes = dict(zip(rule.indices, rule.sizes, strict=True))
    squares = np.zeros((2, order + 1))
    for alpha in graded_indices(rule.nodes.shape[1] + 1, order):
        outer, j = alpha[:-1], sum(alpha)
        # j! / alpha! entries of the tensor, times (sqrt(r!))^2
        copies = math.factorial(j) / math.prod(math.factorial(i) for i in outer)
        squares[0, j] += copies * errors[outer] ** 2
        squares[1, j] += copies * sizes[outer] ** 2
    fixed, factors = up(np.sqrt(squares), 64)
    return fixed, factors


def _sums(a: Array, L: Array, nodes: Array, weights: Array, order: int) -> Array:
    """Sums over nodes of weights times the means over z_n: (b, m, A), `graded_indices`."""
    xp = namespace(a)
    b, n = a.shape
    start = xp.zeros_like(weights[:, 0])[None, :]
    differences = [a[:, k : k + 1] + start for k in range(n)]
    for k, j in itertools.product(range(n), range(n - 1)):
        if j <= k:
            differences[k] = differences[k] + L[:, k, j : j + 1] * nodes[None, :, j]
    earlier = xp.stack([xp.zeros_like(differences[0]), *differences[:-1]], axis=1)
    largest = xp.max(earlier, axis=1)
    shares = xp.exp(earlier - largest[:, None, :])
    total = xp.sum(shares, axis=1)
    shares = shares / total[:, None, :]
    t = differences[-1] - (largest + xp.log(total))
    columns = {}
    for r, moment in enumerate(logistic_moments(t, L[:, n - 1, n - 1], order)):
        rest = 1.0 - moment if r == 0 else -moment
        values = xp.concat([shares * rest[:, None, :], moment[:, None, :]], axis=1)
        outer = graded_indices(n - 1, order - r)
        sums = xp.matmul(xp.reshape(values, (b * (n + 1), -1)), weights[:, : len(outer)])
        sums = xp.reshape(sums, (b, n + 1, len(outer)))
        columns |= {(*index, r): sums[:, :, i] for i, index in enumerate(outer)}
    return xp.stack([columns[alpha] for alpha in graded_indices(n, order)], axis=2)


def _errors(a: Array, L: Array, group: _Group, order: int) -> Array:
    """Errors (b, 1 + order): the rule's, and every node's times the sizes of the weights.

    A node's, over sqrt(r!): let S be the largest `|a_k| + sum_j |L_kj| |z_j|`. The differences err
    by `gamma(n) S`, log-sum-exp (Lipschitz, constant 1) and t altogether by less than `tau =
    gamma(2 n + 12) S + gamma(64)`, exp, log and the sum included. The link moves by at most tau / 4
    (its slope is at most 1/4), each share by at most `tau / 2 + gamma(30) <= tau`, then come
    `LOGISTIC_MOMENT_ERROR` and the roundings of the products and sums over the nodes.
    """
    xp = namespace(a)
    n, nodes = a.shape[1], len(group.rule.nodes)
    size = xp.max(xp.abs(a) + REACH * xp.sum(xp.abs(L[:, :, : n - 1]), axis=2), axis=1)
    fixed = LOGISTIC_MOMENT_ERROR + gamma(128) + 1.01 * gamma(nodes + nodes // 64 + 16)
    noise = up((2.0 * gamma(2 * n + 12)) * size + fixed, 16)
    columns = [
        up_float(float(group.fixed[j])) + up(float(group.factors[j]) * noise, 2)
        if math.isfinite(group.fixed[j])
        else xp.full_like(noise, math.inf)
        for j in range(order + 1)
    ]
    return up(xp.stack(columns, axis=1), 2)


@lru_cache(maxsize=64)
def _positions(n: int, order: int, degree: int) -> np.ndarray:
    """Where the entries of the tensor of this degree, flattened, stand among `graded_indices`."""
    place = {alpha: i for i, alpha in enumerate(graded_indices(n, order))}
    entries = itertools.product(range(n), repeat=degree)
    return np.array([place[tuple(entry.count(k) for k in range(n))] for entry in entries])


def _tensor(flat: Array, n: int, order: int, degree: int) -> Array:
    xp = namespace(flat)
    where = xp.asarray(_positions(n, order, degree), device=array_api_compat.device(flat))
    return xp.reshape(xp.take(flat, where, axis=2), (*flat.shape[:2], *([n] * degree)))


def _no_worse_than_nothing(errors: Array, tensors: tuple[Array, ...]) -> Array:
    """The errors, cut at what holds without any rule: 1 for values within [0, 1], and for order j
    the computed form's norm plus `sqrt(j!) / 2 >= |E[(softmax - 1/2) He_j(u . z)]|`, |u| = 1.
    """
    xp = namespace(errors)
    columns = [xp.ones_like(errors[:, 0])]
    for j, tensor in enumerate(tensors, start=1):
        entries = given(xp.reshape(tensor, (*tensor.shape[:2], -1)))
        norm = xp.max(xp.sqrt(xp.sum(entries * entries, axis=2)), axis=1)
        # at most 3^4 squares are added
        columns.append(up(norm + 0.5 * math.sqrt(math.factorial(j)), 800))
    return xp.minimum(errors, xp.stack(columns, axis=1))
