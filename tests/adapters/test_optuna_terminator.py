"""Optuna's terminator with a proved regret bound."""

import math
import warnings

import numpy as np
import pytest

from gpcert.errors import InputError

optuna = pytest.importorskip("optuna")
pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")

from gpcert.optuna import CertifiedRegretBound  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.WARNING)


def study_of(objective, direction="maximize", n=30):
    study = optuna.create_study(direction=direction, sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=n)
    return study


def bowl(trial):
    x = trial.suggest_float("x", -1.0, 2.0)
    y = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    k = trial.suggest_int("k", 1, 5)
    return -((x - 0.4) ** 2) - 0.1 * (math.log10(y) + 2.0) ** 2 - 0.05 * (k - 3) ** 2


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_bound_covers_what_is_left(direction):
    sign = 1.0 if direction == "maximize" else -1.0
    study = study_of(lambda trial: sign * bowl(trial), direction)
    bound = CertifiedRegretBound().evaluate(study.trials, study.direction)
    best = sign * study.best_value
    assert bound >= 0.0 - best  # the optimum is 0
    assert isinstance(CertifiedRegretBound(), optuna.terminator.BaseImprovementEvaluator)
    assert bound < 3.0


def test_it_ends_a_study():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # experimental, and gone in Optuna 6
        terminator = optuna.terminator.Terminator(
            improvement_evaluator=CertifiedRegretBound(beta=1.0),
            error_evaluator=optuna.terminator.StaticErrorEvaluator(10.0),
            min_n_trials=5,
        )
    assert terminator.should_terminate(study_of(bowl, n=12))


def test_equal_values_and_categories():
    flat = study_of(lambda trial: 0.0 * trial.suggest_float("x", 0.0, 1.0), n=5)
    assert CertifiedRegretBound().evaluate(flat.trials, flat.direction) == np.inf
    mixed = study_of(lambda trial: float(len(trial.suggest_categorical("c", ["a", "bb"]))), n=5)
    with pytest.raises(InputError, match="categorical parameter 'c'"):
        CertifiedRegretBound().evaluate(mixed.trials, mixed.direction)
    with pytest.raises(InputError, match="completed trials"):
        CertifiedRegretBound().evaluate([], flat.direction)
