"""Plain margins of many decisions: gradients, decisions, agreement with the models themselves."""

from functools import partial

import numpy as np
import pytest

from gpcert.attacks import Decision, decision_margins, prediction_and_gradient
from gpcert.attacks.functions import plain_function
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood
from gpcert.model.committee import Committee, committee_decision
from gpcert.quantities import PairVotes
from tests.attacks.attack_models import MODELS, WORDS, D, pairs, points

STEP = 1e-5


def margins_of(name, X):
    words = dict(WORDS.get(name, {}))
    if words:
        words.setdefault("output_norm", np.inf)
    return decision_margins(MODELS[name](), X, Decision(**words))


@pytest.mark.parametrize("latent", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_those_of_the_margins(name, latent):
    X = points()
    margins = margins_of(name, X)
    rows = np.arange(len(X))
    judge = partial(margins.value_and_gradient, latent)
    Y = X + 0.3 * points(seed=10)  # a deviation has no slope at the points themselves
    value, gradient = judge(Y, rows)
    if name == "one_vs_one" and not latent:
        pytest.skip("votes jump; their gradient is that of the confidences")
    numbers = np.stack(
        [
            (judge(Y + STEP * e, rows)[0] - judge(Y - STEP * e, rows)[0]) / (2 * STEP)
            for e in np.eye(D)
        ],
        axis=1,
    )
    np.testing.assert_allclose(gradient, numbers, atol=2e-5)
    np.testing.assert_allclose(value, margins.value(latent, Y, rows), atol=1e-12)


def test_gradients_of_pairs_with_trends():
    """Of the winner's least mean, and of what local search descends."""
    committee, X = pairs(), points()
    margins, rows = decision_margins(committee, X, Decision()), np.arange(len(X))
    Y = X + 0.3 * points(seed=10)
    function = plain_function(committee, PairVotes(1, len(committee.classes)))
    for judge in (lambda at: margins.value_and_gradient(True, at, rows), function):
        slopes = [(judge(Y + STEP * e)[0] - judge(Y - STEP * e)[0]) / (2 * STEP) for e in np.eye(D)]
        np.testing.assert_allclose(judge(Y)[1], np.stack(slopes, axis=1), atol=2e-5)


@pytest.mark.parametrize("name", MODELS)
def test_a_decision_holds_at_its_own_point(name):
    X = points()
    margins = margins_of(name, X)
    assert np.all(margins.margin(X, np.arange(len(X))) >= 0)


@pytest.mark.parametrize("name", MODELS)
def test_decisions_are_those_of_the_model(name):
    X = points(20)
    model = MODELS[name]()
    decided = margins_of(name, X).decided(X)
    if isinstance(model, Committee):
        expected = [model.classes[k] for k in committee_decision(model, X)]
    elif isinstance(model.likelihood, ClassLikelihood):
        expected = [model.labels[k] for k in model.prediction(X).argmax(axis=1)]
    elif model.likelihood.classifies:
        expected = [model.labels[int(k)] for k in model.predict(X)[0][:, 0] > 0]
    else:
        expected = [None] * len(X)
    assert decided == expected


@pytest.mark.parametrize("name", MODELS)
def test_predictions_and_gradients(name):
    model, X = MODELS[name](), points()
    value, gradient = prediction_and_gradient(model, X)
    if name == "one_vs_rest":
        np.testing.assert_allclose(value, model.probabilities(X), atol=1e-12)
    elif name == "one_vs_one":
        np.testing.assert_allclose(value, model.scores(X), atol=1e-12)
        return  # votes jump
    else:
        np.testing.assert_allclose(value, model.prediction(X), atol=2e-4)
    moved = [
        prediction_and_gradient(model, X + STEP * e)[0]
        - prediction_and_gradient(model, X - STEP * e)[0]
        for e in np.eye(D)
    ]
    np.testing.assert_allclose(gradient, np.stack(moved, axis=2) / (2 * STEP), atol=2e-5)


@pytest.mark.parametrize("name", MODELS)
def test_no_points_are_no_error(name):
    model = MODELS[name]()
    value, gradient = prediction_and_gradient(model, np.zeros((0, D)))
    assert len(value) == len(gradient) == 0
    assert gradient.shape[2] == D


def test_weights_move_the_decision():
    model, X = MODELS["binary"](), points(30)
    plain = decision_margins(model, X, Decision()).decided(X)
    heavy = decision_margins(model, X, Decision(class_weight={"a": 1.0, "b": 50.0})).decided(X)
    assert plain.count("b") < heavy.count("b")
    probability = model.prediction(X)[:, 0]
    assert [label == "b" for label in heavy] == list(probability > 1 / 51)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("regression", {}),
        ("softmax", {"threshold": 0.5}),
        ("one_vs_one", {"class_weight": [1.0, 2.0, 3.0]}),
        ("softmax", {"class_weight": [1.0, 2.0]}),
    ],
)
def test_words_that_do_not_fit_are_refused(name, words):
    with pytest.raises(InputError):
        decision_margins(MODELS[name](), points(), Decision(**words))
