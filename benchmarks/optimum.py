"""Proved optima of fitted surrogates over the whole unit cube; see benchmarks/results/optimum.md.

    python benchmarks/optimum.py [--only TEXT ...] [--quick] [--seconds 60] [--botorch]
    python benchmarks/optimum.py --processes

The maximum of mean + 2 std and of the logarithm of the expected improvement, to 0.01 (of the
observations' standard deviation; of log EI: nats), one thread. Models are fitted by scikit-learn
(noise 1e-4, lengths 0.05 to 10) to functions of 2 to 8 variables, or by BoTorch with its defaults.
`--botorch`: `optimize_acqf` of BoTorch with 10 restarts and 512 samples on the same models: how
often it misses the proved optimum by more than 1 % of the observations' range, and CPU seconds.
`--processes`: bands of the families that take longest with one process and with two, alone.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from noiseless_problems import (
    M52,
    SE,
    ackley,
    branin,
    fitted,
    hartmann3,
    hartmann6,
    rosenbrock,
    shape_of,
    standardised,
)
from report import Section, command_line, merge
from threadpoolctl import threadpool_limits

import gpcert

BETA, TOLERANCE = 2.0, 0.01
SEEDS = range(31, 36)
"""Of five fitted models each; nothing was tuned on them."""


class Family(NamedTuple):
    """Surrogates of one function, and the seconds that the maximum of UCB may take."""

    function: Callable[[np.ndarray], np.ndarray]
    dim: int
    kernel: str
    points: int
    target: float


FAMILIES = (
    Family(branin, 2, SE, 100, 0.2),
    Family(hartmann3, 3, SE, 100, 0.2),
    Family(hartmann3, 3, M52, 100, 0.2),
    Family(ackley, 4, SE, 200, 0.5),
    Family(ackley, 4, M52, 200, 0.5),
    Family(hartmann6, 6, SE, 200, 3.0),
    Family(hartmann6, 6, M52, 200, 8.0),
    Family(rosenbrock, 8, SE, 200, 6.0),
    Family(rosenbrock, 8, M52, 200, 15.0),
)


BOTORCH = "BoTorch's default"

BOTORCH_FAMILIES = (
    Family(hartmann6, 6, BOTORCH, 60, 1.0),
    Family(hartmann6, 6, BOTORCH, 120, 1.0),
    Family(rosenbrock, 10, BOTORCH, 200, 30.0),
    Family(ackley, 10, BOTORCH, 200, 30.0),
)
"""Asked with `--botorch`."""


def surrogate(family: Family, seed: int) -> Any:
    """The fitted model."""
    if family.kernel == BOTORCH:
        return botorch_default(family, seed)
    return scikit_learn(family, seed)


def scikit_learn(family: Family, seed: int) -> Any:
    """Fitted by the evidence."""
    X, y = standardised(family.function, family.points, family.dim, seed)
    return fitted(shape_of(family.kernel, family.dim), X, y, 1e-4, n_restarts_optimizer=1)


def botorch_default(family: Family, seed: int) -> Any:
    """BoTorch's SingleTaskGP, fitted with its defaults."""
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(seed)
    X, y = standardised(family.function, family.points, family.dim, seed)
    model = SingleTaskGP(torch.as_tensor(X), torch.as_tensor(y)[:, None])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model.eval()


def asked(model: Any, quantity: str, dim: int, seconds: float) -> tuple[gpcert.Optimum, float]:
    """One answer, by CPU seconds."""
    start = time.process_time()
    beta = BETA if quantity == "ucb" else None
    how: dict[str, Any] = {"beta": beta, "tol": TOLERANCE, "budget": seconds, "progress": False}
    found = gpcert.maximize(model, [(0.0, 1.0)] * dim, quantity, **how)
    return found, time.process_time() - start


def measured(name: dict[str, Any], models: list[Any], dim: int, seconds: float) -> list[dict]:
    """A row for each quantity: medians over the models."""
    rows = []
    posteriors = [gpcert.as_posterior(model) for model in models]
    for quantity in ("ucb", "log_ei"):
        answers = [asked(model, quantity, dim, seconds) for model in posteriors]
        rows.append(
            {
                **name,
                "quantity": quantity,
                "seconds": statistics.median(spent for _, spent in answers),
                "most": max(spent for _, spent in answers),
                "boxes": int(statistics.median(found.boxes for found, _ in answers)),
                "proved": f"{sum(found.converged for found, _ in answers)} of {len(answers)}",
                "widest gap": max(found.gap for found, _ in answers),
            }
        )
    return rows


def against_botorch(family: Family) -> dict[str, Any]:
    """How often local searches miss the proved optimum of UCB, and both times."""
    import torch
    from botorch.acquisition import UpperConfidenceBound
    from botorch.optim import optimize_acqf

    missed, ours, theirs, worst = 0, [], [], 0.0
    cube = torch.stack([torch.zeros(6), torch.ones(6)]).double()
    for seed in SEEDS:
        model = botorch_default(family, seed)
        found, spent = asked(gpcert.as_posterior(model), "ucb", 6, 60.0)
        ours.append(spent)
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            acquisition = UpperConfidenceBound(model, beta=BETA**2)
            _, value = optimize_acqf(acquisition, cube, q=1, num_restarts=10, raw_samples=512)
        theirs.append(time.process_time() - start)
        span = float(np.ptp(model.train_targets.numpy()))
        short = (found.value - float(value)) / span
        missed, worst = missed + (short > 0.01), max(worst, short)
    return {
        "N": family.points,
        "missed": f"{missed} of {len(SEEDS)}",
        "most missed, of the range": worst,
        "seconds": statistics.median(ours),
        "optimize_acqf": statistics.median(theirs),
    }


def in_processes(family: Family, seed: int) -> dict[str, Any]:
    """Wall-clock seconds of one band with one process and with two, and both answers."""
    model = gpcert.as_posterior(surrogate(family, seed))
    cube = gpcert.Box(np.zeros(family.dim), np.ones(family.dim))
    how: dict[str, Any] = {"quantity": "band", "tol": TOLERANCE, "budget": 300.0}
    seconds, answers = [], []
    for jobs in (1, 2):
        start = time.perf_counter()
        answers.append(gpcert.prediction_range(model, cube, n_jobs=jobs, progress=False, **how))
        seconds.append(time.perf_counter() - start)
    one, two = answers
    return {
        "problem": f"{family.function.__name__} d={family.dim} {family.kernel}",
        "seed": seed,
        "boxes": one.boxes,
        "seconds": seconds[0],
        "with two": seconds[1],
        "times as fast": seconds[0] / seconds[1],
        "ends apart": max(
            abs(one.maximum.upper - two.maximum.upper), abs(one.minimum.lower - two.minimum.lower)
        ),
        "proved": one.converged and two.converged,
    }


def main() -> None:
    """All families, or those chosen."""
    parser = command_line(__doc__)
    parser.add_argument("--only", nargs="+", metavar="TEXT")
    parser.add_argument("--quick", action="store_true", help="one model each")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--botorch", action="store_true")
    parser.add_argument("--processes", action="store_true")
    options = parser.parse_args()
    if options.processes:
        section = Section("processes", "One band with one process and with two, wall-clock seconds")
        with threadpool_limits(1):
            for seed in list(SEEDS)[:3]:
                section.add(**in_processes(FAMILIES[6], seed))
        section.notes = ["Target: 1.7 times on searches of 10 s and more, the same bound."]
        merge(options.results, section, "processes", "optimum")
        return
    seeds = list(SEEDS)[:1] if options.quick else list(SEEDS)
    section = Section("optimum", "Maximum over the unit cube, tol 0.01, medians of fitted models")
    with threadpool_limits(1):
        for family in (*FAMILIES, *BOTORCH_FAMILIES) if options.botorch else FAMILIES:
            name = f"{family.function.__name__} d={family.dim} {family.kernel}"
            if options.only and not any(text in name for text in options.only):
                continue
            words = {"problem": name, "N": family.points, "target": family.target}
            models = [surrogate(family, seed) for seed in seeds]
            for row in measured(words, models, family.dim, options.seconds):
                section.add(**row)
        section.notes = [
            f"{len(seeds)} models each, seeds {seeds[0]} to {seeds[-1]}; CPU seconds, one thread, "
            "the conversion of the model left out. Targets are for the median of either quantity.",
        ]
        merge(options.results, section, "optimum", "optimum")
        if options.botorch:
            other = Section("botorch", "BoTorch's optimize_acqf on the same models, UCB")
            for family in BOTORCH_FAMILIES[:2]:
                other.add(**against_botorch(family))
            other.notes = [
                "SingleTaskGP with its defaults on hartmann6; 10 restarts, 512 samples. Missed: by "
                "more than 1 % of the range of the (standardised) observations."
            ]
            merge(options.results, other, "botorch", "optimum")


if __name__ == "__main__":
    main()
