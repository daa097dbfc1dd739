"""Ax's global stopping with a proof: an experiment ends where no point can be much better.

    from gpcert.ax import CertifiedStopping

    options = OrchestratorOptions(global_stopping_strategy=CertifiedStopping(0.01))

The bound on what any point of the search space can gain over the best trial is proved, for a
Gaussian process fitted by `gpcert.models`. Needs Ax (`pip install ax-platform`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpcert.api import regret_bound
from gpcert.certificates import RegretBound
from gpcert.errors import InputError
from gpcert.kernels import Matern
from gpcert.models import GPRegressor
from gpcert.regions import Box, OneHot
from gpcert.utils.optional_imports import library


class CertifiedStopping:
    """Stop once `max UCB over the search space - max LCB over the trials`, proved, is at most
    `least_improvement`, in units of the objective.

    It counts as an Ax `BaseGlobalStoppingStrategy` once the first one is made. It is a statement
    about the fitted process; parameter constraints are left out, which only enlarges the bound.

    Parameters
    ----------
    least_improvement : the smallest gain that would be worth going on.
    min_trials, inactive_when_pending_trials : as in Ax.
    beta : standard deviations of the confidence bounds.
    budget : seconds or a `gpcert.Budget` of one decision; when it ends the bound so far counts.
    """

    def __init__(
        self,
        least_improvement: float,
        *,
        min_trials: int = 5,
        inactive_when_pending_trials: bool = True,
        beta: float = 2.0,
        budget: Any = 10.0,
    ) -> None:
        self._base: Any = library("ax.global_stopping.strategies.base").BaseGlobalStoppingStrategy
        self._base.register(CertifiedStopping)
        self.least_improvement = least_improvement
        self.min_trials = min_trials
        self.inactive_when_pending_trials = inactive_when_pending_trials
        self.beta = beta
        self.budget = budget

    def __repr__(self) -> str:
        return f"CertifiedStopping(least_improvement={self.least_improvement})"

    def should_stop_optimization(self, experiment: Any, **kwargs: Any) -> tuple[bool, str]:
        """Whether to stop, and why, as Ax asks it."""
        return self._base.should_stop_optimization(self, experiment, **kwargs)

    def estimate_global_stopping_savings(
        self, experiment: Any, num_remaining_requested_trials: int
    ) -> float:
        """As Ax estimates it."""
        savings = self._base.estimate_global_stopping_savings
        return savings(self, experiment, num_remaining_requested_trials)

    def _should_stop_optimization(self, experiment: Any, **kwargs: Any) -> tuple[bool, str]:
        del kwargs
        regret = self.regret(experiment)
        stop = regret <= self.least_improvement
        return stop, f"no point of the search space is better by more than {regret:.4g} (proved)"

    def regret(self, experiment: Any) -> float:
        """The bound, in units of the objective; infinite until two trials differ."""
        names, values, sign = _trials(experiment)
        y = sign * values
        spread = float(y.std()) if len(y) else 0.0
        if spread == 0.0:
            return math.inf
        columns, groups = [], []
        for parameter in experiment.search_space.parameters.values():
            given = [arm[parameter.name] for arm in names]
            part = _columns(parameter, given)
            start = sum(each.shape[1] for each in columns)
            if part.shape[1] > 1:
                groups.append(list(range(start, start + part.shape[1])))
            columns.append(part)
        X = np.concatenate(columns, axis=1)
        d = X.shape[1]
        model = GPRegressor(Matern(np.full(d, 0.5), nu=2.5), noise=1e-2)
        model.fit(X, (y - y.mean()) / spread)
        cube = Box(np.zeros(d), np.ones(d))
        found: RegretBound = regret_bound(
            model,
            OneHot(cube, groups) if groups else cube,
            X,
            beta=self.beta,
            tol=0.01,
            budget=self.budget,
            progress=False,
        )
        return found.bound * spread


def _trials(experiment: Any) -> tuple[list[dict[str, Any]], np.ndarray, float]:
    """Parameters and values of the arms with data, and the sign with which larger is better."""
    config = experiment.optimization_config
    if config is None or not config.objective.is_single_objective or config.outcome_constraints:
        raise InputError(
            "experiment: expected one objective without outcome constraints; for others use Ax's "
            "ImprovementGlobalStoppingStrategy"
        )
    (name,) = config.objective.metric_names
    table = experiment.lookup_data().df
    table = table[table["metric_name"] == name].groupby("arm_name")["mean"].mean()
    arms = [dict(experiment.arms_by_name[arm].parameters) for arm in table.index]
    return arms, table.to_numpy(dtype=float), -1.0 if config.objective.minimize else 1.0


def _columns(parameter: Any, values: list[Any]) -> np.ndarray:
    """(n, k) a parameter's values on [0, 1], or one-hot columns. Whole numbers and ordered values
    count as the interval that they lie in, which only enlarges the bound."""
    kind = type(parameter).__name__
    choices = [parameter.value] if kind == "FixedParameter" else getattr(parameter, "values", None)
    if kind == "ChoiceParameter" and not parameter.is_ordered and len(choices or ()) > 1:
        places = [list(choices or ()).index(value) for value in values]
        return np.eye(len(choices or ()))[places]
    low, high = (
        (parameter.lower, parameter.upper) if choices is None else (0, max(1, len(choices) - 1))
    )
    x = np.array(values if choices is None else [choices.index(v) for v in values], dtype=float)
    if getattr(parameter, "log_scale", False) and choices is None:
        low, high, x = math.log(low), math.log(high), np.log(x)
    return np.clip((x - low) / (high - low), 0.0, 1.0)[:, None]
