"""Random cases: a model, a region about a point, and a question. A seed is a case."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import gpcert
from tests.hunt.hunt_families import draw_bump, draw_extreme, draw_fitted, draw_tie
from tests.hunt.hunt_models import Rng, draw_model, one_of
from tests.hunt.hunt_regions import BallSet, BoxSet, RegionSet
from tests.hunt.hunt_truth import Moments, is_class_model, is_committee

FAMILIES = ("ordinary", "fitted", "extreme", "bump", "extreme bump", "tie")
SHARES = (0.54, 0.08, 0.12, 0.1, 0.04, 0.12)
SMALL = {"ordinary", "fitted", "extreme"}
VERBS = ("certify", "certify_many", "prediction_range", "prediction_ranges", "certified_radius")
VERB_SHARES = (0.4, 0.07, 0.28, 0.1, 0.15)


@dataclass(eq=False)
class Case:
    """One question, put to `fitted` or, if that is None, to `model`, the posterior of it.

    `probes` are points to look at; `constant` is a decision that holds everywhere by construction.
    """

    seed: int
    family: str
    kind: str
    model: Any
    x: np.ndarray
    region: RegionSet
    verb: str
    decision: dict[str, Any] = field(default_factory=dict)
    search: dict[str, Any] = field(default_factory=dict)
    probes: list[np.ndarray] = field(default_factory=list)
    constant: Any = None
    fitted: Any = None

    def ask(self, model: Any = None, **changes: Any) -> Any:
        """The library's answer."""
        if model is None:
            model = self.model if self.fitted is None else self.fitted
        search = self.search | changes
        if self.verb.startswith("prediction"):
            return getattr(gpcert, self.verb)(model, self.region.build(), **search)
        options = self.decision | search
        if isinstance(self.region, BoxSet):
            return gpcert.certify(model, self.x, region=self.region.build(), **options)
        shape = self.region.arguments()
        if self.verb == "certified_radius":
            return gpcert.certified_radius(model, self.x, **shape, **options)
        if self.verb == "certify_many":
            X = np.stack([self.x, self.x])
            return gpcert.certify_many(model, X, self.region.radius, **shape, **options)
        return gpcert.certify(model, self.x, self.region.radius, **shape, **options)

    def allowed_seconds(self) -> float:
        """The budget, and a tenth or a second more."""
        seconds = self.search["budget"].seconds * (2 if self.verb == "certify_many" else 1)
        return seconds + max(1.0, 0.1 * seconds)

    def text(self) -> str:
        """One line for people."""
        model = type(self.model).__name__
        if not is_committee(self.model):
            model += f"({self.model.kernel}, {self.model.likelihood})"
        return f"{self.family}, {self.kind}, {self.verb} {self.decision} {self.search}: {model}"


def draw_case(seed: int) -> Case:
    """The case of a seed."""
    rng = np.random.default_rng([20240, seed])
    family = str(rng.choice(FAMILIES, p=SHARES))
    d = int(rng.integers(1, 4)) if family in SMALL else int(rng.integers(2, 7))
    unit, probes, constant, fitted = 1.0, [], None, None
    if family == "ordinary":
        kind, model = draw_model(rng, d)
    elif family == "fitted":
        kind, fitted = draw_fitted(rng, d)
        model = gpcert.as_posterior(fitted)
    elif family == "extreme":
        kind, model, unit = draw_extreme(rng, d)
    elif family == "tie":
        kind, model, constant = draw_tie(rng, d)
    else:
        kind, model, bump = draw_bump(rng, d, extreme=family != "bump")
        probes = [bump]
    verb = str(rng.choice(VERBS, p=VERB_SHARES))
    if kind in {"classes", "coupled"} and rng.random() < 0.7:
        verb = one_of(rng, ("certify", "prediction_range"))  # the others take a second each
    if is_committee(model) and model.scheme == "one_vs_one" and verb.startswith("prediction"):
        verb = "certify"  # one-vs-one has no probabilities
    x = _point(rng, model, unit, probes)
    region = _region(rng, x, unit, probes, verb)
    case = Case(seed, family, kind, model, x, region, verb, probes=probes, constant=constant)
    case.fitted = fitted
    case.search = _search(rng, case)
    if not verb.startswith("prediction"):
        case.decision = _decision(rng, case)
    _ask_of_bounds(np.random.default_rng([seed, 1]), case)  # of its own: seeds keep their cases
    return case


def _ask_of_bounds(rng: Rng, case: Case) -> None:
    """Some of the questions become ones of a confidence bound, or of another compared value."""
    if rng.random() < 0.5:
        return
    if case.search.get("quantity") == "band":
        case.search["quantity"] = one_of(rng, ("lcb", "ucb"))
    if case.decision and case.kind in {"regression", "targets"} and case.constant is None:
        case.decision = _compared(rng, case)


def _point(rng: Rng, model: Any, unit: float, probes: list[np.ndarray]) -> np.ndarray:
    points = model.members[0].points
    d = points.shape[1]
    if probes:
        return probes[0] + rng.uniform(-0.5, 0.5, d).round(3)
    kind = rng.random()
    if kind < 0.3:
        return np.array(points[int(rng.integers(len(points)))])
    step = unit * rng.normal(size=d).round(int(rng.integers(1, 6)))
    return points[0] + step if np.abs(points[0]).max() > 1e2 * unit else step


def _radius(rng: Rng, unit: float) -> float:
    kind = rng.random()
    if kind < 0.07:
        return 0.0
    if kind < 0.14:
        return unit * float(10.0 ** rng.uniform(-15, -6))
    if kind < 0.24:
        return unit * float(10.0 ** rng.uniform(1, 6))
    return unit * float(10.0 ** rng.uniform(-2, 0.5))


def _region(rng: Rng, x: np.ndarray, unit: float, probes: list[np.ndarray], verb: str) -> RegionSet:
    d = len(x)
    if probes:  # the bump must lie inside, whatever the norm
        radius = float(np.abs(probes[0] - x).sum()) * rng.uniform(1.01, 2.0)
        return BallSet(x, radius, one_of(rng, (1.0, 2.0, 3.0, np.inf)), None, None)
    radius = _radius(rng, unit)
    if rng.random() < 0.25 and verb not in {"certified_radius", "certify_many"}:
        low, high = x - radius * rng.random(d), x + radius * rng.random(d)
        fixed = rng.random(d) < 0.15
        return BoxSet(
            np.where(fixed, x, np.minimum(low, x)), np.where(fixed, x, np.maximum(high, x))
        )
    features = None
    if rng.random() < 0.25:
        features = tuple(sorted(int(j) for j in rng.permutation(d)[: int(rng.integers(1, d + 1))]))
    domain = None
    if rng.random() < 0.25:
        low, high = float(x.min()) - unit * rng.random(), float(x.max()) + unit * rng.random()
        domain = one_of(rng, ((low, high), (float(x.min()), np.inf), (-np.inf, float(x.max()))))
    return BallSet(x, radius, one_of(rng, (1.0, 2.0, 3.0, np.inf, np.inf)), features, domain)


def _search(rng: Rng, case: Case) -> dict[str, Any]:
    boxes = int(one_of(rng, (1, 1, 4, 16, 60)))
    chosen: dict[str, Any] = {"random_state": int(rng.integers(3))}
    method = rng.random()
    if method < 0.16:
        name = "paper" if method < 0.07 else "both"
        variance = one_of(rng, (None, "analytic", "analytic", "solver"))
        chosen |= {"method": name, "variance_bound": variance}
        boxes = min(boxes, 3 if name == "paper" or variance == "solver" else 8)
    if case.kind in {"classes", "coupled"}:
        boxes = min(boxes, 2)
    chosen["budget"] = gpcert.Budget(seconds=1.0, boxes=boxes)
    if case.verb == "certified_radius":
        radius = getattr(case.region, "radius", 1.0)
        chosen |= {
            "rtol": 0.1,
            "max_radius": max(radius, 1e-12),
            "budget": gpcert.Budget(0.15, boxes),
        }
        return chosen
    if not case.verb.startswith("prediction"):
        return chosen
    chosen["tol"] = float(one_of(rng, (0.1, 0.01, 1e-4)))
    if not is_committee(case.model):
        quantities = ["mean", "variance", "std", "band", "band", None]
        if case.kind not in {"regression", "targets"}:
            quantities += ["probability"] * 3
        chosen["quantity"] = one_of(rng, quantities)
        if chosen["quantity"] == "band":
            chosen["beta"] = _beta(rng)
    if case.verb == "prediction_range":
        chosen["sides"] = one_of(rng, ("both", "both", "both", "minimum", "maximum"))
        chosen |= _output(rng, case)
    return chosen


def _output(rng: Rng, case: Case) -> dict[str, Any]:
    if case.kind == "targets":
        return {"output": int(rng.integers(case.model.outputs))}
    if is_committee(case.model):
        return {"output": one_of(rng, case.model.classes)}
    if is_class_model(case.model):
        return {"output": one_of(rng, case.model.labels)}
    return {}


def _beta(rng: Rng) -> float:
    return float(one_of(rng, (0.0, 1e-9, 0.5, 2.0, 2.0, 2.0, 40.0, 1e9)))


def _compared(rng: Rng, case: Case) -> dict[str, Any]:
    """A value of a regression against a threshold near it."""
    output = int(rng.integers(case.model.outputs))
    quantity = one_of(rng, ("mean", "variance", "std", "lcb", "ucb", "ucb"))
    bound = {"beta": _beta(rng)} if quantity in {"lcb", "ucb"} else {}
    beta = bound.get("beta", 0.0)
    mean, variance = (part[0, output] for part in case.model.predict(case.x[None]))
    std = float(np.sqrt(variance))
    plain = {"mean": mean, "variance": variance, "std": std, "lcb": mean - beta * std}
    level = float(plain.get(quantity, mean + beta * std))
    step = one_of(rng, (0.0, 1e-15, 1e-9, 1e-3, 0.3, 1.0)) * one_of(rng, (-1, 1))
    level = level + step * max(1.0, abs(level)) if np.isfinite(level) else 0.0
    return {"threshold": level, "quantity": quantity, "output": output, **bound}


def _decision(rng: Rng, case: Case) -> dict[str, Any]:
    if case.constant is not None and case.kind not in {"regression", "targets"}:
        return {}  # what is constant is the default decision
    mean, variance = Moments(case.model.members[0]).floats(case.x[None])
    level, spread = float(mean[0, 0]), float(np.sqrt(variance[0, 0]))
    if case.kind == "regression":
        if case.constant is not None:
            return {"threshold": case.constant[1]}
        if rng.random() < 0.6:
            step = one_of(rng, (0.0, 1e-15, 1e-9, 1e-3, 0.3, 1.0)) * one_of(rng, (-1, 1))
            return {"threshold": level + step * max(1.0, abs(level)) if np.isfinite(level) else 0.0}
        return {"delta": float(10.0 ** rng.uniform(-3, 0.5))}
    if case.kind == "targets":
        norm = one_of(rng, (1, 2, 3.0, np.inf, "inf"))
        return {"delta": float(10.0 ** rng.uniform(-3, 0.5)), "output_norm": norm}
    if case.kind == "binary":
        kind = rng.random()
        if kind < 0.4:
            return {}
        if kind < 0.55:
            return {"threshold": 0.5}
        if kind < 0.7 and np.isfinite(level + spread):
            from scipy.special import ndtr

            near = float(ndtr(level / np.sqrt(1.0 + spread**2)))  # a tie for the probit
            return {"threshold": min(max(near, 1e-6), 1.0 - 1e-6)}
        if kind < 0.85:
            ends = (1e-12, 1.0 - 1e-12, 1e-3)
            level = one_of(rng, ends) if rng.random() < 0.2 else rng.uniform(0.05, 0.95)
            return {"threshold": float(level)}
        return {"class_weight": [float(rng.integers(1, 5)), float(rng.integers(5, 9))]}
    if rng.random() < 0.25 and getattr(case.model, "scheme", "") != "one_vs_one":
        labels = case.model.classes if is_committee(case.model) else case.model.labels
        return {"class_weight": [float(w) for w in rng.integers(1, 6, len(labels))]}
    return {}
