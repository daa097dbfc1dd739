"""`certified_accuracy`: the share of test points that are correctly classified and proved
robust."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Unpack

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api import certified_radius_many
from gpcert.api.options import AccuracyOptions, read_radii, search_options, verb
from gpcert.api.questions import read_decision
from gpcert.api.regions import RegionSpecification
from gpcert.api.rules import decision_rule
from gpcert.attacks import Decision, decision_margins
from gpcert.certificates import Radius
from gpcert.certificates.record import COST, BoundTable, Searched
from gpcert.certificates.schema import ADDED, like
from gpcert.certificates.text import above, below, in_unit, percent
from gpcert.errors import InputError
from gpcert.inputs.tabular import labels_of
from gpcert.model.committee import Committee, Model
from gpcert.model.multi_output import Outputs
from gpcert.numerics.arrays import finite_array
from gpcert.numerics.rounding import norm as norm_of
from gpcert.plots.curves import plot_accuracy, step_radii
from gpcert.regions.shapes import check_norm
from gpcert.search import StopReason
from gpcert.utils.optional_imports import Axes, DataFrame, optional


@dataclass(frozen=True, eq=False, repr=False)
class TestPoint(Searched, kind="accuracy_point", told="label decision right lower upper norm"):
    """One test point: whether its decision is `right`, and bounds on its robustness radius.

    The decision is proved robust up to `lower`; a counter-example is known at distance `upper`
    (infinite if none is). Both are 0 for wrong points. `scale` is the unit of the radii, if any,
    and `radius_unit` its name.
    """

    __test__: ClassVar[bool] = False

    label: Any
    decision: Any
    right: bool
    lower: float
    upper: float
    norm: float
    scale: np.ndarray | None = field(default=None, metadata=ADDED)
    radius_unit: str = field(default="", metadata=ADDED)

    def check(self) -> None:
        super().check()
        if not 0 <= self.lower <= self.upper:
            raise InputError("expected 0 <= lower <= upper")


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedAccuracy(
    BoundTable[TestPoint],
    kind="certified_accuracy",
    columns=f"label decision right lower upper norm {COST}",
    counted="points",
):
    """Test points, and the `radii` at which their shares are reported.

    `complete` says whether all points were searched, `converged` whether every radius is known to
    within the tolerance.
    """

    radii: tuple[float, ...] = ()

    @property
    def accuracy(self) -> float:
        """Share of the points that are right, robust or not; 0 for an empty table."""
        return float(np.mean([row.right for row in self])) if len(self) else 0.0

    def certified(self, radii: Any = None) -> np.ndarray:
        """Shares of the points that are right and proved robust at the radii.

        A point whose proved radius is 0 does not count as proved, even at radius 0.
        """
        r = self._radii(radii)
        rows = np.array([(row.right, row.lower) for row in self]).reshape(-1, 2)
        proved = (rows[:, :1] > 0) & (rows[:, 1:] > 0) & (rows[:, 1:] >= r)
        return proved.mean(axis=0) if len(self) else 0.0 * r

    def attacked(self, radii: Any = None) -> np.ndarray:
        """Shares of the points that are right and without a known counter-example within the radii:
        the true shares lie between `certified` and these."""
        r = self._radii(radii)
        rows = np.array([(row.right, row.upper) for row in self]).reshape(-1, 2)
        return ((rows[:, :1] > 0) & (rows[:, 1:] > r)).mean(axis=0) if len(self) else 0.0 * r

    def curve(self, radii: Any = None) -> DataFrame:
        """A data frame of radius, certified share and attacked share."""
        pandas = optional("pandas", "curve")
        shares = {"certified": self.certified(radii), "attacked": self.attacked(radii)}
        return pandas.DataFrame({"radius": self._radii(radii), **shares})

    def plot(self, ax: Axes | None = None, *, label: str = "") -> Axes:
        """Draw both curves over the radius, with the band between them shaded; returns the Axes."""
        if not len(self):
            raise InputError("plot: expected at least one point, got an empty table")
        finite = [row.upper for row in self if row.right and np.isfinite(row.upper)]
        steps = [0.0, *self.radii, *finite, *(row.lower for row in self if row.right)]
        end = max(self.radii) if self.radii else max(steps)
        fine = step_radii(steps, end)
        shares = (self.certified(fine), self.attacked(fine))
        return plot_accuracy(ax, fine, *shares, label=label, unit=in_unit(self))

    def _radii(self, radii: Any) -> np.ndarray:
        chosen = self.radii if radii is None else radii
        return np.atleast_1d(np.asarray(chosen, dtype=np.float64))

    @property
    def summary(self) -> str:
        return self.shares(6)

    def shares(self, most: int | None = None) -> str:
        """A text: the share of points that are right, and those that are right and robust at the
        first `most` radii (None: at all radii)."""
        n = len(self)
        if not n:
            return ""
        rows = zip(self.radii[:most], self.certified()[:most], self.attacked()[:most], strict=True)
        each = (
            f"{r:g}: {percent(low, n, below)} to {percent(high, n, above)}" for r, low, high in rows
        )
        robust = f"right and robust at radius{in_unit(self)} {'; '.join(each)}"
        return f"{percent(self.accuracy, n)} right; {robust}"


@verb
def certified_accuracy(
    model: Any,
    X: Any,
    y: Any,
    radii: Any,
    *,
    rtol: float = 0.01,
    **options: Unpack[AccuracyOptions],
) -> CertifiedAccuracy:
    """Share of the test points that are right and proved robust, as a function of the radius.

    The robustness radius of every correct point is bracketed once (`certified_radius_many`), which
    gives both curves at all radii: right and proved robust (`certified`), and right without a known
    counter-example (`attacked`). The true share lies between them: with a classifier, a point
    counts as wrong only if that is proved.

    Parameters
    ----------
    X, y : test points and their labels. In regression a point is right if its mean is within
        `delta` of y (in `output_norm`), in plain floating point; y=None counts all points as right.
    radii : radii at which the curves are reported. The search ends at the largest one; the result
        has the shares at all smaller radii, too: `result.curve(radii)`.
    norm, features, domain, scale, threshold, class_weight, delta, output_norm : as in `certify`.
    rtol : relative accuracy of the radii; budget : for each point, 60 seconds by default.
    backend, random_state, method, variance_bound, n_jobs, progress : as in `certify_many`. Ctrl-C
        returns the points finished so far, with `complete=False`; shares refer to these points.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> from gpcert.likelihoods import Probit
    >>> p = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0], [3.0]], weights=[1.0, -1.0],
    ...                      likelihood=Probit(), classes=("no", "yes"))
    >>> X, y = [[0.0], [1.0], [3.0], [2.5]], ["yes", "yes", "no", "yes"]
    >>> result = gpcert.certified_accuracy(p, X, y, radii=[0.0, 0.4, 1.0, 2.0])
    >>> result.certified().tolist(), result.attacked().tolist()
    ([0.75, 0.75, 0.5, 0.0], [0.75, 0.75, 0.5, 0.0])
    """
    posterior = as_posterior(model)
    points = posterior.check_inputs(X)
    decision = read_decision(options, posterior)
    grid = read_radii(radii)
    decided = decision_margins(posterior, points, decision).decided(points)
    labels, right = _right(posterior, points, y, decided, decision)
    search = {**options, **search_options(options)}
    searched = right
    if not _regressor(posterior):
        searched = ~_proved_wrong(posterior, points, labels, right, decision)
    rows = np.flatnonzero(searched)
    largest = float(grid[-1]) if grid[-1] > 0 else None
    table = certified_radius_many(posterior, points[rows], max_radius=largest, rtol=rtol, **search)
    no_search = {"reason": StopReason.CONVERGED, "boxes": 0, "seconds": 0.0}
    common = {**no_search, "method": search["method"], "model": posterior.fingerprint}
    shape = RegionSpecification.read(options).shape(posterior)
    common |= {"scale": shape.unit, "radius_unit": shape.unit_name}
    template = TestPoint(None, None, False, 0.0, 0.0, check_norm(search["norm"]), **common)
    pairs = zip(labels, decided, strict=True)
    wrong = [replace(template, label=label, decision=predicted) for label, predicted in pairs]
    result = {int(k): wrong[k] for k in np.flatnonzero(~searched)}
    for row, item in zip(table.labels, table, strict=True):
        result[int(rows[row])] = _point(wrong[rows[row]], item)
    order = sorted(result)
    names, done = labels_of(X, order), tuple(result[k] for k in order)
    return CertifiedAccuracy(done, table.complete, names, tuple(grid.tolist()))


def _point(template: TestPoint, radius: Radius) -> TestPoint:
    """The record of a point whose radius was bracketed.

    The bracket holds for the decision that was proved at x. If that differs from the label, the
    point is wrong; if no decision was proved, the bracket is `[0, inf]`, and the point counts as
    right in the upper curve only.
    """
    decision = template.decision if radius.decision is None else radius.decision
    right = radius.decision is None or bool(radius.decision == template.label)
    ends = {} if right else {"lower": 0.0, "upper": 0.0}
    return like(TestPoint, radius, label=template.label, decision=decision, right=right, **ends)


def _proved_wrong(
    model: Model, points: np.ndarray, labels: list[Any], right: np.ndarray, decision: Decision
) -> np.ndarray:
    """(n,) whether the decision is proved to differ from the label.

    This is checked only if it differs in plain floating point; for all other points the search for
    the radius proves the decision. A point near a tie, with no proved decision, does not count as
    wrong.
    """
    wrong = np.zeros(len(points), dtype=bool)
    for k in np.flatnonzero(~right):
        rule = decision_rule(model, points[k], decision)
        wrong[k] = rule.decided and bool(rule.decision != labels[k])
    return wrong


def _regressor(model: Model) -> Outputs | None:
    return None if isinstance(model, Committee) or model.likelihood.classifies else model


def _right(
    model: Model, points: np.ndarray, y: Any, decided: list[Any], decision: Decision
) -> tuple[list[Any], np.ndarray]:
    """Labels as plain numbers or text, and which computed decisions agree with them."""
    n = len(points)
    regressor = _regressor(model)
    if y is None and regressor is not None:
        return [None] * n, np.ones(n, dtype=bool)
    label_list = _one_each(y, n)
    if regressor is None:
        labels = [value.item() if isinstance(value, np.generic) else value for value in label_list]
        for label in labels:
            single = isinstance(label, Hashable) and not getattr(label, "ndim", 0)
            if not (single and label in model.labels):
                raise InputError(f"y: expected labels among {list(model.labels)}, got {label!r}")
        return labels, np.array([a == b for a, b in zip(labels, decided, strict=True)], dtype=bool)
    delta = decision.delta
    if delta is None:
        raise InputError(
            "y: in regression a point is right if its mean is within delta= of y; got no delta "
            "(pass y=None to count all points as right)"
        )
    targets = finite_array("y", y)
    targets = targets.reshape(n, -1) if targets.size else targets
    mean = regressor.predict(points)[0]
    if targets.shape != mean.shape:
        raise InputError(f"y: expected shape {mean.shape}, got {targets.shape}")
    single = targets[:, 0].tolist() if targets.shape[1] == 1 else [None] * n
    return single, norm_of(mean - targets, decision.output_norm) <= delta


def _one_each(y: Any, n: int) -> list[Any]:
    """The labels as a list, one for each point."""
    expected = f"y: expected one label for each of {n} points, got "
    if y is None or isinstance(y, str | bytes | Mapping | set | frozenset):
        raise InputError(expected + repr(y))
    try:
        labels = list(y)
    except TypeError as error:
        raise InputError(expected + repr(y)) from error
    if len(labels) != n:
        raise InputError(f"{expected}{len(labels)}")
    return labels
