"""The claims of a file. They follow from the question, the answer and the model here, not from the
file: a file cannot leave one out."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from gpcert_check.check import Certificate
from gpcert_check.claims import Above, At, Claim, Lead, Several, Votes
from gpcert_check.container import Numbers
from gpcert_check.goals import Goal, checked, read_goal
from gpcert_check.links import rational
from gpcert_check.posterior import Posterior
from gpcert_check.region import Polytope, Region, read_region
from gpcert_check.sets import SetCertificate
from gpcert_check.verdicts import BadFile, NotCovered, Refuted

BITS = 128
"""Of balls: at a point of the data a root of a squared distance keeps half of them."""

BY_MEANS = "softmax", "multinomial_probit"
"""Likelihoods of several classes of which the one with the largest mean is the most probable, where
the latent functions are independent and have one variance."""

Record = dict[str, Any]
ERRORS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)


def certificates(header: Record, arrays: dict[str, Numbers]) -> Iterator[Certificate]:
    """The certificates of a file: one, or one for every row of a table."""
    kind = header.get("claim")
    if kind not in ("A", "B"):
        raise NotCovered(f"claims of kind {kind!r}; covered are 'A' and 'B'")
    try:
        question, answer, described = header["question"], header["answer"], header["model"]
        members = described.get("members") or [described]
        names = ["model_"] if members[0] is described else _prefixes(len(members))
        models = [
            (each, {n[len(name) :]: a for n, a in arrays.items() if n.startswith(name)})
            for name, each in zip(names, members, strict=True)
        ]
        if model_sha256(described, models) != header["sha256"]:
            raise Refuted("the model is another one than that whose SHA-256 the file names")
        rows = [(question, answer, "")]
        if question["kind"] == "table":
            pairs = zip(question["rows"], answer["rows"], strict=True)
            rows = [(*pair, f"{k}.") for k, pair in enumerate(pairs)]
            if not rows:
                raise BadFile("expected a table with rows")
        shared: list[dict[Any, Any]] = [{} for _ in models]
    except ERRORS as error:
        raise BadFile(f"expected a question, an answer and a model ({error!r})") from error
    for asked, answered, name in rows:
        tree = {part: arrays.get(name + part) for part in ("axes", "cuts", "root", "signs")}
        try:
            region = read_region(asked["region"])
            ctx.prec = BITS
            each = zip(models, shared, strict=True)
            read = _Reader(
                described,
                [Posterior(*model, region, common) for model, common in each],
                region,
                kind == "B",
            )
            certificate = read.certificate(asked, answered)
        except ERRORS as error:
            raise BadFile(f"expected a question, an answer and a model ({error!r})") from error
        certificate.tree = {part: array for part, array in tree.items() if array is not None}
        certificate.statements.append(f"the region is {json.dumps(asked['region'])[:300]}")
        yield certificate


def _prefixes(count: int) -> list[str]:
    return [f"model{k}_" for k in range(count)]


@dataclass
class _Reader:
    """Reads a question about posteriors; `described` is the whole model."""

    described: Record
    models: list[Posterior]
    region: Region
    float64: bool
    """Whether claims are also about what float64 gives."""

    def certificate(self, question: Record, answer: Record) -> Certificate:
        """The claims, by the kind of the question."""
        kinds = {
            "decision": self._decision,
            "range": self._range,
            "radius": self._radius,
            "regret": self._regret,
            "sets": self._sets,
        }
        if question["kind"] not in list(kinds)[: 2 if self.float64 else None]:
            raise NotCovered(f"questions of kind {question['kind']!r}")
        return kinds[question["kind"]](question, answer)

    def _above(self, goal: Goal, level: Fraction, strict: bool = False) -> Above:
        """`goal >= level`; of kind B by the error of a mean in float64 more."""
        error = arb(0)
        if self.float64:
            error = self._only.float64_error(goal)
        return Above(goal, rational(level), strict, error)

    def _decision(self, question: Record, answer: Record) -> Certificate:
        """The decision at x is that everywhere (ROBUST), or is not that at the counter-example."""
        claim, text = self._decided(question)
        at_x = At(claim, _floats(question["x"]))
        if answer["status"] == "ROBUST":
            told = f"{text} at every point of the region, x among them"
            return self._with([claim], [at_x], told)
        if answer["status"] != "NOT_ROBUST":
            raise BadFile(f"status: expected ROBUST or NOT_ROBUST, got {answer['status']!r}")
        other = At(_strict(claim.contrary), _floats(answer["counterexample"]))
        told = f"{text} at x, and not at the counter-example; both lie in the region"
        return self._with([], [at_x, other], told)

    def _decided(self, question: Record) -> tuple[Claim, str]:
        """What is true of a point where the decision is that at x."""
        if "goal" not in question:
            return self._class_decided(question)
        goal, level = read_goal(question["goal"], self._only), _fraction(question["level"])
        self._check_label(question.get("decision"), goal)
        return self._above(goal, level, True), f"{name(goal)} > {level}"

    def _class_decided(self, question: Record) -> tuple[Claim, str]:
        """Of several classes: the number of the winner is that of the label."""
        if self.float64:
            raise NotCovered("claims of kind B about several classes")
        labels = self.described["classes"] or list(range(self.models[0].outputs))
        scheme = self.described.get("scheme", "means")
        label, m = question["decision"], len(labels)
        if label not in labels or m < 2:
            raise BadFile("decision: expected a label of the model")
        winner = labels.index(label)
        rivals = [k for k in range(m) if k != winner]
        weights = _floats(question.get("weights") or [1.0] * m)
        if len(weights) != m or not all(0 < w < math.inf for w in weights):
            raise BadFile("weights: expected a positive number for every class")
        text = f"the decision is {label!r} ({scheme.replace('_', ' ')})"
        if scheme in ("pair_votes", "one_vs_one"):
            goals, pairs = self._pairs(scheme), m * (m - 1) // 2
            if len(goals) != pairs or weights != [1.0] * m:
                raise BadFile("model: expected a mean for every pair of classes, and no weights")
            return Votes(goals, m, winner, tuple(rivals), scheme == "pair_votes"), text
        order = [winner, *rivals]
        if scheme == "one_vs_rest":
            self._check_members(m)
            goals = [checked(Goal("probability", 0, 1, member=k), self.models[k]) for k in order]
            return Lead(tuple(goals), tuple(weights[k] for k in order)), text
        if scheme != "means" or weights != [1.0] * m:
            raise NotCovered(f"decisions between several classes by {scheme!r}, or with weights")
        return Several(tuple(self._differences(winner, rivals))), text

    def _pairs(self, scheme: str) -> tuple[Goal, ...]:
        if scheme == "pair_votes":
            return tuple(Goal("mean", p, 1) for p in range(self._only.outputs))
        self._check_members(len(self.models))
        return tuple(Goal("mean", 0, 1, member=k) for k in range(len(self.models)))

    def _check_members(self, count: int) -> None:
        if len(self.models) != count or any(model.outputs != 1 for model in self.models):
            raise BadFile("model: expected posteriors of one output")

    def _differences(self, winner: int, rivals: list[int]) -> Iterator[Claim]:
        """The winner's mean is the largest, which decides where all variances are the same."""
        model = self._only
        kind, config = model.likelihood
        if kind not in BY_MEANS or "mixing" in config or not model.of_one_variance:
            raise NotCovered(
                f"decisions between several classes by the likelihood {kind!r}; covered are those "
                "by latent means: independent outputs with one factor, scale and noise"
            )
        if model.outputs != len(rivals) + 1:
            raise BadFile("model: expected an output for every class")
        for rival in rivals:
            difference = Goal("mean", model.difference(winner, rival), 1)
            yield Above(difference, rational(Fraction(0)), True)

    def _check_label(self, label: Any, goal: Goal) -> None:
        """The label of a decision between two classes is that of the goal's side."""
        if label is None:
            return
        if goal.kind not in ("mean", "probability") or goal.output != 0:
            raise BadFile("decision: expected no label of this quantity")
        labels = self.described.get("classes") or [0, 1]
        if len(labels) != 2 or labels[goal.sign > 0] != label:
            raise Refuted(f"the decision {label!r} is not that of the claim")

    def _range(self, question: Record, answer: Record) -> Certificate:
        """Each goal's least value lies between two numbers, the second attained at a point."""
        claims, points, told = [], [], []
        for record, ends in zip(question["goals"], answer["ends"], strict=True):
            goal = read_goal(record, self._only)
            lower, upper = Fraction(ends["lower"]), Fraction(ends["upper"])
            claims.append(self._above(goal, lower))
            points.append(At(self._above(goal.negative, -upper), _floats(ends["point"])))
            bounds = f"{float(lower)!r} and {float(upper)!r}"
            told.append(f"the least value of {name(goal)} over the region lies between {bounds}")
        return self._with(claims, points, *told)

    def _radius(self, question: Record, answer: Record) -> Certificate:
        """The decision is the same up to a distance, and another one at a point at most so far."""
        claim, text = self._decided(question)
        x, unit = _floats(question["x"]), question["unit"] or [1.0] * self.region.dim
        units, p = list(map(Fraction, unit)), float(question["norm"])
        lower, record = Fraction(answer["lower"]), question["region"]
        ball = record["kind"] == "ball" and float(record["norm"]) == p and record["center"] == x
        for j, (u, r) in enumerate(zip(units, self.region.radii, strict=True)):
            moves = record["features"] is None or j in record["features"]
            ball = ball and u >= 0 and (not moves or Fraction(r) >= lower * u)
        if not ball:
            raise Refuted("the region is not the ball of the radius that is claimed")
        told = [f"{text} within the distance {float(lower)!r} of x"]
        certificate = self._with([claim], [At(claim, x)], *told)
        if answer["counterexample"] is not None:
            point, upper = _floats(answer["counterexample"]), Fraction(answer["upper"])
            domain = record["domain"] or [[-math.inf] * len(x), [math.inf] * len(x)]
            ends = zip(_floats(domain[0]), point, _floats(domain[1]), strict=True)
            inside = all(a <= v <= b for a, v, b in ends)
            if not (inside and self._within(x, point, units, upper, p)):
                raise Refuted("the counter-example does not lie within the distance claimed")
            certificate.outside.append(At(_strict(claim.contrary), point))
            certificate.statements.append(f"and not at a point within {float(upper)!r}")
        return certificate

    def _within(
        self, x: list[float], point: list[float], units: list[Fraction], upper: Fraction, p: float
    ) -> bool:
        """Whether a point lies in the ball around x, exactly; features of unit 0 do not move."""
        parts, free = [], self.region.free
        for j, (a, b, u) in enumerate(zip(x, point, units, strict=True)):
            gap = abs(Fraction(a) - Fraction(b))
            if gap and (u == 0 or j not in free):
                return False
            parts.append(gap / u if u else Fraction(0))
        if p == math.inf:
            return max(parts) <= upper
        return sum(part ** int(p) for part in parts) <= upper ** int(p)

    def _regret(self, question: Record, answer: Record) -> Certificate:
        """No point of the domain is better than `domain`, x is at least as good as `observed`."""
        outward, inward = (read_goal(each, self._only) for each in question["goals"])
        if (outward.kind, inward.kind) != ("band", "band") or outward.sign != -inward.sign:
            raise BadFile("goals: expected two confidence bounds of opposite signs")
        domain, observed = Fraction(answer["domain"]), Fraction(answer["observed"])
        if not 0 <= Fraction(answer["bound"]) >= domain - observed:
            raise Refuted("the regret is not the difference of its parts")
        at = At(Above(inward, rational(observed)), _floats(answer["point"]))
        told = (
            f"{name(outward)} >= {float(-domain)!r} at every point of the region",
            f"{name(inward)} >= {float(observed)!r} at a point of it",
        )
        return self._with([Above(outward, rational(-domain))], [at], *told)

    def _sets(self, question: Record, answer: Record) -> Certificate:
        """Where all conditions hold, or where each class is decided for."""
        if type(self.region) not in (Region, Polytope):
            raise NotCovered("level sets in a region that is not a box, a ball or a polytope")
        if "conditions" in question:
            held: list[Claim] = []
            failed: list[Claim] = []
            told = []
            for each in question["conditions"]:
                goal, level = self._goal(each["goal"]), _fraction(each["level"])
                above = Above(goal, rational(level), True)
                pair = above, _strict(above.contrary)
                held.append(pair[not each["at_least"]])
                failed.append(pair[each["at_least"]])
                told.append(f"{name(goal)} {'>=' if each['at_least'] else '<='} {level}")
                self._check_label(question["label"], goal)
            cases = [held, *([claim] for claim in failed)]
            labels, text = [True] + [False] * len(held), " and ".join(told)
        else:
            labels = list(self.described["classes"])
            cases = [[self._class_decided({"decision": label})[0]] for label in labels]
            text = "the decision is the label"
        ends = [(each["label"], each["share"]) for each in answer["shares"]]
        shares = [(label, Fraction(low), Fraction(high)) for label, (low, high) in ends]
        if not shares or not all(label in labels for label, *_ in shares):
            raise BadFile("shares: expected those of the sets")
        statements = [
            f"{text}: {label!r} in a share between {float(low)!r} and {float(high)!r} of the root"
            for label, low, high in shares
        ]
        about = (self.models, self.region, cases, [], statements)
        return SetCertificate(*about, labels=labels, shares=shares)

    def _goal(self, record: Record) -> Goal:
        member = record.get("member", 0)
        if type(member) is not int or not 0 <= member < len(self.models):
            raise BadFile("goal: expected the number of a model")
        return replace(read_goal(record, self.models[member]), member=member)

    @property
    def _only(self) -> Posterior:
        if len(self.models) != 1:
            raise NotCovered("values of models of several posteriors")
        return self.models[0]

    def _with(self, claims: list[Claim], points: list[At], *told: str) -> Certificate:
        also = ["the same in float64, sums in any order"] if self.float64 else []
        return Certificate(self.models, self.region, [claims], points, [*told, *also])


def _strict(claim: Claim) -> Claim:
    """The claim with `>` for `>=`: a counter-example decides otherwise, ties apart."""
    if isinstance(claim, Above):
        return replace(claim, strict=True)
    if isinstance(claim, Several):
        return Several(tuple(map(_strict, claim.claims)), claim.every)
    return claim


def name(goal: Goal) -> str:
    """A goal in words."""
    sign, of = "-" if goal.sign < 0 else "", f" of output {goal.output}"
    of += f" of model {goal.member}" if goal.member else ""
    if goal.kind == "band":
        return f"{sign}mean - {float(goal.beta):g} std{of}"
    return f"{sign}{goal.kind}{of}"


def _fraction(value: Any) -> Fraction:
    numerator, denominator = value
    return Fraction(int(numerator), int(denominator))


def _floats(values: Any) -> list[float]:
    return list(map(float, values))


def model_sha256(described: Record, models: list[tuple[Record, dict[str, Numbers]]]) -> str:
    """That of a model, or of several: of their hashes, their classes and their scheme."""
    each = [sha256(*model) for model in models]
    if "members" not in described:
        return each[0]
    whole = {"classes": described["classes"], "members": each, "scheme": described["scheme"]}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def sha256(header: Record, arrays: dict[str, Numbers]) -> str:
    """The full SHA-256 of a posterior: of what its kernel, likelihood and labels are, as sorted
    JSON, and of every array's name, shape and bytes, in the order of the names."""
    parts = {
        key: header.get(key) for key in ("kernel", "likelihood", "classes", "coupled", "levels")
    }
    parts |= {key: header[key] for key in ("curves", "mean_function") if header.get(key)}
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
    for key in sorted(arrays):
        shape = ",".join(map(str, arrays[key].shape))
        digest.update(f"{key}({shape})".encode())
        digest.update(arrays[key].values.tobytes())
    return digest.hexdigest()
