"""What a model means: latent moments, probabilities, decisions and margins at a point, as balls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb

from tests.hunt.hunt_classes import class_grid, class_probabilities
from tests.hunt.hunt_kernels import covariance
from tests.hunt.hunt_links import second_class
from tests.hunt.hunt_numbers import Balls, Floats, clipped

CLASS_LIKELIHOODS = {"Softmax", "MultinomialProbit"}


def is_class_model(model: Any) -> bool:
    """Whether the model predicts one of several classes by itself."""
    return type(getattr(model, "likelihood", None)).__name__ in CLASS_LIKELIHOODS


def is_committee(model: Any) -> bool:
    """Whether the model is a committee."""
    return hasattr(model, "scheme")


@dataclass(eq=False)
class Moments:
    """Latent mean and covariance of one posterior, from the module docstring of `posterior`."""

    posterior: Any

    @cached_property
    def _arrays(self) -> dict[str, Any]:
        p = self.posterior
        return {
            "points": [[arb(v) for v in row] for row in p.points.tolist()],
            "weights": [[arb(v) for v in row] for row in p.weights.tolist()],
            "factors": [self._factor(p.factor, c) for c in range(len(p.weights))],
            "added": [self._factor(p.negative_factor, c) for c in range(len(p.weights))],
            "slope": [[arb(v) for v in row] for row in p.slope.tolist()],
            "offset": [arb(v) for v in p.offset.tolist()],
            "scale": [arb(v) for v in p.scale.tolist()],
            "noise": [arb(v) for v in p.noise.tolist()],
        }

    @staticmethod
    def _factor(factor: np.ndarray, c: int) -> list[list[arb]]:
        own = factor[c if len(factor) > 1 else 0]
        return [[arb(v) for v in row] for row in own.tolist()]

    def at(self, x: np.ndarray) -> tuple[list[arb], list[list[arb]]]:
        """Means (m,) and covariances (m, m)."""
        a = self._arrays
        here = [arb(float(v)) for v in x]
        kernel = self.posterior.kernel
        row = [covariance(kernel, here, z, Balls) for z in a["points"]]
        prior = covariance(kernel, here, here, Balls)
        m = len(a["weights"])
        canonical = [_dot(a["weights"][c], row) + _dot(a["slope"][c], here) for c in range(m)]
        mean = [a["offset"][c] + a["scale"][c] * canonical[c] for c in range(m)]
        images = [[_dot(r, row) for r in a["factors"][c]] for c in range(m)]
        cov = [[arb(0)] * m for _ in range(m)]
        for c in range(m):
            added = sum((_dot(r, row) ** 2 for r in a["added"][c]), arb(0))
            explained = sum((v * v for v in images[c]), arb(0))
            own = prior - explained + added
            cov[c][c] = a["scale"][c] ** 2 * clipped(own) + a["noise"][c]
            if self.posterior.coupled:
                for e in range(c):
                    shared = -_dot(images[c], images[e]) * a["scale"][c] * a["scale"][e]
                    cov[c][e] = cov[e][c] = shared
        return mean, cov

    def floats(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances (n, m) in floats, to search with."""
        p = self.posterior
        columns = [X[:, j, None] for j in range(X.shape[1])]
        others = [p.points[None, :, j] for j in range(X.shape[1])]
        with np.errstate(all="ignore"):
            K = np.broadcast_to(
                covariance(p.kernel, columns, others, Floats), (len(X), len(p.points))
            )
            own = [c[:, 0] for c in columns]
            prior = np.broadcast_to(covariance(p.kernel, own, own, Floats), (len(X),))
            mean = p.offset + p.scale * (K @ p.weights.T + X @ p.slope.T)
            variance = np.empty_like(mean)
            for c in range(mean.shape[1]):
                A, C = (F[c if len(F) > 1 else 0] for F in (p.factor, p.negative_factor))
                left = prior - np.square(K @ A.T).sum(1) + np.square(K @ C.T).sum(1)
                variance[:, c] = np.maximum(left, 0.0)
            return mean, p.scale**2 * variance + p.noise


def _dot(left: list[arb], right: list[arb]) -> arb:
    total = arb(0)
    for a, b in zip(left, right, strict=True):
        total += a * b
    return total


def ends_of(quantity: str, beta: float) -> tuple[float, float]:
    """How many standard deviations above the mean the least and the greatest end of a range of the
    quantity lie."""
    ends = {"band": (-beta, beta), "lcb": (-beta, -beta), "ucb": (beta, beta)}
    return ends.get(quantity, (0.0, 0.0))


class Truth:
    """A posterior or a committee as its definition."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.members = [Moments(member) for member in model.members]
        self._known: dict[tuple[str, bytes], Any] = {}

    def moments(self, x: np.ndarray, member: int = 0) -> tuple[list[arb], list[list[arb]]]:
        """Latent means and covariances."""
        return self._once(f"moments{member}", x, lambda: self.members[member].at(x))

    def probabilities(self, x: np.ndarray) -> list[arb]:
        """One ball a class; of two classes only that of the second."""
        return self._once("probabilities", x, lambda: self._probabilities(x))

    def _once(self, name: str, x: np.ndarray, make: Any) -> Any:
        key = (name, np.asarray(x, dtype=float).tobytes())
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def _probabilities(self, x: np.ndarray) -> list[arb]:
        if is_committee(self.model):
            own = self.member_probabilities(x)
            return [p / sum(own[1:], own[0]) for p in own]
        mean, cov = self.moments(x)
        if is_class_model(self.model):
            return class_probabilities(self.model.likelihood, mean, cov)
        return [second_class(self.model.likelihood, mean[0], cov[0][0])]

    def member_probabilities(self, x: np.ndarray) -> list[arb]:
        """A committee's own F."""
        return self._once("members", x, lambda: self._member_probabilities(x))

    def _member_probabilities(self, x: np.ndarray) -> list[arb]:
        found = []
        for index, member in enumerate(self.model.members):
            mean, cov = self.moments(x, index)
            found.append(second_class(member.likelihood, mean[0], cov[0][0]))
        return found

    def quantity(self, name: str, output: int, x: np.ndarray, reach: float = 0.0) -> arb:
        """A quantity of an output; of two classes, 1 is the second. A band ends `reach` (of either
        sign) standard deviations above the mean."""
        if name == "probability":
            found = self.probabilities(x)
            if len(found) > 1:
                return found[output]
            return found[0] if output == 1 else 1 - found[0]
        mean, cov = self.moments(x)
        variance = cov[output][output]
        if name == "mean":
            return mean[output]
        if name == "variance":
            return variance
        std = Balls.sqrt(variance)
        return std if name == "std" else mean[output] + arb(reach) * std

    def scores(self, x: np.ndarray) -> list[arb] | None:
        """What a committee compares; None where a vote is not proved."""
        F = self.member_probabilities(x)
        if self.model.scheme == "one_vs_rest":
            return F
        m = len(self.model.classes)
        votes, sums = [arb(0)] * m, [arb(0)] * m
        for index, (j, k) in enumerate(class_grid(m)):
            latent = self.moments(x, index)[0][0]
            if not (bool(latent > 0) or bool(latent <= 0)):
                return None
            votes[k if bool(latent > 0) else j] += 1
            sums[k] += F[index]
            sums[j] -= F[index]
        return [v + s / (3 * (abs(s) + 1)) for v, s in zip(votes, sums, strict=True)]
