"""Random questions about slopes, Lipschitz constants, monotony, differences and fairness, against
means in ball arithmetic, written from the definitions alone.

    python -m tests.hunt.hunt_slopes 1000            # cases 0 .. 999
    python -m tests.hunt.hunt_slopes --seed 42

Slopes are central differences over 2^-120 at 600 bits: their error, of order 2^-240, is far below
that of any float.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from flint import arb

import gpcert
from gpcert import kernels
from gpcert.errors import InputError
from tests.hunt.hunt_families import draw_extreme
from tests.hunt.hunt_kernels import covariance
from tests.hunt.hunt_models import LEAVES, Rng, draw_posterior, one_of
from tests.hunt.hunt_numbers import Balls, precise

BITS, STEP = 600, -120
POINTS = 8
SLOPES = ("slope_ranges", "lipschitz", "certify_monotone", "curvatures", "predictions")
"""Questions that need kernels with derivatives."""

VERBS = (*SLOPES, "difference_range", "certify_fair")


class Means:
    """Means of one output, at points of balls."""

    def __init__(self, model: Any, output: int) -> None:
        self.kernel, c = model.kernel, output
        self.points = [[arb(v) for v in row] for row in model.points.tolist()]
        self.weights = [arb(v) for v in model.weights[c].tolist()]
        self.slope = [arb(v) for v in model.slope[c].tolist()]
        self.offset, self.scale = arb(float(model.offset[c])), arb(float(model.scale[c]))
        lengths = np.asarray(model.kernel.typical_lengths(model.dim))
        self.steps = [2.0 ** np.frexp(s if np.isfinite(s) else 1.0)[1] for s in lengths.tolist()]

    def at(self, x: list[arb]) -> arb:
        """The mean at a point."""
        total = arb(0)
        for z, t in zip(self.points, self.weights, strict=True):
            total += t * covariance(self.kernel, x, z, Balls)
        for s, v in zip(self.slope, x, strict=True):
            total += s * v
        return self.offset + self.scale * total

    def slope_in(self, x: list[arb], j: int, function: Any = None) -> arb:
        """The partial derivative of the mean, or of a function of points, about."""
        h, at = arb(self.steps[j]) * arb(2) ** STEP, function or self.at
        ahead, behind = ([*x[:j], x[j] + s * h, *x[j + 1 :]] for s in (1, -1))
        return (at(ahead) - at(behind)) / (2 * h)

    def bend_in(self, x: list[arb], j: int) -> arb:
        """The second derivative, about."""
        h = arb(self.steps[j]) * arb(2) ** STEP
        ahead, behind = ([*x[:j], x[j] + s * h, *x[j + 1 :]] for s in (1, -1))
        return (self.at(ahead) - 2 * self.at(x) + self.at(behind)) / (h * h)


class Predictions(Means):
    """Standard deviations, variances and probabilities of two classes."""

    def __init__(self, model: Any, output: int, of: str) -> None:
        super().__init__(model, output)
        parts = (
            part[output if len(part) > 1 else 0] for part in (model.factor, model.negative_factor)
        )
        self.factors = [[[arb(v) for v in row] for row in part.tolist()] for part in parts]
        self.noise, self.of = arb(float(model.noise[output])), of
        self.lapse = arb(float(getattr(model.likelihood, "lapse", 0.0)))

    def value(self, x: list[arb]) -> arb:
        """At a point where the variance is not 0; else not finite."""
        k = [covariance(self.kernel, x, z, Balls) for z in self.points]
        v = covariance(self.kernel, x, x, Balls)
        for factor, sign in zip(self.factors, (-1, 1), strict=True):
            for row in factor:
                v += sign * sum((a * b for a, b in zip(row, k, strict=True)), arb(0)) ** 2
        if not v > arb(2) ** -30 * covariance(self.kernel, x, x, Balls):
            return arb("nan")
        v = self.scale * self.scale * v + self.noise
        if self.of == "probability":
            phi = (-self.at(x) / (2 * (1 + v)).sqrt()).erfc() / 2
            return self.lapse + (1 - 2 * self.lapse) * phi
        return v.sqrt() if self.of == "std" else v


def hunt(seed: int) -> tuple[str, list[str]]:
    """What was asked (or why not), and every promise that is broken."""
    rng = np.random.default_rng([39, seed])
    d, unit = int(rng.integers(1, 4)), 1.0
    if rng.random() < 0.2:
        _, model, unit = draw_extreme(rng, d)
    else:
        model = draw_posterior(rng, d, one_of(rng, ("regression", "targets", "binary")))
    verb = one_of(rng, VERBS)
    if unit == 1.0 and verb in SLOPES:
        model = replace(model, kernel=_smooth(rng, d))
    output = int(rng.integers(model.outputs))
    x = model.points[int(rng.integers(len(model.points)))]
    x = x + unit * one_of(rng, (0.0, 0.3)) * rng.normal(size=d)
    half = unit * np.exp(rng.uniform(-7, 0, d)) * one_of(rng, ([1.0], [1.0], rng.random(d) < 0.6))
    box = gpcert.Box(x - half, x + half)
    words = {
        "output": output if model.outputs > 1 else None,
        "budget": gpcert.Budget(seconds=1.0, boxes=one_of(rng, (1, 20, 500))),
        "progress": False,
    }
    means = Means(model, output)
    try:
        with precise(BITS), np.errstate(all="ignore"):
            asked = globals()[f"_{verb}"]
            return verb, list(asked(rng, model, means, box, words))
    except InputError as error:
        return f"refused: {str(error)[:40]}", []


def _smooth(rng: Rng, d: int, depth: int = 2) -> Any:
    """A kernel whose slopes are bounded."""
    kind = rng.random()
    if depth == 0 or kind < 0.6:
        name = one_of(rng, ("SquaredExponential", "RationalQuadratic", "Matern", "Linear"))
        leaf = LEAVES[one_of(rng, (name, name, name, "Polynomial", "Constant"))](rng, d)
        return kernels.Matern(leaf.length_scale, max(leaf.nu, 1.5)) if hasattr(leaf, "nu") else leaf
    parts = [_smooth(rng, d, depth - 1) for _ in range(2)]
    if kind < 0.7:
        return kernels.ActiveDimensions(_smooth(rng, 1, depth - 1), (int(rng.integers(d)),))
    return kernels.Sum(parts) if kind < 0.85 else kernels.Product(parts)


def _inside(rng: Rng, box: gpcert.Box, extra: Any = ()) -> list[np.ndarray]:
    """Points of the box: corners and random ones, and those that an answer names."""
    points = [box.lower, box.upper, *box.sample(POINTS, rng)]
    return [*points, *(p for p in extra if p is not None)]


def _sure(ball: arb) -> bool:
    return bool(ball.is_finite()) and float(ball.rad()) <= 1e-3 * (1.0 + abs(float(ball.mid())))


def _numbers(x: np.ndarray) -> list[arb]:
    return [arb(float(v)) for v in x]


def _slope_ranges(rng: Rng, model: Any, means: Means, box: Any, words: Any) -> Iterator[str]:
    table = gpcert.slope_ranges(model, box, **words)
    for j, row in enumerate(table):
        for x in _inside(rng, box, (row.argmin, row.argmax)):
            slope = means.slope_in(_numbers(x), j)
            if _sure(slope) and (slope < row.minimum.lower or slope > row.maximum.upper):
                yield f"slope {j} at {x.tolist()} is {slope}, got {row.minimum}, {row.maximum}"
        for point, end, sign in (
            (row.argmin, row.minimum.upper, 1),
            (row.argmax, row.maximum.lower, -1),
        ):
            if point is None:
                continue
            slope = means.slope_in(_numbers(point), j)
            if _sure(slope) and sign * slope > sign * arb(end):
                yield f"slope {j}: {slope} at {point.tolist()} is worse than {end!r}"


def _lipschitz(rng: Rng, model: Any, means: Means, box: Any, words: Any) -> Iterator[str]:
    norm = one_of(rng, (1, 2, "inf"))
    found = gpcert.lipschitz(model, box, norm=norm, **words)
    free = np.flatnonzero(box.lower < box.upper)
    for x in _inside(rng, box, (found.point,)):
        slopes = [abs(means.slope_in(_numbers(x), int(j))) for j in free]
        if not slopes or not all(map(_sure, slopes)):
            continue
        if norm == 2:
            size = sum((s * s for s in slopes), arb(0)).sqrt()
        elif norm == 1:
            size = max(slopes, key=lambda s: float(s.mid()))
        else:
            size = sum(slopes, arb(0))
        if size > found.upper:
            yield f"l_{norm}: {size} at {x.tolist()} > {found.upper!r}"
        if found.point is not None and x is found.point and size < found.lower:
            yield f"l_{norm}: {size} at its point < {found.lower!r}"


def _certify_monotone(rng: Rng, model: Any, means: Means, box: Any, words: Any) -> Iterator[str]:
    free = np.flatnonzero(box.lower < box.upper).tolist()
    asked = {int(j): one_of(rng, "+-") for j in free}
    for row in gpcert.certify_monotone(model, box, asked, **words):
        sign = 1 if row.direction == "+" else -1
        for x in _inside(rng, box):
            slope = sign * means.slope_in(_numbers(x), row.feature)
            if _sure(slope) and slope < row.slope.lower:
                yield f"slope {row.feature} at {x.tolist()} is {slope} < {row.slope.lower!r}"
        if len(row.pair):
            first, second = (means.at(_numbers(x)) for x in row.pair)
            if not box.contains(row.pair).all():
                yield f"pair {row.pair.tolist()} is not in the region"
            if _sure(first) and _sure(second) and sign * (second - first) > 0:
                yield f"pair {row.pair.tolist()} refutes nothing: {first}, {second}"


def _curvatures(rng: Rng, model: Any, means: Means, box: Any, words: Any) -> Iterator[str]:
    free = np.flatnonzero(box.lower < box.upper).tolist()
    asked = {int(j): one_of(rng, ("convex", "concave")) for j in free}
    for row in gpcert.certify_monotone(model, box, asked, **words):
        sign = 1 if row.direction == "convex" else -1
        for x in _inside(rng, box):
            bend = sign * means.bend_in(_numbers(x), row.feature)
            if _sure(bend) and bend < row.slope.lower:
                yield f"bend {row.feature} at {x.tolist()} is {bend} < {row.slope.lower!r}"
        if len(row.pair):
            values = [means.at(_numbers(x)) for x in row.pair]
            chord = values[0] + values[2] - 2 * values[1]
            if all(map(_sure, values)) and sign * chord > 0:
                yield f"points {row.pair.tolist()} refute nothing: {values}"


def _predictions(rng: Rng, model: Any, means: Means, box: Any, words: Any) -> Iterator[str]:
    kinds = ["std", "variance"] + ["probability"] * (
        model.likelihood.name in {"probit", "lapse-probit"}
    )
    of = one_of(rng, kinds)
    known = Predictions(model, words["output"] or 0, of)
    table = gpcert.slope_ranges(model, box, quantity=of, **words)
    steep = None
    if of != "variance" and np.any(box.lower < box.upper):
        steep = gpcert.lipschitz(model, box, of=of, norm="inf", **words)
    for x in _inside(rng, box, [point for row in table for point in (row.argmin, row.argmax)]):
        slopes = [known.slope_in(_numbers(x), j, known.value) for j in range(model.dim)]
        if not all(map(_sure, slopes)):
            continue
        for j, (slope, row) in enumerate(zip(slopes, table, strict=True)):
            if slope < row.minimum.lower or slope > row.maximum.upper:
                yield f"{of} {j} at {x.tolist()}: {slope}, got {row.minimum}, {row.maximum}"
            if x is row.argmin and slope > row.minimum.upper:
                yield f"{of} {j}: {slope} at argmin is worse than {row.minimum.upper!r}"
        free = box.lower < box.upper
        total = sum((abs(s) for s, moves in zip(slopes, free, strict=True) if moves), arb(0))
        if steep is not None and total > steep.upper:
            yield f"{of}: l_1 {total} at {x.tolist()} > {steep.upper!r}"


def _changed(x: list[arb], at: dict[int, float], by: dict[int, float]) -> list[arb]:
    return [arb(at[j]) if j in at else v + arb(by.get(j, 0.0)) for j, v in enumerate(x)]


def _difference_range(rng: Rng, model: Any, means: Means, box: Any, words: Any) -> Iterator[str]:
    half, change = box.upper - box.lower, {}
    before: dict[int, float] = {}
    after: dict[int, float] = {}
    by: dict[int, float] = {}
    for j in range(model.dim):
        size = float(10.0 ** rng.uniform(-6, 3) * (half[j] or abs(box.lower[j]) or 1.0))
        kind = rng.random()
        if kind < 0.4:
            before[j], after[j] = (float(box.lower[j] + size * v) for v in rng.normal(size=2))
            change[j] = (before[j], after[j])
        elif kind < 0.8:
            by[j] = change[j] = size * float(rng.normal())
    found = gpcert.difference_range(model, box, change, **words)
    for x in _inside(rng, box, (found.argmin, found.argmax)):
        here = _numbers(x)
        apart = means.at(_changed(here, after, by)) - means.at(_changed(here, before, {}))
        if not _sure(apart):
            continue
        if apart < found.minimum.lower or apart > found.maximum.upper:
            yield f"{change}: {apart} at {x.tolist()}, got {found.minimum}, {found.maximum}"
        if x is found.argmin and apart > found.minimum.upper:
            yield f"{change}: {apart} at argmin is worse than {found.minimum.upper!r}"
        if x is found.argmax and apart < found.maximum.lower:
            yield f"{change}: {apart} at argmax is worse than {found.maximum.lower!r}"


def _certify_fair(rng: Rng, model: Any, means: Means, box: Any, words: Any) -> Iterator[str]:
    j, half = int(rng.integers(model.dim)), 0.5 * (box.upper - box.lower)
    size = float(half[j] or abs(box.lower[j]) or 1.0)
    values = sorted({float(box.lower[j] + size * v) for v in rng.normal(size=rng.integers(2, 4))})
    radii = half * np.exp(rng.uniform(-3, 0, model.dim)) * (np.arange(model.dim) != j)
    norm = float(one_of(rng, (1.0, 2.0, np.inf)))
    alike = None if rng.random() < 0.5 else dict(enumerate(radii.tolist()))
    level = float(model.mean(box.center[None])[0, 0])
    spread = abs(level - float(model.mean(box.upper[None])[0, 0])) or 1.0
    rule = {"delta": spread} if rng.random() < 0.5 else {"threshold": level + spread * rng.normal()}
    question = {"similar": alike, "norm": norm, **rule}
    found = gpcert.certify_fair(model, box, {j: tuple(values)}, **question, **words)
    status, (low, high) = found.status.name, (found.margin.lower, found.margin.upper)
    if not low <= high:
        yield f"margin {found.margin} is crossed"
    for _ in range(POINTS):
        x = box.sample(1, rng)[0]
        step = rng.uniform(-1.0, 1.0, model.dim)
        if alike is None:
            step = 0.0 * step
        size = np.linalg.norm(step, ord=norm)
        step = radii * step / max(1.0, size * (1.0 + 1e-9))
        first, second = (one_of(rng, values) for _ in range(2))
        a = means.at(_changed(_numbers(x), {j: first}, {}))
        moved = [v + arb(float(s)) for v, s in zip(_numbers(x), step, strict=True)]
        b = means.at(_changed(moved, {j: second}, {}))
        if not (_sure(a) and _sure(b)):
            continue
        if found.delta is not None:
            margin = arb(found.delta) - abs(a - b)
        else:
            t = arb(found.threshold)
            margin = _larger(_least(a, b) - t, t + _least(-a, -b))
        if margin < low or (status == "ROBUST" and margin < 0):
            yield f"{status} {found.margin}: {margin} at {x.tolist()} + {step.tolist()}, {values}"
    if status == "NOT_ROBUST":
        a, b = (means.at(_numbers(x)) for x in found.pair)
        if _sure(a) and _sure(b):
            if found.delta is not None and abs(a - b) < found.delta:
                yield f"pair {found.pair.tolist()} differs by {abs(a - b)} only"
            t = found.threshold
            if t is not None and ((a > t and b > t) or (a < t and b < t)):
                yield f"pair {found.pair.tolist()} lies on one side"


def _least(a: arb, b: arb) -> arb:
    return a if a < b else b


def _larger(a: arb, b: arb) -> arb:
    return a if a > b else b


def main() -> int:
    """Many cases, or one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("length", nargs="?", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.length)
    counts: Counter[str] = Counter()
    wrong = 0
    for seed in seeds if options.seed is None else [options.seed]:
        asked, findings = hunt(seed)
        counts[asked] += 1
        for text in findings:
            wrong += 1
            print(f"seed {seed}: {text}", flush=True)
    for asked, count in counts.most_common():
        print(f"{count:6d}  {asked}")
    print(f"{sum(counts.values())} cases, {wrong} findings")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
