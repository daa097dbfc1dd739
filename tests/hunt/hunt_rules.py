"""What a decision is, from the docstring of `gpcert.certify`: which one a point proves, and by how
much it is away from another."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from tests.hunt.hunt_numbers import Balls
from tests.hunt.hunt_truth import Truth, ends_of, is_class_model, is_committee


class Rule:
    """The decision rule of a model and options; decisions are numbers 0, 1, ... of classes, or of
    sides of a level (1 above it), or 0 within delta."""

    def __init__(self, truth: Truth, options: dict[str, Any], x: np.ndarray) -> None:
        self.truth, self.model, self.options, self.x = truth, truth.model, options, x
        self.several = is_committee(self.model) or is_class_model(self.model)

    @property
    def beta(self) -> float:
        """How far a confidence bound reaches."""
        return self.options.get("beta", 0.0)

    def labels(self) -> tuple[Any, ...] | None:
        """Names of the decisions; None in regression."""
        if is_committee(self.model):
            return self.model.classes
        if type(self.model.likelihood).__name__ == "Gaussian":
            return None
        if self.model.classes is not None:
            return self.model.classes
        return tuple(range(len(self.model.weights))) if self.several else (0, 1)

    def decision(self, x: np.ndarray) -> int | None:
        """The decision that is proved at x, if one is."""
        if self.several:
            return self._largest(self._scores(x))
        if "delta" in self.options:
            inside = self.signed(x)
            return 0 if bool(inside >= 0) else 1 if bool(inside < 0) else None
        value = self.signed(x)
        return 1 if bool(value > 0) else 0 if bool(value <= 0) else None

    def margin(self, x: np.ndarray, decision: int, unit: str = "") -> arb | None:
        """Positive where the decision is this one; None where it has no such number.

        `unit` is that of the answer: where the latent mean has the sign of the probability less its
        threshold, the margin may be one of the latent mean.
        """
        if is_committee(self.model):
            return None
        if self.several:
            scores = self._scores(x)
            assert scores is not None
            gaps = [scores[decision] - s for c, s in enumerate(scores) if c != decision]
            least = gaps[0]
            for gap in gaps[1:]:
                least = least.min(gap)
            return least
        latent = "latent" in unit and self.labels() is not None
        value = self.truth.moments(x)[0][0] if latent else self.signed(x)
        if "delta" in self.options:
            return value if decision == 0 else -value
        return value if decision == 1 else -value

    def signed(self, x: np.ndarray) -> arb:
        """Above the level (or within delta) by how much."""
        if "delta" in self.options:
            return arb(self.options["delta"]) - self._deviation(x)
        level = self._threshold()
        if level is None:
            return self.truth.moments(x)[0][0]
        if type(self.model.likelihood).__name__ == "Gaussian":
            name = self.options.get("quantity", "mean")
            reach = ends_of(name, self.beta)[0]
            return self.truth.quantity(name, self.options.get("output", 0), x, reach) - level
        return self.truth.probabilities(x)[0] - level

    def _threshold(self) -> arb | None:
        weight = self.options.get("class_weight")
        if weight is not None:
            share = Fraction(weight[0]) / (Fraction(weight[0]) + Fraction(weight[1]))
            # w1 / (w1 + w2) may be meant in floats or in real numbers
            return arb(share.numerator) / share.denominator + arb(0, 2.0**-52)
        threshold = self.options.get("threshold")
        if threshold is None and type(self.model.likelihood).__name__ == "Discretised":
            return arb(0.5)  # decisions of an own link compare the probability
        return None if threshold is None else arb(float(threshold))

    def _deviation(self, x: np.ndarray) -> arb:
        here, there = (self.truth.moments(p)[0] for p in (self.x, x))
        p = float(self.options.get("output_norm", np.inf))
        steps = [abs(a - b) for a, b in zip(here, there, strict=True)]
        if p == np.inf:
            largest = steps[0]
            for step in steps[1:]:
                largest = largest.max(step)
            return largest
        total = sum((s ** int(p) for s in steps), arb(0))
        if p == 1:
            return total
        if p == 2:
            return Balls.sqrt(total)
        return total.root(int(p)) if bool(total > 0) else arb(0, (total.upper()).root(int(p)))

    def _scores(self, x: np.ndarray) -> list[arb] | None:
        weight = self.options.get("class_weight")
        scores = self.truth.scores(x) if is_committee(self.model) else self.truth.probabilities(x)
        if scores is None or weight is None:
            return scores
        return [arb(w) * s for w, s in zip(weight, scores, strict=True)]

    @staticmethod
    def _largest(scores: list[arb] | None) -> int | None:
        if scores is None:
            return None
        for c, own in enumerate(scores):
            if all(bool(own > s) for k, s in enumerate(scores) if k != c):
                return c
        return None


def label_index(labels: tuple[Any, ...], decision: Any) -> int:
    """Which class a label names."""
    for index, label in enumerate(labels):
        if label is decision or label == decision:
            return index
    raise AssertionError(f"decision {decision!r} is none of {labels}")
