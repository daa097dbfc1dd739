"""What the engine asks of a kernel: value, gradient, and how far its feature map bends.

Let `phi(x)` be the feature map, `<phi(x), phi(y)> = k(x, y)`. Every enclosure of a Gaussian process
rests on the length of a Taylor remainder of phi, by Cauchy-Schwarz:

    R0(d) = ||phi(c+d) - phi(c)||,   R1(d) = ||phi(c+d) - phi(c) - D_d phi(c)||,
    b2(d) = ||D_d^2 phi||,  b3(d) = ||D_d^3 phi||,  so  R1 <= b2/2,  R2 <= b3/6.

A kernel offers these, and a `LocalKernel`: itself bound to the points of a posterior and to the
coordinates that a region leaves free, which is what runs over batches of boxes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from gpcert.arrays import Array, Backend
from gpcert.kernels.higher_degrees import HigherTerms
from gpcert.regions import Region

__all__ = ["Kernel", "LocalKernel"]


class Kernel(ABC):
    """A positive-definite function k(x, y) on R^d. Subclasses are frozen records."""

    name: ClassVar[str]
    """Key of the registry; written to saved posteriors."""

    @abstractmethod
    def value(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Matrix `k(x_i, y_j)`, shape (n, p), in plain floating point."""

    @abstractmethod
    def diagonal(self, X: np.ndarray) -> np.ndarray:
        """`k(x_i, x_i)`, shape (n,)."""

    @abstractmethod
    def gradient(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """`d k(x_i, y_j) / d x_i`, shape (n, p, d), in plain floating point."""

    @abstractmethod
    def gradient_product(self, X: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        """`sum_j C_ij d k(x_i, y_j) / d x_i`, shape (n, d), without the (n, p, d) array."""

    @abstractmethod
    def R0(self, delta: np.ndarray) -> np.ndarray:
        """Upper bound of `||phi(c+d) - phi(c)||` for displacements d, shape (..., d) -> (...)."""

    @abstractmethod
    def R1(self, delta: np.ndarray) -> np.ndarray:
        """Upper bound of the first-order remainder's length; `inf` where it does not exist."""

    @abstractmethod
    def b2(self, delta: np.ndarray) -> np.ndarray:
        """Upper bound of `||D_d^2 phi||`; `inf` where it does not exist."""

    @abstractmethod
    def b3(self, delta: np.ndarray) -> np.ndarray:
        """Upper bound of `||D_d^3 phi||`; `inf` where it does not exist."""

    @abstractmethod
    def rescaled(self, input_scale: np.ndarray) -> Kernel:
        """The kernel `k'(x, y) = k(x / input_scale, y / input_scale)` (diagonal scaling)."""

    @abstractmethod
    def check_dimension(self, d: int) -> None:
        """Raise an `InputError` if the kernel does not fit inputs with d features."""

    @abstractmethod
    def gram_with_error(self, points: np.ndarray) -> tuple[np.ndarray, float]:
        """`k(z_i, z_j)` and a bound e on the relative error: `|fl(k) - k| <= e fl(k) + TINY`."""

    @abstractmethod
    def localize(self, points: np.ndarray, region: Region, backend: Backend) -> LocalKernel:
        """Bind the kernel to points Z (N, d) and to the free coordinates of a region."""

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Parameters (numbers and lists) from which the registry rebuilds this kernel."""


class LocalKernel(ABC):
    """A kernel seen from inside a region: expansions at batches of centres.

    Coordinates are *scaled displacements* `d = (x - c) * inverse_length` in the free features. With
    a weight `omega(d) = exp(weight_rate * |d|^2)` (rate 1/2 for the squared exponential, 0 where no
    such weight is known), `omega(d) k(c+d, z)` is expanded to second order in d:

        omega(d) k(c+d, z_i) = k_i + k_i u_i.d + k_i (u_i.d)^2 / 2 + ...

    and `tail(n, rho2)` bounds the length of `omega phi - (its Taylor polynomial of order n)` for
    `|d|^2 <= rho2`, a part that is orthogonal to the span of phi's derivatives up to order n.
    """

    inverse_length: Array
    """(f,) inverse length-scales of the free features."""

    variance: float
    """k(x, x), constant for the kernels that implement this class."""

    weight_rate: float

    squared_lengths: Array
    """(f,) upper bounds of inverse_length^2: weights of |d|^2 for `Cells.squared_norm_maximum`."""

    @abstractmethod
    def scaled_centers(self, centers: Array) -> Array:
        """Centres (B, f) as scaled displacements from the region's own centre."""

    @abstractmethod
    def squared_distances(self, scaled: Array) -> Array:
        """(B, N) squared scaled distances of centres and points in the free features."""

    @abstractmethod
    def matrix(self, distances: Array) -> Array:
        """`k(c_b, z_i)`, shape (B, N), from squared distances."""

    @property
    @abstractmethod
    def floor(self) -> float:
        """What underflow can cost a moment of order <= 2 for each unit of `sum |t_i|`."""

    @abstractmethod
    def squared_sizes(self, K: Array) -> tuple[Array, Array]:
        """Two (B, 3): `sum_i (k_i m_i^n)^2` and `sum_i ((fl(k_i) - k_i) m_i^n)^2`, n = 0, 1, 2.

        `m_i = |z_i| + |c|` bounds the scaled distances; both rounded up.
        """

    @abstractmethod
    def derivatives(self, K: Array, scaled: Array) -> Array:
        """(B, f, N): `D_j (omega k)(c_b, z_i)` in scaled coordinates."""

    @abstractmethod
    def pointwise_remainder(
        self, distances: Array, weights: Array, rho: Array
    ) -> tuple[Array, Array]:
        """Upper bounds (B,) of what the third-order remainder of `omega g` takes from g, and adds.

        Point by point, for |d| <= rho; infinite where nothing is known.
        """

    @abstractmethod
    def moments(self, coefficients: Array, scaled: Array) -> tuple[Array, Array, Array]:
        """`sum_i a_bi (1, u_i, u_i u_i^T)` for coefficients (B, N), u_i = z_i - c_b scaled."""

    @abstractmethod
    def higher_terms(
        self,
        coefficients: Array,
        scaled: Array,
        moments: tuple[Array, Array, Array],
        box: tuple[Array, Array],
        drift: Array | None = None,
    ) -> HigherTerms | None:
        """Degrees three and more of the weighted expansion on a box (half-widths, rho), if known.

        `drift` (B,) bounds `sum_i |error of a_i| m_i^2`, where the coefficients carry errors of
        their own beyond those of k.
        """

    @abstractmethod
    def moment_errors(self, magnitudes: Array) -> Array:
        """(B, 4): bounds of the error of the moments 0 to 3 (Euclidean and Frobenius norm).

        `magnitudes` (B, N) bound `|a_bi|`; the a_bi are `k_bi` times numbers known to `gamma(4)`.
        """

    @abstractmethod
    def tail(self, order: int, rho2: Array) -> Array:
        """Upper bound of the length of the part of `omega phi` beyond `order`, |d|^2 <= rho2."""

    @abstractmethod
    def paper_bound(self, scaled: Array, half: Array, weights: Array) -> Array:
        """The paper's linear bound: lower bound (B,) of `sum_i t_i k(x, z_i)` over each cell."""

    @abstractmethod
    def zeroth_remainder(self, rho2: Array) -> Array:
        """Upper bound of `||phi(c+d) - phi(c)||` for |d|^2 <= rho2."""

    @abstractmethod
    def first_remainder(self, rho2: Array) -> Array:
        """Upper bound of R1, `||phi(c+d) - phi(c) - D_d phi(c)||`, for |d|^2 <= rho2."""

    @abstractmethod
    def known_squared_norm(self, value: Array, gradient: Array, hessian: Array) -> Array:
        """Lower bound of `||P f||^2`, P the projection on phi and its derivatives up to order 2.

        The arguments are lower bounds of `|f(c)|`, of the length of f's scaled gradient and of the
        Frobenius norm of the Hessian of `omega f` at the centre.
        """

    @abstractmethod
    def slice_norm(self, weights: np.ndarray) -> float | None:
        """Upper bound of the RKHS norm of `x -> sum_i t_i k(x, z_i)` on the free coordinates.

        None where the kernel knows nothing better than the norm over all coordinates.
        """
