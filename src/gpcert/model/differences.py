"""The differences of coupled outputs: a posterior with one output per pair.

Proofs: docs/mathematics.md, statement 1.6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from gpcert.errors import InputError
from gpcert.kernels.algebra import scaled_by
from gpcert.model.posterior import Posterior
from gpcert.model.unit_form import UnitForm
from gpcert.model.units import in_units
from gpcert.numerics.rounding import up_float
from gpcert.numerics.spectral import absolute_norm
from gpcert.numerics.triangular import square


def differences_of(posterior: Posterior) -> Posterior:
    """The differences `f_l - f_k`, k < l in lexicographic order, of coupled outputs.

    Each is a Gaussian process with kernel 2k, `t = (t_l - t_k) / 2` and `A = (A_l - A_k) / 2`: then
    `2k t = k (t_l - t_k)` and `|A 2k|^2 = |(A_l - A_k) k|^2`. Where outputs have factors of their
    own and C couples them, A is both their halves and `C = (C_l - C_k) / 2` (`LazyDifferences`).
    All differences are exact: the numbers lie on common grids.
    """
    if not posterior.coupled or np.any(posterior.scale != posterior.scale[0]):
        raise InputError("differences: expected coupled outputs of the same scale")
    first, second = np.triu_indices(posterior.outputs, 1)
    apart = posterior.negative_factor.size > 0
    options: dict[str, Any] = {
        "outputs_of": posterior,
        "kernel": scaled_by(posterior.kernel, 2.0),
        "points": posterior.points,
        "weights": (posterior.weights[second] - posterior.weights[first]) / 2.0,
        "factor": None if apart else (posterior.factor[second] - posterior.factor[first]) / 2.0,
        "offset": posterior.offset[second] - posterior.offset[first],
        "scale": posterior.scale[0],
        "noise": posterior.noise[second] + posterior.noise[first],
        "features": posterior.features,
        "slope": posterior.slope[second] - posterior.slope[first],
    }
    return LazyDifferences(**options) if apart else Differences(**options)


@dataclass(frozen=True, eq=False)
class Differences(Posterior):
    """See `differences_of`."""

    outputs_of: Posterior = field(kw_only=True, repr=False)

    @cached_property
    def unit(self) -> UnitForm:
        """With the excess of the outputs together."""
        return replace(UnitForm.of(self), joint=self.outputs_of.unit)


class LazyDifferences(Differences):
    """Of outputs that a C couples. The factors of m (m - 1) / 2 pairs are made when they are asked
    for (`factors_of`), and never stored: `factor` has no rows."""

    def factors_of(self, output: int) -> tuple[np.ndarray, np.ndarray]:
        """A and C of a pair."""
        A, C = _pair(self.outputs_of.factor, self.outputs_of.negative_factor, output)
        return 0.5 * A, 0.5 * C

    @property
    def precision_count(self) -> int:
        """Every pair has its own."""
        return self.outputs

    @cached_property
    def unit(self) -> PairUnits:
        """The pairs, and the factors of the outputs they are made of, in units of the kernel 2k."""
        base = super().unit
        known = {each.name: getattr(base, each.name) for each in fields(base)}
        both = (self.outputs_of.factor, self.outputs_of.negative_factor)
        A, C = (in_units(0.5 * factor, base.exponent // 2) for factor in both)
        return PairUnits(**known, diagonal=A, coupling=C)


@dataclass(frozen=True, eq=False)
class PairUnits(UnitForm):
    """The unit form of `LazyDifferences`: of pair (k, l) A is `diagonal` of k and l, one above the
    other, and C is `coupling` of l less that of k; both (m, r, N)."""

    diagonal: np.ndarray = field(kw_only=True)
    coupling: np.ndarray = field(kw_only=True)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """(k, l) of every output."""
        first, second = np.triu_indices(len(self.diagonal), 1)
        return tuple(zip(first.tolist(), second.tolist(), strict=True))

    def factors_of(self, output: int) -> tuple[np.ndarray, np.ndarray]:
        """A and C of a pair."""
        return _pair(self.diagonal, self.coupling, output)

    @property
    def precision_count(self) -> int:
        """Every pair has its own."""
        return len(self.pairs)

    @cached_property
    def class_sizes(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Upper bounds of `|| |A_c| ||_2` and `|| |C_c| ||_2` of every output, halved."""
        both = (self.diagonal, self.coupling)
        first, second = (tuple(absolute_norm(F) for F in factors) for factors in both)
        return first, second

    @cached_property
    def factor_sizes(self) -> tuple[tuple[float, float], ...]:
        """From those of the outputs: norms of stacked matrices and of differences."""
        a, b = self.class_sizes
        both = ((math.hypot(a[k], a[j]), b[k] + b[j]) for k, j in self.pairs)
        return tuple((up_float(x, 4), up_float(y, 2)) for x, y in both)

    @cached_property
    def precisions(self) -> Sequence[np.ndarray]:
        """Each is made when it is asked for: all of them take a lot of memory."""
        return _Precisions(self)


@dataclass(frozen=True, eq=False)
class _Precisions(Sequence[np.ndarray]):
    unit: PairUnits

    def __len__(self) -> int:
        return self.unit.precision_count

    def __getitem__(self, output: Any) -> Any:
        A, C = self.unit.factors_of(range(len(self))[output])
        return square(A) - square(C)


def _pair(A: np.ndarray, C: np.ndarray, output: int) -> tuple[np.ndarray, np.ndarray]:
    first, second = (index[output] for index in np.triu_indices(len(A), 1))
    return np.concatenate([A[first], A[second]]), C[second] - C[first]
