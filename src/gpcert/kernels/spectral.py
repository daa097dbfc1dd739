"""Cosines, pairs of cosines, and mixtures of spectral components made of them, stationary and not:

    Cosine               v cos(w.(x - y))
    CosinePair           sum_{a, b = 1, 2} cos(w_a.x + p_a - w_b.y - p_b)
    SpectralMixture      sum_q v_q exp(-sum_j (x_j - y_j)^2 / (2 l_qj^2)) cos(w_q.(x - y))
    GeneralisedSpectral  sum_q v_q e^{theta_q.(x + y)} sum_{a, b = 1, 2}
                             cos(w_qa.x + p_qa - w_qb.y - p_qb)

The feature of a pair is the complex number `Psi(x) = sum_a e^{i alpha_a(x)}`, with
`alpha_a = w_a.x + p_a`, and `k(x, z) = Re(Psi(x) conj Psi(z))`: see `nodes.phases.LocalWaves`.

Proofs: docs/mathematics.md, statement 2.10.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from gpcert.errors import InputError
from gpcert.kernels.base import Kernel
from gpcert.kernels.composite import Expressed, Product, Scale, Sum
from gpcert.kernels.exponential_tilt import ExponentialTilt
from gpcert.kernels.nodes.base import DerivativeBounds, Jet, Triple, spectral_gram
from gpcert.kernels.nodes.phases import (
    AffinePhase,
    FramePhase,
    LocalWaves,
    WavesBatch,
    circle_remainders,
    known_phase,
    length_above,
    phase_reach,
    swing,
)
from gpcert.kernels.parameters import FREQUENCIES, POSITIVE, Parameter, numbers
from gpcert.kernels.radial import SquaredExponential
from gpcert.kernels.sizes import times
from gpcert.numerics.arrays import Array, Inputs, PerFeature, Points, finite_array, namespace
from gpcert.numerics.rounding import POW_ULPS, TINY, U, gamma, up
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells


@dataclass(frozen=True, eq=False)
class Cosine(Kernel):
    """Cosine kernel with an angular frequency w (d,) and a variance v.

    Two features, `phi(x) = sqrt(v) (cos w.x, sin w.x)`, so with u = w.d everything is exact:

        R_n^2 = v |e^{iu} - sum_{k <= n} (iu)^k / k!|^2,   b_n^2 = v u^{2n}.

    >>> k = Cosine([np.pi], variance=2.0)
    >>> float(k.value(np.zeros((1, 1)), np.ones((1, 1)))[0, 0])
    -2.0
    """

    frequency: Any
    variance: float = 1.0

    name: ClassVar[str] = "cosine"
    has_variance: ClassVar[bool] = True
    stationary: ClassVar[bool] = True
    parameters: ClassVar[dict[str, Parameter]] = {"frequency": FREQUENCIES, "variance": POSITIVE}

    def _phase(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        # Subtract first: the phase of two near points keeps its digits.
        phase = np.zeros((len(X), len(Y)))
        for j, w in enumerate(self.frequency):
            phase += w * (X[:, j, None] - Y[None, :, j])
        return phase

    def value(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        return self.variance * np.cos(self._phase(X, Y))

    def gradient(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        """`d k / d x = -v sin(w.(x - y)) w`."""
        return -self.variance * np.sin(self._phase(X, Y))[:, :, None] * self.frequency

    def node(self, points: Points, frame: Frame) -> LocalCosine:
        """Fold in the features that the region holds fixed, and count every rounding.

        Coordinates carry one rounding, products and the sum of d of them d + 1, the differences
        another two: all relative to `sum_j |w_j| (|z_j| + |c_j|)`.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            W = self.frequency[frame.free] * frame.unit
            w = self.frequency[frame.fixed]
            apart = points[:, frame.fixed] - frame.fixed_values
            phases = frame.points(points) @ W + apart @ w
            size = frame.extents(points) @ np.abs(W)
            size = size + (np.abs(points[:, frame.fixed]) + np.abs(frame.fixed_values)) @ np.abs(w)
            errors = up(gamma(points.shape[1] + 8) * size, points.shape[1] + 8)
            length = length_above(W)
        phases, errors = known_phase(phases, errors)
        array = frame.backend.asarray
        return LocalCosine(
            (FramePhase(array(W), length),),
            array(np.cos(phases)),
            array(np.sin(phases)),
            array(errors),
            self.variance,
        )


@dataclass(frozen=True, eq=False)
class LocalCosine(LocalWaves):
    """One wave: everything is v cos or v sin of a difference of phases."""

    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        """phi(x) = sqrt(v) (cos w.x, sin w.x): `E u^(2n) = v u^(2n)`, remainders exact."""
        u = phase_reach(geometry, self.phases[0].frequency)
        xp = namespace(u)
        with np.errstate(over="ignore"):
            zero = xp.zeros_like(u)
            higher = [up(self.variance * u ** (2 * n), 8 * n + 1) for n in (1, 2, 3)]
            moments = [self.variance + zero, *(xp.where(u > 0, m, zero) for m in higher)]
            root = float(up(np.sqrt(self.variance), 1))
            direct = tuple(xp.where(u > 0, up(root * r, 1), zero) for r in circle_remainders(u))
        return DerivativeBounds(spectral_gram(moments), direct, True)

    def at(self, geometry: ScaledCells) -> CosineBatch:
        return CosineBatch(self, geometry)


class CosineBatch(WavesBatch):
    """See `NodeBatch`."""

    def diagonal_jet(self) -> tuple[Jet, Triple]:
        """v, 0 and -v W W^T: the value exact, the Hessian with two roundings an entry."""
        xp = namespace(self.value)
        zero = xp.zeros_like(xp.sum(self.geometry.half, axis=1))
        v = self.node.variance + zero
        jet = self._jet(v, [zero], [-v])
        size = self.node.variance * self.node.phases[0].length ** 2
        return jet, (zero, zero, zero + float(up(4.0 * U * size + TINY, 4)))


@dataclass(frozen=True, eq=False)
class CosinePair(Kernel):
    """The kernel of two features, the sums of two cosines and of two sines; not stationary.

    `Psi(x) = (sum_a cos(w_a.x + p_a), sum_a sin(w_a.x + p_a))` and `k(x, y) = Psi(x).Psi(y)`: a
    factor of the generalised spectral kernel, where the paper writes eight products of sines and
    cosines (Statement 2.10 has the four cosines). `first` and `second` are w_1 and w_2 (d,).

    >>> k = CosinePair([1.0], [2.0])
    >>> float(k.value(np.zeros((1, 1)), np.zeros((1, 1)))[0, 0])
    4.0
    """

    first: Any
    second: Any
    phases: Any = None

    name: ClassVar[str] = "cosine_pair"
    parameters: ClassVar[dict[str, Parameter]] = {
        "first": FREQUENCIES,
        "second": FREQUENCIES,
        "phases": numbers("two numbers", lambda p: p.shape == (2,), ndim=1, features=False),
    }

    def __post_init__(self) -> None:
        if self.phases is None:
            object.__setattr__(self, "phases", (0.0, 0.0))
        super().__post_init__()
        if len(self.first) != len(self.second):
            raise InputError(
                f"second: expected {len(self.first)} frequencies as in first, "
                f"got {len(self.second)}"
            )

    def _angles(self, X: np.ndarray) -> np.ndarray:
        """(2, n): `w_a.x + p_a`."""
        return np.stack([X @ self.first, X @ self.second]) + self.phases[:, None]

    def value(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        left, right = (np.exp(1j * self._angles(Z)).sum(axis=0) for Z in (X, Y))
        return np.real(left[:, None] * np.conj(right)[None, :])

    def diagonal(self, X: Inputs) -> np.ndarray:
        """`|Psi(x)|^2`."""
        return np.square(np.abs(np.exp(1j * self._angles(X)).sum(axis=0)))

    def gradient(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        """`d k / d x = Re(sum_a i w_a e^{i alpha_a(x)} conj Psi(y))`."""
        right = np.conj(np.exp(1j * self._angles(Y)).sum(axis=0))
        total = np.zeros((len(X), len(Y), X.shape[1]))
        for w, circle in zip((self.first, self.second), np.exp(1j * self._angles(X)), strict=True):
            total += np.real(1j * circle[:, None] * right[None, :])[:, :, None] * w
        return total

    def node(self, points: Points, frame: Frame) -> LocalCosinePair:
        """Psi of the points."""
        waves = [(self.first, float(self.phases[0])), (self.second, float(self.phases[1]))]
        both = [AffinePhase.of_points(points, w, p) for w, p in waves]
        (b1, e1), (b2, e2) = (known_phase(*phase) for phase in both)
        array = frame.backend.asarray
        first, second = (AffinePhase.of(w, p, frame) for w, p in waves)
        return LocalCosinePair(
            (first, second),
            array(np.cos(b1) + np.cos(b2)),
            array(np.sin(b1) + np.sin(b2)),
            array(up(e1 + e2, 2)),
            1.0,
            first.frequency - second.frequency,
        )

    def in_units(self, points: Points) -> tuple[Kernel, int]:
        """As it is: k(x, x) is at most 4, and may vanish at the points."""
        return self, 0

    def rescaled(self, scale: PerFeature, shift: PerFeature) -> CosinePair:
        """`w / scale`; the shift moves the phases by `-w.shift / scale`."""
        pair = [w / np.asarray(scale) for w in (self.first, self.second)]
        moved = [p - float(w @ np.asarray(shift)) for w, p in zip(pair, self.phases, strict=True)]
        return CosinePair(pair[0], pair[1], moved)


@dataclass(frozen=True, eq=False)
class LocalCosinePair(LocalWaves):
    """The kernel bound to points."""

    difference: Array
    """(f,): W_1 - W_2."""

    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        """`||D_d^n Psi|| <= sum_a |W_a.d|^n`; `||Psi|| = 2 |cos((alpha_1 - alpha_2) / 2)|`."""
        u = [phase_reach(geometry, phase.frequency) for phase in self.phases]
        xp = namespace(u[0])
        (a1, e1), (a2, e2) = (known_phase(*phase.at(geometry)) for phase in self.phases)
        with np.errstate(over="ignore"):
            half = 0.5 * (a1 - a2)
            spread = 0.5 * (phase_reach(geometry, self.difference) + e1 + e2) + gamma(2) * abs(half)
            most = swing(xp.cos(half), xp.sin(half), up(spread, 8))[1]
            lengths = [up(2.0 * most, 1)]
            for n in (1, 2, 3):
                total = up(u[0] ** n + u[1] ** n, POW_ULPS + 4)
                lengths.append(xp.where((u[0] > 0) | (u[1] > 0), total, xp.zeros_like(total)))
            gram = tuple(tuple(times(lengths[i], lengths[j]) for j in range(4)) for i in range(4))
            remainders = [circle_remainders(part) for part in u]
            direct = tuple(
                xp.where(a + b > 0, up(a + b, 1), xp.zeros_like(a))
                for a, b in zip(*remainders, strict=True)
            )
        return DerivativeBounds(gram, direct, False)

    def at(self, geometry: ScaledCells) -> CosinePairBatch:
        return CosinePairBatch(self, geometry)


class CosinePairBatch(WavesBatch):
    """See `NodeBatch` and the module."""

    @cached_property
    def _diagonal_errors(self) -> list[Array]:
        """Of E_a and O_a with the centre itself in the place of a point."""
        both = self.centers[0][1] + self.centers[1][1]
        return [self._part_error(error, both) for _, error in self.centers]

    def diagonal_jet(self) -> tuple[Jet, Triple]:
        """The jet with Psi(c) in the place of Psi(z_i)."""
        (c1, s1), (c2, s2) = self.circle
        return self.turned(c1 + c2, s1 + s2), self._sums(self._diagonal_errors)

    def mixed(self) -> tuple[Annotated[Array, "B f f"], Annotated[Array, "B"]]:
        """`sum_ab cos(alpha_a - alpha_b) W_a W_b^T`."""
        (c1, s1), (c2, s2) = self.circle
        W1, W2 = self.frequencies
        cosine = (c1 * c2 + s1 * s2)[:, None, None]
        cross = W1[:, None] * W2[None, :] + W2[:, None] * W1[None, :]
        matrix = (self._outer[0] + self._outer[1])[None, :, :] + cosine * cross[None, :, :]
        L1, L2 = (phase.length for phase in self.node.phases)
        error = up(self._diagonal_errors[0] * (2.0 * L1 * L2) + gamma(16) * (L1 + L2) ** 2, 8)
        return matrix, error


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
