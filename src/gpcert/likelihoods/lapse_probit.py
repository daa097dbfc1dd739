"""The probit likelihood kept away from 0 and 1: GPflow's Bernoulli likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gpcert.arrays import Array, finite_array
from gpcert.errors import InputError
from gpcert.likelihoods.base import BinaryLikelihood
from gpcert.likelihoods.probit import Probit
from gpcert.rounding import down, up

_ROUNDINGS = 3  # 1 - 2 e, the product and the sum; all of numbers >= 0, so that errors add up


@dataclass(frozen=True)
class LapseProbit(BinaryLikelihood):
    """`F(mu, v) = e + (1 - 2 e) Phi(mu / sqrt(1 + v))`, for `f ~ N(mu, v)`: labels that are wrong
    with probability e, whatever f is.

    It is an affine, increasing image of the probit likelihood, so every bound is the image of a
    bound of `Probit`, rounded outward; `F(mu, v) + F(-mu, v) = 1` exactly. GPflow's `Bernoulli`
    predicts with e = 0.001, `0.998 Phi + 0.001` (gpflow/likelihoods/utils.py, inv_probit); the
    float64 sum of its two constants and their doubles is 1 up to 2e-18.

    >>> import numpy as np
    >>> LapseProbit(0.001).value(np.array([0.0, 50.0]), np.array([2.0, 0.0])).tolist()
    [0.5, 0.999]
    """

    lapse: float = 0.001

    name: ClassVar[str] = "lapse-probit"

    def __post_init__(self) -> None:
        lapse = float(finite_array("lapse", self.lapse, ndim=0))
        if not 0.0 <= lapse < 0.5:
            raise InputError(f"lapse: expected a probability below 1/2, got {self.lapse!r}")
        object.__setattr__(self, "lapse", lapse)

    def _image(self, probability: Array) -> Array:
        return (1.0 - 2.0 * self.lapse) * probability + self.lapse

    def value(self, mu: Array, v: Array) -> Array:
        return self._image(Probit().value(mu, v))

    def slopes(self, mu: Array, v: Array) -> tuple[Array, Array]:
        """`1 - 2 e` times those of the probit."""
        by_mu, by_v = Probit().slopes(mu, v)
        return (1.0 - 2.0 * self.lapse) * by_mu, (1.0 - 2.0 * self.lapse) * by_v

    def enclose(self, mu: Array, v: Array) -> tuple[Array, Array]:
        """The images of the probit's bounds, rounded outward."""
        lower, upper = Probit().enclose(mu, v)
        return down(self._image(lower), _ROUNDINGS), up(self._image(upper), _ROUNDINGS)

    def line_minimum(self, alpha: Array, beta: Array, v_low: Array, v_high: Array) -> Array:
        """The image of the probit's minimum, rounded down: the map increases."""
        lower = Probit().line_minimum(alpha, beta, v_low, v_high)
        return down(self._image(lower), _ROUNDINGS)

    def config(self) -> dict[str, Any]:
        return {"lapse": self.lapse}
