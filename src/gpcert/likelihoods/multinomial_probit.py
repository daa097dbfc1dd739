"""Several classes, the largest of noisy latent values: the multinomial probit likelihood.

Proofs: docs/mathematics.md, statement 9.14.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from gpcert.errors import InputError
from gpcert.integrals.independent_maximum import independent_maximum
from gpcert.integrals.moments import ClassMoments, IndependentMoments, check_law
from gpcert.integrals.plain_probabilities import largest_probabilities
from gpcert.integrals.sectors import (
    DENSITY_ULPS,
    Sector,
    normal_derivatives,
    score_bounds,
    sector_moments,
    slepian_bounds,
)
from gpcert.integrals.special import normal_cdf
from gpcert.likelihoods.base import ClassLikelihood
from gpcert.likelihoods.probit import StepLink
from gpcert.numerics.arrays import (
    Array,
    Gaps,
    PerCell,
    PerCellAndClass,
    PerOrder,
    finite_array,
    namespace,
)
from gpcert.numerics.rounding import U

LARGEST_SCALE = 2.0**100
"""Largest standard deviation, and one over the smallest, that is accepted: nothing overflows."""

LARGEST_MEAN = 2.0**400
"""Largest |mean| that is accepted."""


@dataclass(frozen=True)
class MultinomialProbit(ClassLikelihood):
    """`pi_c = P(f_c + e_c is the largest)`, `e_k ~ N(0, noise)` independent.

    Certified for general covariances of 2 and 3 classes, and of any number of independent ones.
    Reference: Girolami & Rogers 2006, "Variational Bayesian multinomial probit regression with
    Gaussian process priors"; Rasmussen & Williams 2006, section 3.5.

    >>> MultinomialProbit(noise=0.5).config()
    {'noise': 0.5}
    """

    noise: float = 1.0

    name: ClassVar[str] = "multinomial_probit"
    largest_coupled: ClassVar[int] = 3

    def __post_init__(self) -> None:
        noise = float(finite_array("noise", self.noise, ndim=0))
        object.__setattr__(self, "noise", noise)
        if not LARGEST_SCALE**-2 <= noise <= LARGEST_SCALE**2:
            raise InputError(
                "noise: expected a positive variance between 2^-200 and 2^200, "
                f"got {self.noise!r}; 1.0 is usual"
            )

    def config(self) -> dict[str, Any]:
        return {"noise": self.noise}

    @property
    def pair(self) -> StepLink:
        """`Phi(mu / sqrt(v))`: the noise of both classes is in v."""
        return StepLink()

    def link_bound(self, order: int) -> float:
        """Infinite: the link is a step."""
        del order
        return math.inf

    def joint_range(
        self, wins: tuple[Array, Array], correlation: tuple[PerCell, PerCell]
    ) -> tuple[PerCell, PerCell] | None:
        """`Phi_2(h; rho)` with `Phi(h_k) = P(beat k)`: `slepian_bounds` at the ends."""
        low, high = (score_bounds(p) for p in wins)
        return slepian_bounds(low[0], high[1], *correlation)

    def moments(self, a: Gaps, L: Array, order: int) -> ClassMoments:
        """Closed forms: the normal distribution for 2 classes, sectors of the plane for 3.

        In the whitened coordinates z the differences `d = a + L z` of three classes cut the plane
        into three sectors, one for each class.
        """
        check_law("multinomial probit", a, L, order, MultinomialProbit.largest_coupled)
        xp = namespace(a)
        # the errors below count roundings of float64
        a, L = (xp.astype(x, xp.float64, copy=False) for x in (a, L))
        good = bool(xp.all(abs(a) <= LARGEST_MEAN)) and bool(xp.all(abs(L) <= LARGEST_SCALE))
        if not good or not bool(xp.all(xp.linalg.diagonal(L) >= 1.0 / LARGEST_SCALE)):
            raise InputError(
                "a, L: expected |a| <= 2^400, |L| <= 2^100 and a diagonal of L above 2^-100, got "
                "other numbers or NaN; is the likelihood's noise in the covariance?"
            )
        return _two_classes(a, L, order) if a.shape[1] == 1 else _three_classes(a, L, order)

    def independent_moments(
        self, mu: PerCellAndClass, v: PerCellAndClass, weights: Array
    ) -> IndependentMoments:
        """One integral over the largest value; see `independent_maximum`."""
        xp = namespace(mu, v, weights)
        parts = xp.broadcast_arrays(mu, v, weights)
        mu, v, weights = (xp.astype(x, xp.float64, copy=False) for x in parts)
        good = (abs(mu) <= LARGEST_MEAN) & (v >= 0.0) & (v <= LARGEST_SCALE**2)
        good = good & (abs(weights) <= LARGEST_SCALE)
        if mu.ndim != 2 or mu.shape[1] < 2 or not bool(xp.all(good)):
            raise InputError(
                "mu, v, weights: expected (B, m) finite numbers of m >= 2 classes, 0 <= v <= 2^200 "
                f"and |weights| <= 2^100, got shapes {tuple(mu.shape)} or numbers outside"
            )
        return independent_maximum(mu, xp.sqrt(v + self.noise), weights)

    def products(
        self, value: PerCell, gradient: PerCellAndClass, errors: PerOrder, c: int
    ) -> tuple[PerCellAndClass, PerCell]:
        """Only one class is the largest, so that `link_c^2 = link_c` and `link_c link_k = 0`."""
        indicator = namespace(value).asarray(np.eye(gradient.shape[1])[c], device=value.device)
        return indicator * value[:, None], errors[:, 0]

    def probabilities(
        self, mean: np.ndarray, covariance: np.ndarray
    ) -> Annotated[np.ndarray, "n m"]:
        """Owen's function for up to 3 classes, a deterministic lattice rule for more."""
        mean = np.asarray(mean, dtype=np.float64)
        noisy = np.asarray(covariance, dtype=np.float64) + self.noise * np.eye(mean.shape[1])
        return largest_probabilities(mean, noisy)


def _two_classes(a: Array, L: Array, order: int) -> ClassMoments:
    """`pi_1 = Phi(h + z)`, `h = a / L`, within 8 U; `pi_0 = Phi(-h - z)`; see `DENSITY_ULPS`.

    Phi errs by 66 U (library) and `8 U sup |h phi(h)| < 2 U`.
    """
    xp = namespace(a)
    h = xp.clip(a[:, 0] / L[:, 0, 0], -64.0, 64.0)
    value = xp.stack([normal_cdf(-h), normal_cdf(h)], axis=1)
    derivatives = tuple(
        xp.reshape(xp.stack([-part, part], axis=1), (-1, 2, *([1] * i)))
        for i, part in enumerate(normal_derivatives(h, order), start=1)
    )
    errors = xp.full((len(h), order + 1), (DENSITY_ULPS + 6.0) * U, dtype=h.dtype, device=h.device)
    return ClassMoments(value, derivatives, errors)


def _three_classes(a: Array, L: Array, order: int) -> ClassMoments:
    """The sectors `d_1, d_2 < 0`; `d_2 < d_1, d_1 > 0`; `d_2 > 0, d_2 > d_1`, turning one way.

    Rounding: differences of rows of L and of a are within U, relative. A row over its largest
    entry has length l in [1, 2], within 3 U; so normals are within 2 + 5 U, lengths 5 U, scores
    7 U. Every two rows have the determinant `L_00 L_11`, so that sines are within 13 U.
    """
    xp = namespace(a)
    zero = xp.zeros_like(a[:, 0])
    rows = [
        xp.stack([L[:, 0, 0], zero], axis=1),
        L[:, 1, :],
        xp.stack([L[:, 1, 0] - L[:, 0, 0], L[:, 1, 1]], axis=1),
    ]
    offsets = [a[:, 0], a[:, 1], a[:, 1] - a[:, 0]]
    lengths, normals = zip(*(_normalised(row) for row in rows), strict=True)
    scores = [-b / length for b, length in zip(offsets, lengths, strict=True)]
    # (line, side) of both edges of each class; the first normal turns left into the second
    first, second = ((0, 1.0), (2, 1.0), (1, -1.0)), ((1, 1.0), (0, -1.0), (2, -1.0))
    sines = [
        (L[:, 0, 0] / lengths[i]) * (L[:, 1, 1] / lengths[j])
        for (i, _), (j, _) in zip(first, second, strict=True)
    ]
    parts = ((normals, first), (normals, second), (scores, first), (scores, second))
    n, n2, h, k = (xp.stack([side * of[i] for i, side in lines], axis=1) for of, lines in parts)
    tensors, errors = sector_moments(Sector(n, n2, h, k, xp.stack(sines, axis=1)), order)
    worst = xp.stack([xp.max(error, axis=1) for error in errors], axis=1)
    return ClassMoments(tensors[0], tuple(tensors[1:]), worst)


def _normalised(row: Array) -> tuple[Array, Array]:
    """Length (B,) of rows (B, 2) and the rows over it."""
    xp = namespace(row)
    largest = xp.max(xp.abs(row), axis=1)
    scaled = row / largest[:, None]
    length = xp.sqrt(xp.sum(scaled * scaled, axis=1))
    return largest * length, scaled / length[:, None]
