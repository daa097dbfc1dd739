"""Several posteriors over the same inputs that decide together, each with a kernel of its own.

Proofs: docs/mathematics.md, statement 11.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood, MeanOnly, ScalarLikelihood
from gpcert.model.mixture import Mixture
from gpcert.model.multi_output import ModelCollection, SeparateOutputs, described_labels
from gpcert.model.posterior import Posterior
from gpcert.model.posterior_file import FORMAT as POSTERIOR_FORMAT
from gpcert.model.posterior_file import check_labels, check_shapes
from gpcert.model.posterior_parts import checked_classes
from gpcert.numerics.arrays import finite_array
from gpcert.utils.archive import read_arrays

Scheme = Literal["one_vs_rest", "one_vs_one", "pair_votes"]


@dataclass(frozen=True, eq=False)
class Committee(ModelCollection):
    """Binary classifiers that make one classifier of several classes.

    "one_vs_rest": member c gives the probability F_c of class c against all others. The largest
    wins, the first of equal ones; the probabilities are `F_c / sum_k F_k`.

    "one_vs_one": a member for every pair j < k, in lexicographic order, gives the probability F_jk
    of class k against class j, and votes for k where its latent mean is positive, else for j. The
    score of a class is its votes plus `s / (3 (|s| + 1))`, `s = sum_{j<c} F_jc - sum_{k>c} F_ck`:
    most votes win, and s breaks ties. The largest score wins, the first of equal ones.

    "pair_votes" (support vector machines): one member, whose likelihood is `MeanOnly`, has an
    output for every pair j < k, in lexicographic order, which votes for k where its mean is >= 0,
    else for j. Most votes win, the first of equal ones: the score of class c is its votes less c/m.

    >>> from gpcert.kernels import SquaredExponential
    >>> from gpcert.likelihoods import Probit
    >>> bumps = [Posterior(SquaredExponential(1.0), [[z]], [2.0], likelihood=Probit())
    ...          for z in (0.0, 3.0, 6.0)]
    >>> committee = Committee(tuple(bumps), ("a", "b", "c"), "one_vs_rest")
    >>> committee_decision(committee, [[0.5], [2.0], [9.0]]).tolist()
    [0, 1, 2]
    """

    classes: tuple[Any, ...]
    scheme: Scheme

    FORMAT = "gpcert-committee-1"
    HEADER = ("classes", "scheme")
    classifies: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        classes = checked_classes(self.classes)
        if classes is None:
            raise InputError(f"Committee: expected a tuple of labels, got {self.classes!r}")
        object.__setattr__(self, "classes", classes)
        m = len(self.classes)
        pairs = m * (m - 1) // 2
        counts = {"one_vs_rest": m, "one_vs_one": pairs, "pair_votes": 1}
        if not isinstance(self.scheme, str) or self.scheme not in counts:
            raise InputError(f"scheme: expected one of {sorted(counts)}, got {self.scheme!r}")
        if m < 2 or len(self.members) != counts[self.scheme]:
            raise InputError(
                f"members: expected {counts[self.scheme]} for {m} classes, got {len(self.members)}"
            )
        if self.shared:
            member = self.members[0]
            if not isinstance(member.likelihood, MeanOnly) or member.likelihood.classifies:
                raise InputError(
                    "members: expected a posterior with the likelihood MeanOnly(), "
                    f"got {member.likelihood}"
                )
            if member.outputs != pairs:
                raise InputError(
                    f"members: expected {pairs} outputs, one per pair of classes, "
                    f"got {member.outputs}"
                )
        for member in () if self.shared else self.members:
            likelihood = member.likelihood
            if not (
                isinstance(likelihood, ScalarLikelihood)
                and likelihood.classifies
                and member.outputs == 1
            ):
                raise InputError("members: expected binary classifiers")

    @property
    def shared(self) -> bool:
        """Whether one member holds all pairs, as several outputs over the same points."""
        return self.scheme == "pair_votes"

    def _described(self, written: bool) -> dict[str, Any]:
        return {"scheme": self.scheme, "classes": described_labels(self.classes, written)}

    @classmethod
    def _fields(cls, header: dict[str, Any]) -> dict[str, Any]:
        return {"classes": check_labels(header["classes"]), "scheme": header["scheme"]}

    def member_probabilities(self, X: Any) -> np.ndarray:
        """(n, members): every member's own probability, in plain floating point."""
        X = self.check_inputs(X)
        return np.concatenate([member.prediction(X) for member in self.members], axis=1)

    def probabilities(self, X: Any) -> np.ndarray:
        """(n, m): `F_c / sum_k F_k`, 0 where all are 0, in plain floating point."""
        self.check_has_probabilities()
        F = self.member_probabilities(X)
        total = F.sum(1, keepdims=True)
        return np.divide(F, total, out=np.zeros_like(F), where=total != 0)

    @property
    def labels(self) -> tuple[Any, ...]:
        """`classes`, as other classifiers call them."""
        return self.classes

    def scores(self, X: Any) -> np.ndarray:
        """(n, m): what is compared between the classes, in plain floating point."""
        if self.scheme == "one_vs_rest":
            return self.member_probabilities(X)
        X = self.check_inputs(X)
        means = np.concatenate([member.mean(X) for member in self.members], axis=1)
        return vote_scores(
            means, len(self.classes), None if self.shared else self.member_probabilities(X)
        )

    def check_has_probabilities(self) -> None:
        """An `InputError` where no class probabilities are defined."""
        if self.shared:
            self.members[0].check_has_variance("probability")
        if self.scheme == "one_vs_one":
            raise InputError(
                "probability: a one-vs-one classifier has no class probabilities, only votes (as "
                "in scikit-learn); certify its decisions, or fit with multi_class='one_vs_rest'"
            )


def pair_weights(m: int, c: int) -> np.ndarray:
    """(m (m - 1) / 2,): 1 for the pairs (j, c), -1 for the pairs (c, k), 0 for the others.

    With y_jk = 1 where k wins, class c has `m - 1 - c + sum_p w_p y_p` votes, and its sum of
    confidences is `sum_p w_p F_p`.

    >>> pair_weights(3, 1).tolist()
    [1.0, 0.0, -1.0]
    """
    return np.asarray([float(k == c) - float(j == c) for j, k in combinations(range(m), 2)])


def is_model_collection(model: Model) -> bool:
    """Whether the model decides between classes by a score of each."""
    return isinstance(model, Committee) or isinstance(model.likelihood, ClassLikelihood)


def vote_scores(means: np.ndarray, m: int, F: np.ndarray | None = None) -> np.ndarray:
    """(n, m): votes less c / m from the means (n, pairs) of all pairs; with their probabilities F
    (n, pairs) ties are broken by confidences instead. See `Committee`.

    >>> vote_scores(np.array([[0.0, -1.0, -2.0]]), 3).round(2).tolist()
    [[1.0, 1.67, -0.67]]
    """
    weights = np.stack([pair_weights(m, c) for c in range(m)])
    # a class has as many votes as it wins pairs: it starts with those in which it is the first
    votes = (means >= 0 if F is None else means > 0) @ weights.T + np.arange(m)[::-1]
    if F is None:
        return votes - np.arange(m) / m
    sums = F @ weights.T
    return votes + sums / (3.0 * (np.abs(sums) + 1.0))


def committee_decision(
    committee: Committee, X: Any, class_weight: Sequence[float] | None = None
) -> np.ndarray:
    """(n,) indices of the classes decided on at X (n, d), in plain floating point.

    `class_weight`, one positive number per class, chooses the largest `w_c F_c` (one-vs-rest only).
    """
    weights = check_class_weight(committee, class_weight)
    return np.argmax(committee.scores(X) * np.asarray(weights), axis=1)


def check_class_weight(
    committee: Committee, class_weight: Sequence[float] | None
) -> tuple[float, ...]:
    """The weights of the classes as floats; all 1 by default."""
    if class_weight is not None and committee.scheme != "one_vs_rest":
        raise InputError(
            "class_weight: a one-vs-one classifier counts votes, not probabilities; drop "
            "class_weight (a GaussianProcessClassifier: or fit with multi_class='one_vs_rest')"
        )
    return class_weights(committee.classes, class_weight)


def class_weights(
    labels: tuple[Any, ...], weight: Mapping[Any, float] | Sequence[float] | None
) -> tuple[float, ...]:
    """Cost of a mistake on every class, from weights by label or in the classes' order; all 1 by
    default. Of two classes the second is chosen where w2 pi > w1 (1 - pi)."""
    if weight is None:
        return (1.0,) * len(labels)
    if isinstance(weight, Mapping):
        missing = [label for label in labels if label not in weight]
        if missing:
            raise InputError(f"class_weight: expected weights of {labels}, missing {missing}")
        weight = [weight[label] for label in labels]
    weights = finite_array("class_weight", weight, ndim=1)
    if weights.shape != (len(labels),) or np.any(weights <= 0):
        raise InputError(f"class_weight: expected {len(labels)} positive weights, got {weight!r}")
    return tuple(weights.tolist())


Model = Posterior | SeparateOutputs | Committee
"""What a search looks at."""

AnyModel = Model | Mixture
"""What may be asked about: a mixture is searched as its members."""

KINDS: dict[str, type[ModelCollection]] = {
    kind.FORMAT: kind for kind in (Committee, SeparateOutputs, Mixture)
}
"""Models of several posteriors, by the format of their files."""


def load_model(path: str | Path) -> Model:
    """A posterior, a committee or separate outputs, from a file that its `save` wrote."""
    checks = {POSTERIOR_FORMAT: lambda header, shapes: check_shapes(shapes)}
    checks |= {name: kind.check_arrays for name, kind in KINDS.items()}
    header, arrays = read_arrays(path, checks)
    kind: Any = KINDS.get(header["format"], Posterior)
    return kind.from_arrays(header, arrays, path)
