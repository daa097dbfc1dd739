"""Which inference a classifier's options ask for, its inducing points, and the posteriors of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.utils import check_array, check_random_state

from gpcert.errors import InputError
from gpcert.kernels import Kernel
from gpcert.kernels.algebra import scaled_by
from gpcert.likelihoods import Softmax, likelihood_from_config
from gpcert.models.inference import Fit, ep, laplace, softmax_laplace
from gpcert.models.inference.sparse_ep import sparse_ep
from gpcert.models.links import LINKS
from gpcert.models.training import Covariances
from gpcert.posterior import Posterior

INDUCING = ("random", "kmeans")

LARGEST_KMEANS = 10_000
"""Points from which on mini-batches take the place of Lloyd's iterations over all of them."""


def inducing_points(
    X: Any, count: int, kind: str = "random", random_state: Any = None
) -> np.ndarray:
    """(count, d) points for inputs X (N, d).

    "random": a subset of the rows of X, each row at most once (rows of X that are equal may both
    be chosen); "kmeans": centres of k-means clusters, which are no training points in general.

    >>> inducing_points([[0.0], [1.0], [2.0]], 2, random_state=0).shape
    (2, 1)
    """
    X = check_array(X, dtype="float64")
    if kind not in INDUCING:
        words = ", ".join(map(repr, INDUCING))
        raise InputError(f"inducing: expected one of {words}, got {kind!r}")
    whole = isinstance(count, int | np.integer) and not isinstance(count, bool)
    if not whole or not 1 <= count <= len(X):
        raise InputError(
            f"n_inducing: expected a whole number between 1 and the {len(X)} training points, "
            f"got {count!r}"
        )
    random = check_random_state(random_state)
    if kind == "random":
        return X[random.permutation(len(X))[:count]]
    return _centres(X, int(count), random)


def _centres(X: np.ndarray, count: int, random: np.random.RandomState) -> np.ndarray:
    """Some may coincide where X has fewer distinct rows: the model's jitter allows for that."""
    options: Any = {"n_clusters": count, "n_init": 1, "random_state": random}
    method = (MiniBatchKMeans if len(X) > LARGEST_KMEANS else KMeans)(**options)
    return np.asarray(method.fit(X).cluster_centers_)


_ALLOWED = {
    "likelihood": ("probit", "logistic", "softmax"),
    "inference": ("laplace", "ep"),
    "sparse": (None, "fic", "dtc", "var"),
    "inducing": INDUCING,
}


@dataclass(frozen=True)
class Choices:
    """The options of `GPClassifier` that must fit together."""

    likelihood: str
    inference: str
    sparse: str | None
    inducing: str

    def __post_init__(self) -> None:
        for name, allowed in _ALLOWED.items():
            value = getattr(self, name)
            if not isinstance(value, str | None) or value not in allowed:
                words = ", ".join(map(repr, allowed))
                raise InputError(f"{name}: expected one of {words}, got {getattr(self, name)!r}")
        if self.likelihood == "softmax" and self.inference != "laplace":
            raise InputError(
                f"likelihood='softmax' is fitted by inference='laplace', got {self.inference!r}"
            )
        if self.likelihood == "softmax" and self.sparse is not None:
            raise InputError(
                f"likelihood='softmax' has no sparse approximation, got sparse={self.sparse!r}; "
                "use sparse=None"
            )
        if self.sparse is not None and self.inference != "ep":
            raise InputError(
                f"sparse={self.sparse!r} is fitted by inference='ep', got {self.inference!r}"
            )

    def inducing_points(
        self, kernel: Kernel, X: np.ndarray, count: Any, random: np.random.RandomState
    ) -> np.ndarray:
        """(count, d) inducing points, at most as many as there are training points."""
        if kernel.has_white_noise:
            raise InputError(
                "kernel: expected no White part in a sparse model, whose inducing points carry no "
                "noise; leave it out"
            )
        return inducing_points(X, count, self.inducing, random)


@dataclass(frozen=True, eq=False)
class ClassInference:
    """Inference for the labels of one data set: y in {-1, +1}, or 0..m-1 for softmax."""

    choices: Choices
    y: np.ndarray

    @staticmethod
    def of(choices: Choices, labels: np.ndarray) -> ClassInference:
        """For labels 0..m-1."""
        if choices.likelihood == "softmax":
            return ClassInference(choices, labels)
        return ClassInference(choices, np.where(labels == 1, 1.0, -1.0))

    def infer(self, covariances: Covariances, noise: float | None, start: Any, final: bool) -> Fit:
        """The fit at one kernel; `noise` is regression's, `final` asks for the factor."""
        del noise
        if self.choices.likelihood == "softmax":
            return softmax_laplace(covariances.square[None], self.y, start, factored=final)
        link = LINKS[self.choices.likelihood]
        if self.choices.sparse is not None:
            return sparse_ep(*covariances.sparse, self.y, link, self.choices.sparse, start)
        method = laplace if self.choices.inference == "laplace" else ep
        return method(covariances.square, self.y, link, start)


@dataclass(frozen=True, eq=False)
class Latent:
    """What was inferred about the latent functions: `white` is the kernel's own noise."""

    kernel: Kernel
    points: np.ndarray
    fit: Fit
    white: float

    def binary_posterior(self, likelihood: str, classes: tuple[Any, Any]) -> Posterior:
        """The canonical posterior of the latent function whose sign is the second class.

        Softmax with two classes: `p_2 = sigma(f_2 - f_1)`, and the difference of both functions is
        a Gaussian process with kernel 2k, `t = (t_2 - t_1) / 2` and `A = (A_2 - A_1) / 2`: then
        `2k t = k (t_2 - t_1)`, `|A 2k|^2 = k^T (S_22 - S_21 - S_12 + S_11) k`, `S_ab = A_a^T A_b`.
        """
        kernel, weights, factor, noise = self.kernel, self.fit.weights, self.fit.factor, self.white
        assert factor is not None
        if likelihood == "softmax":
            kernel, likelihood, noise = scaled_by(kernel, 2.0), "logistic", 2.0 * noise
            weights, factor = (weights[1] - weights[0]) / 2.0, (factor[1] - factor[0]) / 2.0
        return Posterior(
            kernel=kernel,
            points=self.points,
            weights=weights,
            factor=factor,
            noise=noise,
            likelihood=likelihood_from_config(likelihood),
            classes=classes,
        )

    def coupled_posterior(self, classes: tuple[Any, ...]) -> Posterior:
        """The latent functions of several classes, their covariances included."""
        return Posterior(
            kernel=self.kernel,
            points=self.points,
            weights=self.fit.weights,
            factor=self.fit.factor,
            negative_factor=self.fit.coupling,
            noise=self.white,
            likelihood=Softmax(),
            classes=classes,
            coupled=True,
        )
