"""Sections `mean` and `probability`: guaranteed minima of random GPs, beside MAiNGO."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from peers import Peer
from problems import MEAN_SHAPES, PROBABILITY_SHAPES, Regression, draw
from report import Section

import gpcert
from gpcert.likelihoods import Likelihood, Probit

RUNS = 3
TOLERANCE = 0.01
SEEDS = 5
"""Random problems of a shape over which boxes are counted; MAiNGO solves the first."""

PROTOTYPE_BOXES = {
    (2, 1000, 0.1): 7,
    (5, 100, 0.1): 75,
    (5, 500, 0.1): 95,
    (10, 200, 0.05): 1007,
    (10, 1000, 0.05): 1125,
}


def mean(peer: Peer) -> Section:
    """The minimum of the posterior mean."""
    section = Section("mean", "Guaranteed minimum of the posterior mean, tol 0.01")
    for shape in MEAN_SHAPES:
        problem = draw(shape)
        ours = _solve(problem, "mean", None)
        others = [_minimum(draw(shape, s), "mean", None).boxes for s in range(1, SEEDS)]
        theirs = peer.result(problem, "mean")
        section.add(**_names(shape), **ours, **_spread(ours, others), **_beside(ours, theirs))
    section.notes = _notes()
    return section


def probability(peer: Peer | None) -> Section:
    """The minimum of Phi(mu / sqrt(1 + v))."""
    section = Section("probability", "Guaranteed minimum of Phi(mu / sqrt(1 + v)), tol 0.01")
    for shape in PROBABILITY_SHAPES:
        problem = draw(shape)
        ours = _solve(problem, "probability", Probit())
        others = [_minimum(draw(shape, s), "probability", Probit()).boxes for s in range(1, SEEDS)]
        theirs = None if peer is None else peer.result(problem, "probability")
        row = _names(shape) | ours | _spread(ours, others)
        allowed = PROTOTYPE_BOXES[shape]
        row |= {"prototype_boxes": allowed, "reached": row["median_boxes"] <= allowed}
        section.add(**row, **(_beside(ours, theirs) if theirs else {}))
    section.notes = _notes()
    return section


def _names(shape: tuple[int, int, float]) -> dict[str, Any]:
    return dict(zip(("d", "N", "g"), shape, strict=True))


def _minimum(
    problem: Regression, quantity: Any, likelihood: Likelihood | None
) -> gpcert.PredictionRange:
    return _ask(problem.posterior(likelihood), problem.box, quantity)


def _ask(posterior: gpcert.Posterior, box: gpcert.Box, quantity: Any) -> gpcert.PredictionRange:
    budget = gpcert.Budget(seconds=120.0)
    return gpcert.prediction_range(
        posterior, box, tol=TOLERANCE, quantity=quantity, sides="minimum", budget=budget
    )


def _solve(problem: Regression, quantity: Any, likelihood: Likelihood | None) -> dict[str, Any]:
    """Time of the first question to a new model, and the median of the next three."""
    posterior, box = problem.posterior(likelihood), problem.box
    answers, wall, cpu = [], [], []
    for _ in range(1 + RUNS):
        start, cpu_start = time.perf_counter(), time.process_time()
        answers.append(_ask(posterior, box, quantity))
        cpu.append(time.process_time() - cpu_start)
        wall.append(time.perf_counter() - start)
    answer = answers[-1]
    return {
        "boxes": answer.boxes,
        "converged": answer.converged,
        "seconds": float(np.median(wall[1:])),
        "cpu_seconds": float(np.median(cpu[1:])),
        "first_cpu_seconds": cpu[0],
        "lower": answer.minimum.lower,
        "upper": answer.minimum.upper,
    }


def _spread(ours: dict[str, Any], others: list[int]) -> dict[str, Any]:
    boxes = [ours["boxes"], *others]
    return {"median_boxes": float(np.median(boxes)), "most_boxes": max(boxes)}


def _beside(ours: dict[str, Any], theirs: dict[str, Any] | None) -> dict[str, Any]:
    """MAiNGO's columns; the two proved intervals of the same minimum must meet."""
    if theirs is None:
        return {}
    ended = theirs["status"] == "GLOBALLY_OPTIMAL"
    slack = 1e-6  # MAiNGO's own arithmetic is not certified
    meet = ours["lower"] - slack <= theirs["attained"] and theirs["lower"] <= ours["upper"] + slack
    if not meet:
        raise SystemExit(f"the proved bounds contradict each other: {ours} against {theirs}")
    seconds = theirs.get("cpu_seconds", theirs["seconds"])
    seconds = seconds if ended else min(seconds, theirs["limit"])
    return {
        "maingo_cpu_seconds": seconds,
        "maingo": "solved" if ended else f"limit, gap {theirs['gap']:.3g}",
        "ratio": seconds / ours["cpu_seconds"],
        "ratio_of_first": seconds / ours["first_cpu_seconds"],
        "reached_ratio": bool(seconds >= 100 * ours["cpu_seconds"]),
    }


def _notes() -> list[str]:
    return [
        f"Seconds: median of {RUNS} runs after a warm-up. First: the first question to a new "
        "model, with everything that is computed once per model. CPU seconds are those of all "
        "threads; ratios are of CPU seconds, which other work on the machine does not change.",
        f"Median and most boxes over {SEEDS} random problems of the shape; the other columns, and "
        "MAiNGO's, are for the first of them.",
        "MAiNGO: epsilonA 0.01, CPU seconds of its one thread (d = 2: wall-clock seconds of the "
        "faster of two runs, the other took 90 CPU seconds on a busy machine); where it ended at "
        "its limit of 300 s the ratio is a lower bound. Means by its own GP model (MeLOn), "
        "probabilities in the Cholesky form written by hand. The predictions of both models "
        "agree to 1e-6.",
    ]
