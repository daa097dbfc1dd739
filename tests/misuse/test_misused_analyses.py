"""Verbs for many points, and analyses: wrong arguments end in an answer or in an error of ours."""

import numpy as np

import gpcert
from gpcert import kernels, likelihoods
from gpcert.testing.effort import THOROUGH, variants
from tests.misuse.wrong_values import misused

X = np.array([[0.0, 0.0], [1.0, 0.5], [-1.0, 1.0]])
OPTIONS = {"factor": 0.3 * np.eye(3), "feature_names": ("u", "v")}
KERNEL = kernels.SquaredExponential(1.0)
REGRESSION = gpcert.Posterior(KERNEL, X, [1.0, -1.0, 0.5], **OPTIONS)
BINARY = gpcert.Posterior(
    KERNEL, X, [1.0, -1.0, 0.5], likelihood=likelihoods.Probit(), classes=("no", "yes"), **OPTIONS
)
SEARCH = {
    "budget": gpcert.Budget(seconds=0.01, boxes=2),
    "backend": "numpy",
    "random_state": 0,
    "method": "taylor",
    "progress": False,
}
AROUND = {"norm": 2, "features": [0, 1], "domain": (-9.0, 9.0), "scale": [1.0, 1.0]}
RULE = {"threshold": None, "class_weight": None, "output_norm": "inf"}
POINTS = {"X": X[:1], "radius": 0.1}
VERBS = {
    "certified_radius_many": {"X": X[:1], **AROUND, **RULE, "max_radius": 0.5, **SEARCH},
    "prediction_range_many": {
        **POINTS, **AROUND, "tol": 0.5, "quantity": None, "beta": None, "output": None,
        "sides": "both",
        "all_outputs": False, **SEARCH,
    },
    "attack": {
        **POINTS, "region": None, **AROUND, **RULE, "restarts": 3, "iterations": 40,
        "confirm": False, "random_state": 0, "method": "gpfgs",
    },
    "safety_curve": {
        "x": X[0], "radii": [0.1], **AROUND, **RULE, "output": None, "attack": "gpfgs",
        "tol": 0.5, **SEARCH,
    },
    "robustness": {**POINTS, **AROUND, "output": None, "tol": 0.5, **SEARCH},
    "certified_accuracy": {
        "X": X[:1], "y": ["yes"], "radii": [0.1], **AROUND, **RULE, "rtol": 0.5, **SEARCH,
    },
    "worst_case": {**POINTS, "region": None, "beta": 2.0, **AROUND, "tol": 0.5, **SEARCH},
    "predict_gradient": {"X": X[:1], "quantity": None},
    "certify_many": {
        "X": X[1:2], "relative": 0.1, "threshold": 0.5, "quantity": "lcb", "output": None,
        "beta": 1.0, "output_norm": "inf", **SEARCH,
    },
}  # fmt: skip
LONG = {"prediction_range_many", "safety_curve", "worst_case"}
"""What they read, `robustness` and `certified_accuracy` read too."""

SLOW = {"certified_radius_many", "certified_accuracy"}
if not THOROUGH:
    SLOW.add("robustness")


@variants("verb", sorted(VERBS, key=lambda verb: verb in LONG), quick=5)
def test_wrong_arguments(verb):
    call, good = getattr(gpcert, verb), VERBS[verb]
    model = REGRESSION if verb == "worst_case" else BINARY
    call(model, **good)
    names = list(good)
    if verb in SLOW:  # what follows is read by the same functions
        some = ("X", "y", "radii", "max_radius", "features", "scale", "output", "tol")
        names = [name for name in some if name in good]
    if "iterations" in names:
        names.remove("iterations")  # millions of them are an answer
    assert misused(lambda **words: call(model, **words), good, only=names) == []


def test_radii_and_models_to_compare():
    good = {"radii": [0.1], "compare": {"a": BINARY}, "tol": 0.5, **SEARCH}

    def call(**words):
        return gpcert.robustness(BINARY, X[:1], **words)

    assert misused(call, good, only=["radii", "compare"]) == []
