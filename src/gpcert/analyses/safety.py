"""`safety_curve`: the range of a prediction as the region grows, beside an attack."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Unpack, get_args

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.analyses.attack import attack_regions
from gpcert.api import certify, prediction_range, prediction_range_many
from gpcert.api.accuracy import Accuracy
from gpcert.api.compared import read_decision
from gpcert.api.options import (
    CurveOptions,
    DecisionRuleOptions,
    QuantityRequest,
    one_of,
    read_radii,
    read_x,
    search_options,
    verb,
)
from gpcert.api.questions import range_question
from gpcert.api.range_questions import RangeQuestion
from gpcert.api.regions import RegionSpecification
from gpcert.api.rules import decision_candidates
from gpcert.api.running import progress_line
from gpcert.attacks import AttackName, Effort, Margins, decision_margins, prediction_and_gradient
from gpcert.attacks.decisions import DeviationMargins
from gpcert.certificates import Interval, PredictionRange, Status
from gpcert.certificates.record import COST, BoundTable, Searched
from gpcert.certificates.schema import ADDED, like
from gpcert.certificates.text import in_unit
from gpcert.model.committee import Model, is_classifier, is_model_collection
from gpcert.plots.curves import plot_safety
from gpcert.regions import Ball, Box
from gpcert.search import StopReason, stop_if_interrupted
from gpcert.search.tolerance import Tolerance
from gpcert.utils.optional_imports import Axes


@dataclass(frozen=True, eq=False, repr=False)
class SafetyStep(Searched, kind="safety_step", told="radius minimum maximum attack status"):
    """One radius of a safety curve around x.

    `minimum` and `maximum` bound the least and the greatest `quantity` in the ball, as in a
    `PredictionRange`; the attained ends are attained at `argmin` and `argmax`. `status` is the
    verdict on the decision at x. `attack` is the value that the attack `attacked_by` reached at
    `attack_point`, in plain floating point; where that lies beyond the attained ends of the
    searches, certified bounds at the point confirm it, and it is attained. The decision at x holds
    while the value lies between `lower_level` and `upper_level` (None: no such end, and none at all
    for several classes).
    `scale` is the unit of the radius, one number per feature, if it has one, and `radius_unit` what
    it is called.
    """

    radius: float
    minimum: Interval
    maximum: Interval
    argmin: np.ndarray | None
    argmax: np.ndarray | None
    status: Status
    attack: float
    attack_point: np.ndarray | None
    attacked_by: str
    value: float
    lower_level: Any
    upper_level: Any
    decision: Any
    quantity: str
    region: dict[str, Any]
    scale: np.ndarray | None = field(default=None, metadata=ADDED)
    radius_unit: str = field(default="", metadata=ADDED)


@dataclass(frozen=True, eq=False, repr=False)
class SafetyCurve(
    BoundTable[SafetyStep],
    kind="safety_curve",
    columns=f"radius minimum maximum attack status {COST}",
    counted="radii",
):
    """Steps of growing radius around one point.

    `complete` says whether all radii were reached, `converged` whether all bounds are within the
    tolerance.
    """

    @property
    def radii(self) -> np.ndarray:
        """The radii, growing."""
        return np.array([step.radius for step in self])

    @property
    def safe_up_to(self) -> float | None:
        """The largest of the radii at which the decision is proved, if there is one."""
        return max((step.radius for step in self if step.status is Status.ROBUST), default=None)

    @property
    def first_unsafe(self) -> float | None:
        """The smallest of the radii at which a counter-example is known, if there is one."""
        return min((step.radius for step in self if step.status is Status.NOT_ROBUST), default=None)

    def plot(self, ax: Axes | None = None) -> Axes:
        """The paper's picture: bounds solid, attained values dashed, the attack, the threshold, and
        the first radius that is not safe; returns the Axes."""
        first = self[0]
        levels = [each for each in (first.lower_level, first.upper_level) if each is not None]
        about = {"label": first.quantity, "attack": first.attacked_by, "levels": levels}
        about["unit"] = in_unit(self)
        return plot_safety(ax, self.to_frame(), first_unsafe=self.first_unsafe, **about)

    @property
    def summary(self) -> str:
        ends = f"safe up to {self.safe_up_to}, first unsafe {self.first_unsafe}"
        return f"{ends}{', radii' * bool(in_unit(self))}{in_unit(self)}"


@verb
def safety_curve(
    model: Any,
    x: Any,
    radii: Any,
    *,
    output: Any = None,
    attack: AttackName = "gpfgs",
    tol: float | None = None,
    rtol: float | None = None,
    **words: Unpack[CurveOptions],
) -> SafetyCurve:
    """Bounds on the least and the greatest prediction for growing radii, beside an attack's.

    The paper's analysis of local adversarial safety: the probability of the second of two classes,
    of several that of the class decided on at x, in regression the mean of the first target; or
    that of `output`, the label of a class or the number of a target (of which a `threshold` is then
    a level).

    The balls are nested, so every search helps the others: a lower bound of the minimum at one
    radius holds at all smaller ones, and a value attained at one radius is attained at all larger
    ones. The ends are searched first, then the middle, and a radius between two whose bounds are
    near enough to each other costs nothing. Verdicts are found by bisection, as robustness at one
    radius implies it at all smaller ones. Where the attack finds a better point than the searches,
    which end within the tolerance, that point's value, as certified bounds prove it, is the
    attained one.

    Parameters
    ----------
    x, radii : the point, and radii of the balls around it, in any order.
    attack : which attack is shown, see `gpcert.attack`; by default the paper's baseline.
    budget : of one search, 60 seconds by default. Ctrl-C ends the call: the bounds so far hold, and
        the curve is not `complete`.
    norm, features, domain, scale, threshold, class_weight, delta, output_norm : as in `certify`.
    tol, rtol, backend, random_state, method, variance_bound, progress : as in `prediction_range`.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> p = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0], [3.0]], weights=[1.0, -1.0])
    >>> curve = gpcert.safety_curve(p, [0.0], [0.5, 1.0, 2.0], threshold=0.0)
    >>> curve.safe_up_to, curve.first_unsafe
    (1.0, 2.0)
    >>> bool(curve[0].minimum.lower >= curve[2].minimum.lower)
    True
    """
    posterior = as_posterior(model)
    point = read_x(posterior, x, "call safety_curve once per row")
    rule: dict[str, Any] = {name: words.get(name) for name in DecisionRuleOptions.__annotations__}
    if output is not None and rule["threshold"] is not None and not is_classifier(posterior):
        rule["output"] = output  # its level is that of the target which is shown
    options, work = read_decision(rule, posterior), search_options(words)
    attack = one_of("attack", attack, get_args(AttackName))
    accuracy = Accuracy.read(tol, rtol)
    shape = RegionSpecification.read(words).shape(posterior)
    grid = read_radii(radii)
    balls = [shape.ball(point, radius) for radius in grid.tolist()]
    _ = decision_candidates(posterior, point, options).guess  # refuses what `certify` does
    margins = decision_margins(posterior, point[None], options)
    question = range_question(posterior, QuantityRequest())
    if output is None and question.default is None:
        output = margins.decided(point[None])[0]
    index = question.index(output)
    attacked = (posterior, np.tile(point, (len(balls), 1)), balls, options, attack, Effort())
    attacks = attack_regions(*attacked, True, work["random_state"])
    choices = {**vars(accuracy), "output": question.labels[index], **work}
    search = _Curve(posterior, point, balls, choices)
    with progress_line(words.get("progress")) as line:
        try:
            search.verdicts([row.confirmed for row in attacks], {**rule, **work})
            line.show("verdicts are known")
            search.bound(accuracy.of_output(question, index))
        except KeyboardInterrupt:
            search.complete = False
    shown = _CurveQuantity(margins, posterior, point, index, question)
    reached = [float(shown.values(x[None])[0]) for x in attacks.points]
    try:
        search.confirm(attacks.points, reached)
    except KeyboardInterrupt:
        search.complete = False
    steps = [
        like(
            SafetyStep,
            shown,
            radius=float(grid[k]),
            scale=shape.unit,
            radius_unit=shape.unit_name,
            attack=search.attained(k, reached[k]),
            attack_point=attacks[k].point,
            attacked_by=attack,
            lower_level=shown.levels[0],
            upper_level=shown.levels[1],
            region=ball.describe(),
            model=posterior.fingerprint,
            **search.known(k),
        )
        for k, ball in enumerate(balls)
    ]
    return SafetyCurve(tuple(steps), search.complete)


@dataclass(eq=False)
class _CurveQuantity:
    """The number on the vertical axis, and the levels between which the decision holds."""

    margins: Margins
    model: Model
    x: np.ndarray
    index: int
    question: RangeQuestion
    levels: tuple[float | None, float | None] = (None, None)

    def __post_init__(self) -> None:
        margins, question = self.margins, self.question
        self.value = float(self.values(self.x[None])[0])
        probability = question.quantity == "probability"
        self.quantity = question.meanings[self.index] if probability else question.quantity
        if isinstance(margins, DeviationMargins):
            if margins.model.outputs == 1:
                self.levels = (self.value - margins.delta, self.value + margins.delta)
        elif margins.level is not None:
            level, above = margins.level, bool(margins.winners[0])
            if self._first:  # of two classes: it has what the second leaves
                level, above = 1.0 - level, not above
            self.levels = (level, None) if above else (None, level)
        self.decision = margins.decided(self.x[None])[0]

    @property
    def _first(self) -> bool:
        return self.question.two and self.index == 0

    def values(self, X: np.ndarray) -> np.ndarray:
        """(n,) at X."""
        if is_model_collection(self.model):
            found, _ = prediction_and_gradient(self.model, X)
            return found[:, self.index]
        if isinstance(self.margins, DeviationMargins):
            return self.margins.model.mean(X)[:, self.index]
        found = self.margins.shown(X, np.zeros(len(X), dtype=int))
        return 1.0 - found if self._first else found


@dataclass(eq=False)
class _Curve:
    """What is known of every radius, in growing order."""

    model: Model
    x: np.ndarray
    balls: list[Ball]
    choices: dict[str, Any]
    complete: bool = True
    status: list[Status] = field(default_factory=list)
    ranges: dict[int, PredictionRange] = field(default_factory=dict)
    attacks: dict[int, PredictionRange] = field(default_factory=dict)
    """Certified bounds at the points of attacks that found more than the searches."""

    def verdicts(self, refuted: list[bool], choices: dict[str, Any]) -> None:
        """Bisect below the first radius that a confirmed attack refutes."""
        self.status = [Status.NOT_ROBUST if each else Status.UNKNOWN for each in refuted]
        first = refuted.index(True) if any(refuted) else len(self.balls)
        self._decide(0, first - 1, choices)

    def _decide(self, low: int, high: int, choices: dict[str, Any]) -> None:
        if low > high:
            return
        middle = (low + high) // 2
        found = certify(self.model, self.x, region=self.balls[middle], progress=False, **choices)
        stop_if_interrupted(found.reason)
        self.status[middle] = found.status
        if found.status is not Status.ROBUST:
            self._decide(low, middle - 1, choices)
        if found.status is not Status.NOT_ROBUST:
            self._decide(middle + 1, high, choices)

    def verdict(self, k: int) -> Status:
        """What all radii say: a larger ball that is robust, or a smaller one that is not, says so
        of this one too."""
        if Status.ROBUST in self.status[k:]:
            return Status.ROBUST
        return Status.NOT_ROBUST if Status.NOT_ROBUST in self.status[: k + 1] else Status.UNKNOWN

    def bound(self, tol: Tolerance) -> None:
        """Search at the ends, then in the middle of every gap that is not settled by its ends."""
        last = len(self.balls) - 1
        for k in sorted({0, last}):
            self._search(k, "both")
        self._fill(0, last, tol)

    def _fill(self, low: int, high: int, tol: Tolerance) -> None:
        middle = (low + high) // 2
        if middle in {low, high}:
            return
        minimum, maximum = self.ends(middle)
        ends = ((minimum.lower, minimum.upper), (-maximum.upper, -maximum.lower))
        wide = [low < float(tol.needed(np.array([high]))[0]) for low, high in ends]
        if any(wide):
            self._search(middle, "both" if all(wide) else ("minimum" if wide[0] else "maximum"))
        self._fill(low, middle, tol)
        self._fill(middle, high, tol)

    def _search(self, k: int, sides: Any) -> None:
        how = {"sides": sides, "progress": False, **self.choices}
        self.ranges[k] = prediction_range(self.model, self.balls[k], **how)
        stop_if_interrupted(self.ranges[k].reason)

    def confirm(self, points: np.ndarray, values: list[float]) -> None:
        """Bound the prediction at the points of those attacks, one of each ball, whose values are
        beyond what is attained."""
        ends = [self.ends(k) for k in range(len(values))]
        beyond = [
            k
            for k, (minimum, maximum) in enumerate(ends)
            if not minimum.upper <= values[k] <= maximum.lower and self.balls[k].contains(points[k])
        ]
        places = [Box(points[k], points[k]) for k in beyond]
        if not places:
            return
        found = prediction_range_many(self.model, places, progress=False, **self.choices)
        self.attacks = {beyond[row]: own for row, own in zip(found.labels, found, strict=True)}
        if not found.complete:
            raise KeyboardInterrupt

    def attained(self, k: int, value: float) -> float:
        """An attack's value, as far as certified bounds confirm it."""
        minimum, maximum = self.ends(k)
        confirmed = k in self.attacks and minimum.upper <= maximum.lower
        return float(np.clip(value, minimum.upper, maximum.lower)) if confirmed else value

    def _inside(self, k: int) -> list[PredictionRange]:
        """What was searched or attacked inside the ball."""
        both = (*self.ranges.items(), *self.attacks.items())
        return [found for j, found in both if j <= k]

    def ends(self, k: int) -> tuple[Interval, Interval]:
        """Of the minimum and of the maximum the best that all radii say: proved ends of larger
        ones, attained ends of smaller ones."""
        larger, smaller = [r for j, r in self.ranges.items() if j >= k], self._inside(k)
        proved = max((r.minimum.lower for r in larger), default=-np.inf)
        minimum = Interval(proved, min((r.minimum.upper for r in smaller), default=np.inf))
        attained = max((r.maximum.lower for r in smaller), default=-np.inf)
        return minimum, Interval(attained, min((r.maximum.upper for r in larger), default=np.inf))

    def known(self, k: int) -> dict[str, Any]:
        """What a step says of the bounds at a radius."""
        (minimum, maximum), own = self.ends(k), self.ranges.get(k)
        unsearched = StopReason.CONVERGED if self.complete else StopReason.INTERRUPTED
        smaller = self._inside(k)
        return {
            "minimum": minimum,
            "maximum": maximum,
            "argmin": next((r.argmin for r in smaller if r.minimum.upper == minimum.upper), None),
            "argmax": next((r.argmax for r in smaller if r.maximum.lower == maximum.lower), None),
            "status": self.verdict(k),
            "reason": unsearched if own is None else own.reason,
            "boxes": 0 if own is None else own.boxes,
            "seconds": 0.0 if own is None else own.seconds,
            "method": self.choices["method"],
        }
