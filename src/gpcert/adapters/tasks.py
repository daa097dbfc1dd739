"""Tasks as outputs of their own: of one kernel of the inputs (intrinsic coregionalisation), or of
sums of such products (linear models of coregionalisation).

The covariance of task s at x and task t at z is `B[s, t] k(x, z)`, B (T, T). The posterior of task
t is that of one process with the kernel `B_tt k`: an observation y_i of task s_i at z_i enters it
through `B[t, s_i] k(x, z_i)`, so that weights and rows of the factor are those of all observations
times `B[t, s_i] / B_tt`. Each output's mean and variance are certified; the covariance of two tasks
at a point is not kept.

With several kernels, `sum_q B_q[s, t] k_q(x, z)`, B_q = E_q E_q^T, the kernel sees (x, e), e the
rows E_q[t] of an output t, which are constants, and those of every observation's task: one kernel
`sum_q k_q(x, z) e_q.e'_q`, one set of points, weights and factors for all tasks. Mixtures
`f_t = sum_q W[t, q] g_q` of independent processes g_q are such a sum, the points of g_q at the unit
vector e_q.

Proofs: docs/mathematics.md, statements 1.13 and 1.14.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from gpcert.adapters.canonical import Canonical, PriorMean, exact_regression
from gpcert.adapters.kernel_tree import CategoryBlock
from gpcert.errors import UnsupportedModelError
from gpcert.kernels import ActiveDimensions, Kernel, Linear
from gpcert.kernels.algebra import product_of, scaled_by, sum_of
from gpcert.model.posterior import Posterior
from gpcert.numerics.spectral import symmetric_eigh
from gpcert.regions import LinearMap


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


@dataclass(frozen=True, eq=False)
class Terms:
    """Kernels k_q of d inputs, and the rows E_q (T, r_q) of the tasks: see the module."""

    kernels: tuple[Kernel, ...]
    embeddings: tuple[np.ndarray, ...]
    inputs: int

    @staticmethod
    def of_covariances(
        kernels: Sequence[Kernel], covariances: Sequence[np.ndarray], inputs: int
    ) -> Terms:
        """From B_q (T, T)."""
        blocks = [CategoryBlock.of_covariance(0, B) for B in covariances]
        return Terms(tuple(kernels), tuple(block.embedding for block in blocks), inputs)

    @cached_property
    def kernel(self) -> Kernel:
        """Of (x, e)."""
        parts, first, seen = [], self.inputs, tuple(range(self.inputs))
        for k, E in zip(self.kernels, self.embeddings, strict=True):
            columns = tuple(range(first, first + E.shape[1]))
            loading = ActiveDimensions(Linear(1.0), columns)
            parts.append(product_of([ActiveDimensions(k, seen), loading]))
            first += E.shape[1]
        return sum_of(parts)

    def points(self, X: np.ndarray, tasks: np.ndarray) -> np.ndarray:
        """(x, e) of observations (N, d) of tasks (N,)."""
        return np.concatenate([X, *(E[tasks] for E in self.embeddings)], axis=1)

    def task(self, t: int, mean: PriorMean) -> dict[str, Any]:
        """The map x -> (x, e) of a task and its mean, as fields of a posterior."""
        row = np.concatenate([E[t] for E in self.embeddings])
        matrix = np.eye(self.inputs + len(row), self.inputs)
        shift = np.concatenate([np.zeros(self.inputs), row])
        slope = np.concatenate([mean.slope[0], np.zeros(len(row))])
        trend = {"offset": mean.constant[0], "slope": slope}
        return {"features": LinearMap(matrix, shift), **trend}

    def exact(
        self,
        X: np.ndarray,
        tasks: np.ndarray,
        noise: np.ndarray,
        residuals: np.ndarray,
        means: Sequence[PriorMean],
        **fields: Any,
    ) -> list[Posterior]:
        """Every task of observations (N, d) of tasks (N,), their noise (N,) or its covariance, and
        what they exceed their prior means by (N,)."""
        Z = self.points(X, tasks)
        alone = noise.ndim == 1
        K = self.kernel.value(Z, Z) + (np.diag(noise) if alone else noise)
        form = exact_regression(K, residuals, noise if alone else None)
        parts = {"factor": form.factor, "training_noise": form.training_noise, **fields}
        return [
            Posterior(self.kernel, Z, form.weights, **parts, **self.task(t, mean))
            for t, mean in enumerate(means)
        ]


def mixed(
    latent: Sequence[Posterior], W: np.ndarray, means: Sequence[PriorMean], noise: float = 0.0
) -> list[Posterior]:
    """The outputs `sum_q W[t, q] g_q`, W (T, Q), of independent processes without means of their
    own, and these means added; `noise` is added to every variance."""
    d = latent[0].points.shape[1]
    kernels = tuple(g.kernel for g in latent)
    terms = Terms(kernels, tuple(W[:, q, None] for q in range(len(latent))), d)
    unit = np.eye(len(latent))
    Z = [np.hstack([g.points, np.tile(unit[q], (len(g.points), 1))]) for q, g in enumerate(latent)]
    blocks = {
        name: scipy.linalg.block_diag(*(getattr(g, name)[0] for g in latent))
        for name in ("factor", "negative_factor")
    }
    weights = np.concatenate([g.weights[0] for g in latent])
    white = np.array([g.noise[0] for g in latent])
    return [
        Posterior(
            terms.kernel,
            np.concatenate(Z),
            weights,
            noise=noise + np.square(W[t]) @ white,
            spread=latent[0].spread,
            **blocks,
            **terms.task(t, mean),
        )
        for t, mean in enumerate(means)
    ]


def _heights(covariance: np.ndarray) -> np.ndarray:
    """(T,): the variances of the tasks, which must be positive."""
    heights = np.diag(covariance)
    if np.any(heights <= 0):
        raise UnsupportedModelError(
            f"tasks: expected a positive variance of every task, got {heights.tolist()}; leave a "
            "task without variance out of the model"
        )
    return heights
