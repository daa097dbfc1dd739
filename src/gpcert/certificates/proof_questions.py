"""Questions as data, and proofs of the records that answer them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from gpcert.certificates.proof import Proof, Together
from gpcert.errors import InputError
from gpcert.model.committee import Committee
from gpcert.model.float64 import band_error, evaluation_error, variance_error
from gpcert.model.multi_output import SeparateOutputs
from gpcert.model.posterior import Posterior
from gpcert.quantities import Band, ClassSums, Mean, Probability, Quantity, Std, Variance
from gpcert.quantities.committee import LeastSum, PairVotes, Votes
from gpcert.regions import Ball, Box, Polytope, Region
from gpcert.search.state import Leaves
from gpcert.utils.archive import plain_label

KINDS = {Mean: "mean", Variance: "variance", Std: "std", Band: "band", Probability: "probability"}
FLOAT64 = (Mean, Variance, Std, Band)
"""Those of which claims of kind B are made."""

LINKS = ("probit", "logistic", "sklearn-logistic")
"""Likelihoods whose probabilities the checker knows."""

BY_MEANS = ("softmax", "multinomial_probit")
"""Those of several classes of which the one with the largest mean is the most probable, where the
latent functions are independent and have one variance."""

SETS = "boxes, balls and polytopes"
NORMS = {1, 2, "inf"}
REGIONS = (
    "boxes, balls in l_1, l_2 and l_inf, polytopes, whole numbers and values, one-hot groups, "
    "unions"
)

Ends = Sequence[tuple[float, float, np.ndarray | None]]
"""For each goal a lower bound, an upper one and the point where the latter is attained."""


def decision_proof(
    certificate: Any,
    region: Region,
    model: Any,
    quantity: Quantity,
    level: Fraction,
    leaves: Leaves | None = None,
) -> Proof | None:
    """The proof of a `Certificate` that `quantity > level`; None where it neither proves nor
    refutes."""
    if not (certificate.robust or certificate.counterexample is not None):
        return None
    check_covered(model, region, [quantity])
    posterior, asked = _decision(model, quantity, level, certificate)
    question = {"kind": "decision", **asked}
    answer: dict[str, Any] = {"status": certificate.status.name}
    if certificate.counterexample is not None:
        answer["counterexample"] = certificate.counterexample.tolist()
        leaves = None
    return Proof(posterior, region, question, answer, leaves, _of_means(asked))


def radius_proof(radius: Any, held: Any, shape: Any) -> Proof | None:
    """The proof of a `Radius` from the one that the decision is `held` in its ball, and from the
    `shape` of that ball; None where that is not proved."""
    proof = held.proof
    if proof is None or not held.robust:
        return None
    unit = None if shape.unit is None else shape.unit.tolist()
    norm = "inf" if np.isinf(shape.norm) else float(shape.norm)
    question = {**proof.question, "kind": "radius", "unit": unit, "norm": norm}
    answer: dict[str, Any] = {"lower": radius.lower, "upper": None, "counterexample": None}
    if radius.counterexample is not None:
        point = radius.counterexample.tolist()
        answer |= {"upper": radius.upper, "counterexample": point}
    return Proof(proof.model, proof.region, question, answer, proof.leaves, proof.by_means)


def range_proof(
    model: Any,
    region: Region,
    quantities: Sequence[Quantity],
    ends: Ends,
    meaning: str,
    leaves: Leaves | None = None,
) -> Proof | None:
    """The proof of the least values of quantities. None where one of the bounds is infinite."""
    if not all(np.isfinite(low) and np.isfinite(up) and at is not None for low, up, at in ends):
        return None
    check_covered(model, region, quantities)
    posterior, goals = _goals(model, quantities)
    question = {"kind": "range", "goals": goals, "meaning": meaning}
    records = [
        {"lower": low, "upper": up, "point": at.tolist()} for low, up, at in ends if at is not None
    ]
    return Proof(posterior, region, question, {"ends": records}, leaves, _of_means(question))


def regret_proof(regret: Any, optimum: Proof | None, region: Region, sign: int) -> Proof | None:
    """The proof of a `RegretBound` from that of the optimum that it rests on; `sign` is that of the
    side."""
    if optimum is None or not np.isfinite(regret.bound):
        return None
    (outward,) = optimum.question["goals"]
    inward = {**outward, "sign": -outward["sign"]}
    question = {"kind": "regret", "goals": [outward, inward]}
    answer = {
        "domain": sign * regret.domain,
        "observed": sign * regret.observed,
        "bound": regret.bound,
        "point": regret.x.tolist(),
    }
    return Proof(optimum.model, region, question, answer, optimum.leaves)


def sets_proof(
    region: Region,
    conditions: Sequence[Any],
    labels: Sequence[Any],
    classes: bool,
    leaves: Leaves,
    signs: np.ndarray,
    shares: Mapping[Any, Any],
    rule: str,
) -> Proof:
    """The proof of a level set: where all `conditions` hold (of two classes, where the second of
    `labels` is decided), or of `classes` each; `rule` says so. `signs` of
    the leaves: k for class k; 0 where all conditions hold, 1 + k where condition k fails."""
    if not isinstance(region, Box | Ball | Polytope):
        raise InputError(f"proof: level sets are covered in {SETS}, got {region!r}")
    model, question = sets_question(region, conditions, labels, classes)
    named = shares if classes else {True: shares[labels[-1]]}
    told = [{"label": plain_label(n), "share": [s.lower, s.upper]} for n, s in named.items()]
    by_means = classes or {each["goal"]["quantity"] for each in question["conditions"]} == {"mean"}
    asked = {**question, "rule": rule}
    return Proof(model, region, asked, {"shares": told}, leaves, by_means, signs=signs)


def sets_question(
    region: Region, conditions: Sequence[Any], labels: Sequence[Any], classes: bool
) -> tuple[Posterior | Committee | Together, dict[str, Any]]:
    """The model and the question of a level set; an `InputError` where they are not covered."""
    check_covered(conditions[0].model, region, [])
    if classes:
        model, quantity = conditions[0].model, conditions[0].above.quantity
        if not _of_classes(model, quantity):
            raise InputError(
                "proof: gpcert-check does not cover the regions of these classes (those of coupled "
                "ones and of fitted weights); leave proof= out"
            )
        return model, {"kind": "sets", "votes": isinstance(quantity, PairVotes | Votes)}
    members: dict[int, Posterior] = {}
    told = []
    for each in conditions:
        posterior, (goal,) = _goals(each.model, [each.above.quantity])
        members.setdefault(id(posterior), posterior)
        goal["member"] = list(members).index(id(posterior))
        text = [str(each.level.numerator), str(each.level.denominator)]
        told.append({"goal": goal, "level": text, "at_least": each.at_least})
    two = plain_label(labels[1]) if labels != (False, True) else None
    several = tuple(members.values())
    model = several[0] if len(several) == 1 else Together(several)
    return model, {"kind": "sets", "conditions": told, "label": two}


def check_covered(model: Any, region: Region, quantities: Sequence[Quantity]) -> None:
    """An `InputError` where the checker does not know the question."""
    if not _known(region.describe()):
        raise InputError(f"proof: gpcert-check covers {REGIONS}, got {region!r}; leave proof= out")
    for quantity in quantities:
        if not _of_classes(model, quantity):
            _goals(model, [quantity])


def claim_error(claim: str, model: Any, region: Region, quantity: Quantity) -> float:
    """How much further than in real arithmetic a quantity must lie for a claim of this kind: of
    kind B as far as it can be off in float64 in the region (Statements 23.3 and 23.4)."""
    if claim == "A":
        return 0.0
    if _of_classes(model, quantity) or type(quantity) not in FLOAT64:
        raise InputError(
            "proof='B': claims about float64 are those about a mean (regression, or the sign of a "
            "latent mean), std, variance or confidence bound of one output, got "
            f"{type(quantity).__name__}; use proof=True"
        )
    posterior, (goal,) = _goals(model, [quantity])
    about = (posterior, goal["output"], region.lower, region.upper)
    if goal["quantity"] == "variance":
        return variance_error(*about)
    if goal["quantity"] == "mean":
        return evaluation_error(*about)
    return band_error(*about, goal.get("beta", 1.0), goal["quantity"] == "band")


def _known(region: dict[str, Any]) -> bool:
    """Whether the checker knows a region."""
    kind = region["kind"]
    if kind == "union":
        return all(map(_known, region["parts"]))
    if kind in ("discrete", "one_hot"):
        return "dropped" not in region and _known(region["region"])
    return kind in ("box", "polytope") or (kind == "ball" and region["norm"] in NORMS)


def _of_means(question: dict[str, Any]) -> bool:
    """Whether variances do not matter."""
    goals = question.get("goals") or [question.get("goal")]
    kinds = {goal["quantity"] for goal in goals if goal}
    return kinds == {"mean"} or question.get("votes", False)


def _decision(
    model: Any, quantity: Quantity, level: Fraction, certificate: Any
) -> tuple[Posterior | Committee, dict[str, Any]]:
    """The model and the question of a decision."""
    asked: dict[str, Any] = {
        "x": certificate.x.tolist(),
        "decision": plain_label(certificate.decision),
        "rule": certificate.rule,
    }
    if not _of_classes(model, quantity):
        posterior, (goal,) = _goals(model, [quantity])
        text = [str(level.numerator), str(level.denominator)]
        return posterior, {"goal": goal, "level": text, **asked}
    if isinstance(quantity, LeastSum):
        rows, labels = np.asarray(quantity.weights), list(model.classes)
        winner = labels.index(certificate.decision)
        weights = np.where(np.arange(len(labels)) == winner, rows.max(axis=0), -rows.min(axis=0))
        asked["weights"] = weights.tolist()
    return model, asked | {"votes": isinstance(quantity, PairVotes | Votes)}


def _of_classes(model: Any, quantity: Quantity) -> bool:
    """Whether it is a decision between several classes that the checker knows."""
    members = model.members
    if any(map(_not_covered, members)):
        return False
    if isinstance(model, Committee):
        if isinstance(quantity, LeastSum):
            return all(member.likelihood.name in LINKS for member in members)
        return isinstance(quantity, PairVotes | Votes)
    return (
        isinstance(model, Posterior)
        and isinstance(quantity, ClassSums)
        and model.likelihood.name in BY_MEANS
        and quantity.layout.independent
        and _of_one_variance(model)
    )


def _of_one_variance(model: Posterior) -> bool:
    arrays = model.arrays()
    shared = ("factor", "negative_factor", "training_noise")
    alike = all(np.ptp(arrays[name]) == 0 for name in ("scale", "noise"))
    return alike and all(len(arrays[name]) == 1 for name in shared if name in arrays)


def _not_covered(posterior: Posterior) -> str | None:
    """What a posterior has that the checker does not know."""
    curves = posterior.features is not None and posterior.features.curves
    known = {
        "a model of coupled classes": posterior.coupled,
        "a model behind categories": posterior.levels,
        "a model behind functions of its inputs": curves,
        "a model whose mean is not linear": posterior.mean_function is not None,
    }
    return next((what for what, there in known.items() if there), None)


def _goals(model: Any, quantities: Sequence[Quantity]) -> tuple[Posterior, list[dict[str, Any]]]:
    """The posterior that quantities of one output are about, and each as data; an `InputError`
    says what the checker does not cover."""
    what, posterior, goals = None, model, []
    for quantity in quantities:
        if isinstance(model, Committee):
            what = "a value of a committee of several posteriors"
        elif type(quantity) not in KINDS:
            what = f"the quantity {type(quantity).__name__}"
        elif isinstance(quantity, Probability) and quantity.likelihood.name not in LINKS:
            what = f"the probability of the likelihood {quantity.likelihood.name!r}"
        else:
            output: int = quantity.output  # pyright: ignore[reportAttributeAccessIssue]
            if isinstance(model, SeparateOutputs):
                posterior, output = model.output(output)
            what = _not_covered(posterior)
            sign = quantity.sign  # pyright: ignore[reportAttributeAccessIssue]
            kind = KINDS[type(quantity)]  # pyright: ignore[reportArgumentType]
            goal = {"quantity": kind, "output": output, "sign": sign}
            goals.append(goal | ({"beta": quantity.beta} if isinstance(quantity, Band) else {}))
        if what is not None:
            raise InputError(
                f"proof: gpcert-check does not cover {what}; leave proof= out, or ask for a mean, "
                "variance, std, band or a decision (docs/certificates.md has the list)"
            )
    return posterior, goals
