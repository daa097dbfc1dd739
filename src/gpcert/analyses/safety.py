"""`safety_curve`: the range of a prediction as the region grows, compared with an attack."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Unpack, get_args

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.analyses.attack import attack_regions
from gpcert.api import certify, prediction_range, prediction_range_many
from gpcert.api.accuracy import Accuracy
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
from gpcert.api.questions import range_question, read_decision
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
from gpcert.model.committee import Model, is_model_collection
from gpcert.plots.curves import plot_safety
from gpcert.regions import Box, Region
from gpcert.search import StopReason, stop_if_interrupted
from gpcert.search.problem import Tolerance
from gpcert.utils.optional_imports import Axes


@dataclass(frozen=True, eq=False, repr=False)
class SafetyStep(Searched, kind="safety_step", told="radius minimum maximum attack status"):
    """One radius of a safety curve around x.

    `minimum` and `maximum` bound the least and the greatest `quantity` in the ball, as in a
    `PredictionRange`; the attained values are those at `argmin` and `argmax`. `status` is the
    verdict on the decision at x. `attack` is the value that the attack `attacked_by` reached at
    `attack_point`, in plain floating point; if it lies beyond the values attained by the searches,
    certified bounds at the point confirm it. The decision at x holds while the value lies between
    `lower_level` and `upper_level` (None: no such level, as with several classes). `scale` is the
    unit of the radius, one number per feature, if it has one, and `radius_unit` its name.
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

    `complete` says whether all radii were searched, `converged` whether all bounds are within the
    tolerance.
    """

    @property
    def radii(self) -> np.ndarray:
        """The radii, in increasing order."""
        return np.array([step.radius for step in self])

    @property
    def safe_up_to(self) -> float | None:
        """The largest radius at which the decision is proved, if there is one."""
        return max((step.radius for step in self if step.status is Status.ROBUST), default=None)

    @property
    def first_unsafe(self) -> float | None:
        """The smallest radius at which a counter-example is known, if there is one."""
        return min((step.radius for step in self if step.status is Status.NOT_ROBUST), default=None)

    def plot(self, ax: Axes | None = None, *, label: str = "") -> Axes:
        """Draw the paper's figure: bounds solid, attained values dashed, the attack, the threshold,
        and the first unsafe radius; returns the Axes. `label` names this curve among several."""
        first = self[0]
        levels = [each for each in (first.lower_level, first.upper_level) if each is not None]
        style = {
            "quantity": first.quantity,
            "label": label,
            "attack": first.attacked_by,
            "levels": levels,
        }
        style["unit"] = in_unit(self)
        return plot_safety(ax, self.to_frame(), first_unsafe=self.first_unsafe, **style)

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
    **options: Unpack[CurveOptions],
) -> SafetyCurve:
    """Bounds on the least and the greatest prediction for growing radii, and an attack's values.

    The paper's analysis of local adversarial safety. The prediction is the probability of the
    second of two classes, or of the class decided at x if there are several; in regression, the
    mean of the first target. `output`, the label of a class or the number of a target, chooses
    another one (`threshold` is then a level of that target).

    The balls are nested, so the searches share their results: a lower bound of the minimum at one
    radius holds at all smaller ones, and a value attained at one radius is attained at all larger
    ones. The smallest and the largest radius are searched first, then the middle; a radius between
    two others whose bounds agree within the tolerance needs no search. Verdicts are found by
    bisection, as robustness at one radius implies it at all smaller ones. If the attack finds a
    better point than the searches, the attained value is the certified bound at that point.

    Parameters
    ----------
    x, radii : the point, and the radii of the balls around it, in any order.
    attack : the attack, see `gpcert.attack`; by default the paper's baseline.
    budget : of one search, 60 seconds by default. Ctrl-C ends the call: the bounds so far are
        valid, and the curve is not `complete`.
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
    rule: dict[str, Any] = {name: options.get(name) for name in DecisionRuleOptions.__annotations__}
    if output is not None and rule["threshold"] is not None and not posterior.classifies:
        rule["output"] = output  # the threshold is a level of this target
    decision, search_settings = read_decision(rule, posterior), search_options(options)
    attack = one_of("attack", attack, get_args(AttackName))
    accuracy = Accuracy.read(tol, rtol)
    shape = RegionSpecification.read(options).shape(posterior)
    grid = read_radii(radii)
    balls = [shape.ball(point, radius) for radius in grid.tolist()]
    _ = decision_candidates(posterior, point, decision).guess  # refuses what `certify` does
    margins = decision_margins(posterior, point[None], decision)
    question = range_question(posterior, QuantityRequest())
    if output is None and question.default is None:
        output = margins.decided(point[None])[0]
    index = question.index(output)
    copies, seed = np.tile(point, (len(balls), 1)), search_settings["random_state"]
    attacks = attack_regions(
        posterior, copies, balls, decision, attack, Effort(), confirm=True, random_state=seed
    )
    range_options = {**vars(accuracy), "output": question.labels[index], **search_settings}
    search = _Curve(posterior, point, balls, range_options)
    with progress_line(options.get("progress")) as line:
        try:
            search.verdicts([row.confirmed for row in attacks], {**rule, **search_settings})
            line.show("verdicts are known")
            search.bound(accuracy.of_output(question, index))
        except KeyboardInterrupt:
            search.complete = False
    curve_quantity = _CurveQuantity(margins, posterior, point, index, question)
    reached = [float(curve_quantity.values(x[None])[0]) for x in attacks.points]
    try:
        search.confirm(attacks.points, reached)
    except KeyboardInterrupt:
        search.complete = False
    steps = [
        like(
            SafetyStep,
            curve_quantity,
            radius=float(grid[k]),
            scale=shape.unit,
            radius_unit=shape.unit_name,
            attack=search.attained(k, reached[k]),
            attack_point=attacks[k].point,
            attacked_by=attack,
            lower_level=curve_quantity.levels[0],
            upper_level=curve_quantity.levels[1],
            region=ball.describe(),
            model=posterior.fingerprint,
            **search.known(k),
        )
        for k, ball in enumerate(balls)
    ]
    return SafetyCurve(tuple(steps), search.complete)


@dataclass(eq=False)
class _CurveQuantity:
    """The prediction that the curve bounds, and the levels between which the decision holds."""

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
            if self._first:  # of two classes: 1 minus the probability of the second
                level, above = 1.0 - level, not above
            self.levels = (level, None) if above else (None, level)
        self.decision = margins.decided(self.x[None])[0]

    @property
    def _first(self) -> bool:
        return self.question.two and self.index == 0

    def values(self, X: np.ndarray) -> np.ndarray:
        """(n,) the prediction at X."""
        if is_model_collection(self.model):
            values, _ = prediction_and_gradient(self.model, X)
            return values[:, self.index]
        if isinstance(self.margins, DeviationMargins):
            return self.margins.model.mean(X)[:, self.index]
        values = self.margins.displayed(X, np.zeros(len(X), dtype=int))
        return 1.0 - values if self._first else values


@dataclass(eq=False)
class _Curve:
    """Verdicts and bounds at every radius, in increasing order."""

    model: Model
    x: np.ndarray
    balls: list[Region]
    choices: dict[str, Any]
    complete: bool = True
    status: list[Status] = field(default_factory=list)
    ranges: dict[int, PredictionRange] = field(default_factory=dict)
    attacks: dict[int, PredictionRange] = field(default_factory=dict)
    """Certified bounds at points of attacks that are better than those of the searches."""

    def verdicts(self, refuted: list[bool], choices: dict[str, Any]) -> None:
        """Find the verdicts by bisection below the first radius that a confirmed attack refutes."""
        self.status = [Status.NOT_ROBUST if each else Status.UNKNOWN for each in refuted]
        first = refuted.index(True) if any(refuted) else len(self.balls)
        self._decide(0, first - 1, choices)

    def _decide(self, low: int, high: int, choices: dict[str, Any]) -> None:
        if low > high:
            return
        middle = (low + high) // 2
        ball = self.balls[middle]
        certificate = certify(self.model, self.x, region=ball, progress=False, **choices)
        stop_if_interrupted(certificate.reason)
        self.status[middle] = certificate.status
        if certificate.status is not Status.ROBUST:
            self._decide(low, middle - 1, choices)
        if certificate.status is not Status.NOT_ROBUST:
            self._decide(middle + 1, high, choices)

    def verdict(self, k: int) -> Status:
        """The verdict that follows from all radii: robustness of a larger ball, or a
        counter-example in a smaller one, holds for this ball as well."""
        if Status.ROBUST in self.status[k:]:
            return Status.ROBUST
        return Status.NOT_ROBUST if Status.NOT_ROBUST in self.status[: k + 1] else Status.UNKNOWN

    def bound(self, tol: Tolerance) -> None:
        """Search at both ends, then in the middle of every gap that its ends do not settle."""
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
        options = {"sides": sides, "progress": False, **self.choices}
        self.ranges[k] = prediction_range(self.model, self.balls[k], **options)
        stop_if_interrupted(self.ranges[k].reason)

    def confirm(self, points: np.ndarray, values: list[float]) -> None:
        """Bound the prediction at those attack points, one per ball, whose values are beyond the
        attained ones."""
        ends = [self.ends(k) for k in range(len(values))]
        beyond = [
            k
            for k, (minimum, maximum) in enumerate(ends)
            if not minimum.upper <= values[k] <= maximum.lower and self.balls[k].contains(points[k])
        ]
        places = [Box(points[k], points[k]) for k in beyond]
        if not places:
            return
        table = prediction_range_many(self.model, places, progress=False, **self.choices)
        pairs = zip(table.labels, table, strict=True)
        self.attacks = {beyond[row]: attained for row, attained in pairs}
        if not table.complete:
            raise KeyboardInterrupt

    def attained(self, k: int, value: float) -> float:
        """An attack's value, limited to the certified bounds if they confirm it."""
        minimum, maximum = self.ends(k)
        confirmed = k in self.attacks and minimum.upper <= maximum.lower
        return float(np.clip(value, minimum.upper, maximum.lower)) if confirmed else value

    def _inside(self, k: int) -> list[PredictionRange]:
        """Results of searches and attacks inside the ball."""
        both = (*self.ranges.items(), *self.attacks.items())
        return [prediction for j, prediction in both if j <= k]

    def ends(self, k: int) -> tuple[Interval, Interval]:
        """The best bounds of minimum and maximum from all radii: proved ends of larger radii,
        attained ends of smaller ones."""
        larger, smaller = [r for j, r in self.ranges.items() if j >= k], self._inside(k)
        proved = max((r.minimum.lower for r in larger), default=-np.inf)
        minimum = Interval(proved, min((r.minimum.upper for r in smaller), default=np.inf))
        attained = max((r.maximum.lower for r in smaller), default=-np.inf)
        return minimum, Interval(attained, min((r.maximum.upper for r in larger), default=np.inf))

    def known(self, k: int) -> dict[str, Any]:
        """Fields of a step that describe the bounds at a radius."""
        (minimum, maximum), searched = self.ends(k), self.ranges.get(k)
        unsearched = StopReason.CONVERGED if self.complete else StopReason.INTERRUPTED
        smaller = self._inside(k)
        return {
            "minimum": minimum,
            "maximum": maximum,
            "argmin": next((r.argmin for r in smaller if r.minimum.upper == minimum.upper), None),
            "argmax": next((r.argmax for r in smaller if r.maximum.lower == maximum.lower), None),
            "status": self.verdict(k),
            "reason": unsearched if searched is None else searched.reason,
            "boxes": 0 if searched is None else searched.boxes,
            "seconds": 0.0 if searched is None else searched.seconds,
            "method": self.choices["method"],
        }
