"""Classes that mix latent functions, with one kernel or their own: every verb reads them."""

import dataclasses

import numpy as np
import pytest

import gpcert
from gpcert.errors import InputError
from gpcert.explain import effects
from gpcert.kernels import Matern, SquaredExponential
from gpcert.likelihoods import MultinomialProbit, Probit, Softmax
from gpcert.model.posterior import Posterior
from gpcert.regions import Ball
from gpcert.testing.effort import THOROUGH, examples, variants
from tests.api.test_separate_outputs import member

KERNELS = (SquaredExponential([0.5, 1.1], 1.7), Matern(0.9, 2.5), SquaredExponential(0.8))
MEMBERS = tuple(member(kernel, seed) for seed, kernel in enumerate(KERNELS))
WEIGHTS = ((1.3, 0.2, -0.4), (-0.6, 1.0, 0.3), (0.1, -0.9, 1.1))
LABELS = ("a", "b", "c")
ONE = Posterior(
    KERNELS[0],
    MEMBERS[0].points,
    np.stack([MEMBERS[0].weights[0], -MEMBERS[0].weights[0] / 2.0, np.arange(9.0) / 9.0]),
    MEMBERS[0].factor,
    likelihood=Softmax(WEIGHTS),
    classes=LABELS,
)
MODELS = {
    "mixed": ONE,
    "separate": gpcert.SeparateOutputs(MEMBERS, Softmax(), LABELS),
    "separate, mixed": gpcert.SeparateOutputs(MEMBERS, Softmax(WEIGHTS), LABELS),
    "separate, probit": gpcert.SeparateOutputs(MEMBERS, MultinomialProbit(), LABELS),
}
X = np.array([0.2, -0.3])
REGION = Ball(X, 0.1)
RTOL = 0.01 if THOROUGH else 0.5
LONG = gpcert.Budget(seconds=None, boxes=100)  # not seconds, which a busy machine takes away
SAMPLES = REGION.sample(2000, 0)


@variants("name", ["separate, mixed", "mixed", "separate", "separate, probit"])
def test_ranges(name):
    model = MODELS[name]
    p = model.prediction(SAMPLES)
    for c, found in enumerate(gpcert.prediction_ranges(model, REGION, tol=0.01)):
        assert found.minimum.lower <= p[:, c].min() <= found.minimum.upper + 0.01
        assert found.maximum.lower - 0.01 <= p[:, c].max() <= found.maximum.upper
        assert found.maximum.upper - found.maximum.lower <= 0.0101
        assert found.output == LABELS[c]


@variants("name", ["mixed", "separate, mixed", "separate", "separate, probit"])
def test_decisions_and_radii(name):
    model = MODELS[name]
    winner = LABELS[int(np.argmax(model.prediction(X[None])[0]))]
    radius = gpcert.certified_radius(model, X, max_radius=0.5, rtol=RTOL, budget=LONG)
    assert radius.lower > 0.0
    cert = gpcert.certify(model, X, 0.9 * radius.lower)
    assert (cert.status.name, cert.decision) == ("ROBUST", winner)
    inside = Ball(X, 0.9 * radius.lower).sample(500, 1)
    assert {LABELS[k] for k in model.prediction(inside).argmax(1)} == {winner}
    cert = gpcert.certify(model, X, 3.0, budget=LONG)
    if cert.status.name == "NOT_ROBUST":
        at = model.prediction(cert.counterexample[None])[0]
        assert LABELS[int(at.argmax())] != winner
    weighted = gpcert.certify(model, X, 1e-3, class_weight={"a": 1.0, "b": 50.0, "c": 1.0})
    assert weighted.decision == LABELS[int((model.prediction(X[None])[0] * [1, 50, 1]).argmax())]


@variants("name", ["separate", "separate, probit", "mixed", "separate, mixed"])
def test_the_other_verbs_and_files(name, tmp_path):
    model = MODELS[name]
    table = gpcert.certify_many(model, SAMPLES[:3], 1e-3)
    assert [row.status.name for row in table] == ["ROBUST"] * 3
    values, slopes = gpcert.predict_gradient(model, SAMPLES[:3])
    assert (values.shape, slopes.shape) == ((3, 3), (3, 3, 2))
    move = 1e-6 * np.eye(2)[0]
    steep = (model.prediction(SAMPLES[:3] + move) - model.prediction(SAMPLES[:3] - move)) / 2e-6
    np.testing.assert_allclose(slopes[:, :, 0], steep, atol=1e-4)
    assert effects(model, X, radius=0.05)
    rows = examples(2, quick=1)
    how = {"restarts": examples(3, quick=1), "iterations": examples(40, quick=8)}
    assert len(gpcert.attack(model, SAMPLES[:rows], radius=1.0, **how)) == rows
    model.save(tmp_path / "model.npz")
    again = gpcert.load(tmp_path / "model.npz")
    assert (again.fingerprint, again.labels) == (model.fingerprint, LABELS)
    assert again.likelihood == model.likelihood
    np.testing.assert_array_equal(again.prediction(SAMPLES[:4]), model.prediction(SAMPLES[:4]))
    other = dataclasses.replace(model, classes=("a", "b", "d"))
    assert other.fingerprint != model.fingerprint


def test_latent_functions_are_asked_for_by_class_or_by_number():
    found = gpcert.prediction_range(MODELS["separate"], REGION, quantity="mean", output="b")
    alone = gpcert.prediction_range(MEMBERS[1], REGION, quantity="mean")
    assert (found.minimum, found.maximum) == (alone.minimum, alone.maximum)
    for name in ("mixed", "separate, mixed"):
        for quantity in ("mean", "variance"):
            found = gpcert.prediction_range(MODELS[name], REGION, quantity=quantity, output=1)
            true = MODELS[name].predict(SAMPLES)[quantity == "variance"][:, 1]
            assert found.minimum.lower <= true.min() <= true.max() <= found.maximum.upper
        with pytest.raises(InputError, match=r"expected one of \[0, 1, 2\]"):
            gpcert.prediction_range(MODELS[name], REGION, quantity="mean", output="b")


def test_the_papers_method_bounds_mixed_classes_of_one_kernel():
    p = ONE.prediction(SAMPLES)[:, 0]
    how = {"variance_bound": "analytic", "budget": gpcert.Budget(boxes=4)}
    found = gpcert.prediction_range(ONE, REGION, output="a", method="paper", **how)
    assert found.minimum.lower <= p.min() <= p.max() <= found.maximum.upper
    with pytest.raises(InputError, match=r"share a kernel.*method='taylor'"):
        gpcert.prediction_range(MODELS["separate"], REGION, output="a", method="paper")


def test_mistakes_are_named():
    with pytest.raises(InputError, match="expected 3 labels"):
        gpcert.SeparateOutputs(MEMBERS, Softmax(), ("a", "b"))
    with pytest.raises(InputError, match=r"likelihood: expected Gaussian\(\) or a Response"):
        gpcert.SeparateOutputs(MEMBERS, Probit())
    with pytest.raises(InputError, match=r"likelihood: expected Gaussian\(\) or a Response"):
        gpcert.SeparateOutputs(MEMBERS, classes=LABELS)
    with pytest.raises(InputError, match="expected 3 weights per class"):
        gpcert.SeparateOutputs(MEMBERS, Softmax(((1.0, 2.0), (0.0, 1.0))))
    with pytest.raises(InputError, match="delta: expected a regression"):
        gpcert.certify(MODELS["separate"], X, 0.1, delta=0.5)
