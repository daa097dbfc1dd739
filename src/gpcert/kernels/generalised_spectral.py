"""k(x, y) = sum_q v_q e^{theta_q.(x + y)} sum_{a, b = 1, 2} cos(w_qa.x + p_qa - w_qb.y - p_qb).

Proofs: docs/mathematics.md, statement 2.10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpcert.kernels.composite import Product, Sum
from gpcert.kernels.cosine_pair import CosinePair
from gpcert.kernels.exponential_tilt import ExponentialTilt
from gpcert.kernels.parameters import Parameter, numbers
from gpcert.kernels.scale import Scale
from gpcert.kernels.spectral_mixture import RATES, VARIANCES, Mixture


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
        "phases": numbers("two numbers a row", lambda p: p.shape[1] == 2, ndim=2, features=False),
    }

    def __post_init__(self) -> None:
        if self.phases is None:
            object.__setattr__(self, "phases", np.zeros((np.size(self.variances), 2)))
        super().__post_init__()

    def express(self) -> Sum:
        rows = zip(self.variances, self.thetas, self.first, self.second, self.phases, strict=True)
        return Sum(
            [
                Scale(Product([ExponentialTilt(theta), CosinePair(w1, w2, p)]), v)
                for v, theta, w1, w2, p in rows
            ]
        )

    def rescaled(self, scale: np.ndarray, shift: np.ndarray) -> GeneralisedSpectral:
        """Rates and frequencies divided by the scale; a shift moves phases and variances."""
        thetas, first, second = (
            a / np.asarray(scale) for a in (self.thetas, self.first, self.second)
        )
        moved = np.asarray(shift)
        phases = self.phases - np.stack([first @ moved, second @ moved], axis=1)
        variances = self.variances * np.exp(-2.0 * (thetas @ moved))
        return GeneralisedSpectral(variances, thetas, first, second, phases)
