"""The latent functions of a posterior in units in which all their numbers are about one.

    mu_c = offset_c + mean_scale_c (k' t'_c + slope'_c.x),
    variance_c = variance_scale_c max(k' - |A'_c k'|^2 + |C'_c k'|^2, 0) + noise_c,

with `k = 2^e k'`, `t_c = 2^w_c t'_c`, `slope_c = 2^(e + w_c) slope'_c`, `A = 2^(-e/2) A'` (C
alike), e even: powers of two, so that
nothing is rounded and the model is the same. Squares of weights of 1e-200 and kernels of variance
1e300 never arise, and what underflow is counted as (`gpcert.numerics.rounding.TINY`) is small
beside all.

Proofs: docs/mathematics.md, statements 1.1, 1.3 and 1.8.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from gpcert.errors import InputError
from gpcert.kernels import Kernel
from gpcert.model.posterior_parts import Factored
from gpcert.model.units import NormSums, in_units, noise_in_units, slope_exponent
from gpcert.numerics.arrays import Points
from gpcert.numerics.rounding import gamma, scaled_to_one, up_float
from gpcert.numerics.spectral import (
    Circles,
    GramBlock,
    absolute_norm,
    coupling_excess,
    gram_circles,
    inverse_distance,
    largest_eigenvalue,
    triangular_eigenvalue,
)
from gpcert.numerics.triangular import Inverse, blocks, square
from gpcert.regions import LinearMap
from gpcert.utils.processes import checkpoint

LOWEST, HIGHEST = -900, 1000
"""Exponents of `mean_scale`. Below, the weights stay small instead: their underflow is then less
than TINY in the units of the output. Above, predictions leave float64. Beside a trend, LOWEST is
that of `mean_scale / offset` too: rounding the offset is counted in unit form."""

SMALL_EXCESS = 1e-8
"""An excess that is as good as any other: beside it nothing is gained by the longer way."""

KNOWN = 4.0
"""What is proved of a known inverse counts so many times: it serves where the margin is large,
and there one that is found from the factor alone proves as much."""

MARGIN = 4.0
"""The same for the distance of a factor from its training noise, which counts as at least so many
times what rounding is expected to leave."""

SUMMED = "summed norms"
"""Where the sums that `norms` are made of wait, once K_ZZ was gone through."""

SMALL_GAIN = 0.5
"""What a coupling may add; beyond, its largest eigenvalue, about 1, is no worse."""


@dataclass(frozen=True, eq=False)
class UnitForm(Factored):
    """See the module. `exponent` is e, `weight_exponents` (m,) are w; arrays as in `Posterior`."""

    kernel: Kernel
    points: Points
    weights: np.ndarray
    factor: np.ndarray
    negative_factor: np.ndarray
    scale: np.ndarray
    coupled: bool
    exponent: int
    weight_exponents: tuple[int, ...]
    features: LinearMap | None
    slope: np.ndarray
    inverse: Inverse | None
    """Of the factor before it was scaled by 2^(e/2), where it is known."""
    training_noise: np.ndarray | None = None
    """`2^-e` times the posterior's."""
    joint: UnitForm | None = None
    """Of the coupled outputs whose differences these are: a pair is their joint operator between
    vectors of length one, so it has their `excess` and `gain`."""

    @staticmethod
    def of(posterior: Any) -> UnitForm:
        """The unit form of a `gpcert.model.posterior.Posterior`."""
        kernel, e = posterior.kernel.in_units(posterior.points)
        factors = [in_units(A, e // 2) for A in (posterior.factor, posterior.negative_factor)]
        weights, exponents, slopes = [], [], []
        numbers = (posterior.weights, posterior.slope, posterior.scale, posterior.offset)
        for t, slope, scale, offset in zip(*numbers, strict=True):
            exponent = scaled_to_one(t)[1] if np.any(t) else -e
            trend = slope_exponent(slope, posterior.points)
            if trend is not None:
                trend = max(trend, math.frexp(offset)[1] - math.frexp(scale)[1] + LOWEST)
                exponent = max(exponent, trend - e) if np.any(t) else trend - e
            exponent = max(exponent, LOWEST - e - math.frexp(scale)[1])
            weights.append(in_units(t, -exponent))
            slopes.append(in_units(slope, -e - exponent))
            exponents.append(exponent)
        return UnitForm(
            kernel,
            posterior.points,
            np.stack(weights),
            factors[0],
            factors[1],
            posterior.scale,
            posterior.coupled,
            e,
            tuple(exponents),
            posterior.features,
            np.stack(slopes),
            posterior.inverse,
            noise_in_units(posterior.training_noise, -e),
        )

    @property
    def outputs(self) -> int:
        """Number of outputs m."""
        return len(self.weights)

    @cached_property
    def mean_scale(self) -> tuple[float, ...]:
        """What one unit of `k' t'_c` is in the output: `scale 2^(e + w)`, exactly."""
        scales = []
        for c, (scale, w) in enumerate(
            zip(self.scale.tolist(), self.weight_exponents, strict=True)
        ):
            mantissa, scale_exponent = math.frexp(scale)
            total = scale_exponent + self.exponent + w
            if total > HIGHEST:
                raise InputError(
                    f"output {c}: scale * weights * kernel is about 2^{total}, "
                    "beyond float64; expected predictions below 1e300: rescale the targets"
                )
            scales.append(math.ldexp(mantissa, total))
        return tuple(scales)

    @cached_property
    def variance_scale(self) -> tuple[float, ...]:
        """What one unit of variance is in the output: `scale^2 2^e`, to one rounding."""
        scales = []
        for c, scale in enumerate(self.scale.tolist()):
            mantissa, scale_exponent = math.frexp(scale)
            square, exponent = mantissa * mantissa, 2 * scale_exponent + self.exponent
            if not -1020 <= exponent <= HIGHEST:
                raise InputError(
                    f"output {c}: scale^2 * kernel, its prior variance, is about 2^{exponent}, "
                    "outside float64's range; expected 1e-300 to 1e300: rescale the targets, or "
                    "ask about the mean"
                )
            scales.append(math.ldexp(square, exponent))
        return tuple(scales)

    @cached_property
    def precisions(self) -> Sequence[np.ndarray]:
        """S = A^T A - C^T C in floating point, for every output or for all at once."""
        both = (self.factors_of(c) for c in range(self.precision_count))
        return tuple(square(A) - square(C) if len(C) else square(A) for A, C in both)

    @cached_property
    def factor_sizes(self) -> tuple[tuple[float, float], ...]:
        """Upper bounds of `|| |A| ||_2` and `|| |C| ||_2`, like `precisions`."""
        both = (self.factors_of(c) for c in range(self.precision_count))
        lower = [self.is_triangular(c) for c in range(self.precision_count)]
        each = zip(both, lower, strict=True)
        return tuple((absolute_norm(A, lower=one), absolute_norm(C)) for (A, C), one in each)

    @cached_property
    def form_norms(self) -> dict[tuple[tuple[int, float], ...], float]:
        """Norms of sums of outputs' precisions (`enclosures.classes.covariances`), by their
        coefficients: found once per model."""
        return {}

    @property
    def gram(self) -> tuple[np.ndarray, np.ndarray]:
        """K_ZZ and bounds of the absolute error of its entries."""
        return self.kernel.gram_with_error(self.points)

    def gram_blocks(self) -> Iterator[GramBlock]:
        """K_ZZ on and below its diagonal, block by block; it is never held as a whole.

        Whoever goes through all of them leaves behind what `norms` are made of, where they are not
        known yet: K_ZZ is formed once for them and for the excess.
        """
        sums = None if {"norms", SUMMED} & vars(self).keys() else NormSums(self.weights)
        pieces = blocks(len(self.points))
        for number, rows in enumerate(pieces):
            checkpoint()
            for columns in pieces[: number + 1]:
                K, errors = self.kernel.gram_with_error(self.points, rows, columns)
                block = GramBlock(rows, columns, K, errors)
                if sums is not None:
                    sums.add(block)
                yield block
        if sums is not None:
            vars(self)[SUMMED] = sums

    @cached_property
    def norms(self) -> Annotated[np.ndarray, "m"]:
        """(m,) upper bounds B_c of the RKHS norm of k' t'_c: `B^2 = t^T K_ZZ t`, rounded up."""
        if SUMMED not in vars(self):
            for _ in self.gram_blocks():
                pass
        bounds = vars(self).pop(SUMMED).bounds()
        if not np.all(np.isfinite(bounds)):
            raise InputError(
                "kernel: its values at the points leave float64, so that no norm can be bounded; "
                "check the kernel's parameters and the units of the points"
            )
        return bounds

    @cached_property
    def excess(self) -> float:
        """kappa >= 0 with `A K_ZZ A^T <= (1 + kappa) I` for every output.

        The posterior covariance operator `P = I - Phi S Phi*` then satisfies
        `-kappa I <= P <= gain I`, as the part with C is positive.
        An exact posterior has kappa = 0; the stored factor is rounded, so kappa is proved, not
        assumed. Coupled outputs have one operator: `sum_c A_c K_ZZ A_c^T <= (1 + kappa) I`; where a
        C couples them, each has its own A, and that part of P is positive.
        """
        if self.joint is not None:
            return self.joint.excess
        joint = self.coupled and not self.negative_factor.size
        numbers = range(len(self.factor))
        groups = [tuple(numbers)] if joint else [(c,) for c in numbers]
        largest = max(map(self._largest_eigenvalue, groups))
        return max(0.0, largest - 1.0)

    def _largest_eigenvalue(self, group: tuple[int, ...]) -> float:
        """Upper bound of that of `sum_c A_c K_ZZ A_c^T`; the short ways where they are as good.

        A file holds the factor and no inverse of it. So a known one only says that there is no
        excess; any other is found from the factor, and a loaded model answers like the saved one.
        """
        factors, short = [self.factor[c] for c in group], math.inf
        if len(group) == 1 and self.triangular[group[0]]:
            known = self.known_inverse
            if known is not None and triangular_eigenvalue(*known) <= 1.0:
                return 1.0
            short = triangular_eigenvalue(*self.certified_inverse(group[0]))
            if short <= 1.0 + SMALL_EXCESS:
                return short
        return min(short, largest_eigenvalue(factors, *self.gram))

    @cached_property
    def known_inverse(self) -> tuple[Inverse, Circles] | None:
        """That of the factor, where it came with one; its residual counts `KNOWN` times."""
        if self.inverse is None:
            return None
        known = self.inverse.scaled(self.exponent // 2)
        known = replace(known, residual=KNOWN * known.residual)
        object.__setattr__(self, "inverse", None)  # as large as the factor, and of no further use
        return known, gram_circles(known.root, self.gram_blocks())

    def certified_inverse(self, index: int) -> tuple[Inverse, Circles]:
        """From a triangular factor alone."""
        inverse = Inverse.with_matrix(self.factor[index])
        return inverse, gram_circles(inverse.root, self.gram_blocks())

    @cached_property
    def distances(self) -> tuple[float, ...]:
        """eta with `|k(x, Z) ((K + Sigma)^-1 - A^T A) k(Z, x)| <= eta k(x, x)` for every x, like
        `precisions`: how far the stored factor is from the training noise Sigma; 0 without one.

        With `E = A (K + Sigma) A^T - I`, `|E| <= e < 1`, and q = A k: `(K + Sigma)^-1 = A^T
        (I + E)^-1 A`, so it is at most `e / (1 - e) |q|^2`, and `|q|^2 <= (1 + e) k(x, x)`
        (Statement 1.12).
        """
        if self.training_noise is None:
            return (0.0,) * self.precision_count
        return tuple(map(self._distance, range(self.precision_count)))

    def _distance(self, index: int) -> float:
        assert self.training_noise is not None, "asked only where it is known"
        noise = self.training_noise[index]
        if not (self.triangular[index] and np.all(np.isfinite(noise))):
            return math.inf
        size = self.factor_sizes[index][0]
        # what rounding may leave; a known inverse says only whether that is all: see `excess`
        norm2 = min(size * size, 1.0 / float(noise.min()))
        allowed = MARGIN * gamma(len(noise)) * norm2 * (self.trace + float(noise.max()))
        distance = math.inf
        if self.known_inverse is not None:
            distance = KNOWN * inverse_distance(*self.known_inverse, noise, size)
        if distance > allowed:
            distance = inverse_distance(*self.certified_inverse(index), noise, size)
        e = max(distance, allowed)
        return up_float(e * (1.0 + e) / (1.0 - e), 8) if e < 0.5 else math.inf

    @cached_property
    def trace(self) -> float:
        """Upper bound of that of K_ZZ."""
        total, pieces = 0.0, blocks(len(self.points))
        for rows in pieces:
            block = GramBlock(rows, rows, *self.kernel.gram_with_error(self.points, rows, rows))
            total += block.trace
        return up_float(total, len(pieces) + 8)

    @property
    def root_trace(self) -> float:
        """At least the norm of `sum_i y_i k(., z_i)` for every y of length one."""
        return up_float(math.sqrt(self.trace), 2)

    @cached_property
    def smallest_variances(self) -> tuple[float, ...]:
        """About the smallest variance at the points, like `precisions`, where the noise is known:
        `noise - noise^2 S_ii`. It says which bounds are worth their time, and proves nothing."""
        assert self.training_noise is not None, "asked only where it is known"
        smallest = []
        for noise, A in zip(self.training_noise, self.factor, strict=True):
            seen = np.isfinite(noise)
            explained = noise[seen] * np.square(A[:, seen]).sum(axis=0)
            share = np.clip(1.0 - explained, 1.0 / len(noise), 1.0)
            smallest.append(float((noise[seen] * share).min(initial=math.inf)))
        return tuple(smallest)

    @cached_property
    def gain(self) -> float:
        """1 + an upper bound of the largest eigenvalue of `C K_ZZ C^T`: 1 where there is no C.

        Of a C that couples outputs: how far it exceeds what the A take off (Statement 1.11).
        """
        if self.joint is not None:
            return self.joint.gain
        if not self.negative_factor.size:
            return 1.0
        groups = [(C,) for C in self.negative_factor]
        if self.coupled:
            least = coupling_excess(
                list(self.factor), list(self.negative_factor), self.excess, self.trace
            )
            if least <= SMALL_GAIN:
                return up_float(1.0 + least, 2)
            groups = [tuple(self.negative_factor)]
        largest = max(largest_eigenvalue(group, *self.gram) for group in groups)
        return up_float(1.0 + largest, 2) if largest > 0 else 1.0
