"""What the parts of a posterior must be; the factors of its precision S = A^T A - C^T C, read,
computed and rounded.

Factors are stored, not S itself: a sum of squares keeps its sign in floating point.

Proofs: docs/mathematics.md, statements 1.6 and 16.9.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from gpcert.errors import InputError
from gpcert.functions.means import MeanFunction
from gpcert.kernels import Kernel
from gpcert.likelihoods import ClassLikelihood, Likelihood
from gpcert.numerics.arrays import finite_array, number_array
from gpcert.numerics.spectral import symmetric_eigh
from gpcert.numerics.triangular import Inverse, is_triangular, triangular_inverse
from gpcert.regions import LinearMap

MAX_ROWS = 100
"""Rows of a factor for each number it multiplies: m N rows express every S there is."""


def check_mean_function(posterior: Any, m: int) -> None:
    """That a mean function is one, of so many outputs."""
    mean = posterior.mean_function
    if mean is None:
        return
    if not isinstance(mean, MeanFunction) or mean.outputs != m:
        raise InputError(
            f"mean_function: expected a gpcert.functions.MeanFunction of {m} outputs, got {mean!r}"
        )
    if posterior.coupled or (posterior.likelihood.classifies and m > 1):
        raise InputError(
            "mean_function: belongs to regressions and to two classes, got one of several classes"
        )


def check_linear_mean(posterior: Any) -> None:
    """An `InputError` for a mean function, whose changes are not known."""
    if posterior.mean_function is not None:
        raise InputError(
            "model: slopes and differences are bounded of posteriors without a mean_function, got "
            f"one with {type(posterior.mean_function).__name__}; ask about the rest, "
            "dataclasses.replace(posterior, mean_function=None), and add what the mean changes"
        )


def check_coupled(posterior: Any) -> None:
    """An `InputError` unless coupled outputs have a factor, and a negative one, each."""
    factors = [posterior.factor]
    if posterior.negative_factor.size:
        factors.append(posterior.negative_factor)
    m, N = posterior.weights.shape
    if posterior.coupled and any(len(factor) != m for factor in factors):
        raise InputError(
            f"coupled: expected a factor of shape ({m}, r, {N}) and a negative_factor alike, "
            f"or none, got {posterior.factor.shape} and {posterior.negative_factor.shape}"
        )


def check_class_count(
    likelihood: ClassLikelihood, outputs: int, classes: tuple[Any, ...] | None
) -> None:
    """An `InputError` unless there are two classes or more, and as many labels."""
    count = len(likelihood.mixed(outputs))
    if count < 2:
        raise InputError(f"likelihood: {likelihood.name!r} needs 2 outputs or more")
    if classes is not None and len(classes) != count:
        raise InputError(f"classes: expected {count} labels, got {classes!r}")


def checked_classes(classes: Any) -> tuple[Any, ...] | None:
    """Distinct labels, or None where there are none."""
    if classes is None:
        return None
    try:
        labels = None if isinstance(classes, str) else tuple(classes)
        if labels is not None and len(set(labels)) == len(labels):
            return labels
    except TypeError:  # not a collection, or labels that cannot be told apart
        pass
    raise InputError(f"classes: expected a tuple of distinct labels, got {classes!r}")


def check_parts(posterior: Any) -> None:
    """Kernel, likelihood and flags are of the right kind."""
    if not isinstance(posterior.kernel, Kernel):
        raise InputError(
            f"kernel: expected a kernel of gpcert.kernels, got {posterior.kernel!r}; for a "
            "scikit-learn kernel, gpcert.adapters.sklearn_kernels.convert_kernel makes one"
        )
    if not isinstance(posterior.likelihood, Likelihood):
        raise InputError(
            "likelihood: expected a likelihood of gpcert.likelihoods, such as Probit(), got "
            f"{posterior.likelihood!r}"
        )
    if not isinstance(posterior.coupled, bool | np.bool_):
        raise InputError(f"coupled: expected True or False, got {posterior.coupled!r}")
    if not (posterior.features is None or isinstance(posterior.features, LinearMap)):
        raise InputError(f"features: expected a LinearMap or None, got {posterior.features!r}")


def per_output(name: str, value: Any, m: int) -> np.ndarray:
    """(m,): one number per output, or the same for all."""
    values = finite_array(name, value)
    if values.shape not in {(), (1,), (m,)}:
        raise InputError(f"{name}: expected a number or shape ({m},), got {values.shape}")
    return np.broadcast_to(values, (m,)).copy()


def read_classes(posterior: Any) -> tuple[Any, ...] | None:
    """The labels, once they, outputs and scales are those that the likelihood needs."""
    m, classes = posterior.outputs, checked_classes(posterior.classes)
    if isinstance(posterior.likelihood, ClassLikelihood):
        check_class_count(posterior.likelihood, m, classes)
        if posterior.coupled and np.any(posterior.scale != posterior.scale[0]):
            raise InputError("scale: expected the same for all coupled classes")
        if posterior.coupled and posterior.likelihood.mixes:
            raise InputError("mixing: expected independent outputs, got coupled ones")
    elif classes is not None and (len(classes) != 2 or m != 1):
        raise InputError(f"classes: expected two labels of one output, got {classes!r}")
    return classes


def checked_slope(slope: Any, m: int, q: int) -> np.ndarray:
    """Slopes as (m, q), zero where there is no trend.

    >>> checked_slope([1.0, 2.0], 1, 2).tolist()
    [[1.0, 2.0]]
    """
    if slope is None:
        return np.zeros((m, q))
    values = finite_array("slope", slope)
    values = values[None] if values.shape == (q,) and m == 1 else values
    if values.shape != (m, q):
        raise InputError(
            f"slope: expected shape ({m}, {q}), one number for each output and each of the "
            f"features that the kernel sees, or None, got {values.shape}"
        )
    return values.copy()


def checked_spread(spread: Any, d: int) -> np.ndarray | None:
    """d finite numbers >= 0, or None where they are not known."""
    if spread is None:
        return None
    checked = finite_array("spread", spread)
    if checked.shape != (d,) or np.any(checked < 0):
        raise InputError(f"spread: expected {d} numbers >= 0, one per feature, got {spread!r}")
    return checked


def checked_training_noise(posterior: Any, m: int, N: int) -> np.ndarray | None:
    """Variances (1 or m, N) > 0 of the observations' noise, or None where they are not known.

    Infinite where an output has no observation at a point.
    """
    if posterior.training_noise is None:
        return None
    other = posterior.negative_factor
    if posterior.coupled or (other is not None and np.size(other) > 0):
        raise InputError(
            "training_noise: expected None for coupled outputs and beside a negative_factor; a "
            "precision (K + noise)^-1 belongs to independent outputs and has no such factor"
        )
    noise = number_array("training_noise", posterior.training_noise)
    if noise.shape in {(), (N,)}:
        noise = np.broadcast_to(noise, (1, N))
    if noise.shape not in {(1, N), (m, N)} or not np.all(noise > 0):
        raise InputError(
            f"training_noise: expected variances > 0, a number or of shape ({N},) or ({m}, {N}), "
            f"infinite where there is no observation, got shape {noise.shape} and a least value "
            f"of {noise.min(initial=math.inf)}; without noise, leave it out"
        )
    return np.ascontiguousarray(noise)


def known_noise(N: int, *parts: Any) -> np.ndarray | None:
    """(N,): the sum of the parts, numbers or (N,) each, which stand on the diagonal of K + noise;
    None where it is not positive or one of them is None: the precision is known by its factor.

    >>> known_noise(2, 0.5, [0.5, 1.0]).tolist()
    [1.0, 1.5]
    """
    if any(part is None for part in parts):
        return None
    total = np.broadcast_to(sum(np.asarray(part, dtype=np.float64) for part in parts), (N,))
    return total if np.all(total > 0) else None


def noise_of_sites(precisions: Any) -> np.ndarray:
    """Noise of Gaussian sites: `1 / precision`, infinite where a site tells nothing.

    >>> noise_of_sites([4.0, 0.0]).tolist()
    [0.25, inf]
    """
    with np.errstate(divide="ignore", over="ignore"):
        return 1.0 / np.asarray(precisions, dtype=np.float64)


def factor_of_noise(kernel: Kernel, points: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """A (1 or m, N, N) with A^T A about (K + noise)^-1, by Cholesky; zero where noise is infinite.

    An `InputError` where float64 has no Cholesky factor.
    """
    N = len(points)
    K, factors = kernel.value(points, points), np.zeros((len(noise), N, N))
    for A, row in zip(factors, noise, strict=True):
        seen = np.flatnonzero(np.isfinite(row))
        if not len(seen):
            continue
        C = K[np.ix_(seen, seen)] + np.diag(row[seen])
        try:
            L = scipy.linalg.cholesky(C, lower=True)
        except (np.linalg.LinAlgError, ValueError):
            raise InputError(
                "training_noise: expected K + noise to be positive definite, but it has no "
                "Cholesky factor in float64; take more noise, or points that are further apart"
            ) from None
        A[np.ix_(seen, seen)] = triangular_inverse(L)
    return factors


class Factored:
    """What has `factor` A and `negative_factor` C, each (m, r, N), or (1, r, N) where shared."""

    factor: Any
    negative_factor: Any

    def factors_of(self, output: int) -> tuple[np.ndarray, np.ndarray]:
        """A_c and C_c, shapes (r, N) and (r', N)."""
        A, C = self.factor, self.negative_factor
        return A[output if len(A) > 1 else 0], C[output if len(C) > 1 else 0]

    @cached_property
    def triangular(self) -> tuple[bool, ...]:
        """Which A are lower triangular: looked at once."""
        return tuple(map(is_triangular, self.factor))

    def is_triangular(self, output: int) -> bool:
        """Whether A_c is."""
        return self.triangular[output if len(self.factor) > 1 else 0]

    @property
    def precision_count(self) -> int:
        """1 where all outputs share their precision, else the number of outputs."""
        return max(len(self.factor), len(self.negative_factor))


def factored_precision(
    precision: Any, gram: Callable[[], np.ndarray]
) -> tuple[np.ndarray, np.ndarray | None]:
    """A and C of a symmetric S; C is None where S is positive but for rounding.

    `gram` gives K_ZZ, which only an indefinite S needs (see `split_precision`).
    """
    S = finite_array("precision", precision, ndim=2)
    if S.shape[0] != S.shape[1]:
        raise InputError(f"precision: expected a square matrix, got shape {S.shape}")
    size = float(np.abs(S).max(initial=0.0))
    asymmetry = float(np.abs(S - S.T).max(initial=0.0))
    if asymmetry > 1e-10 * size:
        raise InputError(
            f"precision: expected a symmetric matrix, got |S - S^T| up to {asymmetry:.3g}; "
            "pass (S + S.T) / 2 if that is what you mean"
        )
    S = S / 2 + S.T / 2
    eigenvalues, vectors = symmetric_eigh(S, "precision")
    if eigenvalues[0] >= -1e-10 * max(size, eigenvalues[-1]):
        return np.sqrt(np.maximum(eigenvalues, 0.0))[:, None] * vectors.T, None
    return split_precision(S, gram())


def split_precision(S: np.ndarray, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A and C with `S = A^T A - C^T C` up to rounding.

    With K = L L^T and `L^T S L = U diag(e) U^T`: rows `sqrt|e_j| u_j^T L^-1`. Then A K A^T and
    C K C^T are diagonal, and C takes nothing back that A gives. If K has no Cholesky factor, the
    eigenvectors of S itself serve (L = I).
    """
    try:
        L = scipy.linalg.cholesky(K, lower=True)
    except (np.linalg.LinAlgError, ValueError):  # not positive definite, or not finite
        L = np.eye(len(K))
    eigenvalues, U = symmetric_eigh(L.T @ S @ L, "precision")
    rows = scipy.linalg.solve_triangular(L, np.sqrt(np.abs(eigenvalues)) * U, lower=True, trans=1)
    return rows.T[eigenvalues > 0], rows.T[eigenvalues < 0]


def checked_factor(name: str, factor: Any, m: int, N: int) -> np.ndarray:
    """A factor as (1 or m, r, N), of no rows where there is none."""
    if factor is None:
        return np.zeros((1, 0, N))
    A = factor.matrix if isinstance(factor, Inverse) else factor
    if not (isinstance(factor, Inverse) and np.isfinite(A).all() and not A.flags.writeable):
        A = finite_array(name, A)  # a copy, which nobody else changes
    if A.ndim == 2:
        A = A[None]
    if A.ndim != 3 or A.shape[0] not in {1, m} or A.shape[2] != N:
        raise InputError(f"{name}: expected shape (r, {N}) or ({m}, r, {N}), got {A.shape}")
    if A.shape[1] > MAX_ROWS * m * N:
        raise InputError(
            f"{name}: expected at most {MAX_ROWS * m * N} rows, got {A.shape[1]}; the triangular "
            "factor of its QR decomposition has the same S"
        )
    return A


def read_factors(posterior: Any, m: int, N: int) -> dict[str, Any]:
    """`factor`, `negative_factor` and `inverse` of a posterior of m outputs and N points, by name.

    The inverse is kept if it is that of this factor, bit by bit: what is proved of another matrix
    is of no use. Coupled outputs round their factors afterwards.
    """
    given, noise = posterior.factor, posterior.training_noise
    if given is None and noise is not None:
        given = factor_of_noise(posterior.kernel, posterior.points, noise)
    inverse = given if isinstance(given, Inverse) else posterior.inverse
    A = checked_factor("factor", given, m, N)
    C = checked_factor("negative_factor", posterior.negative_factor, m, N)
    if noise is not None and len(noise) != len(A):
        raise InputError(
            f"training_noise: expected as many rows as the factor has, {len(A)}, got {len(noise)}"
        )
    factors: dict[str, Any] = {"factor": A, "negative_factor": C}
    if inverse is None or len(A) != 1 or posterior.coupled:
        return factors | {"inverse": None}
    same = A.base is inverse.matrix or np.array_equal(A[0], inverse.matrix)
    return factors | {"inverse": replace(inverse, matrix=A[0]) if same else None}
