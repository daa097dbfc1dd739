"""Which value of the model is compared with a threshold: `quantity=`, `output=` and `beta=`."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert import explain
from gpcert.certificates import Status
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit, Softmax
from gpcert.model.committee import Committee
from gpcert.model.multi_output import SeparateOutputs
from gpcert.search import StopReason
from gpcert.testing.arb_reference import regression_posterior
from gpcert.testing.effort import crossed, examples

X0 = np.array([0.2, -0.1])
ROBUST, NOT_ROBUST = Status.ROBUST, Status.NOT_ROBUST


def posterior(outputs=2, seed=0, **options):
    rng = np.random.default_rng(seed)
    points = rng.uniform(-2.0, 2.0, (12, 2))
    targets = np.stack([np.sin(points.sum(1)), np.cos(points[:, 0])][:outputs])
    return regression_posterior(SquaredExponential(1.0, 2.0), points, targets, 0.1, **options)


REGRESSOR = posterior(scale=[1.0, 3.0], offset=[0.0, 5.0], noise=[0.0, 0.2])
APART = SeparateOutputs((posterior(1), posterior(1, 7)))
BINARY = replace(posterior(1), likelihood=Probit(), classes=("no", "yes"))
THREE = gpcert.Posterior(
    SquaredExponential(1.0),
    [[0.0, 0.0], [1.0, 0.5], [-1.0, 1.0]],
    np.eye(3),
    0.3 * np.eye(3),
    likelihood=Softmax(),
    classes=("a", "b", "c"),
)
OTHER = replace(posterior(1, 5), likelihood=Probit(), classes=(0, 1))
COMMITTEE = Committee((BINARY, OTHER, BINARY), ("a", "b", "c"), "one_vs_rest")
CASES = [
    *((REGRESSOR, name, output) for name in ("mean", "variance", "std", "lcb", "ucb")
      for output in (0, 1)),
    (APART, "ucb", 1), (APART, "mean", 0),
    (BINARY, "probability", "no"), (BINARY, "probability", "yes"), (BINARY, "lcb", None),
    (THREE, None, "b"), (THREE, "std", "c"), (COMMITTEE, None, "b"),
]  # fmt: skip


def value(model, quantity, output, X, beta=2.0):
    """The value at every row of X, in plain floating point."""
    if quantity in (None, "probability"):
        found = model.probabilities(X) if isinstance(model, Committee) else model.prediction(X)
        if found.shape[1] == 1:
            return found[:, 0] if output == "yes" else 1.0 - found[:, 0]
        return found[:, list(model.labels).index(output)]
    index = list(model.labels).index(output) if model is THREE else output or 0
    mean, variance = (part[:, index] for part in model.predict(X))
    std = np.sqrt(variance)
    return {"mean": mean, "variance": variance, "std": std, "lcb": mean - beta * std,
            "ucb": mean + beta * std}[quantity]  # fmt: skip


@pytest.mark.parametrize(("model", "quantity", "output"), CASES)
def test_verdicts_agree_with_samples_and_with_ranges(model, quantity, output):
    several = model in (THREE, COMMITTEE)
    ball = gpcert.Ball(X0, 0.2 if several else 0.4)
    asked = {"quantity": quantity, "output": output}
    found = gpcert.prediction_range(model, ball, tol=1e-2 if several else 1e-3, **asked)
    inside = value(model, quantity, output, np.vstack([X0, ball.sample(2000, 0)]))
    low, high = found.minimum, found.maximum
    assert low.lower - 1e-9 <= inside.min()
    assert inside.max() <= high.upper + 1e-9
    width = high.upper - low.lower
    seen = set()
    for share in (-0.2, 0.7, 1.2) if several else (-0.2, -0.01, 0.3, 0.7, 1.01, 1.2):
        threshold = low.lower + share * width
        if quantity in (None, "probability") and not 0 < threshold < 1:
            continue
        cert = gpcert.certify(model, X0, region=ball, threshold=threshold, **asked)
        above = inside[0] > threshold
        seen.add(cert.status)
        assert f" {'above' if above else 'below'} {threshold!r}" in cert.rule
        outside = np.all(inside > threshold) if above else np.all(inside < threshold)
        if cert.status is ROBUST:
            assert outside
            assert (high.upper > threshold) if above else (low.lower < threshold)
        else:
            assert cert.status is NOT_ROBUST
            at = value(model, quantity, output, cert.counterexample[None])[0]
            assert (at < threshold + 1e-9) if above else (at > threshold - 1e-9)
            assert low.lower <= threshold <= high.upper
        if threshold < low.lower or threshold > high.upper:
            assert cert.status is ROBUST
        if low.upper < threshold < high.lower:
            assert cert.status is NOT_ROBUST
    assert {ROBUST, NOT_ROBUST} <= seen or quantity in (None, "probability")


@settings(max_examples=examples(12), deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    quantity=st.sampled_from(["mean", "std", "variance", "lcb", "ucb"]),
    beta=st.sampled_from([0.0, 0.5, 2.0, 30.0]),
    radius=st.sampled_from([1e-6, 0.05, 0.5]),
    share=st.floats(-0.3, 1.3),
)
def test_no_verdict_is_refuted_by_a_sample(seed, quantity, beta, radius, share):
    model = posterior(2, seed % 97, noise=[0.0, 0.05])
    rng = np.random.default_rng(seed)
    x, output = rng.uniform(-1.0, 1.0, 2), int(rng.integers(2))
    ball = gpcert.Ball(x, radius)
    sampled = value(model, quantity, output, np.vstack([x, ball.sample(300, rng)]), beta)
    threshold = float(sampled.min() + share * np.ptp(sampled))
    words = {"beta": beta} if quantity in ("lcb", "ucb") else {}
    cert = gpcert.certify(model, x, radius, quantity=quantity, output=output, threshold=threshold,
                          budget=gpcert.Budget(boxes=200), **words)  # fmt: skip
    slack = 1e-9 * (1.0 + np.abs(sampled).max())
    side = np.sign(sampled[0] - threshold)
    if cert.status is ROBUST:
        assert np.all(side * (sampled - threshold) > -slack)
    elif cert.status is NOT_ROBUST:
        at = value(model, quantity, output, cert.counterexample[None], beta)[0]
        assert side * (at - threshold) < slack
        assert ball.contains(cert.counterexample)


@crossed({"quantity": ["mean", "ucb", "variance"], "output": [0, 1]}, quick=3)
def test_a_threshold_met_at_x_is_undecided(quantity, output):
    threshold = float(value(REGRESSOR, quantity, output, X0[None])[0])
    cert = gpcert.certify(REGRESSOR, X0, 0.1, quantity=quantity, output=output,
                          threshold=threshold)  # fmt: skip
    assert cert.status is Status.UNKNOWN
    assert cert.reason is StopReason.UNDECIDED_AT_X
    assert "on one side of" in cert.rule
    rad = gpcert.certified_radius(REGRESSOR, X0, quantity=quantity, output=output,
                                  threshold=threshold)  # fmt: skip
    assert (rad.lower, rad.reason) == (0.0, StopReason.UNDECIDED_AT_X)


def test_the_second_outputs_upper_bound_stays_below_a_limit():
    """The sentence of the manual, for one point, for many, and for radii."""
    asked = {"output": 1, "quantity": "ucb", "beta": 2}
    top = gpcert.prediction_range(REGRESSOR, X0, 0.1, tol=1e-4, **asked).maximum.upper
    asked["threshold"] = top + 0.01
    cert = gpcert.certify(REGRESSOR, X0, 0.1, **asked)
    assert cert.robust
    assert cert.rule == f"mean + 2 std of target 1 below {top + 0.01!r}"
    assert cert.unit == "units of the target"
    assert cert.decision is None
    assert f"proved: {cert.rule}" in str(cert)
    X = np.stack([X0, X0 + 0.3, X0 - 0.5, X0 + 0.7])
    table = gpcert.certify_many(REGRESSOR, X, 0.1, **asked)
    alone = [gpcert.certify(REGRESSOR, x, 0.1, **asked) for x in X]
    assert [row.status for row in table] == [row.status for row in alone]
    assert [row.rule for row in table] == [row.rule for row in alone]
    rad = gpcert.certified_radius(REGRESSOR, X0, rtol=0.05, **asked)
    assert 0.1 <= rad.lower <= rad.upper
    assert rad.lower >= 0.9 * rad.upper
    assert value(REGRESSOR, "ucb", 1, rad.counterexample[None])[0] >= asked["threshold"] - 1e-9
    within = value(REGRESSOR, "ucb", 1, gpcert.Ball(X0, rad.lower).sample(3000, 0))
    assert within.max() < asked["threshold"]
    first = gpcert.certified_radius_many(REGRESSOR, X[:2], rtol=0.05, **asked)[0]
    assert first.lower <= rad.upper
    assert rad.lower <= first.upper


def test_probabilities_of_two_classes_decide_as_the_default_does():
    """A threshold of the second class is the default's; one of the first is its mirror image."""
    for threshold in (0.3, 0.5, 0.9):
        plain = gpcert.certify(BINARY, X0, 0.2, threshold=threshold)
        named = gpcert.certify(BINARY, X0, 0.2, threshold=threshold, output="yes")
        assert (plain.status, plain.decision) == (named.status, named.decision)
        first = gpcert.certify(BINARY, X0, 0.2, threshold=threshold, output="no")
        p = value(BINARY, None, "no", X0[None])[0]
        assert first.decision == ("no" if p > threshold else "yes")
        assert f"class no {'above' if p > threshold else 'below'}" in first.rule


def test_attacks_and_reasons_take_the_value_too():
    asked = {"output": 1, "quantity": "ucb"}
    high = gpcert.prediction_range(REGRESSOR, X0, 0.4, **asked).maximum.lower
    threshold = high - 0.02
    assert value(REGRESSOR, "ucb", 1, X0[None])[0] < threshold
    (row,) = gpcert.attack(REGRESSOR, [X0], 0.4, threshold=threshold, **asked)
    assert row.success
    assert row.confirmed
    assert row.before < threshold < row.after
    assert row.quantity == "mean + 2 std of target 1"
    reason = explain.sufficient(REGRESSOR, X0, 0.4, threshold=threshold, **asked)
    assert reason.found
    assert "mean + 2 std" in reason.rule
    flipped = explain.contrastive(REGRESSOR, X0, 0.4, threshold=threshold, **asked)
    assert value(REGRESSOR, "ucb", 1, flipped.counterexample[None])[0] >= threshold - 1e-9
    curve = gpcert.safety_curve(REGRESSOR, X0, [0.1, 0.4], output=1, threshold=6.0)
    assert all(step.value > 5.0 for step in curve)  # of target 1, whose offset is 5
    assert curve[0].status is gpcert.certify(REGRESSOR, X0, 0.1, output=1, threshold=6.0).status


@pytest.mark.parametrize(
    ("model", "words", "message"),
    [
        (REGRESSOR, {"quantity": "ucb"}, "quantity: says which value .* got no threshold="),
        (REGRESSOR, {"output": 1}, "output: says which value .* leave output= out"),
        (REGRESSOR, {"output": 1, "delta": 0.1}, "output: .* got delta= as well"),
        (BINARY, {"output": "no", "class_weight": [1, 2]}, "output: .* got class_weight= as well"),
        (REGRESSOR, {"quantity": "band", "threshold": 1.0}, "a band has two ends.*'ucb'"),
        (REGRESSOR, {"beta": 2.0, "threshold": 1.0}, "beta: belongs to quantity='band', 'lcb'"),
        (REGRESSOR, {"quantity": "std", "beta": 2.0, "threshold": 1.0}, "beta: belongs to"),
        (REGRESSOR, {"output": 2, "threshold": 1.0}, r"output: expected one of \[0, 1\], got 2"),
        (REGRESSOR, {"quantity": "probability", "threshold": 0.5}, "no probability; use 'mean'"),
        (REGRESSOR, {"threshold": 1.0}, "threshold: expected output=, which of 2 targets"),
        (BINARY, {"output": "maybe", "threshold": 0.5}, "output: expected one of"),
        (BINARY, {"output": "yes", "threshold": 1.5}, "a probability between 0 and 1"),
        (BINARY, {"quantity": "mean", "output": "yes", "threshold": 0.0}, "output: expected none"),
        (THREE, {"threshold": 0.5}, "threshold: .* or output= to compare the probability of one"),
        (THREE, {"quantity": "mean", "threshold": 0.5}, "output: expected the label of a class"),
        (COMMITTEE, {"quantity": "mean", "threshold": 0.5}, "several latent functions"),
    ],
)
def test_words_that_say_nothing_are_refused(model, words, message):
    with pytest.raises(InputError, match=message):
        gpcert.certify(model, X0, 0.1, **words)
    with pytest.raises(InputError, match=message):
        gpcert.certified_radius_many(model, [X0], **words)
    with pytest.raises(InputError, match=message):
        gpcert.attack(model, [X0], 0.1, **words)
