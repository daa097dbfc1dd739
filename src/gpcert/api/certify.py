"""`certify` and `certify_many`: is the decision the same for every point of a region?"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.methods import Method, MethodName, VarianceName
from gpcert.api.parallel import numbered_results
from gpcert.api.progress import margin_text, progress_line
from gpcert.api.rules import Rule, RuleOptions, decision_rule
from gpcert.arrays import Backend, backend_from_name, finite_array
from gpcert.certificates import Certificate, CertificateTable, Interval, Status
from gpcert.committee import Model
from gpcert.enclosures.classes import class_layout
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood
from gpcert.regions import Ball, Region
from gpcert.rounding import down, up
from gpcert.search import Budget, GoalResult, Problem, Watch, solve, stop_if_interrupted

__all__ = ["certify", "certify_many", "certify_region", "certify_rule", "prepare"]


def certify(
    model: Any,
    x: Any,
    radius: float | None = None,
    *,
    region: Region | None = None,
    norm: float | str = np.inf,
    features: Any = None,
    domain: Any = None,
    threshold: float | None = None,
    class_weight: Mapping[Any, float] | Sequence[float] | None = None,
    delta: float | None = None,
    output_norm: float | str = np.inf,
    budget: Budget | None = None,
    backend: str | Backend = "numpy",
    random_state: int | None = 0,
    method: MethodName = "taylor",
    variance: VarianceName | None = None,
    progress: bool | None = None,
) -> Certificate:
    """Prove or refute that the decision at x is the decision for every point of a region.

    Parameters
    ----------
    model : a `Posterior`, or a fitted model that an adapter converts.
    x : the point, one feature vector in the model's own units.
    radius, norm, features, domain : the region is `Ball(x, radius, norm, features, domain)`, an
        l_inf ball by default.
    region : any other region that contains x, instead of `radius`.
    threshold : decide by "probability of the second class > threshold"; by default 1/2, which is
        the sign of the latent mean, as `predict` does. In regression: a level of the mean.
    class_weight : cost of a mistake on each class, `{label: weight}` or in the classes' order: the
        largest weight times probability decides. Of two classes: threshold w1 / (w1 + w2).
    delta, output_norm : regression, the paper's delta-robustness: `||mu(x') - mu(x)||_p <= delta`.
    budget, backend, random_state, method, variance, progress : as in `prediction_range`; 60 seconds
        by default.

    The search stops as soon as the property is decided.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> p = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0], [3.0]], weights=[1.0, -1.0])
    >>> gpcert.certify(p, [0.0], radius=1.0, threshold=0.0).status.name
    'ROBUST'
    >>> cert = gpcert.certify(p, [0.0], radius=2.0, threshold=0.0)
    >>> cert.status.name, bool(cert.counterexample[0] > 1.5)
    ('NOT_ROBUST', True)
    """
    start = time.perf_counter()
    posterior = as_posterior(model)
    point = finite_array("x", x, ndim=1)
    if len(point) != posterior.dim:
        raise InputError(f"x: expected {posterior.dim} features, got {len(point)}")
    if radius is not None and region is None:
        chosen = Ball(point, radius, norm=norm, features=features, domain=domain)
    elif region is not None and radius is None:
        chosen = region
    else:
        raise InputError("expected exactly one of radius= and region=")
    options = RuleOptions(threshold, class_weight, delta, output_norm, Method(method, variance))
    with progress_line(progress) as line:
        return certify_region(
            posterior,
            point,
            chosen,
            options,
            budget or Budget(),
            backend_from_name(backend),
            random_state,
            Watch(start, lambda state: line.show(margin_text(state))),
        )


def certify_region(
    posterior: Model,
    x: np.ndarray,
    region: Region,
    options: RuleOptions,
    budget: Budget,
    backend: Backend,
    random_state: int | None,
    watch: Watch | None = None,
) -> Certificate:
    """`certify` after its arguments have been read."""
    if not isinstance(region, Region):
        raise InputError(f"region: expected a gpcert.Box or gpcert.Ball, got {region!r}")
    if region.dim != posterior.dim:
        raise InputError(f"region: expected {posterior.dim} features, got {region.dim}")
    if not bool(region.contains(x)):
        raise InputError(
            "x: expected a point of the region; the decision at x is what is certified"
        )
    rule = decision_rule(posterior, x, options)
    return certify_rule(region, rule, budget, backend, random_state, watch)


def certify_rule(
    region: Region,
    rule: Rule,
    budget: Budget,
    backend: Backend,
    random_state: int | None,
    watch: Watch | None = None,
) -> Certificate:
    """Prove or refute that a rule's margin is positive on a region."""
    problem = Problem(
        rule.model,
        region,
        rule.method.goals([rule.goal], random_state, rule.model),
        tol=0.0,
        target=rule.target,
        budget=budget,
        backend=backend,
        random_state=random_state,
        watch=watch or Watch(),
    )
    result = solve(problem)
    (goal,) = result.goals
    return Certificate(
        status=_verdict(goal, rule.target),
        margin=Interval(
            float(down(goal.lower - rule.target, 1)), float(up(goal.upper - rule.target, 1))
        ),
        counterexample=goal.point if goal.upper < rule.target else None,
        decision=rule.decision,
        reason=result.reason,
        boxes=result.boxes,
        seconds=result.seconds,
        rule=rule.text,
        region=region.describe(),
    )


def _verdict(goal: GoalResult, target: float) -> Status:
    # comparisons with NaN are false, so an undefined bound can only end in UNKNOWN
    if goal.lower > target:
        return Status.ROBUST
    if goal.upper < target:
        return Status.NOT_ROBUST
    return Status.UNKNOWN


def certify_many(
    model: Any,
    X: Any,
    radius: float,
    *,
    norm: float | str = np.inf,
    features: Any = None,
    domain: Any = None,
    threshold: float | None = None,
    class_weight: Mapping[Any, float] | Sequence[float] | None = None,
    delta: float | None = None,
    output_norm: float | str = np.inf,
    budget: Budget | None = None,
    backend: str | Backend = "numpy",
    random_state: int | None = 0,
    method: MethodName = "taylor",
    variance: VarianceName | None = None,
    n_jobs: int = 1,
    progress: bool | None = None,
) -> CertificateTable:
    """`certify` for every row of X; the budget (60 seconds by default) is that of one point.

    `n_jobs` processes (joblib); `progress` shows how many are done, by default only on a terminal.
    Ctrl-C ends everything at once and returns the points finished so far, in a table with
    `complete=False`; its `labels` say which rows of X they are.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> p = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0], [3.0]], weights=[1.0, -1.0])
    >>> table = gpcert.certify_many(p, [[0.0], [1.4], [3.0]], radius=0.5, threshold=0.0)
    >>> list(table.to_frame()["status"])
    ['ROBUST', 'NOT_ROBUST', 'ROBUST']
    """
    posterior = as_posterior(model)
    points = posterior.check_inputs(X)
    options = RuleOptions(threshold, class_weight, delta, output_norm, Method(method, variance))
    regions = [Ball(x, radius, norm=norm, features=features, domain=domain) for x in points]
    place = backend_from_name(backend)
    limits = budget or Budget()
    work = [
        (posterior, x, region, options, limits, place, random_state)
        for x, region in zip(points, regions, strict=True)
    ]
    done: dict[int, Certificate] = {}
    try:
        prepare(posterior)
        with progress_line(progress) as line:
            for row, certificate in numbered_results(certify_region, work, n_jobs):
                done[row] = certificate
                line.show(f"certifying: {len(done)} of {len(work)} points done")
                stop_if_interrupted(certificate.reason)
    except KeyboardInterrupt:
        return _table(done, complete=False)
    return _table(done, complete=True)


def prepare(posterior: Model) -> None:
    """What all points need is computed once here, not once a process."""
    for member in posterior.members:
        several = isinstance(member.likelihood, ClassLikelihood)
        searched = class_layout(member)[1] if several else member
        _ = searched.norms


def _table(done: dict[int, Certificate], complete: bool) -> CertificateTable:
    rows = sorted(done)
    return CertificateTable(tuple(done[row] for row in rows), complete, tuple(rows))
