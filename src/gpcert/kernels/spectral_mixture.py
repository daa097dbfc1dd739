"""k(x, y) = sum_q v_q exp(-sum_j (x_j - y_j)^2 / (2 l_qj^2)) cos(w_q.(x - y)).

Proofs: docs/mathematics.md, statement 2.10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpcert.arrays import constant_array
from gpcert.errors import InputError
from gpcert.kernels.composite import Expressed, Product, Sum
from gpcert.kernels.cosine import Cosine
from gpcert.kernels.squared_exponential import SquaredExponential


def check_rows(name: str, values: Any, rows: int, columns: int | None = None) -> np.ndarray:
    """A matrix of finite numbers with so many rows (and columns), or an `InputError`."""
    matrix = constant_array(name, values, ndim=2)
    if matrix.shape[0] != rows or (columns is not None and matrix.shape[1] != columns):
        wanted = f"({rows}, {'d' if columns is None else columns})"
        raise InputError(f"{name}: expected shape {wanted}, got {matrix.shape}")
    return matrix


def check_variances(values: Any) -> np.ndarray:
    """At least one positive number, or an `InputError`."""
    variances = constant_array("variances", values, ndim=1)
    if len(variances) == 0 or np.any(variances <= 0):
        raise InputError(f"variances: expected one or more positive numbers, got {values!r}")
    return variances


@dataclass(frozen=True, eq=False)
class SpectralMixture(Expressed):
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

    def __post_init__(self) -> None:
        variances = check_variances(self.variances)
        frequencies = check_rows("frequencies", self.frequencies, len(variances))
        lengths = check_rows("length_scales", self.length_scales, *frequencies.shape)
        if np.any(lengths <= 0):
            raise InputError(
                f"length_scales: expected positive numbers, got {self.length_scales!r}"
            )
        object.__setattr__(self, "variances", variances)
        object.__setattr__(self, "frequencies", frequencies)
        object.__setattr__(self, "length_scales", lengths)

    def express(self) -> Sum:
        """The sum of products that this kernel is."""
        rows = zip(self.variances, self.frequencies, self.length_scales, strict=True)
        return Sum([Product([SquaredExponential(lengths, v), Cosine(w)]) for v, w, lengths in rows])

    def rescaled(self, scale: np.ndarray, shift: np.ndarray) -> SpectralMixture:
        """Frequencies divided, length-scales multiplied by the scale."""
        factor = np.asarray(scale)
        return SpectralMixture(
            self.variances, self.frequencies / factor, self.length_scales * factor
        )

    def check_dimension(self, d: int) -> None:
        """One frequency and one length-scale a feature."""
        if self.frequencies.shape[1] != d:
            raise InputError(
                f"kernel: expected components of {d} features, got {self.frequencies.shape[1]}"
            )
