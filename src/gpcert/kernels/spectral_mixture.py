"""Mixtures of spectral components, stationary and not; k(x, y) is

    sum_q v_q exp(-sum_j (x_j - y_j)^2 / (2 l_qj^2)) cos(w_q.(x - y)),                 or
    sum_q v_q e^{theta_q.(x + y)} sum_{a, b = 1, 2} cos(w_qa.x + p_qa - w_qb.y - p_qb).

Proofs: docs/mathematics.md, statement 2.10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpcert.errors import InputError
from gpcert.kernels.composite import Expressed, Product, Scale, Sum
from gpcert.kernels.cosine import Cosine
from gpcert.kernels.cosine_pair import CosinePair
from gpcert.kernels.exponential_tilt import ExponentialTilt
from gpcert.kernels.parameters import Parameter, numbers
from gpcert.kernels.radial import SquaredExponential
from gpcert.numerics.arrays import PerFeature, finite_array

VARIANCES = numbers("positive numbers", lambda x: x > 0, ndim=1, features=False)
RATES = numbers("a matrix of numbers", ndim=2, unit=-1)


class Mixture(Expressed):
    """A sum of components, one per row of every parameter."""

    variances: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        rows = len(self.variances)
        d: int | None = None
        for name, parameter in self.parameters.items():
            shape = getattr(self, name).shape
            columns = d if parameter.features else None
            if shape[0] != rows or (columns is not None and shape[1] != columns):
                wanted = f"({rows}, {'d' if columns is None else columns})"
                raise InputError(f"{name}: expected shape {wanted}, got {shape}")
            d = shape[1] if parameter.features else d


@dataclass(frozen=True, eq=False)
class SpectralMixture(Mixture):
    """Spectral mixture (Wilson and Adams 2013): Q components, each a Gaussian in the spectrum.

    Component q has variance v_q, angular frequency w_q (d,) and length-scales l_q (d,): its
    spectral density is Gaussian around +-w_q with standard deviations 1 / l_q. It is the sum of
    products `SquaredExponential(l_q, v_q) * Cosine(w_q)`, and all bounds are theirs.

    >>> k = SpectralMixture([2.0], [[np.pi]], [[1.0]])
    >>> float(k.value(np.zeros((1, 1)), np.ones((1, 1)))[0, 0])  # -2 exp(-1/2)
    -1.2130613194252668
    """

    variances: Any
    frequencies: Any
    length_scales: Any

    name: ClassVar[str] = "spectral_mixture"
    stationary: ClassVar[bool] = True
    parameters: ClassVar[dict[str, Parameter]] = {
        "variances": VARIANCES,
        "frequencies": RATES,
        "length_scales": numbers("positive numbers", lambda x: x > 0, ndim=2, unit=1),
    }

    def express(self) -> Sum:
        rows = zip(self.variances, self.frequencies, self.length_scales, strict=True)
        return Sum([Product([SquaredExponential(lengths, v), Cosine(w)]) for v, w, lengths in rows])


@dataclass(frozen=True, eq=False)
class GeneralisedSpectral(Mixture):
    """The non-stationary generalised spectral kernel (Samo and Roberts 2015; paper's appendix).

    Component q has the features `sqrt(v_q) e^{theta_q.x} Psi_q(x)`, Psi_q those of `CosinePair`
    with the frequencies `first[q]` and `second[q]` and the phases `phases[q]` (zero by default;
    they make a shift of the inputs expressible). It is the sum of products
    `v_q * ExponentialTilt * CosinePair`, and all bounds are theirs.

    >>> k = GeneralisedSpectral([0.5], [[0.0]], [[1.0]], [[2.0]])
    >>> float(k.value(np.zeros((1, 1)), np.zeros((1, 1)))[0, 0])
    2.0
    """

    variances: Any
    thetas: Any
    first: Any
    second: Any
    phases: Any = None

    name: ClassVar[str] = "generalised_spectral"
    parameters: ClassVar[dict[str, Parameter]] = {
        "variances": VARIANCES,
        **dict.fromkeys(("thetas", "first", "second"), RATES),
        "phases": numbers("two numbers per row", lambda p: p.shape[1] == 2, ndim=2, features=False),
    }

    def __post_init__(self) -> None:
        if self.phases is None:
            rows = finite_array("variances", self.variances).size
            object.__setattr__(self, "phases", np.zeros((rows, 2)))
        super().__post_init__()

    def express(self) -> Sum:
        rows = zip(self.variances, self.thetas, self.first, self.second, self.phases, strict=True)
        return Sum(
            [
                Scale(Product([ExponentialTilt(theta), CosinePair(w1, w2, p)]), v)
                for v, theta, w1, w2, p in rows
            ]
        )

    def rescaled(self, scale: PerFeature, shift: PerFeature) -> GeneralisedSpectral:
        """Rates and frequencies divided by the scale; a shift moves phases and variances."""
        thetas, first, second = (
            a / np.asarray(scale) for a in (self.thetas, self.first, self.second)
        )
        moved = np.asarray(shift)
        phases = self.phases - np.stack([first @ moved, second @ moved], axis=1)
        variances = self.variances * np.exp(-2.0 * (thetas @ moved))
        return GeneralisedSpectral(variances, thetas, first, second, phases)
