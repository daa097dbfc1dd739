"""Verbs: every wrong argument ends in an answer or in an error of ours, never in a raw one."""

import numpy as np
import pytest

import gpcert
from gpcert import kernels, likelihoods
from gpcert.errors import InputError
from gpcert.model.committee import Committee
from gpcert.testing.effort import THOROUGH, variants
from tests.misuse.wrong_values import WRONG, misused

X = np.array([[0.0, 0.0], [1.0, 0.5], [-1.0, 1.0]])
NAMES = ("u", "v")


def _posterior(likelihood=None, weights=(1.0, -1.0, 0.5), **options):
    chosen = {} if likelihood is None else {"likelihood": likelihood}
    return gpcert.Posterior(
        kernels.SquaredExponential(1.0),
        X,
        weights,
        0.3 * np.eye(3),
        feature_names=NAMES,
        **chosen,
        **options,
    )


BINARY = _posterior(likelihoods.Probit(), classes=("no", "yes"))
MODELS = {
    "regression": _posterior(),
    "two targets": _posterior(weights=[[1.0, -1.0, 0.5], [0.2, 0.3, 0.1]]),
    "binary": BINARY,
    "three classes": _posterior(likelihoods.Softmax(), np.eye(3), classes=("a", "b", "c")),
    "committee": Committee((BINARY, BINARY), ("a", "b"), "one_vs_rest"),
}
FEW = gpcert.Budget(seconds=0.01, boxes=2)
SEARCH = {
    "budget": FEW,
    "backend": "numpy",
    "random_state": 0,
    "method": "taylor",
    "variance_bound": None,
}
AROUND = {"norm": 2, "features": [0, 1], "domain": (-9.0, 9.0), "scale": [1.0, 1.0]}
RULE = {"threshold": None, "class_weight": None, "delta": None, "output_norm": "inf"}
POINT = {"x": [0.1, 0.2], "radius": 0.1, "region": None}
RANGE = {"region": gpcert.Ball([0.1, 0.2], 0.1), "tol": 0.5, "quantity": None, "beta": None}

VERBS = {
    "certify": (gpcert.certify, {**POINT, **AROUND, **RULE, **SEARCH}),
    "certify_many": (
        gpcert.certify_many,
        {"X": X[:1], "radius": 0.1, **AROUND, **RULE, **SEARCH, "n_jobs": 1, "progress": False},
    ),
    "certified_radius": (
        gpcert.certified_radius,
        {"x": [0.1, 0.2], **AROUND, **RULE, "max_radius": 0.5, "rtol": 0.5, **SEARCH},
    ),
    "prediction_range": (
        gpcert.prediction_range,
        {**RANGE, "output": None, "sides": "both", **SEARCH},
    ),
    "prediction_ranges": (gpcert.prediction_ranges, {**RANGE, **SEARCH}),
}
CHEAP = [("certify", "regression"), *((verb, "binary") for verb in VERBS)]


def _good(verb, model):
    call, good = VERBS[verb]
    if model in ("regression", "two targets") and "delta" in good:
        good = {**good, "delta": 1.0, "output_norm": 2}
    if model == "three classes" and "output" in good:
        good = {**good, "output": "b"}
    return call, {"model": MODELS[model], **good}


@variants(("verb", "model"), CHEAP, quick=3)
def test_wrong_arguments(verb, model):
    call, good = _good(verb, model)
    call(**good)
    names = [name for name in good if name != "n_jobs"]  # joblib would start processes
    if not THOROUGH:
        names.remove("model")  # test_wrong_models asks that
    if verb == "certified_radius":  # the slowest; the others are read by the same functions
        names = ["x", "features", "domain", "scale", "max_radius", "rtol"]
    assert misused(call, good, only=names) == []


OTHERS = [
    ("certify", "two targets"),
    ("certify", "committee"),
    ("prediction_range", "three classes"),
    ("certify", "three classes"),
    ("prediction_range", "two targets"),
    ("prediction_range", "committee"),
]


@variants(("verb", "model"), OTHERS, quick=3)
def test_wrong_arguments_of_other_models(verb, model):
    call, good = _good(verb, model)
    names = ("output", "class_weight", "threshold", "delta")
    assert misused(call, good, only=[name for name in names if name in good]) == []


def test_wrong_models():
    for place, verb in enumerate(VERBS):
        call, good = _good(verb, "binary")
        part = slice(place, None, len(VERBS))
        if THOROUGH:
            assert misused(call, good, only=["model"]) == []
            part = slice(None)
        for value in list(WRONG.values())[part]:
            with pytest.raises(gpcert.errors.UnsupportedModelError, match="model: expected a gp"):
                call(**{**good, "model": value})


def _says(words, verb="certify", model="binary", **changes):
    call, good = _good(verb, model)
    with pytest.raises(InputError, match=words):
        call(**{**good, **changes})


def test_words():
    _says("use certify_many", x=X)
    _says("use certified_radius_many", verb="certified_radius", x=X)
    _says(r"x\[0\] \(x.iloc\[0\]", x=X[:1])
    _says("compute_class_weight", class_weight="balanced")
    _says(r"domain: expected \(low, high\)", verb="certified_radius", domain=5)
    _says("tol: expected numbers, got text", verb="prediction_range", tol="a")
    _says("rtol: expected numbers, got None", verb="certified_radius", rtol=None)
    for verb in ("certified_radius", "prediction_range"):
        _says(r"rtol: expected a number in \[0, 1\)", verb=verb, rtol=1.5)
    _says("backend: expected 'numpy'", backend=None)
    _says("backend: expected 'numpy'", backend="torch:tpu")
    _says("random_state: expected a whole number", random_state="a")
    _says("random_state: expected a whole number", random_state=-1)
    _says("class_weight: expected {label: weight}", class_weight=5)
    _says("class_weight: .* no order", class_weight={1.0, 2.0})
    _says("method: expected 'taylor'", method=["paper"])
    _says("variance_bound: expected 'solver'", method="paper", variance_bound=["solver"])
    _says("quantity: expected one of", verb="prediction_range", quantity=["mean"])
    _says("output: expected one of", verb="prediction_range", output=np.array([0, 1]))
    _says("budget: expected a positive number of seconds", budget=-1)
    _says("budget: expected a positive number of seconds", budget="5")
    _says("exactly one of radius=, relative= and region=, got none", radius=None)
    _says("x: expected finite numbers, got 1 NaN", x=[0.0, np.nan])
    _says("n_jobs: expected a whole number", verb="certify_many", X=X, n_jobs=0)
    _says("progress: expected True, False or None", verb="certify_many", X=X, progress="yes")
    _says("sparse.*toarray", verb="certify_many", X=WRONG["sparse"])


BUDGETS = [5, np.float32(0.5), gpcert.Budget(boxes=2), 0.5, np.int64(5)]


@variants("budget", BUDGETS, quick=3)
def test_budgets_may_be_numbers_of_seconds(budget):
    for verb in VERBS:
        call, good = _good(verb, "binary")
        assert call(**{**good, "budget": budget}) is not None


@pytest.mark.parametrize(
    "seed", [None, np.int64(3), np.random.default_rng(0), np.random.RandomState(0)]
)
def test_seeds_of_all_kinds(seed):
    call, good = _good("prediction_range", "binary")
    assert call(**{**good, "random_state": seed}).minimum.lower > 0.0
