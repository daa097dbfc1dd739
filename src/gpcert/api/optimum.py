"""`maximize`, `minimize`: a proved optimum over a domain; `regret_bound`, `recommend`: how much
better than a known point any point can be."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any, Literal, Unpack, get_args

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.accuracy import Accuracy
from gpcert.api.boxes import bound_boxes
from gpcert.api.domain import domain_of
from gpcert.api.options import (
    QuantityLike,
    QuantityRequest,
    SearchSettings,
    TableOptions,
    one_of,
    read_proof,
    verb,
)
from gpcert.api.questions import DEFAULT_BETA, read_beta
from gpcert.api.ranges import RangeGoals
from gpcert.api.running import progress_line, ranges_text
from gpcert.certificates import Optimum, PredictionRange, RegretBound
from gpcert.certificates.proof_questions import check_covered, regret_proof
from gpcert.errors import InputError
from gpcert.inputs.tabular import read_points
from gpcert.model.committee import Model
from gpcert.numerics.arrays import Inputs
from gpcert.numerics.rounding import difference_up
from gpcert.quantities import Improvement
from gpcert.regions import Region
from gpcert.search import Progress, SearchResult, StopReason, solve
from gpcert.search.problem import Tolerance
from gpcert.utils.option_names import Side

SIDES: tuple[Side, ...] = get_args(Side)


@verb
def maximize(
    model: Any,
    bounds: Any,
    quantity: QuantityLike | None = "mean",
    *,
    beta: float | None = None,
    best_f: float | None = None,
    maximize: bool | None = None,
    output: Any = None,
    fixed: Mapping[Any, Any] | None = None,
    tol: float | None = None,
    rtol: float | None = None,
    keep: Literal["best", "all"] = "best",
    proof: bool = False,
    **options: Unpack[TableOptions],
) -> Optimum:
    """The largest value of a quantity over a domain: a point, its certified value, and a proved
    bound that no point of the domain exceeds.

    Parameters
    ----------
    model : a `Posterior`, or a fitted model that an adapter converts.
    bounds : the domain: a `Region`; a pair (low, high) for every feature, as scikit-optimize and
        Ax have them (one number fixes a feature); `{name: (low, high)}`, where `{name: categories}`
        means one-hot columns called `name_category`; or an array or tensor of shape (2, d), lower
        ends first, as BoTorch has them.
    quantity : what is maximised, as in `prediction_range`: "mean", "std", "variance", "ucb", "lcb",
        "probability", "ei", "log_ei", "pi", "log_pi", or a `Quantity` object of your own.
    beta : standard deviations of "ucb" and "lcb", 2 by default. BoTorch's UpperConfidenceBound
        multiplies the standard deviation by sqrt(beta): its beta is the square of this one.
    best_f, maximize : of "ei" and "pi", as in `prediction_range`: what improvements are counted
        from, by default the best posterior mean at the model's own points, and whether larger
        values are better (default).
    output : which target or class; see `prediction_range`.
    fixed : features, by name or number, that are held at a value.
    tol, rtol : the search ends once `gap` is at most `tol`, or `rtol` times the optimum's own size;
        by default as in `prediction_range`.
    keep : "all" also returns the boxes outside of which no point is as good as `value`:
        `Optimum.kept`. They surround every optimum, near-optimal places too while the gap is wide.
    proof : prepare a proof, which `save("name.cert")` writes, as in `prediction_range`.
    budget, backend, random_state, method, variance_bound, progress, n_jobs : as in
        `prediction_range`.

    Only this side is searched. When the budget ends, or Ctrl-C, the record holds the best point
    and the bound so far, both proved.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> hills = gpcert.Posterior(SquaredExponential(0.5), [[0.0], [3.0]], weights=[1.0, 1.2])
    >>> best = gpcert.maximize(hills, [(-1.0, 4.0)], tol=1e-6)
    >>> round(float(best.x[0]), 3), best.value <= 1.2 + 1e-6 <= best.bound + 2e-6, best.gap <= 1e-6
    (3.0, True, True)
    """
    asked = (
        QuantityRequest(quantity, beta, best_f, maximize),
        output,
        fixed,
        Accuracy.read(tol, rtol),
    )
    keep_all = one_of("keep", keep, ("best", "all")) == "all"
    return _optimum("maximum", model, bounds, *asked, options, keep_all, proof)


@verb
def minimize(
    model: Any,
    bounds: Any,
    quantity: QuantityLike | None = "mean",
    *,
    beta: float | None = None,
    best_f: float | None = None,
    maximize: bool | None = None,
    output: Any = None,
    fixed: Mapping[Any, Any] | None = None,
    tol: float | None = None,
    rtol: float | None = None,
    keep: Literal["best", "all"] = "best",
    proof: bool = False,
    **options: Unpack[TableOptions],
) -> Optimum:
    """The smallest value of a quantity over a domain; arguments as in `maximize`.

    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> pit = gpcert.Posterior(SquaredExponential(0.5), [[0.0, 0.0]], weights=[-1.0])
    >>> best = gpcert.minimize(pit, {0: (-1.0, 2.0), 1: (-1.0, 2.0)}, tol=1e-6)
    >>> bool(np.abs(best.x).max() < 1e-3), best.bound <= -1.0 <= best.value
    (True, True)
    """
    asked = (
        QuantityRequest(quantity, beta, best_f, maximize),
        output,
        fixed,
        Accuracy.read(tol, rtol),
    )
    keep_all = one_of("keep", keep, ("best", "all")) == "all"
    return _optimum("minimum", model, bounds, *asked, options, keep_all, proof)


@verb
def regret_bound(
    model: Any,
    bounds: Any,
    observed: Any = None,
    *,
    side: Side = "maximum",
    beta: float | None = None,
    output: Any = None,
    fixed: Mapping[Any, Any] | None = None,
    tol: float | None = None,
    rtol: float | None = None,
    proof: bool = False,
    **options: Unpack[TableOptions],
) -> RegretBound:
    """How much better than the best observed point any point of the domain can be, by this model:
    a proved upper bound of `max UCB over the domain - max LCB over the observed points`.

    It ends an optimisation run by proof where it falls below what a better point would be worth.
    It is a statement about the model, not about the true function.

    Parameters
    ----------
    model, bounds, fixed, output : as in `maximize`.
    observed : points (n, d) that were evaluated; by default the model's own training points.
    side : "maximum" where large values are wanted; "minimum" turns all signs.
    beta : standard deviations of both confidence bounds, 2 by default.
    tol, rtol, proof, budget, ... : of the search for the best UCB, as in `maximize`.

    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> from gpcert.models import GPRegressor
    >>> X = np.linspace(0.0, 1.0, 9)[:, None]
    >>> model = GPRegressor(SquaredExponential(0.3)).fit(X, np.sin(3.0 * X[:, 0]))
    >>> left = gpcert.regret_bound(model, [(0.0, 1.0)])
    >>> bool(0.0 <= left.bound < 0.1)
    True
    """
    posterior = as_posterior(model)
    points = _observed(posterior, observed)
    asked = (beta, output, fixed, Accuracy.read(tol, rtol))
    return _regret(posterior, bounds, points, one_of("side", side, SIDES), asked, options, proof)


@verb
def recommend(
    model: Any,
    bounds: Any,
    *,
    side: Side = "maximum",
    beta: float | None = None,
    output: Any = None,
    fixed: Mapping[Any, Any] | None = None,
    tol: float | None = None,
    rtol: float | None = None,
    **options: Unpack[TableOptions],
) -> RegretBound:
    """The point with the best posterior mean (to within the tolerance, by proof), and how much
    better any point of the domain can be, by this model: `regret_bound` with that point as the only
    observed one. The budget holds for each of the two searches.

    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> from gpcert.models import GPRegressor
    >>> X = np.linspace(0.0, 1.0, 9)[:, None]
    >>> model = GPRegressor(SquaredExponential(0.3)).fit(X, np.sin(3.0 * X[:, 0]))
    >>> chosen = gpcert.recommend(model, [(0.0, 1.0)])
    >>> bool(abs(chosen.x[0] - 0.52) < 0.05)
    True
    """
    posterior, accuracy = as_posterior(model), Accuracy.read(tol, rtol)
    side = one_of("side", side, SIDES)
    best = _optimum(
        side, posterior, bounds, QuantityRequest("mean"), output, fixed, accuracy, options
    )
    if best.x is None:
        raise InputError(
            "recommend: no point was evaluated before the budget ended; give it more seconds"
        )
    asked = (beta, output, fixed, accuracy)
    return _regret(posterior, bounds, best.x[None], side, asked, options)


def _optimum(
    side: Side,
    model: Any,
    bounds: Any,
    request: QuantityRequest,
    output: Any,
    fixed: Mapping[Any, Any] | None,
    accuracy: Accuracy,
    options: Mapping[str, Any],
    keep: bool = False,
    proof: bool = False,
) -> Optimum:
    start, posterior = time.perf_counter(), as_posterior(model)
    settings = SearchSettings.of_one_search(options, read_proof(proof))
    region = domain_of(posterior, bounds, fixed)
    if request.quantity == "band":
        raise InputError("quantity: a band has two ends; maximise 'ucb' or minimise 'lcb'")
    goals = RangeGoals.of(posterior, request, output, side)
    if settings.proof:
        check_covered(goals.question.model, region, goals.quantities)
    tol = Tolerance.of(accuracy.of(goals))
    with progress_line(options.get("progress")) as line:
        progress = Progress(start, lambda state: line.show(ranges_text(state)))
        problem = settings.problem(
            goals.question.model,
            region,
            goals.quantities,
            tol=tol,
            progress=progress,
            record=keep or settings.proof,
        )
        result = solve(problem)
        (range_record,) = goals.records(result, region, settings, None, tol)
    boxes_left = _boxes_left(result, region) if keep else np.empty((0, 2, region.dim))
    (quantity,) = goals.quantities
    best_f = quantity.best_f if isinstance(quantity, Improvement) else None
    return replace(_record(side, posterior, range_record), kept=boxes_left, best_f=best_f)


def _boxes_left(result: SearchResult, region: Region) -> Annotated[np.ndarray, "n 2 d"]:
    """Corners of the boxes whose bound does not exclude the best value."""
    leaves, free = result.leaves, region.free
    assert leaves is not None, "asked for by record=True"
    undecided = leaves.lower[:, 0] <= result.goals[0].upper
    ends = np.tile(region.center, (int(undecided.sum()), 2, 1))
    ends[:, 0, free], ends[:, 1, free] = leaves.low[undecided], leaves.high[undecided]
    return ends


def _record(side: Side, model: Model, record: PredictionRange) -> Optimum:
    """One side of a range: what is attained there, and the bound."""
    if side == "maximum":
        value, bound, x = record.maximum.lower, record.maximum.upper, record.argmax
    else:
        value, bound, x = record.minimum.upper, record.minimum.lower, record.argmin
    return Optimum(
        side=side,
        x=x,
        value=value,
        bound=bound,
        quantity=record.quantity,
        output=record.output,
        region=record.region,
        converged=record.converged,
        meaning=record.meaning,
        beta=record.beta,
        features=tuple(model.feature_names or ()),
        reason=record.reason,
        boxes=record.boxes,
        seconds=record.seconds,
        method=record.method,
        model=record.model,
        proof=record.proof,
    )


def _observed(model: Model, observed: Any) -> Inputs:
    """Points (n, d) that were evaluated: those given, or the training points."""
    if observed is not None:
        points = read_points("observed", observed, model.dim, model.feature_names, model.levels)
        if len(points) == 0:
            raise InputError("observed: expected at least one point, got none")
        return points
    return np.unique(np.concatenate([member.places for member in model.members]), axis=0)


def _regret(
    model: Model,
    bounds: Any,
    points: Inputs,
    side: Side,
    asked: tuple[Any, Any, Any, Accuracy],
    options: Mapping[str, Any],
    proof: bool = False,
) -> RegretBound:
    beta, output, fixed, accuracy = asked
    reach = read_beta(DEFAULT_BETA if beta is None else beta, "ucb")
    assert reach is not None
    outward, inward = ("ucb", "lcb") if side == "maximum" else ("lcb", "ucb")
    request = QuantityRequest(outward, reach)
    about = (request, output, fixed, accuracy, options)
    best = _optimum(side, model, bounds, *about, proof=proof)
    domain = domain_of(model, bounds, fixed)
    inside = _inside(domain, points)
    # the ends of the quantity at every observed point, proved
    ends = bound_boxes(model, inside, inside, quantity=inward, beta=reach, progress=False)
    column = 0 if best.output is None else int(best.output)
    sign = 1.0 if side == "maximum" else -1.0
    values = sign * ends[inward][:, column, 0 if side == "maximum" else 1]
    k = int(np.argmax(values))
    observed = sign * float(values[k])
    finite = math.isfinite(best.bound) and math.isfinite(observed)
    regret = difference_up(sign * best.bound, Fraction(sign * observed)) if finite else math.inf
    record = RegretBound(
        bound=max(regret, 0.0),
        side=side,
        x=inside[k],
        domain=best.bound,
        observed=observed,
        beta=reach,
        output=best.output,
        region=best.region,
        converged=best.reason is StopReason.CONVERGED and math.isfinite(regret),
        features=best.features,
        reason=best.reason,
        boxes=best.boxes + len(inside),
        seconds=best.seconds,
        method=best.method,
        model=best.model,
    )
    return replace(record, proof=regret_proof(record, best.proof, domain, int(sign)))


def _inside(region: Region, points: Inputs) -> Inputs:
    """The points of the domain; without any, an error."""
    inside = points[np.asarray(region.contains(points))]
    if len(inside) == 0:
        raise InputError(
            "observed: expected at least one point of the domain, got none; evaluate one first, or "
            "give observed="
        )
    return inside
