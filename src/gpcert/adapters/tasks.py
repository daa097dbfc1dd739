"""Tasks that share one kernel of the inputs (intrinsic coregionalisation) as outputs of their own.

The covariance of task s at x and task t at z is `B[s, t] k(x, z)`, B (T, T). The posterior of task
t is that of one process with the kernel `B_tt k`: an observation y_i of task s_i at z_i enters it
through `B[t, s_i] k(x, z_i)`, so that weights and rows of the factor are those of all observations
times `B[t, s_i] / B_tt`. Each output's mean and variance are certified; the covariance of two tasks
at a point is not kept.

Proofs: docs/mathematics.md, statement 1.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from gpcert.adapters.canonical import Canonical, exact_regression
from gpcert.errors import UnsupportedModelError
from gpcert.kernels import Kernel
from gpcert.kernels.algebra import scaled_by
from gpcert.numerics.spectral import symmetric_eigh


@dataclass(frozen=True, eq=False)
class TaskPosterior:
    """The kernel `B_tt k` of a task and its canonical form."""

    kernel: Kernel
    canonical: Canonical


def of_observations(
    kernel: Kernel,
    points: np.ndarray,
    tasks: np.ndarray,
    covariance: np.ndarray,
    noise: np.ndarray,
    residuals: np.ndarray,
) -> Iterator[TaskPosterior]:
    """Every task of observations (N,) of one task each: their numbers `tasks` (N,), the noise (N,),
    and what they exceed their prior means by."""
    K = kernel.value(points, points) * covariance[np.ix_(tasks, tasks)]
    joint = exact_regression(K + np.diag(noise), residuals, None)
    factor = np.asarray(getattr(joint.factor, "matrix", joint.factor))
    for t, height in enumerate(_heights(covariance)):
        share = covariance[t, tasks] / height
        canonical = Canonical(joint.weights * share, factor * share, None)
        yield TaskPosterior(scaled_by(kernel, height), canonical)


def of_blocks(
    kernel: Kernel,
    points: np.ndarray,
    covariance: np.ndarray,
    noise: np.ndarray,
    residuals: np.ndarray,
) -> Iterator[TaskPosterior]:
    """Every task where all are observed at all points: residuals (N, T), noise (T, T) the
    covariance of the observations' noise at a point.

    With `K = U diag(lambda) U^T` the covariance of the observations has the blocks
    `lambda_i B + noise`, b_t a column of B: `S_t = U diag(b_t^T (lambda_i B + noise)^-1 b_t) U^T`
    and `U (b_t^T (lambda_i B + noise)^-1 (U^T residuals)_i)_i` are the precision and the weights in
    units of the kernel k.
    """
    values, U = symmetric_eigh(kernel.value(points, points), "covariance of the training points")
    blocks = np.maximum(values, 0.0)[:, None, None] * covariance + noise
    rotated = U.T @ residuals
    try:
        solved = [scipy.linalg.cho_factor(block, lower=True) for block in blocks]
    except (np.linalg.LinAlgError, ValueError):
        raise UnsupportedModelError(
            "tasks: expected a positive definite covariance of the observations of a point, noise "
            "included; fit the model with more noise"
        ) from None
    columns = np.stack([scipy.linalg.cho_solve(L, covariance) for L in solved])  # (N, T, T)
    for t, height in enumerate(_heights(covariance)):
        weights = U @ np.einsum("is,is->i", columns[:, :, t], rotated)
        precision = np.maximum(columns[:, :, t] @ covariance[:, t], 0.0)
        factor = np.sqrt(precision)[:, None] * U.T
        canonical = Canonical(weights / height, factor / height, None)
        yield TaskPosterior(scaled_by(kernel, height), canonical)


def _heights(covariance: np.ndarray) -> np.ndarray:
    """(T,): the variances of the tasks, which must be positive."""
    heights = np.diag(covariance)
    if np.any(heights <= 0):
        raise UnsupportedModelError(
            f"tasks: expected a positive variance of every task, got {heights.tolist()}; leave a "
            "task without variance out of the model"
        )
    return heights
