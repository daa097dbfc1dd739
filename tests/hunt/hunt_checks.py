"""What every answer promises, checked at points that are proved to lie in the region."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from flint import arb

from tests.hunt.hunt_cases import Case
from tests.hunt.hunt_links import NoReferenceError
from tests.hunt.hunt_numbers import above, below, precise, shown
from tests.hunt.hunt_regions import BallSet, RegionSet, candidates, corners, inside, pulled
from tests.hunt.hunt_rules import Rule, label_index
from tests.hunt.hunt_truth import Truth, ends_of, is_class_model, is_committee

Finding = str
CHEAP_POINTS, COSTLY_POINTS = 10, 3


class Checker:
    """The checks of one answer to one case; `skipped` counts points without a reference."""

    def __init__(self, case: Case, deep: int = 1) -> None:
        self.case, self.deep = case, deep
        self.truth = Truth(case.model)
        self.rng = np.random.default_rng([7, case.seed])
        self.points_checked = self.skipped = 0
        binary = not is_committee(case.model) and not is_class_model(case.model)
        self._scores = 1 if binary else 10**6  # of two classes only the second is scored
        few = case.kind == "coupled" or (is_class_model(case.model) and case.model.outputs > 3)
        self.count = deep * (COSTLY_POINTS if few else CHEAP_POINTS)

    def findings(self, answer: Any) -> list[Finding]:
        """Every promise that is provably broken."""
        with precise(), np.errstate(all="ignore"):
            found = list(self._findings(answer))
            return [text + self._tie() for text in found]

    def _tie(self) -> str:
        """A remark where x itself is nearly undecided: most that goes wrong there is its side."""
        case = self.case
        rule = Rule(self.truth, case.decision, case.x)
        if case.verb.startswith("prediction") or rule.several:
            return ""
        size = self._ball(rule.signed, case.x)
        return " (x is within 1e-9 of a tie)" if size is not None and abs(size) < 1e-9 else ""

    def _findings(self, answer: Any) -> Iterator[Finding]:
        verb = self.case.verb
        if verb == "prediction_range":
            yield from self.range(answer, self._output_index(answer))
        elif verb == "prediction_ranges":
            for item in answer:
                yield from self.range(item, self._output_index(item))
        elif verb == "certified_radius":
            yield from self.radius(answer)
        else:
            for item in answer.certificates if verb == "certify_many" else [answer]:
                yield from self.certificate(item)

    # ranges

    def range(self, item: Any, output: int) -> Iterator[Finding]:
        """Bounds hold at every point; attained values are attained, at points of the region."""
        quantity, region = item.quantity, self.case.region
        reaches = ends_of(quantity, item.beta or 0.0)

        def least(x: np.ndarray) -> arb:
            return self.truth.quantity(quantity, output, x, reaches[0])

        def most(x: np.ndarray) -> arb:
            return self.truth.quantity(quantity, output, x, reaches[1])

        for low, high in ((item.minimum, item.maximum),):
            numbers = (low.lower, low.upper, high.lower, high.upper)
            if (
                any(np.isnan(n) for n in numbers)
                or low.lower > low.upper
                or high.lower > high.upper
            ):
                yield f"bounds {numbers} are NaN or crossed"
        ends = sorted(set(reaches))
        points = [self._points(self._function(quantity, output, end), region) for end in ends]
        for x in (x for some in points for x in some):
            low, high = self._ball(least, x), self._ball(most, x)
            if low is None or high is None:
                continue
            text = f"{quantity}[{output}] at {x.tolist()} is"
            if below(low, item.minimum.lower):
                yield f"{text} {shown(low)} < {item.minimum.lower!r}"
            if above(high, item.maximum.upper):
                yield f"{text} {shown(high)} > {item.maximum.upper!r}"
        for name, point, side, value, other in (
            ("argmin", item.argmin, item.minimum, least, above),
            ("argmax", item.argmax, item.maximum, most, below),
        ):
            if point is None:
                continue
            if not region.holds(point):
                yield f"{name} {point.tolist()} is not in the region"
                continue
            ball = self._ball(value, point)
            attained = side.upper if name == "argmin" else side.lower
            if ball is not None and other(ball, attained):
                yield f"{name}: {shown(ball)} at {point.tolist()} is worse than {attained!r}"

    # verdicts

    def certificate(self, item: Any) -> Iterator[Finding]:
        """A verdict follows from the definition of the decision."""
        case = self.case
        rule = Rule(self.truth, case.decision, case.x)
        claimed, wrong = self._claimed(rule, item)
        yield from wrong
        status = item.status.name
        if np.isnan(item.margin.lower) or item.margin.lower > item.margin.upper:
            yield f"margin {item.margin} is NaN or crossed"
        if case.constant is not None:
            if status == "NOT_ROBUST":
                yield f"NOT_ROBUST although the decision is constant ({case.constant})"
            if status == "ROBUST" and claimed not in {None, case.constant[0]}:
                yield f"decision {claimed} although it is {case.constant[0]} everywhere"
        seen = self._decided(rule, case.region, claimed, item.margin.lower, _unit(item))
        for x, other, text in seen:
            if status == "ROBUST" and other:
                yield f"ROBUST, but at {x.tolist()} {text}"
            elif text.startswith("margin"):
                yield f"at {x.tolist()} the {text}"
        if status == "NOT_ROBUST":
            upper = item.margin.upper
            yield from self._refuted(rule, item.counterexample, claimed, upper, _unit(item))
            if not case.region.holds(item.counterexample):
                yield f"counter-example {item.counterexample.tolist()} is not in the region"

    def radius(self, item: Any) -> Iterator[Finding]:
        """No other decision within `lower`; one at most `upper` away."""
        case = self.case
        assert isinstance(case.region, BallSet)
        rule = Rule(self.truth, case.decision, case.x)
        claimed, wrong = self._claimed(rule, item)
        yield from wrong
        if np.isnan(item.lower) or item.lower > item.upper:
            yield f"radius {item.lower!r} > {item.upper!r}"
        if item.lower > 0:
            ball = case.region.scaled(item.lower)
            for x, other, text in self._decided(rule, ball, claimed, -np.inf):
                if other:
                    yield f"proved up to {item.lower!r}, but at {x.tolist()} {text}"
        if item.counterexample is not None:
            if case.constant is not None:
                yield f"counter-example although the decision is constant ({case.constant})"
            yield from self._refuted(rule, item.counterexample, claimed, np.inf)
            if not case.region.at_distance(item.counterexample, item.upper):
                yield f"counter-example {item.counterexample.tolist()} is beyond {item.upper!r}"
        elif np.isfinite(item.upper):
            yield f"upper {item.upper!r} without a counter-example"

    def _claimed(self, rule: Rule, item: Any) -> tuple[int | None, list[Finding]]:
        """The decision that the answer names, or that x proves; and whether they differ."""
        proved = self._ball(rule.decision, self.case.x)
        labels = rule.labels()
        if labels is None or item.decision is None:
            return proved, []
        named = label_index(labels, item.decision)
        if proved is not None and proved != named:
            text = f"decision {item.decision!r}, but x proves {labels[proved]!r}"
            return named, [text] if self._speaks(item) else []
        return named, []

    @staticmethod
    def _speaks(item: Any) -> bool:
        """Whether the answer is a statement about the decision: UNKNOWN at x is none."""
        status = getattr(item, "status", None)
        if status is not None:
            return status.name != "UNKNOWN"
        return item.lower > 0 or item.counterexample is not None

    def _decided(
        self, rule: Rule, region: RegionSet, claimed: int | None, lower: float, unit: str = ""
    ) -> Iterator[tuple[np.ndarray, bool, str]]:
        """Points whose decision is provably another one, or whose margin is below its bound."""
        if claimed is None:
            found: set[int] = set()
            for x in self._points(self._surrogate(rule, 1), region):
                decision = self._ball(rule.decision, x)
                found |= set() if decision is None else {decision}
                if len(found) > 1:
                    yield x, True, f"decisions {sorted(found)} are both proved"
            return
        for x in self._points(self._surrogate(rule, claimed), region):
            decision = self._ball(rule.decision, x)
            if decision is not None and decision != claimed:
                yield x, True, f"the decision is {decision}, not {claimed}"
            margin = self._ball(lambda p: rule.margin(p, claimed, unit), x)
            if margin is not None and below(margin, lower):
                yield x, False, f"margin is {shown(margin)} < {lower!r}"

    def _refuted(
        self,
        rule: Rule,
        point: np.ndarray | None,
        claimed: int | None,
        upper: float,
        unit: str = "",
    ) -> Iterator[Finding]:
        if point is None:
            yield "NOT_ROBUST without a counter-example"
            return
        decision = self._ball(rule.decision, point)
        if claimed is None or decision is None:
            return
        if decision == claimed:
            yield f"counter-example {point.tolist()} has the same decision {claimed}"
        margin = self._ball(lambda p: rule.margin(p, claimed, unit), point)
        if margin is not None and above(margin, upper):
            yield f"margin {shown(margin)} at the counter-example is above {upper!r}"

    # points

    def _ball(self, function: Callable[[np.ndarray], Any], x: np.ndarray) -> Any:
        try:
            self.points_checked += 1
            return function(np.asarray(x, dtype=np.float64))
        except NoReferenceError:
            self.skipped += 1
            return None

    def _points(
        self, function: Callable[[np.ndarray], np.ndarray], region: RegionSet
    ) -> list[np.ndarray]:
        """Points proved inside: x, probes, corners, and where plain search finds extremes."""
        low = self._searched(function, region, 1.0)
        high = self._searched(function, region, -1.0)
        fixed = [self.case.x, *self.case.probes]
        own = self.case.model.members[0].points
        random = candidates(region, self.rng, 3)
        best = np.concatenate([low[:2], high[:2], random, corners(region)[:4], own[:2], low, high])
        kept = [x for x in fixed if region.holds(x)]
        for x in inside(region, best[: 3 * self.count]):
            if len(kept) >= self.count + len(fixed):
                break
            kept.append(x)
        return kept

    def _searched(
        self, function: Callable[[np.ndarray], np.ndarray], region: RegionSet, sign: float
    ) -> np.ndarray:
        """A few points where sign times the function is small: shrinking random steps."""
        X = np.concatenate(
            [candidates(region, self.rng, 48), corners(region), self.case.model.members[0].points]
        )
        low, high = region.hull()
        X = pulled(region, np.clip(X, low, high))
        values = sign * function(X)
        values = np.where(np.isnan(values), np.inf, values)
        size = 0.5 * (high - low)
        for _ in range(5 + 4 * self.deep):
            order = np.argsort(values)[:6]
            X, values = X[order], values[order]
            size = size * 0.4
            near = np.repeat(X, 6, axis=0)
            near = near + size * self.rng.uniform(-1.0, 1.0, near.shape)
            near = pulled(region, np.clip(near, low, high))
            own = sign * function(near)
            X = np.concatenate([X, near])
            values = np.concatenate([values, np.where(np.isnan(own), np.inf, own)])
        return X[np.argsort(values)[:6]]

    def _function(
        self, quantity: str, output: int, reach: float
    ) -> Callable[[np.ndarray], np.ndarray]:
        """A plain function that is large where the quantity is."""
        if quantity == "probability":
            return lambda X: self._rough_scores(X)[:, min(output, self._scores - 1)]
        member = self.truth.members[0]
        if quantity in {"band", "lcb", "ucb"}:

            def end(X: np.ndarray) -> np.ndarray:
                mean, variance = member.floats(X)
                return mean[:, output] + reach * np.sqrt(variance[:, output])

            return end
        index = 0 if quantity == "mean" else 1  # the root has its extremes where the variance has
        return lambda X: member.floats(X)[index][:, output]

    def _surrogate(self, rule: Rule, claimed: int) -> Callable[[np.ndarray], np.ndarray]:
        """A plain function that is small where another decision may be made."""
        if "delta" in rule.options:
            here = self.truth.members[0].floats(self.case.x[None])[0]
            p = float(rule.options.get("output_norm", np.inf))
            return lambda X: (
                -np.linalg.norm(self.truth.members[0].floats(X)[0] - here, ord=p, axis=1)
            )
        if not rule.several:
            sign = 1.0 if claimed == 1 else -1.0
            if rule.labels() is None and "quantity" in rule.options:
                asked = rule.options["quantity"], rule.options["output"]
                function = self._function(*asked, ends_of(asked[0], rule.beta)[0])
                return lambda X: sign * function(X)
            if rule.labels() is None or not rule.options:
                return lambda X: sign * self.truth.members[0].floats(X)[0][:, 0]
            return lambda X: sign * self._rough_scores(X)[:, 0]
        weight = np.asarray(rule.options.get("class_weight", 1.0))

        def gap(X: np.ndarray) -> np.ndarray:
            scores = self._rough_scores(X) * weight
            return scores[:, claimed] - np.delete(scores, claimed, axis=1).max(axis=1)

        return gap

    def _rough_scores(self, X: np.ndarray) -> np.ndarray:
        """About the probabilities (n, classes); of a vote, about its sums."""
        model = self.case.model
        if is_committee(model):
            each = [m.floats(X) for m in self.truth.members]
            F = np.concatenate([_rough(mu, v) for mu, v in each], axis=1)
            if model.scheme == "one_vs_rest":
                return F / F.sum(axis=1, keepdims=True)
            m, votes = len(model.classes), np.zeros((len(X), len(model.classes)))
            pairs = [(j, k) for j in range(m) for k in range(j + 1, m)]
            for p, (j, k) in enumerate(pairs):
                votes[:, k] += np.tanh(8.0 * (F[:, p] - 0.5))
                votes[:, j] -= np.tanh(8.0 * (F[:, p] - 0.5))
            return votes
        mu, v = self.truth.members[0].floats(X)
        if not is_class_model(model):
            return _rough(mu, v)
        damped = mu / np.sqrt(1.0 + np.pi / 8.0 * v)
        power = np.exp(damped - damped.max(axis=1, keepdims=True))
        return power / power.sum(axis=1, keepdims=True)

    def _output_index(self, item: Any) -> int:
        """Which output, or class, a range is of: classes go by their labels."""
        case = self.case
        if is_committee(case.model):
            return label_index(case.model.classes, item.output)
        if is_class_model(case.model):
            return label_index(case.model.labels, item.output)
        if item.quantity == "probability":
            return label_index(case.model.labels, item.output)
        return int(item.output) if case.kind == "targets" else 0


def _unit(item: Any) -> str:
    """What a certificate's margin is measured in."""
    return str(getattr(item, "unit", ""))


def _rough(mu: np.ndarray, v: np.ndarray) -> np.ndarray:
    return 0.5 + 0.5 * np.tanh(0.5 * mu / np.sqrt(1.0 + np.pi / 8.0 * v))
