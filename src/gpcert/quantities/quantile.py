"""Quantiles of a regression's prediction, also of targets behind increasing functions.

Proofs: docs/mathematics.md, statement 7.8.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from gpcert.errors import InputError
from gpcert.functions import Curve
from gpcert.functions.quantiles import normal_quantile_bounds
from gpcert.likelihoods import Likelihood
from gpcert.numerics.arrays import Reals, namespace, to_numpy
from gpcert.quantities.output import Band, OutputQuantity


@dataclass(frozen=True)
class Quantile(OutputQuantity):
    """`sign h(mu_c + z std_c)`, the quantile at `level` = Phi(z) of h(f), f ~ N(mu_c, V_c).

    h is the model's own, `Likelihood.curve`, which verbs put in: the identity of a regression, exp
    of one of logarithms, the inverse of what its targets went through. The model's noise term
    counts, further noise of observations does not.

    >>> Quantile(0.9).bounds[0] < 1.2815515655446004 < Quantile(0.9).bounds[1]
    True
    """

    level: float
    output: int = 0
    sign: int = 1
    curve: Curve = field(default_factory=Curve, repr=False)

    def __post_init__(self) -> None:
        _ = self.bounds  # an error for what is no level

    @property
    def bounds(self) -> tuple[float, float]:
        """Certified ends of z."""
        return normal_quantile_bounds(self.level)

    def of(self, likelihood: Likelihood) -> Quantile:
        """The same of a model with this likelihood."""
        if likelihood.curve is None:
            raise InputError(
                f"Quantile: expected a regression, got a model with the likelihood {likelihood!r}; "
                "ask for its probability"
            )
        return replace(self, curve=likelihood.curve)

    @property
    def known(self) -> tuple[float, float]:
        """The range of h, or its negative."""
        low, high = self.curve.range
        return (low, high) if self.sign > 0 else (0.0 - high, 0.0 - low)

    def lowest(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """h of the least `mu + z std`, or minus h of the greatest one, by the nearer end of z."""
        z = self.bounds[0] if self.sign > 0 else self.bounds[1]
        least = Band(self.output, self.sign, -self.sign * z).lowest(alpha, beta, v_low, v_high)
        return self.curve.below(least) if self.sign > 0 else -self.curve.above(-least)

    def highest(self, q: Reals, v_low: Reals, v_high: Reals) -> Reals:
        z = self.bounds[1] if self.sign > 0 else self.bounds[0]
        most = Band(self.output, self.sign, -self.sign * z).highest(q, v_low, v_high)
        return self.curve.above(most) if self.sign > 0 else -self.curve.below(-most)

    def value(self, q: Reals, v: Reals) -> Reals:
        return self.sign * self.curve(self._latent(q, v))

    def slopes(self, q: Reals, v: Reals) -> tuple[Reals, Reals]:
        """h' times those of a band."""
        xp, latent = namespace(q), self._latent(q, v)
        outer = xp.asarray(self.curve.slope(np.atleast_1d(to_numpy(latent))), device=q.device)
        outer = xp.reshape(outer, latent.shape)
        return tuple(outer * part for part in self._band.slopes(q, v))  # pyright: ignore[reportReturnType]

    def level_slope(self, q: Reals, v: Reals) -> Reals:
        return self._band.level_slope(q, v)

    def corners(self, v_low: Reals, v_high: Reals) -> tuple[Reals, Reals]:
        return self._band.corners(v_low, v_high)

    @property
    def _band(self) -> Band:
        return Band(self.output, self.sign, -self.sign * sum(self.bounds) / 2)

    def _latent(self, q: Reals, v: Reals) -> Reals:
        """About `mu + z std`."""
        return self.sign * self._band.value(q, v)
