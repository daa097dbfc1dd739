"""`robustness` and `worst_case`: how much predictions can change in regions around many points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api import prediction_range_many
from gpcert.api.accuracy import Accuracy
from gpcert.api.options import QuantityRequest, RangeTableOptions, search_options, verb
from gpcert.api.questions import range_question
from gpcert.api.regions import RegionSpecification
from gpcert.attacks import Decision, decision_margins
from gpcert.certificates import Interval, PredictionRange
from gpcert.certificates.record import COST, BoundTable, Searched, cells_of
from gpcert.certificates.schema import like
from gpcert.certificates.text import above
from gpcert.errors import InputError
from gpcert.inputs.tabular import labels_of
from gpcert.model.committee import Committee, Model, is_model_collection
from gpcert.numerics.rounding import down, up, up_float
from gpcert.plots.curves import plot_boxes, plot_worst_cases
from gpcert.regions import Region
from gpcert.utils.optional_imports import Axes


@dataclass(frozen=True, eq=False, repr=False)
class Robustness(Searched, kind="robustness", told="group setting delta output reason"):
    """`delta.lower <= max - min <= delta.upper` of a prediction over a region around x.

    The upper bound is the paper's `pi_max^U - pi_min^L`, proved; the lower bound is the difference
    of two attained values. `group` is the name of the model and `setting` the radius, as given.
    """

    delta: Interval
    minimum: Interval
    maximum: Interval
    group: str
    setting: str
    x: np.ndarray | None
    output: Any
    quantity: str
    region: dict[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class RobustnessTable(BoundTable[Robustness], kind="robustness_table"):
    """Deltas of the rows of X, for every group and setting.

    `complete` says whether all points were searched, `converged` whether all bounds are within the
    tolerance.
    """

    def cells(self, row: Robustness) -> dict[str, Any]:
        return {
            "group": row.group,
            "radius": row.setting,
            **cells_of(row, "delta"),
            "minimum_lower": row.minimum.lower,
            "maximum_upper": row.maximum.upper,
            **cells_of(row, f"output {COST}"),
        }

    def deltas(self, group: str | None = None, setting: str | None = None) -> np.ndarray:
        """(k,) the proved deltas of one group and setting; by default of all."""
        rows = (row for row in self if group in {None, row.group})
        return np.array([row.delta.upper for row in rows if setting in {None, row.setting}])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a box plot of the proved deltas for each group and radius; returns the Axes."""
        if not len(self):
            raise InputError("plot: expected at least one row, got an empty table")
        groups = list(dict.fromkeys(row.group for row in self))
        settings = list(dict.fromkeys(row.setting for row in self))
        values = {(g, s): self.deltas(g, s) for g in groups for s in settings}
        label = f"delta of the {self[0].quantity} (proved)"
        return plot_boxes(ax, values, groups, settings, label=label)

    @property
    def summary(self) -> str:
        groups = list(dict.fromkeys((row.group, row.setting) for row in self))
        parts = [f"{g} at {s}: median {np.median(self.deltas(g, s)):.4g}" for g, s in groups[:6]]
        return "; ".join(parts)


@verb
def robustness(
    model: Any,
    X: Any,
    radius: Any = None,
    *,
    radii: Any = None,
    compare: Mapping[str, Any] | None = None,
    output: Any = None,
    tol: float | None = None,
    rtol: float | None = None,
    **options: Unpack[RangeTableOptions],
) -> RobustnessTable:
    """The paper's `delta = pi_max^U - pi_min^L` around each row of X: smaller is more robust.

    Each delta is an interval: its upper end is proved, its lower end is attained by two points of
    the region. Both are within twice the tolerance of the ranges if the searches converged.

    Parameters
    ----------
    model : a model, or None where `compare` gives several.
    radius : radius of the balls, or a row of radii per point; `relative` is the alternative;
        `radii` is a list, for box plots by radius.
    compare : models by name, for box plots by model or training, as in
        `{"Laplace": m1, "EP": m2}`; `model`, if given, has the name "model".
    output : with several classes, the class whose probability is bounded; by default the class
        decided at each point. In a regression with several targets, the number of the target.
    norm, features, domain, scale, relative, n_jobs, progress : as in `certify_many`; Ctrl-C returns
        the finished rows. With `scale="std"` the unit is that of each model's own training data.
    tol, rtol, backend, random_state, method, variance_bound : as in `prediction_range`; `budget`
        is that of one range, 60 seconds by default.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> bump = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0]], weights=[1.0])
    >>> table = gpcert.robustness(bump, [[0.0], [1.0]], radius=0.5, tol=1e-3)
    >>> [round(row.delta.upper, 2) for row in table]
    [0.12, 0.56]
    """
    if not isinstance(compare, Mapping | None):
        raise InputError(f"compare: expected models by name, {{name: model}}, got {compare!r}")
    models = dict(compare or {})
    if model is not None and "model" in models:
        raise InputError("compare: 'model' is the name of the model given first; expected others")
    if model is not None:
        models = {"model": model, **models}
    if not models:
        raise InputError("expected a model, or several in compare={name: model}")
    sizes = {"radius": radius, "radii": radii, "relative": options.get("relative")}
    if sum(value is not None for value in sizes.values()) != 1:
        got = " and ".join(f"{name}=" for name, value in sizes.items() if value is not None)
        raise InputError(
            f"expected exactly one of radius=, radii= and relative=, got {got or 'none'}"
        )
    is_list = isinstance(radii, Iterable | None) and getattr(radii, "ndim", 1) > 0
    if isinstance(radii, str | bytes | Mapping) or not is_list:
        raise InputError(f"radii: expected a list of radii, got {radii!r}")
    settings = [radius] if radii is None else list(radii)
    if not settings:
        raise InputError("radii: expected one or more, got none")
    search = {**search_options(options, "n_jobs", "progress"), "tol": tol, "rtol": rtol}
    rows: list[Robustness] = []
    labels: list[int] = []
    for name, each_model in models.items():
        posterior = as_posterior(each_model)
        points = posterior.check_inputs(X)
        for setting in settings:
            regions = RegionSpecification.read(options, setting).around_each(posterior, points, X)
            for indices, label in _outputs(posterior, points, output):
                places = [regions[k] for k in indices]
                table = prediction_range_many(posterior, places, output=label, **search)
                common = {"group": str(name), "setting": _text(setting, options)}
                for row, prediction in zip(table.labels, table, strict=True):
                    labels.append(int(indices[row]))
                    fields = {"delta": difference(prediction), "x": points[labels[-1]], **common}
                    rows.append(like(Robustness, prediction, **fields))
                if not table.complete:
                    return _sorted(rows, labels, X, complete=False)
    return _sorted(rows, labels, X, complete=True)


def _outputs(model: Model, points: np.ndarray, output: Any) -> list[tuple[np.ndarray, Any]]:
    """Indices of points, each with the output that is bounded at them."""
    every = np.arange(len(points))
    if not len(points):
        return []
    if output is not None:
        return [(every, output)]
    if not is_model_collection(model):
        question = range_question(
            model, QuantityRequest()
        )  # the one probability, or the first mean
        return [(every, question.labels[question.index(None)])]
    decided = decision_margins(model, points, Decision()).decided(points)
    labels = list(dict.fromkeys(decided))
    return [(np.array([k for k in every if decided[k] == label]), label) for label in labels]


def difference(prediction: PredictionRange) -> Interval:
    """Bounds of max - min: one subtraction each, rounded outward; at most 1 for a probability.

    `max - min <= maximum.upper - minimum.lower`, and as both values are attained in the region,
    `max - min >= maximum.lower - minimum.upper`; it is never negative.
    """
    upper = float(up(prediction.maximum.upper - prediction.minimum.lower, 1))
    lower = max(float(down(prediction.maximum.lower - prediction.minimum.upper, 1)), 0.0)
    if prediction.quantity == "probability":
        upper = min(upper, 1.0)
    return Interval(lower, upper)


def _text(setting: Any, options: Mapping[str, Any]) -> str:
    """A radius as text: a number, one per feature, or by name; with its unit if it has one.

    >>> _text(0.1, {}), _text([0.1, 0], {"scale": [2, 3]}), _text({"age": 2.0}, {"scale": "std"})
    ('0.1', '0.1, 0 (scaled)', 'age=2 std')
    >>> _text([[0.1, 0.2], [0.1, 0.3]], {}), _text(None, {"relative": 0.05})
    ('per point', '0.05 of each value')
    """
    scale, relative = options.get("scale"), options.get("relative")
    unit = "" if scale is None else " std" if isinstance(scale, str) else " (scaled)"
    if relative is not None:
        setting, unit = relative, " of each value"
    if np.ndim(setting) == 2:
        return f"per point{unit}"
    if hasattr(setting, "items"):
        return ", ".join(f"{name}={float(value):g}" for name, value in setting.items()) + unit
    return ", ".join(f"{float(value):g}" for value in np.atleast_1d(setting)) + unit


def _sorted(rows: list[Robustness], labels: list[int], X: Any, complete: bool) -> RobustnessTable:
    """The rows ordered by group and setting (as given), then by point."""
    keys = [(row.group, row.setting) for row in rows]
    blocks = list(dict.fromkeys(keys))
    order = sorted(range(len(rows)), key=lambda k: (blocks.index(keys[k]), labels[k]))
    names = labels_of(X, [labels[k] for k in order])
    return RobustnessTable(tuple(rows[k] for k in order), complete, names)


@dataclass(frozen=True, eq=False, repr=False)
class WorstCase(Searched, kind="worst_case", told="mean minimum maximum band beta"):
    """Bounds of the least and the greatest mean over a region around x, and of a credible band.

    `minimum.lower <= min <= minimum.upper`, the latter attained at `argmin`; likewise the maximum.
    `band_minimum` bounds the least `mean - beta std` in the same way, attained at `band_argmin`,
    and `band_maximum` the greatest `mean + beta std`; std is the root of the model's latent
    variance, which includes noise if the model has any. `mean` is the prediction at x, in plain
    floating point. `reason` says why the search for the mean ended or, if it converged, the search
    for the band.
    """

    mean: float
    minimum: Interval
    maximum: Interval
    argmin: np.ndarray | None
    argmax: np.ndarray | None
    band_minimum: Interval
    band_maximum: Interval
    band_argmin: np.ndarray | None
    band_argmax: np.ndarray | None
    beta: float
    x: np.ndarray | None
    output: Any
    region: dict[str, Any]

    @property
    def band(self) -> Interval:
        """An interval that holds `mean +- beta std` at every point of the region."""
        return Interval(self.band_minimum.lower, self.band_maximum.upper)

    def plot(self, ax: Axes | None = None) -> Axes:
        return WorstCaseTable((self,)).plot(ax)


@dataclass(frozen=True, eq=False, repr=False)
class WorstCaseTable(
    BoundTable[WorstCase],
    kind="worst_cases",
    columns=f"mean minimum maximum band beta {COST}",
    counted="points",
):
    """Worst cases of the rows of X.

    `complete` says whether all points were searched, `converged` whether all bounds are within the
    tolerance.
    """

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the mean, its proved range and the band per point; returns the Axes."""
        return plot_worst_cases(ax, self.to_frame())

    @property
    def widest(self) -> float:
        """A proved upper bound of the change of the mean, over all points."""
        moves = (up_float(row.maximum.upper - row.minimum.lower) for row in self)
        return max(moves, default=0.0)

    @property
    def summary(self) -> str:
        return f"means move by at most {above(self.widest)}"


@verb
def worst_case(
    model: Any,
    X: Any,
    radius: Any = None,
    *,
    region: Region | Sequence[Region] | None = None,
    beta: float = 2.0,
    output: int | None = None,
    tol: float | None = None,
    rtol: float | None = None,
    **options: Unpack[RangeTableOptions],
) -> WorstCaseTable:
    """Bounds on the least and the greatest mean of a regression around each point, and a band.

    The band contains `mean +- beta std` at every point of the region: from the least
    `mean - beta std` to the greatest `mean + beta std`, each bounded as a single function.

    Parameters
    ----------
    radius, relative, norm, features, domain, scale : the regions are balls around the rows of X, as
        in `certify_many`; `region`, instead, is one region that contains all rows, or one region
        per row.
    beta : half-width of the band in standard deviations; 2 by default.
    output : the number of the target, if there are several.
    tol, rtol : tolerances of mean and band, as in `prediction_range`.
    budget : of one range, 60 seconds by default. Other options as in `prediction_range_many`.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> bump = gpcert.Posterior(SquaredExponential(1.0), [[0.0]], [1.0], factor=[[1.0]])
    >>> (row,) = gpcert.worst_case(bump, [[0.0]], radius=1.0, tol=1e-3)
    >>> row.minimum.lower <= float(np.exp(-0.5)) <= row.minimum.upper
    True
    >>> least = float(np.exp(-0.5) - 2 * np.sqrt(1 - np.exp(-1.0)))  # at x = 1 and -1
    >>> row.band_minimum.lower <= least <= row.band_minimum.upper
    True
    """
    posterior = as_posterior(model)
    if isinstance(posterior, Committee) or posterior.likelihood.classifies:
        raise InputError(
            "worst_case: expected a regression model, got a classifier; use robustness or "
            "prediction_range_many"
        )
    points = posterior.check_inputs(X)
    regions = RegionSpecification.read(options, radius, region).around_each(posterior, points, X)
    question = range_question(posterior, QuantityRequest("band", beta))
    target = question.index(output)
    search = {**search_options(options, "n_jobs", "progress"), "output": target}
    search |= vars(Accuracy.read(tol, rtol))
    if not len(points):
        return WorstCaseTable(())
    mean_ranges = prediction_range_many(posterior, regions, quantity="mean", **search)
    band_options = {"quantity": "band", "beta": question.beta, **search}
    band_ranges = prediction_range_many(posterior, regions, **band_options)
    predicted_means = posterior.predict(points)[0]
    band_of = dict(zip(band_ranges.labels, band_ranges, strict=True))
    rows = {}
    for k, mean_range in zip(mean_ranges.labels, mean_ranges, strict=True):
        if k in band_of:
            rows[k] = _row(float(predicted_means[k, target]), points[k], mean_range, band_of[k])
    complete = mean_ranges.complete and band_ranges.complete
    return WorstCaseTable(tuple(rows.values()), complete, labels_of(X, list(rows)))


def _row(value: float, x: np.ndarray, mean: PredictionRange, band: PredictionRange) -> WorstCase:
    ends = ("minimum", "maximum", "argmin", "argmax")
    fields = {f"band_{name}": getattr(band, name) for name in ends} | {"beta": band.beta}
    fields["reason"] = band.reason if mean.converged else mean.reason
    fields |= {"boxes": mean.boxes + band.boxes, "seconds": mean.seconds + band.seconds}
    return like(WorstCase, mean, mean=value, x=x, **fields)
