"""A keyword that has no effect is an error of every verb that has it: nothing is ignored in
silence."""

import numpy as np
import pytest

import gpcert
from gpcert import explain
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit, Softmax
from gpcert.study.experiments import reproduce

X = np.array([[0.2, 0.1], [1.0, 0.5], [-1.0, 1.0]])
x = X[0]


def posterior(weights=(1.0, -1.0, 0.5), **options):
    return gpcert.Posterior(SquaredExponential(1.0), X, weights, 0.3 * np.eye(3), **options)


REGRESSION = posterior()
TWO = posterior([[1.0, -1.0, 0.5], [0.2, 0.3, 0.1]])
BINARY = posterior(likelihood=Probit(), classes=("no", "yes"))
THREE = posterior(np.eye(3), likelihood=Softmax(), classes=("a", "b", "c"))
BOX = gpcert.Box([-2.0, -2.0], [2.0, 2.0])

POINT = (gpcert.certify, gpcert.certified_radius, explain.sufficient, explain.contrastive)
MANY = (gpcert.certify_many, gpcert.certified_radius_many, gpcert.attack)
DECIDING = POINT + MANY
RANGING = (
    gpcert.prediction_range,
    gpcert.prediction_ranges,
    gpcert.prediction_range_many,
    gpcert.robustness,
    gpcert.worst_case,
    explain.effects,
)


def asked(verb, model, **words):
    """The verb at one point, with a radius where it has one."""
    several = verb in (*MANY, gpcert.prediction_range_many, gpcert.robustness, gpcert.worst_case)
    radius = () if verb in (gpcert.certified_radius, gpcert.certified_radius_many) else (0.1,)
    return verb(model, X[:1] if several else x, *radius, **words)


@pytest.mark.parametrize("verb", DECIDING, ids=lambda verb: verb.__name__)
@pytest.mark.parametrize(
    ("model", "words", "message"),
    [
        (BINARY, {"output_norm": 2}, "output_norm: belongs to delta="),
        (REGRESSION, {"threshold": 0.1, "output_norm": 2}, "output_norm: belongs to delta="),
        (BINARY, {"delta": 0.1}, "delta: expected a regression model"),
        (THREE, {"delta": 0.1}, "delta: expected a regression model"),
        (THREE, {"threshold": 0.5}, "threshold: expected two classes"),
        (REGRESSION, {"delta": 0.1, "threshold": 0.1}, "either delta= .* got both"),
        (REGRESSION, {"delta": 0.1, "class_weight": [1, 2]}, "class_weight: expected a classifier"),
        (BINARY, {"threshold": 0.5, "class_weight": [1, 2]}, "got both; drop one"),
        (BINARY, {"quantity": "probability"}, "quantity: says which value .* got no threshold="),
        (THREE, {"output": "a"}, "output: says which value .* got no threshold="),
        (TWO, {"delta": 0.1, "output": 1}, "output: .* got delta= as well"),
        (TWO, {"delta": 0.1, "beta": 2}, "beta: .* got delta= as well"),
        (REGRESSION, {"threshold": 0.1, "beta": 2.0}, "beta: belongs to quantity='band'"),
        (REGRESSION, {"threshold": 0.1, "quantity": "mean", "beta": 2.0}, "beta: belongs to"),
    ],
)
def test_of_a_decision(verb, model, words, message):
    with pytest.raises(InputError, match=message):
        asked(verb, model, **words)


@pytest.mark.parametrize("verb", DECIDING + RANGING, ids=lambda verb: verb.__name__)
def test_of_a_method(verb):
    if verb is gpcert.attack:
        return
    model, rule = (REGRESSION, {}) if verb in RANGING else (REGRESSION, {"delta": 0.1})
    with pytest.raises(InputError, match="variance_bound: 'solver' is a choice of method='paper'"):
        asked(verb, model, variance_bound="solver", **rule)


@pytest.mark.parametrize(
    "words",
    [{"radius": 0.1}, {"relative": 0.1}, {"norm": 2}, {"features": [0]}, {"domain": (-9, 9)},
     {"scale": [1.0, 1.0]}],
    ids=lambda words: next(iter(words)),
)  # fmt: skip
def test_of_a_ball_beside_a_region(words):
    calls = [
        lambda: gpcert.certify(BINARY, x, region=BOX, **words),
        lambda: gpcert.prediction_range(BINARY, region=BOX, **words),
        lambda: gpcert.prediction_range(BINARY, BOX, **words),
        lambda: gpcert.prediction_ranges(BINARY, BOX, **words),
        lambda: gpcert.certify_many(BINARY, X, region=BOX, **words),
        lambda: gpcert.prediction_range_many(BINARY, X, region=BOX, **words),
        lambda: gpcert.prediction_range_many(BINARY, [BOX], **words),
        lambda: gpcert.attack(BINARY, X, region=BOX, **words),
        lambda: gpcert.worst_case(REGRESSION, X, region=BOX, **words),
        lambda: explain.sufficient(BINARY, x, region=BOX, **words),
        lambda: explain.pixel_budget(BINARY, x, region=BOX, **words),
    ]
    (name,) = words
    for call in calls:
        with pytest.raises(InputError, match=name):
            call()


OTHERS = {
    "beta: belongs to": lambda: gpcert.prediction_range(REGRESSION, BOX, beta=2.0),
    "beta: belongs to quantity": lambda: gpcert.bound_boxes(REGRESSION, X, X, beta=2.0),
    "beta: belongs to quantity='band'": lambda: explain.effects(REGRESSION, x, 0.1, beta=2.0),
    "all_outputs: expected no output=": lambda: gpcert.prediction_range_many(
        BINARY, [BOX], all_outputs=True, output="no"
    ),
    "sides='both'; drop": lambda: gpcert.prediction_range_many(
        BINARY, [BOX], all_outputs=True, sides="minimum"
    ),
    "output: expected none": lambda: gpcert.prediction_range(
        BINARY, BOX, quantity="mean", output="no"
    ),
    r"output: expected one of \[0\]": lambda: gpcert.prediction_range(REGRESSION, BOX, output=1),
    "budget: boxes and memory limit": lambda: gpcert.bound_boxes(
        REGRESSION, X, X, budget=gpcert.Budget(boxes=9)
    ),
    "budget: boxes and memory": lambda: gpcert.bound_boxes(
        REGRESSION, X, X, budget=gpcert.Budget(memory=1e6)
    ),
    "restarts: has no effect on method='gpfgs'.*'pgd', 'best'": lambda: gpcert.attack(
        BINARY, X, 0.1, method="gpfgs", restarts=5
    ),
    "restarts: has no effect on method='square'": lambda: gpcert.attack(
        BINARY, X, 0.1, method="square", restarts=5
    ),
    "iterations: has no effect": lambda: gpcert.attack(
        BINARY, X, 0.1, method="gpfgs_probability", iterations=5
    ),
    "random_state: has no effect": lambda: gpcert.attack(
        BINARY, X, 0.1, method="gpfgs", random_state=5
    ),
    "shape: only used by method='sift'": lambda: explain.salient_features(
        BINARY, x, method="variance", shape=(1, 2)
    ),
    "threshold: expected two classes": lambda: gpcert.safety_curve(THREE, x, [0.1], threshold=0.5),
    "output_norm: belongs to delta=": lambda: gpcert.safety_curve(BINARY, x, [0.1], output_norm=2),
    "delta: expected a regression": lambda: gpcert.certified_accuracy(
        BINARY, X, ["no", "yes", "no"], [0.1], delta=0.1
    ),
    "radius=, radii= and relative=": lambda: gpcert.robustness(BINARY, X, 0.1, radii=[0.1]),
    "data: has no effect, as 'safety' at the scale 'quick' reads no files": lambda: reproduce(
        "safety", data="."
    ),
    "data: expected a folder with the data files, got the file": lambda: reproduce(
        "safety", data=__file__
    ),
    "data: expected a folder with the data files, got none": lambda: reproduce(
        "safety", scale="full", data="nowhere"
    ),
}


@pytest.mark.parametrize("message", OTHERS)
def test_of_one_verb(message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        OTHERS[message]()
    assert list(tmp_path.iterdir()) == []
