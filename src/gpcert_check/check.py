"""The claims of a certificate, and whether they hold.

A claim compares a goal with a number, at a point or on the whole region. The claims follow from
the question and the answer here, not from the file: a file cannot leave one out.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import Any

from flint import arb, ctx

from gpcert_check.cell import Cell
from gpcert_check.container import Numbers
from gpcert_check.goals import Bounds, Goal, rational, read_goal
from gpcert_check.posterior import Posterior
from gpcert_check.region import Region, read_region
from gpcert_check.tree import Leaf, leaves
from gpcert_check.verdicts import BadFile, NotCovered, Refuted

BITS_MEAN, BITS_VARIANCE = 80, 128
DEEPEST = 60
"""Halvings of a leaf."""

CHUNK = 64
CHEAP = 20
"""Free features up to which second derivatives are taken at once."""

Report = Callable[[str], None]


@dataclass(frozen=True)
class Claim:
    """`goal >= level` (`>` where it is strict) at a point, or where that is None on the region."""

    goal: Goal
    level: arb
    strict: bool
    point: list[float] | None = None

    def holds(self, bounds: Bounds) -> bool:
        """Whether it is proved on a cell."""
        margin = bounds.margin(self.goal, self.level)
        return margin > 0 if self.strict else margin >= 0

    def fails(self, bounds: Bounds) -> bool:
        """Whether its contrary is proved on a cell, which is a point."""
        contrary = replace(self.goal, sign=-self.goal.sign, beta=-self.goal.beta)
        margin = bounds.margin(contrary, -self.level)
        return margin >= 0 if self.strict else margin > 0


@dataclass
class Certificate:
    """A certificate, read: `statements` say in words what is claimed."""

    model: Posterior
    region: Region
    claims: list[Claim]
    statements: list[str]
    arrays: dict[str, Numbers]
    splits: int = 10**6

    @property
    def on_region(self) -> list[Claim]:
        """The claims about the whole region."""
        return [claim for claim in self.claims if claim.point is None]

    def check(self, jobs: int, report: Report) -> tuple[int, int]:
        """Check all claims; returns how many leaves the tree has and how many cells were needed.

        Raises `Refuted` or `NotCovered`.
        """
        for claim in self.claims:
            if claim.point is not None:
                self._check_point(claim)
        if not self.on_region:
            return 0, 0
        counts = [0, 0]
        for number, cells in self._counted(leaves(self.arrays, self.region), jobs):
            counts[0], counts[1] = counts[0] + number, counts[1] + cells
            report(f"{counts[0]} leaves, {counts[1]} cells")
            if counts[1] - counts[0] > self.splits:
                raise NotCovered(f"not proved after {counts[1]} cells; raise --splits")
        return counts[0], counts[1]

    def _counted(self, found: Iterator[Leaf], jobs: int) -> Iterator[tuple[int, int]]:
        chunks = iter(lambda: list(islice(found, CHUNK)), [])
        if jobs == 1:
            yield from map(self._check_leaves, chunks)
            return
        self.model.sharpen()  # once, before the processes share it
        self._warm()
        global SHARED  # noqa: PLW0603
        SHARED = self
        with multiprocessing.get_context("fork").Pool(jobs, _set_bits, (ctx.prec,)) as pool:
            yield from pool.imap(_check_shared, chunks)

    def _warm(self) -> None:
        for claim in self.on_region:
            if claim.goal.by_variance:
                self.model.precision(claim.goal.output)

    def _check_point(self, claim: Claim) -> None:
        point = claim.point or []
        if not self.region.contains(point):
            raise Refuted("a point of the certificate does not lie in the region")
        own = [point[j] for j in self.region.free]
        if not claim.holds(Bounds(self.model, Cell(self.model.frame, own, own), 2)):
            raise Refuted("the goal at a point of the certificate is not what is claimed")

    def _check_leaves(self, chunk: list[Leaf]) -> tuple[int, int]:
        return len(chunk), sum(self.check_leaf(Cell(self.model.frame, *leaf)) for leaf in chunk)

    def check_leaf(self, leaf: Cell) -> int:
        """Prove all claims on a leaf, which is split as often as it takes; returns the cells."""
        waiting, cells = [(leaf, self.on_region, 0)], 0
        while waiting:
            cell, claims, depth = waiting.pop()
            cells += 1
            if cell.misses:
                continue
            bounds = Bounds(self.model, cell)
            claims = [claim for claim in claims if not self.proved(claim, bounds)]
            if not claims:
                continue
            self._refute(cell, claims)
            if depth == DEEPEST or cells > self.splits:
                raise NotCovered("a leaf on which the checker's bounds do not prove the claim")
            halves = cell.halves(self._axis(cell))
            waiting += [(half, claims, depth + 1) for half in halves]
        return cells

    def proved(self, claim: Claim, bounds: Bounds) -> bool:
        """By the cheap bound, or by the better one."""
        for degree in (2,) if len(bounds.cell.widths) <= CHEAP else (1, 2):
            bounds.degree = degree
            if claim.holds(bounds):
                return True
        return claim.goal.by_mean and self.model.sharpen() and self.proved(claim, bounds)

    def _refute(self, cell: Cell, claims: list[Claim]) -> None:
        """Look at the centre: a point where a claim fails ends the check."""
        point = list(self.region.center)
        for j, v in zip(self.region.free, cell.center, strict=True):
            point[j] = v
        if not self.region.contains(point):
            return
        bounds = Bounds(self.model, Cell(cell.frame, cell.center, cell.center), 0)
        for claim in claims:
            if claim.fails(bounds):
                raise Refuted(f"the claim is false at the point {point}")

    def _axis(self, cell: Cell) -> int:
        """The axis along which the kernel's features change most."""
        metric = self.model.kernel.gram(cell.z)
        sizes = [
            float(metric[1 + j, 1 + j].mid() * w.mid() ** 2) for j, w in enumerate(cell.widths)
        ]
        if max(sizes) <= 0:
            sizes = [float(w.mid()) for w in cell.widths]
        axis = sizes.index(max(sizes))
        if not cell.low[axis] < cell.center[axis] < cell.high[axis]:
            raise NotCovered("a leaf too small to be split, on which the claim is not proved")
        return axis


SHARED: Certificate | None = None
"""The certificate of a worker, which was forked with it."""


def _set_bits(bits: int) -> None:
    ctx.prec = bits


def _check_shared(chunk: list[Leaf]) -> tuple[int, int]:
    assert SHARED is not None
    return SHARED._check_leaves(chunk)


def build(header: dict[str, Any], arrays: dict[str, Numbers]) -> Certificate:
    """The certificate of a file."""
    if header.get("claim") != "A":
        raise NotCovered(f"claims of kind {header.get('claim')!r}; covered is 'A'")
    try:
        question, answer, described = header["question"], header["answer"], header["model"]
        region = read_region(question["region"])
        embedded = {n[6:]: a for n, a in arrays.items() if n.startswith("model_")}
        if sha256(described, embedded) != header["sha256"]:
            raise Refuted("the model is another one than that whose SHA-256 the file names")
        ctx.prec = BITS_MEAN
        goals = [question["goal"]] if "goal" in question else question["goals"]
        if any(goal.get("quantity") != "mean" for goal in goals):
            ctx.prec = BITS_VARIANCE
        posterior = Posterior(described, embedded, region)
        read = {"decision": _decision, "range": _range}
        if question["kind"] not in read:
            raise NotCovered(f"questions of kind {question['kind']!r}")
        claims, statements = read[question["kind"]](question, answer, posterior, described)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise BadFile(f"expected a question, an answer and a model ({error!r})") from error
    statements.append(f"the region is {json.dumps(question['region'])[:300]}")
    return Certificate(posterior, region, claims, statements, arrays)


Read = tuple[list[Claim], list[str]]


def _decision(
    question: dict[str, Any], answer: dict[str, Any], model: Posterior, described: Any
) -> Read:
    """The decision at x is the decision everywhere (ROBUST), or is not at the counter-example."""
    goal, level = read_goal(question["goal"], model), _fraction(question["level"])
    text = f"{name(goal)} > {level}"
    _check_label(question, goal, described)
    at_x = list(map(float, question["x"]))
    if answer["status"] == "ROBUST":
        claims = [Claim(goal, rational(level), True), Claim(goal, rational(level), True, at_x)]
        return claims, [f"{text} at every point of the region, x among them"]
    if answer["status"] != "NOT_ROBUST":
        raise BadFile(f"status: expected ROBUST or NOT_ROBUST, got {answer['status']!r}")
    other = replace(goal, sign=-goal.sign, beta=-goal.beta)
    point = list(map(float, answer["counterexample"]))
    claims = [
        Claim(goal, rational(level), True, at_x),
        Claim(other, rational(-level), True, point),
    ]
    return claims, [f"{text} at x, and not at the counter-example; both lie in the region"]


def _check_label(question: dict[str, Any], goal: Goal, described: Any) -> None:
    """The label of a decision between two classes is that of the goal's side."""
    label, classes = question.get("decision"), described.get("classes")
    if label is None:
        return
    if goal.kind not in ("mean", "probability") or goal.output != 0:
        raise BadFile("decision: expected no label of this quantity")
    labels = classes if classes else [0, 1]
    if len(labels) != 2 or labels[goal.sign > 0] != label:
        raise Refuted(f"the decision {label!r} is not that of the claim")


def _range(
    question: dict[str, Any], answer: dict[str, Any], model: Posterior, described: Any
) -> Read:
    """Each goal's least value lies between two numbers, the second attained at a point."""
    claims, statements = [], []
    if len(question["goals"]) != len(answer["ends"]):
        raise BadFile("expected ends for every goal")
    for record, ends in zip(question["goals"], answer["ends"], strict=True):
        goal = read_goal(record, model)
        lower, upper = Fraction(ends["lower"]), Fraction(ends["upper"])
        other = replace(goal, sign=-goal.sign, beta=-goal.beta)
        point = list(map(float, ends["point"]))
        claims.append(Claim(goal, rational(lower), False))
        claims.append(Claim(other, rational(-upper), False, point))
        bounds = f"{float(lower)!r} and {float(upper)!r}"
        statements.append(f"the least value of {name(goal)} over the region lies between {bounds}")
    return claims, statements


def name(goal: Goal) -> str:
    """A goal in words."""
    sign, of = "-" if goal.sign < 0 else "", f" of output {goal.output}"
    if goal.kind == "band":
        return f"{sign}mean - {float(goal.beta):g} std{of}"
    return f"{sign}{goal.kind}{of}"


def _fraction(value: Any) -> Fraction:
    numerator, denominator = value
    return Fraction(int(numerator), int(denominator))


def sha256(header: dict[str, Any], arrays: dict[str, Numbers]) -> str:
    """The full SHA-256 of a model: of what its kernel, likelihood and labels are, as sorted JSON,
    and of every array's name, shape and bytes, in the order of the names."""
    parts = {
        key: header.get(key) for key in ("kernel", "likelihood", "classes", "coupled", "levels")
    }
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
    for key in sorted(arrays):
        shape = ",".join(map(str, arrays[key].shape))
        digest.update(f"{key}({shape})".encode())
        digest.update(arrays[key].values.tobytes())
    return digest.hexdigest()
