"""Optuna's terminator with a proof: an improvement evaluator whose regret bound is not an estimate.

    from gpcert.optuna import CertifiedRegretBound
    from optuna.terminator import Terminator

    terminator = Terminator(improvement_evaluator=CertifiedRegretBound())

Optuna's own evaluator takes the maximum of the upper confidence bound over 2048 random points. Here
it is proved over the whole search space, for a Gaussian process fitted by `gpcert.models` (Optuna's
is private). Needs Optuna (`pip install optuna`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpcert.api import regret_bound
from gpcert.errors import InputError
from gpcert.kernels import Matern
from gpcert.models import GPRegressor
from gpcert.utils.optional_imports import library


class CertifiedRegretBound:
    """`max UCB over the search space - max LCB over the trials`, proved, in units of the objective.

    It counts as an `optuna.terminator.BaseImprovementEvaluator` once the first one is made.

    Parameters
    ----------
    beta : standard deviations of the confidence bounds.
    top_trials_ratio, min_n_trials : the process is fitted to this share of the best trials, and to
        at least so many, as Optuna does.
    budget : seconds or a `gpcert.Budget` of one evaluation; when it ends the bound so far is
        returned, which is valid and larger.
    tol : how near the bound is to the maximum, in standard deviations of the trials' values.
    """

    def __init__(
        self,
        beta: float = 2.0,
        *,
        top_trials_ratio: float = 0.5,
        min_n_trials: int = 20,
        budget: Any = 10.0,
        tol: float = 0.01,
    ) -> None:
        terminator: Any = library("optuna.terminator")
        terminator.BaseImprovementEvaluator.register(CertifiedRegretBound)
        self.beta = beta
        self.top_trials_ratio = top_trials_ratio
        self.min_n_trials = min_n_trials
        self.budget = budget
        self.tol = tol

    def evaluate(self, trials: list[Any], study_direction: Any) -> float:
        """The bound for the completed trials; infinite until two of them differ."""
        done = [trial for trial in trials if trial.state.name == "COMPLETE"]
        names = sorted(set.intersection(*({*trial.params} for trial in done)) if done else ())
        if not names:
            raise InputError(
                "evaluate: expected completed trials with parameters in common, got none"
            )
        sign = -1.0 if study_direction.name == "MINIMIZE" else 1.0
        y = sign * np.array([trial.value for trial in done])
        X = np.stack([_column(name, done) for name in names], axis=1)
        count = len(y)
        top = int(np.clip(count * self.top_trials_ratio, min(self.min_n_trials, count), count))
        best = y >= np.partition(y, count - top)[count - top]
        X, y = X[best], y[best]
        spread = float(y.std())
        if spread == 0.0:
            return math.inf
        kernel = Matern(np.full(X.shape[1], 0.5), nu=2.5)
        model = GPRegressor(kernel, noise=1e-2).fit(X, (y - y.mean()) / spread)
        cube = np.stack([np.zeros(X.shape[1]), np.ones(X.shape[1])])
        regret = regret_bound(
            model, cube, X, beta=self.beta, tol=self.tol, budget=self.budget, progress=False
        )
        return regret.bound * spread


def _column(name: str, trials: list[Any]) -> np.ndarray:
    """(n,) a parameter's values on [0, 1]; on a logarithmic scale where it is searched so. Whole
    numbers and steps count as the interval that they lie in, which only enlarges the bound."""
    distribution = trials[-1].distributions[name]
    low, high = getattr(distribution, "low", None), getattr(distribution, "high", None)
    if low is None or high is None:
        raise InputError(
            f"evaluate: expected numbers, got the categorical parameter {name!r}; use Optuna's "
            "RegretBoundEvaluator, or ordered values in its place"
        )
    values = np.array([trial.params[name] for trial in trials], dtype=float)
    if getattr(distribution, "log", False):
        low, high, values = math.log(low), math.log(high), np.log(values)
    width = float(high - low)
    return np.clip((values - low) / width, 0.0, 1.0) if width > 0 else np.zeros(len(values))
