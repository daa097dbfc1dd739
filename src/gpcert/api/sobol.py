"""`sobol_indices`: how much of a prediction's variance each random input explains.

Proofs: docs/mathematics.md, statements 22.12 to 22.15.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.input_laws import ReadInputs, read_inputs
from gpcert.api.options import BudgetLike, QuantityRequest, read_budget, read_tolerance, verb
from gpcert.api.questions import range_question
from gpcert.api.running import progress_line
from gpcert.certificates.probability import SobolIndices
from gpcert.certificates.text import Interval
from gpcert.errors import InputError, SoundnessError
from gpcert.integrals.variance_parts import (
    GaussianTerms,
    InputRule,
    Range,
    VarianceParts,
    input_rule,
    point_rule,
    variance_parts,
)
from gpcert.kernels.gaussian_sums import GaussianSum, gaussian_sum
from gpcert.model.mixture import Mixture
from gpcert.model.posterior import Posterior
from gpcert.numerics.rounding import U, add_down, add_up, down, up, up_float
from gpcert.search import StopReason
from gpcert.utils.processes import OutOfTime, until

ERRORS = tuple((10.0 ** (-0.5 * np.arange(1, 27))).tolist())
"""Of the sums of Gaussians that stand for a mixture: the first that is likely to do is tried, after
a coarse one, and then better ones."""

STEPS = (-4, -2, 0, 2, 4)
"""Which of these are tried, counted from that one."""

EXACT = 1e-13
"""A kernel that is known so well, relative to its size, is not looked at again."""

COPIES = 6.0
"""Arrays of the size of terms times nodes that are held at once."""

UNKNOWN = (0.0, 1.0)


@verb
def sobol_indices(
    model: Any,
    inputs: Any,
    *,
    output: Any = None,
    tol: float = 0.01,
    budget: BudgetLike = None,
    progress: bool | None = None,
) -> SobolIndices:
    """Proved bounds of the first and total Sobol' indices of a model's mean when its inputs are
    random and independent.

    The first index of an input is the part of the variance that it explains alone,
    `Var E[mean | x_j] / Var mean`; the total index the part that is left when all others are known,
    `E Var[mean | all others] / Var mean`.

    Parameters
    ----------
    model : a `Posterior`, or a fitted regression that an adapter converts, whose kernel is squared
        exponential, Matern or rational quadratic, with a length-scale for each feature or one for
        all, or made of such and of constants by sums, products and choices of features.
    inputs : as in `failure_probability`, independent; a number keeps a feature fixed, which then
        has no index.
    output : the number of the output, where there are several.
    tol : the search ends once the bounds of every index are that near.
    budget : seconds, or a `Budget`; 60 seconds by default. Its boxes are the sums of Gaussians that
        stand for the kernel, one after another.
    progress : show the bounds so far; by default only on a terminal.

    The model's mean counts, not the uncertainty about it. Ctrl-C returns the bounds so far.

    Example
    -------
    >>> import gpcert
    >>> from scipy.stats import uniform
    >>> from gpcert.kernels import SquaredExponential
    >>> bump = gpcert.Posterior(SquaredExponential([1.0, 2.0]), [[0.0, 0.0]], weights=[1.0])
    >>> found = gpcert.sobol_indices(bump, [uniform(-1, 2), uniform(-1, 2)])
    >>> bool(np.all(found.first[0] > 0.9)), bool(np.all(found.total[1] < 0.1))
    (True, True)
    """
    start = time.perf_counter()
    part, number, label = _regression(as_posterior(model), output)
    given = read_inputs(part, inputs)
    if given.behind is not None:
        raise InputError(
            "inputs: expected independent inputs, got correlated ones: the variance has no parts "
            "that belong to one input alone"
        )
    near, limit = read_tolerance(tol, 1.0), read_budget(budget)
    best, reason, passes = _Known.nothing(len(given.law.marginals)), StopReason.RESOLUTION, 0
    with progress_line(progress) as line:
        try:
            with until(limit.ends(start)):
                for known in _passes(part, number, given, near, limit.memory):
                    best, passes = best.and_also(known), passes + 1
                    line.show(f"indices at most {best.width:.3g} apart")
                    if best.width <= near or passes == limit.boxes:
                        done = best.width <= near
                        reason = StopReason.CONVERGED if done else StopReason.BOXES
                        break
        except OutOfTime:
            reason = StopReason.TIME
        except KeyboardInterrupt:
            reason = StopReason.INTERRUPTED
    free = given.region.free
    names = part.feature_names
    return SobolIndices(
        features=tuple(names[j] if names else f"feature {j}" for j in free),
        first=best.first,
        total=best.total,
        variance=Interval(*best.variance),
        mean=Interval(*best.mean),
        tol=near,
        converged=reason is StopReason.CONVERGED,
        output=label,
        laws=given.told,
        region=given.region.describe(),
        outside=given.outside,
        reason=reason,
        boxes=passes,
        seconds=time.perf_counter() - start,
        method="products",
        model=part.fingerprint,
    )


def _regression(model: Any, output: Any) -> tuple[Posterior, int, Any]:
    """The posterior that has the output, its number there, and how it is called."""
    if model.classifies:
        raise InputError(
            "model: expected a regression, whose mean has a variance that inputs share, got a "
            "classifier"
        )
    if isinstance(model, Mixture):
        raise InputError(
            "model: expected one regression, got a mixture; ask about each of its members"
        )
    question = range_question(model, QuantityRequest("mean"))
    index = question.index(output)
    part, number = model.output(index)
    if part.features is not None:
        raise InputError(
            "model: expected a kernel of the inputs themselves, got one behind linear features "
            "(PCA, or functions of inputs); fit the model on independent inputs"
        )
    if np.any(part.slope[number]):
        raise InputError(
            "model: expected a mean without a linear trend; fit without it, and add what the trend "
            "explains: its part of each input's variance"
        )
    return part, number, question.labels[index]


@dataclass(frozen=True, eq=False)
class _Known:
    """Bounds of the indices (f, 2), of the variance and of the mean."""

    first: np.ndarray
    total: np.ndarray
    variance: Range = (0.0, math.inf)
    mean: Range = (-math.inf, math.inf)

    @staticmethod
    def nothing(f: int) -> _Known:
        """Where nothing is known of f inputs."""
        return _Known(np.tile(UNKNOWN, (f, 1)), np.tile(UNKNOWN, (f, 1)))

    @property
    def width(self) -> float:
        """Of the index that is known least well."""
        return float(max(np.ptp(ends, axis=1).max() for ends in (self.first, self.total)))

    def and_also(self, other: _Known) -> _Known:
        """What both say; a first index is at most the total one (Statement 22.15)."""
        first, total = (
            np.stack([np.maximum(a[:, 0], b[:, 0]), np.minimum(a[:, 1], b[:, 1])], axis=1)
            for a, b in ((self.first, other.first), (self.total, other.total))
        )
        total[:, 0] = np.maximum(total[:, 0], first[:, 0])
        first[:, 1] = np.minimum(first[:, 1], total[:, 1])
        ends = zip((self.variance, self.mean), (other.variance, other.mean), strict=True)
        ranges = [(max(a[0], b[0]), min(a[1], b[1])) for a, b in ends]
        if np.any(first[:, 0] > first[:, 1]) or any(low > high for low, high in ranges):
            raise SoundnessError("bounds of Sobol' indices cross; please report this model")
        return _Known(first, total, *ranges)


def _passes(
    part: Posterior, number: int, given: ReadInputs, near: float, memory: float | None
) -> Iterator[_Known]:
    """What sums of Gaussians for the kernel say, one after another, each nearer to it."""
    kernel, t = part.kernel, part.weights[number]
    values = kernel.value(part.points, part.points) @ t
    spread = float(max(np.var(values), 1e-3 * np.mean(values * values)))
    size = up_float(float(np.abs(t).sum()), len(t) + 2)
    sums = [gaussian_sum(kernel, part.points.shape[1], error) for error in ERRORS]
    known = [mixed for mixed in sums if mixed is not None]
    if not known:
        raise InputError(
            "model: expected a kernel of squared exponential, Matern, rational quadratic and "
            "constant parts, whose integrals are products over the features, got "
            f"{type(kernel).__name__}; failure_probability and expectation take any kernel"
        )
    off = [up_float(_distance(mixed, given) * size, 2) for mixed in known]
    likely = [k for k, e in enumerate(off) if e <= 0.05 * near * math.sqrt(spread)]
    first = likely[0] if likely else len(known) - 1
    tried = dict.fromkeys(min(max(first + step, 0), len(known) - 1) for step in STEPS)
    for k in tried:
        mixed = known[k]
        wanted = 1e-3 * near * spread / (size * mixed.size) ** 2 if size > 1e-100 else 1.0
        rules = _rules(mixed, given, min(1e-6, max(1e-20, wanted)))
        terms = _terms(part.points, t, mixed)
        numbers = len(terms.weights) * sum(len(rule.weights) for rule in rules)
        if memory is not None and 8.0 * COPIES * numbers > memory:
            return
        parts = variance_parts(terms, rules)
        if parts is not None:
            units = float(part.scale[number]), float(part.offset[number])
            yield _read(parts, off[k], given.region.free, units)
        if mixed.error <= EXACT * mixed.size and not mixed.narrow:
            return


def _distance(mixed: GaussianSum, given: ReadInputs) -> float:
    """At least the mean square distance of `k(., z)` from its sum, any z, at the random inputs: a
    narrow part `c exp(-q)` has a mean square of at most `c^2 E exp(-q)`, and the mean of a Gaussian
    of rate r is at most `sqrt(2 pi / r)` times the largest density (Statement 22.15)."""
    total, free = mixed.error, given.region.free
    ends = zip(
        given.law.marginals,
        *(e[free] for e in (given.region.lower, given.region.upper)),
        strict=True,
    )
    densities = [float(law.density(np.array([a]), np.array([b]))[1][0]) for law, a, b in ends]
    for weight, rates in mixed.narrow:
        share = 1.0
        for rate, density in zip(rates[free].tolist(), densities, strict=True):
            wide = math.sqrt(2.0 * math.pi / rate) * density if rate > 0 else 1.0
            share *= min(1.0, up_float(wide, 16))
        total += weight * up_float(math.sqrt(share), 16)
    return up_float(total, 2 * len(mixed.narrow) + 2)


def _terms(points: np.ndarray, t: np.ndarray, mixed: GaussianSum) -> GaussianTerms:
    """`sum_i t_i k(x, z_i)`, k the sum of Gaussians."""
    n, m = len(points), len(mixed.weights)
    weights = (t[:, None] * mixed.weights).reshape(-1)
    return GaussianTerms(weights, np.tile(mixed.rates, (n, 1)), np.repeat(points, m, axis=0), 1)


def _rules(mixed: GaussianSum, given: ReadInputs, accuracy: float) -> list[InputRule]:
    """A rule for every feature; of one that is held fixed that value."""
    rules, marginals = [], iter(given.law.marginals)
    largest = 2.0 * mixed.rates.max(axis=0, initial=0.0)
    ends = zip(given.region.lower.tolist(), given.region.upper.tolist(), strict=True)
    for (low, high), rate in zip(ends, largest.tolist(), strict=True):
        if low == high:
            rules.append(point_rule(low))
        else:
            rules.append(input_rule(next(marginals), low, high, rate, accuracy))
    return rules


def _read(parts: VarianceParts, off: float, free: np.ndarray, units: tuple[float, float]) -> _Known:
    """Indices of the inputs from parts of the variance of a function that is within `off` of the
    one that is meant: no standard deviation is farther away than that (Statement 22.15)."""
    scale, offset = units
    whole = _moved(parts.whole, off)
    first, total = (
        np.array([_ratio(_moved(each[j], off), whole) for j in free])
        for each in (parts.first, parts.total)
    )
    square = scale * scale
    mean = add_down(parts.mean[0], -off), add_up(parts.mean[1], off)
    variance = float(down(square * whole[0], 2)), float(up(square * whole[1], 2))
    low, high = down(scale * mean[0], 1), up(scale * mean[1], 1)
    ends = float(add_down(low, offset)), float(add_up(high, offset))
    return _Known(first, total, (max(0.0, variance[0]), variance[1]), ends)


def _moved(variance: Range, off: float) -> Range:
    """Of a variance whose root moves by `off` at most."""
    low, high = (math.sqrt(max(end, 0.0)) for end in variance)
    low = max(0.0, low * (1.0 - 4.0 * U) - off)
    return max(0.0, float(down(low * low, 3))), float(up((high + off) ** 2, 6))


def _ratio(part: Range, whole: Range) -> Range:
    """Of a part of a variance and the whole; [0, 1] where that may be 0."""
    low = float(down(part[0] / whole[1], 2)) if whole[1] > 0 else 0.0
    high = float(up(part[1] / whole[0], 2)) if whole[0] > 0 else 1.0
    return max(0.0, low), min(1.0, high)
