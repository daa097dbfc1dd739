"""The partition of the latent differences into boxes, and the links' values at their corners.

Proofs: docs/mathematics.md, statement 12.9.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import special

from gpcert.arrays import Array, namespace
from gpcert.enclosures.paper.conditional import Range
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood, MultinomialProbit, Softmax
from gpcert.rounding import EXP_ULPS, TINY, down, gamma, up

REACH = 41.0
"""Standard deviations to the outermost cuts: beyond each lies less than Phi(-40) < 2^-1100."""

SMALLEST_SPREAD = 1e-3
"""Smallest scale of a partition: no link changes much over it, and the cuts stay apart."""

LARGEST_EXPONENT = 700.0
"""Exponents are cut here, exp(-700) < TINY: the value's TINY stands for what lies beyond."""


@lru_cache(maxsize=32)
def _quantiles(pieces: int) -> np.ndarray:
    return special.ndtri(np.arange(1, pieces) / pieces)


def cuts(mean: Range, variance: Range, pieces: int) -> Array:
    """(B, pieces + 1) nondecreasing cuts, which leave out less than 2 Phi(-40) of `N(mean, v)`.

    The inner ones are quantiles of a normal law with twice the variance: where a density p is cut
    into steps of width h the sum of `p h * h` is least for `h ~ p^(-1/2)`. An odd number of pieces
    has its middle in the middle of one.
    """
    xp = namespace(mean[0])
    center = 0.5 * mean[0] + 0.5 * mean[1]
    deviation = xp.sqrt(variance[1])
    scale = 2.0**0.5 * deviation + 0.5 * (mean[1] - mean[0])
    scale = xp.maximum(scale, xp.full_like(scale, SMALLEST_SPREAD))
    steps = xp.asarray(_quantiles(pieces), device=center.device)
    inner = center[:, None] + scale[:, None] * steps
    far = up(REACH * deviation, 4)
    first = xp.minimum(down(mean[0] - far, 1), inner[:, 0])
    last = xp.maximum(up(mean[1] + far, 1), inner[:, -1])
    return xp.concat([first[:, None], inner, last[:, None]], axis=1)


def link_range(likelihood: ClassLikelihood, c: int, boxes: list[Range]) -> Range:
    """Certified range of link_c over boxes of the differences (arrays that broadcast).

    Statement: link_c does not fall with `d_c - d_k` for any k (d_0 = 0), so it is least where d_c
    is least and the others are greatest, and the other way round; for c = 0 where all d_k are.
    Reference: Proposition "BOundsGenericMulticlass" for the softmax; ties have probability 0.
    """
    least = [box[0 if k == c else 1] for k, box in enumerate(boxes, start=1)]
    most = [box[1 if k == c else 0] for k, box in enumerate(boxes, start=1)]
    if isinstance(likelihood, Softmax):
        return _softmax(c, least)[0], _softmax(c, most)[1]
    if isinstance(likelihood, MultinomialProbit):
        return _largest(c, least, strict=True), _largest(c, most, strict=False)
    raise InputError(
        f"method: the paper's method knows the links of Softmax and MultinomialProbit, got "
        f"{type(likelihood).__name__}; use method='taylor'"
    )


def _rivals(c: int, d: list[Array]) -> list[Array]:
    """`d_k - d_c` for all k != c, each rounded once."""
    values = [0.0 * d[0], *d]
    return [value - values[c] for k, value in enumerate(values) if k != c]


def _softmax(c: int, d: list[Array]) -> Range:
    """Certified `1 / (1 + sum_k exp(d_k - d_c))` within [0, 1].

    An exponent x is within U |x|, so its exponential within `(EXP_ULPS + 2 * 700) U`, relative.
    """
    xp = namespace(*d)
    shares = [
        xp.exp(xp.clip(rival, -LARGEST_EXPONENT, LARGEST_EXPONENT)) for rival in _rivals(c, d)
    ]
    total = shares[0]
    for share in shares[1:]:
        total = total + share
    value = 1.0 / (1.0 + total)
    error = value * gamma(EXP_ULPS + 2 * LARGEST_EXPONENT + 16) + TINY
    return xp.clip(value - error, 0.0, 1.0), xp.clip(value + error, 0.0, 1.0)


def _largest(c: int, d: list[Array], strict: bool) -> Array:
    """1 where d_c is the largest (alone, if strict), else 0; the signs of differences are exact."""
    rivals = _rivals(c, d)
    xp = namespace(*rivals)
    largest = rivals[0]
    for rival in rivals[1:]:
        largest = xp.maximum(*xp.broadcast_arrays(largest, rival))
    wins = largest < 0 if strict else largest <= 0
    return xp.where(wins, xp.ones_like(largest), xp.zeros_like(largest))
