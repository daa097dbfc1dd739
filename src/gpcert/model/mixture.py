"""Several posteriors of one target with weights: an ensemble, or draws of hyper-parameters.

The law of the target at x is that of a member drawn with its weight:

    mean      m = sum_k w_k mu_k,
    variance  sum_k w_k v_k + sum_k w_k (mu_k - m)^2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gpcert.errors import InputError
from gpcert.likelihoods import Gaussian, Likelihood, MeanOnly
from gpcert.model.multi_output import ModelCollection, SeparateOutputs
from gpcert.numerics.arrays import finite_array


@dataclass(frozen=True, eq=False)
class Mixture(ModelCollection):
    """Posteriors of one output each; `weights` (K,), positive, of any sum; None for equal ones.

    Ask for "mean", "variance", "std", "lcb" or "ucb"; `outputs` are the members as outputs of one
    model. Where a member is a mean without variance so is the mixture.

    >>> from gpcert import Posterior
    >>> from gpcert.kernels import SquaredExponential
    >>> low, high = (Posterior(SquaredExponential(1.0), [[0.0]], [t]) for t in (1.0, 3.0))
    >>> [part.item() for part in Mixture((low, high)).predict([[0.0]])]
    [2.0, 2.0]
    """

    weights: Any = None

    FORMAT = "gpcert-mixture-1"
    HEADER = ("weights",)

    classes: ClassVar[None] = None
    classifies: ClassVar[bool] = False
    outputs: ClassVar[int] = 1
    labels: ClassVar[tuple[int, ...]] = (0,)

    def __post_init__(self) -> None:
        super().__post_init__()
        plain = all(type(m.likelihood) in (Gaussian, MeanOnly) for m in self.members)
        if len(self.members) < 2 or not plain or any(m.outputs != 1 for m in self.members):
            raise InputError(
                "Mixture: expected two or more regressions of one output each, with the likelihood "
                f"Gaussian() or MeanOnly(), got {[m.likelihood for m in self.members]}"
            )
        K = len(self.members)
        weights = np.ones(K) if self.weights is None else finite_array("weights", self.weights, 1)
        if weights.shape != (K,) or np.any(weights <= 0):
            raise InputError(f"weights: expected {K} positive numbers, got {self.weights!r}")
        object.__setattr__(self, "weights", tuple((weights / weights.sum()).tolist()))

    @property
    def likelihood(self) -> Likelihood:
        """That of a regression; of a mean alone where a member is one."""
        return min((m.likelihood for m in self.members), key=lambda each: each.has_variance)

    @property
    def separate(self) -> SeparateOutputs:
        """The members as outputs of one model."""
        return SeparateOutputs(tuple(replace(m, likelihood=Gaussian()) for m in self.members))

    def output(self, c: int) -> Any:
        """None is any member's: what reads outputs one by one does not know the weights."""
        raise InputError(
            "a mixture of models has no output of its own: prediction_range, certify(threshold=, "
            "quantity=) and the tables of these ask about it; else ask about one of its members, "
            "as_posterior(model).members, or about all of them as outputs, "
            "as_posterior(model).separate"
        )

    def check_has_variance(self, asked: str) -> None:
        """An `InputError` where a member is a mean alone."""
        for member in self.members:
            member.check_has_variance(asked)

    @property
    def noise(self) -> np.ndarray:
        """(1,): the mean noise in the members' variances."""
        return np.asarray(self.weights)[None] @ np.stack([m.noise for m in self.members])[:, 0]

    @property
    def offset(self) -> np.ndarray:
        """(1,): the mean of the members' offsets."""
        return np.asarray(self.weights)[None] @ np.stack([m.offset for m in self.members])[:, 0]

    def predict(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance at X (n, d), each (n, 1), in plain floating point."""
        parts = [member.predict(X) for member in self.members]
        means, variances = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
        w = np.asarray(self.weights)[:, None]
        mean = means @ w
        return mean, variances @ w + np.square(means - mean) @ w

    def mean(self, X: Any) -> np.ndarray:
        """(n, 1), in plain floating point."""
        means = np.concatenate([member.mean(X) for member in self.members], axis=1)
        return means @ np.asarray(self.weights)[:, None]

    def prediction(self, X: Any) -> np.ndarray:
        """The mean."""
        return self.mean(X)

    def prior_variance(self, X: Any) -> np.ndarray:
        """(n, 1): the mean of the members' own."""
        each = np.concatenate([member.prior_variance(X) for member in self.members], axis=1)
        return each @ np.asarray(self.weights)[:, None]

    def _described(self, written: bool) -> dict[str, Any]:
        return {"weights": list(self.weights)}

    @classmethod
    def _fields(cls, header: dict[str, Any]) -> dict[str, Any]:
        return {"weights": header["weights"]}
