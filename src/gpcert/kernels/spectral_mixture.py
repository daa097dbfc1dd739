"""k(x, y) = sum_q v_q exp(-sum_j (x_j - y_j)^2 / (2 l_qj^2)) cos(w_q.(x - y)).

Proofs: docs/mathematics.md, statement 2.10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gpcert.errors import InputError
from gpcert.kernels.composite import Expressed, Product, Sum
from gpcert.kernels.cosine import Cosine
from gpcert.kernels.parameters import Parameter, numbers
from gpcert.kernels.squared_exponential import SquaredExponential

VARIANCES = numbers("positive numbers", lambda x: x > 0, ndim=1, features=False)
RATES = numbers("a matrix of numbers", ndim=2, unit=-1)


class Mixture(Expressed):
    """A sum of components, one a row of every parameter."""

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
