"""Probabilities of failure of fitted surrogates, proved; see benchmarks/results/reliability.md.

    python benchmarks/reliability.py [--only NAME ...] [--seconds 10] [--samples 1000000]

Limit-state functions of the package otbenchmark with at most ten inputs; Gaussian processes of 50
(two inputs), 100 (three) and 200 points. One thread. Beside the proof: crude Monte Carlo and
OpenTURNS' subset simulation of the same surrogate in the time that the proof took, and their
errors against the middle of the proved interval. `--samples`: points of a further Monte Carlo run
of the surrogate, whose estimate is compared with the interval in standard errors. Needs the
packages openturns and otbenchmark.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import openturns as ot
from reliability_problems import Limit, limits, surrogate
from report import Section, command_line, merge
from threadpoolctl import threadpool_limits

import gpcert

SIZES = {2: 50, 3: 100}
CHUNK = 20_000


def values(model: Any, X: np.ndarray) -> np.ndarray:
    return np.concatenate([model.predict(part) for part in np.array_split(X, len(X) // CHUNK + 1)])


def crude(limit: Limit, model: Any, seconds: float) -> tuple[float, int]:
    """As many points as the time allows: the share of failures."""
    ends, failed, count = time.perf_counter() + seconds, 0, 0
    while count == 0 or time.perf_counter() < ends:
        X = np.array(limit.law.getSample(CHUNK))
        failed, count = failed + int(np.sum(model.predict(X) < 0.0)), count + CHUNK
    return failed / count, count


def subset(limit: Limit, model: Any, seconds: float) -> tuple[float, int]:
    """OpenTURNS' subset simulation with as many points a step as the time allows, about."""

    def evaluate(X: Any) -> Any:
        return model.predict(np.array(X))[:, None]

    function = ot.PythonFunction(limit.dim, 1, func_sample=evaluate)
    event = ot.ThresholdEvent(
        ot.CompositeRandomVector(function, ot.RandomVector(limit.law)), ot.Less(), 0.0
    )
    algorithm = ot.SubsetSampling(event)
    calls = function.getCallsNumber()
    algorithm.setBlockSize(1000)
    start, size = time.perf_counter(), 1000
    result = None
    while result is None or time.perf_counter() - start < 0.5 * seconds:
        algorithm = ot.SubsetSampling(event)
        algorithm.setBlockSize(1000)
        algorithm.setMaximumOuterSampling(max(1, size // 1000))
        algorithm.run()
        result, size = algorithm.getResult(), 2 * size
    return result.getProbabilityEstimate(), function.getCallsNumber() - calls


def measure(limit: Limit, seconds: float, samples: int) -> dict[str, Any]:
    """One row."""
    points = SIZES.get(limit.dim, 200)
    model = surrogate(limit, points)
    rtol = 0.01 if limit.dim <= 5 else 0.99
    asked: dict[str, Any] = {"rtol": rtol, "budget": seconds, "progress": False}
    start = time.perf_counter()
    found = gpcert.failure_probability(model, limit.law, 0.0, **asked)
    took = time.perf_counter() - start
    row: dict[str, Any] = {
        "limit_state": limit.name,
        "inputs": limit.dim,
        "points": points,
        "lower": found.lower,
        "upper": found.upper,
        "relative_width": found.width,
        "boxes": found.boxes,
        "seconds": took,
        "met": found.converged,
        "published": limit.published,
    }
    middle = 0.5 * (found.lower + found.upper)
    for name, method in (("crude", crude), ("subset", subset)):
        estimate, count = method(limit, model, took)
        row[f"{name}_points"] = count
        row[f"{name}_error"] = abs(estimate / middle - 1.0) if middle > 0 else None
    share, count = 0, 0
    ot.RandomGenerator.SetSeed(7)
    while count < samples:
        share += int(np.sum(values(model, np.array(limit.law.getSample(100_000))) < 0.0))
        count += 100_000
    if count:
        row["sampled"] = share / count
        row["standard_errors"] = outside(share / count, count, found.lower, found.upper)
    return row


def outside(share: float, count: int, lower: float, upper: float) -> float:
    """How far an estimate is outside the interval, in standard errors of its nearer end."""
    end = min(max(share, lower), upper)
    return abs(share - end) / np.sqrt(max(end * (1.0 - end), 1e-300) / count)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--samples", type=int, default=1_000_000)
    options = parser.parse_args()
    section = Section("limits", "Probabilities of failure of surrogates of limit-state functions")
    section.notes = [
        "rtol is 0.01 up to five inputs, 0.99 (a factor of two) above; one thread.",
        "crude and subset: relative errors of crude Monte Carlo and OpenTURNS' subset simulation "
        "of the same surrogate in the same time, against the middle of the proved interval.",
        "published: what otbenchmark says of the limit-state function itself, not the surrogate.",
        "standard errors: how far an estimate from `sampled` points is outside the interval.",
    ]
    with threadpool_limits(1):
        for limit in limits():
            if options.only and limit.name not in options.only:
                continue
            section.add(**measure(limit, options.seconds, options.samples))
    if not options.only:
        merge(options.results, section, section.name, "reliability")


if __name__ == "__main__":
    main()
