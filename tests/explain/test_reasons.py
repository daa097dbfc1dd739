"""Smallest reasons: sufficient ones are never refuted, contrastive ones flip; both are minimal."""

import time
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpcert
from gpcert import explain
from gpcert.api.certify import certify_region
from gpcert.attacks import attack
from gpcert.attacks.functions import plain_function
from gpcert.certificates import Status
from gpcert.errors import InputError
from gpcert.explain.arguments import with_free
from gpcert.explain.reasons import minimal_subset
from gpcert.kernels import SquaredExponential
from gpcert.quantities import Mean
from gpcert.search import StopReason
from gpcert.testing.effort import examples
from gpcert.utils.processes import until


@given(
    needed=st.sets(st.integers(0, 9)),
    unknown=st.sets(st.integers(0, 9)),
    order=st.permutations(range(10)),
)
def test_minimal_subsets_of_any_monotone_property(needed, unknown, order):
    def holds(items):
        if not needed <= set(items):
            return False
        return True if unknown <= set(items) else None

    found = minimal_subset(order, holds)
    assert set(found.kept) == needed | unknown
    assert set(found.needed) == needed
    assert set(found.undecided) == unknown - needed


@given(sets=st.lists(st.sets(st.integers(0, 7), min_size=1), min_size=1, max_size=4))
def test_one_of_several_minimal_sets_is_found(sets):
    def holds(items):
        return any(each <= set(items) for each in sets)

    kept = set(minimal_subset(list(range(8)), holds).kept)
    assert any(kept == each for each in sets)
    assert not any(holds(kept - {item}) for item in kept)


def decided(model, X):
    return model.predict(X)[0][:, 0] > 0


@pytest.mark.parametrize("seed", range(3))
def test_sufficient_reasons_survive_samples_and_attacks(binary, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, 4)
    reason = explain.sufficient(binary, x, 0.8)
    others = [j for j in range(4) if j not in reason.features]
    part = with_free(gpcert.Ball(x, 0.8), x, others)
    samples = part.sample(10_000, rng)
    assert np.all(samples[:, list(reason.features)] == x[list(reason.features)])
    assert np.all(decided(binary, samples) == decided(binary, x[None]))
    sign = 1 if decided(binary, x[None])[0] else -1
    function = plain_function(binary, Mean(0, sign))
    assert function(attack(function, part, starts=5)[None])[0][0] > 0
    assert reason.minimal


@pytest.mark.parametrize("seed", range(3))
def test_reasons_are_subset_minimal(binary, seed):
    x = np.random.default_rng(seed).uniform(-1, 1, 4)
    reason = explain.sufficient(binary, x, 0.8)
    for fewer in combinations(reason.features, max(0, len(reason.features) - 1)):
        free = [j for j in range(4) if j not in fewer]
        part = with_free(gpcert.Ball(x, 0.8), x, free)
        status = gpcert.certify(binary, x, region=part).status
        assert status is (Status.NOT_ROBUST if reason.features else Status.ROBUST)


@pytest.mark.parametrize("seed", range(3))
def test_contrastive_reasons_flip_and_are_minimal(binary, seed):
    x = np.random.default_rng(seed).uniform(-1, 1, 4)
    region = gpcert.Box(x - 1.2, x + 1.0)
    reason = explain.contrastive(binary, x, region=region)
    assert reason.found
    assert reason.minimal
    changed = np.flatnonzero(reason.counterexample != x)
    assert set(changed) <= set(reason.features)
    assert decided(binary, reason.counterexample[None])[0] != decided(binary, x[None])[0]
    assert region.contains(reason.counterexample)
    for fewer in combinations(reason.features, len(reason.features) - 1):
        part = with_free(region, x, fewer)
        assert gpcert.certify(binary, x, region=part).status is Status.ROBUST


def test_no_reason_is_needed_where_nothing_can_happen(binary):
    x = np.array([1.0, 0.8, 0.0, 0.0])
    assert explain.sufficient(binary, x, 0.01).features == ()
    nothing = explain.contrastive(binary, x, 0.01)
    assert not nothing.found
    assert not nothing.undecided
    assert "one decision (proved)" in str(nothing)


def test_undecided_steps_are_said(binary):
    x = np.random.default_rng(0).uniform(-1, 1, 4)
    budget = gpcert.Budget(boxes=1)
    reason = explain.sufficient(binary, x, 1.5, budget=budget)
    unknown = any(step.status is Status.UNKNOWN for step in reason.steps)
    assert bool(reason.undecided) <= unknown
    assert set(reason.undecided) <= set(reason.features)
    assert reason.minimal is not bool(reason.undecided)


@pytest.mark.parametrize("verb", [explain.sufficient, explain.contrastive])
def test_an_interrupt_leaves_the_rest_undecided(binary, verb, monkeypatch):
    x = np.random.default_rng(0).uniform(-1, 1, 4)
    whole = verb(binary, x, 1.5)
    steps = []

    def interrupted(*arguments):
        found = certify_region(*arguments)
        steps.append(found)
        if len(steps) < 3:
            return found
        unknown = {"status": Status.UNKNOWN, "counterexample": None}
        return replace(found, reason=StopReason.INTERRUPTED, **unknown)

    monkeypatch.setattr("gpcert.explain.reasons.certify_region", interrupted)
    reason = verb(binary, x, 1.5)
    assert len(steps) == 3
    assert reason.reason is StopReason.INTERRUPTED
    assert reason.undecided
    assert not reason.minimal
    assert whole.reason is StopReason.DECIDED


@pytest.mark.parametrize("late", [True, False])
def test_why_the_decision_at_x_is_not_proved_is_said(late, monkeypatch):
    bump = gpcert.Posterior(SquaredExponential(1.0), [[0.0, 0.0]], [1.0])
    if late:  # a machine so busy that the proof at x takes longer than it may at the least
        monkeypatch.setattr("gpcert.api.rules.GRACE", -1.0)
        monkeypatch.setattr("gpcert.search.branch_and_bound.FIRST_BOX_SECONDS", -1.0)
    ask = {"threshold": 0.5 if late else 1.0, "budget": 1e-9 if late else None}  # 1 is the mean
    for verb, features in product([explain.sufficient, explain.contrastive], (None, [])):
        nothing = verb(bump, [0.0, 0.0], 2.0, features=features, **ask)
        assert not nothing.found
        assert not nothing.minimal
        assert nothing.features == ()
        assert nothing.reason is (StopReason.TIME if late else StopReason.UNDECIDED_AT_X)
        assert nothing.plot(shape=(1, 2)).get_title().startswith("no reason found")
        assert f"none known: {nothing.reason.value}" in str(nothing)
        assert "superfluous" not in str(nothing)


def test_no_step_is_begun_after_a_deadline_from_outside(binary):
    """A try of many points in this process ends in time, though the budget of each is longer."""
    with until(time.perf_counter() - 1.0):
        reason = explain.sufficient(binary, np.array([1.0, 0.8, 0.0, 0.0]), 1.5)
    assert len(reason.steps) == 1
    assert reason.reason is StopReason.TIME
    assert reason.undecided == reason.movable


def test_a_row_of_a_data_frame_and_weights_of_classes(binary):
    named = replace(binary, feature_names=("a", "b", "c", "d"))
    x = np.array([0.4, 0.3, 0.1, 0.0])
    plain = explain.sufficient(binary, x, 0.5)
    row = dict(zip("dcba", x[::-1], strict=True))
    assert explain.sufficient(named, row, {"a": 0.5, "c": 0.5}).movable == (0, 2)
    assert explain.sufficient(named, row, 0.5).features == plain.features
    other = explain.sufficient(named, row, 0.1, class_weight={"no": 99.0, "yes": 1.0})
    assert (plain.decision, other.decision) == ("yes", "no")


def test_classes_and_given_orders(classes):
    x = np.array([-0.9, 0.3])
    reason = explain.sufficient(classes, x, 1.0, order=[1, 0], domain=(-2, 2))
    free = [j for j in range(2) if j not in reason.features]
    samples = with_free(gpcert.Ball(x, 1.0, domain=(-2, 2)), x, free).sample(
        examples(2000, quick=300), 0
    )
    assert np.all(classes.prediction(samples).argmax(1) == classes.prediction(x[None]).argmax())


def test_files_tables_text_and_pictures(image_model, tmp_path):
    x = np.full(9, 0.5)
    x[3:6] = 0.8
    reason = explain.contrastive(image_model, x, 0.5, domain=(0, 1))
    path = tmp_path / "reason.json"
    reason.save(path)
    again = explain.Reason.load(path)
    assert again.features == reason.features
    assert again.steps == reason.steps
    assert np.array_equal(again.counterexample, reason.counterexample)
    assert len(reason.to_frame()) == len(reason.steps)
    assert "contrastive" in repr(reason)
    assert "flip" in str(reason)
    ax = reason.plot(shape=(3, 3))
    assert ax.get_title()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "exactly one of radius"),
        ({"radius": 0.1, "order": [9]}, "order"),
        ({"radius": 0.1, "features": ["age"]}, "fitted without names"),
        ({"region": gpcert.Ball([1.0, 0, 0, 0], 2.0)}, "around x itself"),
        ({"region": gpcert.Box([1.0] * 4, [2.0] * 4)}, "point of the region"),
    ],
)
def test_bad_input_says_what_to_do(binary, options, message):
    with pytest.raises(InputError, match=message):
        explain.sufficient(binary, np.zeros(4), **options)
