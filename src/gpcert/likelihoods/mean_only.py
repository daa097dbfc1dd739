"""Models that predict by their mean alone: support vector machines, kernel ridge regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gpcert.likelihoods.gaussian import Gaussian


@dataclass(frozen=True)
class MeanOnly(Gaussian):
    """Regression by a function of a kernel's space, `F = mu`; nothing is known of its error.

    >>> MeanOnly().has_variance
    False
    """

    name: ClassVar[str] = "mean_only"
    has_variance: ClassVar[bool] = False


@dataclass(frozen=True)
class SignOnly(MeanOnly):
    """Two classes by the sign of the mean, as `decision_function` has it: the second where it is
    positive. There are no probabilities.

    >>> SignOnly().classifies, SignOnly().symmetric
    (True, True)
    """

    name: ClassVar[str] = "sign_only"
    classifies: ClassVar[bool] = True
    symmetric: ClassVar[bool] = True
