"""`certify`: is the decision the same for every point of a region?

Proofs: docs/mathematics.md, statement 14.3.
"""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, Unpack

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.options import DecisionTableOptions, SearchSettings, read_x, verb
from gpcert.api.questions import read_decision
from gpcert.api.regions import RegionSpecification
from gpcert.api.rules import Rule, decision_candidates, margin_of
from gpcert.api.running import margin_text, progress_line
from gpcert.attacks import Decision
from gpcert.certificates import Certificate, Interval, Status
from gpcert.certificates.proof_questions import check_covered, claim_error, decision_proof
from gpcert.model.committee import Model
from gpcert.numerics.rounding import difference_down, difference_up
from gpcert.regions import Ball, Region
from gpcert.search import Progress, StopReason, solve
from gpcert.search.state import Leaves


@verb
def certify(
    model: Any,
    x: Any,
    radius: Any = None,
    *,
    region: Region | None = None,
    proof: bool | Literal["B"] = False,
    **options: Unpack[DecisionTableOptions],
) -> Certificate:
    """Prove or refute that the decision at x is the decision for every point of a region.

    Parameters
    ----------
    model : a `Posterior`, or a fitted model that an adapter converts.
    x : the point, one feature vector in the model's own units; also a row of a data frame or a
        mapping, whose names are matched with those that the model was fitted with.
    radius, norm, features, domain : the region is `Ball(x, radius, norm, features, domain)`, an
        l_inf ball by default. `radius` is a number, one per feature (0: fixed), or `{name: number}`
        (features left out are fixed); `features` are names, numbers or a mask; `domain` is
        `(low, high)` or `{name: (low, high)}`.
    relative : instead of `radius`, in parts of the size of each value of x: 0.05 lets every feature
        move by 5 % of its value; also one per feature or `{name: number}`. The product is rounded
        up. A feature whose value is 0 stays fixed, and a `RegionWarning` says so.
    scale : the unit of the radius. "std": each feature's standard deviation in the training data,
        in the model's own units (a feature that was constant there is fixed); or one positive
        number per feature, (d,) or `{name: number}` (features left out are fixed). Multiplies
        `radius`, also one per feature; the product is rounded up.
    region : any other region that contains x, instead of `radius`.
    threshold : decide by "probability of the second class > threshold". By default the decision is
        that of `predict`, the sign of the latent mean: of scikit-learn's classifier that is not
        quite a threshold of 1/2. In regression: a level of the mean.
    quantity, output, beta : which value is compared with `threshold`, named as in
        `prediction_range`: "mean", "variance", "std", "lcb" (mean - beta std), "ucb" (mean + beta
        std) or "probability", of a target (its number) or of a class (its label). What is certified
        is that the value stays on the side of the threshold on which it is at x; `rule` names it.
    class_weight : cost of a mistake on each class, `{label: weight}` or in the classes' order: the
        largest weight times probability decides. Of two classes: threshold w1 / (w1 + w2), exactly.
    delta, output_norm : regression, the paper's delta-robustness: `||mu(x') - mu(x)||_p <= delta`.
    proof : prepare a proof, which `save("name.cert")` writes and the separate program
        `gpcert-check` checks (docs/certificates.md). "B": of a mean, for what a library's float64
        `predict` gives as well; the margin is then that of both.
    budget, n_jobs, ... : 60 seconds and one process by default; see `prediction_range`.

    The search stops as soon as the property is decided. The decision at x is itself proved; where
    x is too near to a tie for that, nothing is claimed: the status is UNKNOWN, the reason
    `UNDECIDED_AT_X`, and `decision` None.

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
    >>> cert = gpcert.certify(p, [0.0], radius=1.0, quantity="ucb", beta=3, threshold=4.5)
    >>> cert.status.name, cert.rule  # mean + 3 std stays below 4.5
    ('ROBUST', 'mean + 3 std below 4.5')
    """
    start = time.perf_counter()
    posterior = as_posterior(model)
    point = read_x(posterior, x, "use certify_many")
    chosen = RegionSpecification.read(options, radius, region).around(posterior, point)
    decision, settings = (
        read_decision(options, posterior),
        SearchSettings.of_one_search(options, proof),
    )
    with progress_line(options.get("progress")) as line:
        progress = Progress(start, lambda state: line.show(margin_text(state)))
        return certify_region(posterior, point, chosen, decision, settings, progress)


def certify_region(
    posterior: Model,
    x: np.ndarray,
    region: Region,
    decision: Decision,
    settings: SearchSettings,
    progress: Progress | None = None,
) -> Certificate:
    """`certify` after its arguments have been read."""
    progress = progress or Progress()
    start = time.perf_counter() if progress.start is None else progress.start
    progress = replace(progress, start=start)  # one clock for all that follows
    candidates, end = decision_candidates(posterior, x, decision), settings.budget.ends(start)

    def no_verdict(rule: Rule, boxes: int = 0) -> Certificate:
        """The decision at x is not known, or was known too late to be searched."""
        cost, margin = (boxes, time.perf_counter() - start), Interval(-np.inf, rule.most)
        reason = rule.undecided or StopReason.INTERRUPTED
        return certificate_of(region, rule, settings, margin, reason, cost)

    rule = candidates.proved_until(end) if candidates.near else candidates.guess
    if not rule.decided:
        return no_verdict(rule)
    first = certify_rule(region, rule, settings, progress)
    # a margin that is positive in the whole region is positive at x: the guess was right
    if candidates.near or first.status is Status.ROBUST:
        return first
    proved = candidates.proved_until(end)
    if proved is rule:
        return first
    # the guess was not right: what was proved or refuted of it says nothing
    if not proved.decided or first.reason is StopReason.INTERRUPTED:
        return no_verdict(proved, first.boxes)
    boxes = settings.budget.boxes
    limits = replace(settings.budget, boxes=None if boxes is None else max(boxes - first.boxes, 1))
    second = certify_rule(region, proved, replace(settings, budget=limits), progress)
    return replace(second, boxes=first.boxes + second.boxes)


def certify_rule(
    region: Region, rule: Rule, settings: SearchSettings, progress: Progress | None = None
) -> Certificate:
    """Prove or refute that a rule's margin is positive on a region.

    Statement: with `lower <= goal <= upper` for the least value of the goal, the least margin lies
    between `lower - level` and `upper - level`, rounded outwards; the verdict is the sign of both.
    """
    error = 0.0
    if settings.proof:
        check_covered(rule.model, region, [rule.quantity])
        error = claim_error(settings.claim, rule.model, region, rule.quantity)
    stop: dict[str, Any] = {"tol": 0.0, "target": rule.target + error}
    stop["progress"] = progress or Progress()
    result = solve(settings.problem(rule.model, region, [rule.quantity], **stop))
    (goal,), cost = result.goals, (result.boxes, result.seconds)
    margin = margin_of(goal.lower, goal.upper, rule.level)
    if error > 0:  # of kind B: what float64 may give of the margin
        error = Fraction(error)
        ends = difference_down(margin.lower, error), difference_up(margin.upper, -error)
        margin = Interval(*ends)
        if margin.upper < 0 and not _held_at_x(rule, settings):
            margin = Interval(margin.lower, rule.most)
    certificate = certificate_of(region, rule, settings, margin, result.reason, cost, goal.point)
    if not settings.proof:
        return certificate
    return with_proof(certificate, region, rule, result.leaves, settings.claim)


def _held_at_x(rule: Rule, settings: SearchSettings) -> bool:
    """Whether the rule holds at x itself, in float64 too: else nothing is refuted of it."""
    return certify_rule(Ball(rule.x, 0.0), rule, settings).robust


def with_proof(
    certificate: Certificate,
    region: Region,
    rule: Rule,
    leaves: Leaves | None = None,
    claim: str = "A",
) -> Certificate:
    """The certificate of a rule with its proof, if it has a verdict."""
    asked = rule.model, rule.quantity, rule.level
    proof = decision_proof(certificate, region, *asked, leaves)
    return replace(certificate, proof=proof and replace(proof, claim=claim))


def certificate_of(
    region: Region,
    rule: Rule,
    settings: SearchSettings,
    margin: Interval,
    reason: StopReason,
    cost: tuple[int, float],
    point: np.ndarray | None = None,
    plain: float | None = None,
) -> Certificate:
    """The verdict on a rule from bounds of its least margin, the upper one attained at the point,
    at a cost of boxes and seconds; `plain`, if it is known, is the goal at x in plain floating
    point."""
    status = Status.UNKNOWN
    # comparisons with NaN are false, so an undefined bound can only end in UNKNOWN
    if rule.decided and margin.lower > 0:
        status = Status.ROBUST
    elif rule.decided and margin.upper < 0:
        status = Status.NOT_ROBUST
    if status is Status.UNKNOWN and reason is StopReason.DECIDED:
        reason = StopReason.RESOLUTION  # decided for the rounded target only
    if plain is None and rule.decided:
        plain = rule.goal.plain_values(rule.model, rule.x[None])[0]
    return Certificate(
        status=status,
        margin=margin,
        counterexample=point if status is Status.NOT_ROBUST else None,
        decision=rule.decision,
        rule=rule.text,
        region=region.describe(),
        unit=rule.unit.value,
        x=rule.x,
        margin_at_x=None if plain is None else plain - rule.target,
        feature_names=tuple(rule.model.feature_names or ()),
        categories={
            str(j): list(labels)
            for j, labels in rule.model.levels.items()
            if isinstance(labels[0], str)
        },
        reason=reason,
        boxes=cost[0],
        seconds=cost[1],
        method=settings.method.name,
        model=rule.fingerprint,
    )
