"""The answers: records with a status that speaks, valid bounds, and what they cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpcert.certificates.io import Record
from gpcert.certificates.schema import ADDED
from gpcert.certificates.shown import Shown
from gpcert.certificates.status import Interval, Status
from gpcert.certificates.text import certificate_shown, radius_shown, range_shown, verdict_text
from gpcert.errors import InputError
from gpcert.extras import Axes
from gpcert.search import StopReason


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Searched(Record):
    """What a search answers: why it ended and what it cost, by which family of bounds (`method`),
    and the fingerprint of the certified `model`."""

    reason: StopReason
    boxes: int
    seconds: float
    method: str = "taylor"
    model: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class PredictionRange(
    Searched, kind="prediction_range", told="minimum maximum quantity output reason"
):
    """Bounds of the smallest and of the largest value of a quantity over a region.

    `minimum.lower <= min <= minimum.upper`, the latter attained at `argmin`; likewise for the
    maximum. The bounds are valid whether or not the search converged. `output` is the label of the
    class whose probability it is, the number of the target, or None where there is one latent
    function; `meaning` says in words what is bounded. Of a "band" the minimum is that of
    `mean - beta std` and the maximum that of `mean + beta std`; `beta` is None otherwise. `method`
    is the family of bounds, `model` the fingerprint of the certified posterior.
    `nominal` is the quantity at the region's centre, in plain floating point, for pictures (None:
    it has no finite value there, or is a band): nothing rests on it.
    """

    minimum: Interval
    maximum: Interval
    argmin: np.ndarray | None
    argmax: np.ndarray | None
    converged: bool
    quantity: str
    output: Any
    region: dict[str, Any]
    meaning: str = ""
    beta: float | None = field(default=None, metadata=ADDED)
    nominal: float | None = field(default=None, metadata=ADDED)

    def shown(self) -> Shown:
        return range_shown(self)

    def check(self) -> None:
        super().check()
        if not self.minimum.lower <= self.maximum.upper:
            raise InputError("minimum and maximum: expected minimum.lower <= maximum.upper")
        if self.beta is not None and not 0 <= self.beta < math.inf:
            raise InputError(f"beta: expected a number >= 0, got {self.beta!r}")


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Searched, kind="certificate", told="status decision margin rule reason"):
    """Verdict on one region: `margin` bounds the smallest margin of the decision over it.

    The margin is positive where the decision is that of `decision` (the proved label at x; None in
    regression): `sign * latent mean`, `sign * (probability - threshold)`, the least difference of
    the decision's score and another one's, or `delta - deviation`. ROBUST if `margin.lower > 0`;
    NOT_ROBUST if a point with a negative margin, the `counterexample`, is known. `unit` says what
    the margin is measured in, `x` is the point whose decision is meant, `method` the family of
    bounds, `model` the posterior's fingerprint. `margin_at_x` is the margin at x in plain floating
    point, for pictures; None where it is not known.

    If the reason is `UNDECIDED_AT_X`, the decision at x could not be proved: `decision` is None,
    and `margin` holds whichever it is (the margin at x of a decision that is made there is small).
    """

    status: Status
    margin: Interval
    counterexample: np.ndarray | None
    decision: Any
    rule: str
    region: dict[str, Any]
    unit: str = ""
    x: np.ndarray | None = None
    margin_at_x: float | None = field(default=None, metadata=ADDED)

    @property
    def summary(self) -> str:
        """What is proved or refuted, as a sentence."""
        return verdict_text(self)

    def shown(self) -> Shown:
        return certificate_shown(self)

    def plot(self, ax: Axes | None = None, *, shape: tuple[int, int] | None = None) -> Axes:
        """The proved bound of the margin against 0, the margin at x and at the counter-example.

        `shape`, the rows and columns of an image, draws x and the counter-example above. Returns
        the Axes.
        """
        return self._drawn(ax, shape=shape)

    @property
    def counterexample_distance(self) -> float:
        """Largest change of a feature from the region's centre to the counter-example; NaN without
        either."""
        center = self.region.get("center")
        if self.counterexample is None or center is None:
            return math.nan
        return float(np.max(np.abs(self.counterexample - np.asarray(center)), initial=0.0))

    @property
    def robust(self) -> bool:
        """Whether the decision is proved to be the same in the whole region."""
        return self.status is Status.ROBUST

    def __bool__(self) -> bool:
        raise InputError(
            "a certificate is not a truth value (one that refutes would pass as true): use "
            "certificate.robust, or compare certificate.status"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Radius(Searched, kind="radius", told="lower upper decision norm reason"):
    """Proved robust up to `lower`; at distance `upper` (inf if none was found) a counter-example.

    The true robustness radius lies in `[lower, upper]`. `region` describes the ball that is proved,
    centre, features and domain included; `unit` is what the decision's margin is measured in.
    `scale`, if given, is what the radius is measured in, one number per feature (0: fixed).
    """

    lower: float
    upper: float
    counterexample: np.ndarray | None
    decision: Any
    norm: float
    rule: str = ""
    region: dict[str, Any] = field(default_factory=dict)
    unit: str = ""
    scale: np.ndarray | None = field(default=None, metadata=ADDED)

    def shown(self) -> Shown:
        return radius_shown(self)

    def check(self) -> None:
        super().check()
        if not (0 <= self.lower <= self.upper and self.norm >= 1):
            raise InputError("expected 0 <= lower <= upper and norm >= 1")
