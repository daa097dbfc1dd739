"""One word for one thing in every verb: the wrong word gets an error that names the right one."""

import inspect

import numpy as np
import pytest

import gpcert
from gpcert import explain
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit

P = gpcert.Posterior(
    SquaredExponential(1.0), [[0.0, 0.0], [3.0, 0.0]], [2.0, -2.0], likelihood=Probit()
)
REGRESSION = gpcert.Posterior(SquaredExponential(1.0), [[0.0, 0.0]], [1.0], [[1.0]])
X = np.array([[0.0, 0.0], [1.0, 0.2]])

RADII = (gpcert.certified_radius, gpcert.certified_radius_many, gpcert.certified_accuracy)
RANGES = (
    gpcert.prediction_range,
    gpcert.prediction_ranges,
    gpcert.prediction_range_many,
    gpcert.safety_curve,
    gpcert.robustness,
    gpcert.worst_case,
    explain.effects,
    explain.pixel_budget,
)
OTHERS = (
    gpcert.certify,
    gpcert.certify_many,
    gpcert.attack,
    explain.sufficient,
    explain.contrastive,
)
VERBS = RADII + RANGES + OTHERS


def words(verb):
    return inspect.signature(verb).parameters


def test_a_radius_has_a_relative_accuracy_and_a_range_both():
    for verb in VERBS:
        assert ("rtol" in words(verb)) == (verb in RADII + RANGES)
        assert ("tol" in words(verb)) == (verb in RANGES)
        if verb in RANGES:
            assert words(verb)["tol"].default is words(verb)["rtol"].default is None


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_shared_words_have_one_name_and_one_default(verb):
    has = words(verb)
    region = ["norm", "features", "domain", "scale"]
    if verb is explain.effects:  # intervals of one feature each have no norm
        region.remove("norm")
    assert [word for word in has if word in region] == region
    assert {"radius", "radii", "max_radius"} & set(has)
    assert ("variance_bound" in has) == ("method" in has and verb is not gpcert.attack)
    assert "variance" not in has
    if verb is not gpcert.attack:
        assert has["budget"].default is None
        assert "60 seconds" in " ".join(inspect.getdoc(verb).split())


@pytest.mark.parametrize("verb", RADII, ids=lambda verb: verb.__name__)
def test_the_absolute_word_names_the_relative_one(verb):
    with pytest.raises(gpcert.InputError, match=rf"{verb.__name__} has no tol=.*rtol="):
        verb(P, X, tol=0.1)


@pytest.mark.parametrize("verb", RANGES, ids=lambda verb: verb.__name__)
def test_bad_accuracies(verb):
    several = {gpcert.prediction_range_many, gpcert.robustness, gpcert.worst_case, explain.effects}
    model = REGRESSION if verb is gpcert.worst_case else P
    asked = (X if verb in several else X[0], [0.1] if verb is gpcert.safety_curve else 0.1)
    asked = asked[:1] if verb is explain.pixel_budget else asked
    how = {"radius": 0.1} if verb is explain.pixel_budget else {}
    for word, value in (("tol", -1.0), ("tol", np.nan), ("rtol", 1.0), ("rtol", "a")):
        with pytest.raises(gpcert.InputError, match=rf"^{word}: expected"):
            verb(model, *asked, **how, **{word: value})


def test_old_and_mistyped_words():
    with pytest.raises(TypeError, match=r"has no variance=; .*variance_bound=, or .*quantity='var"):
        gpcert.prediction_range(P, gpcert.Box([0, 0], [1, 1]), method="paper", variance="solver")
    with pytest.raises(gpcert.UnknownArgumentError, match="variance_bound="):
        gpcert.certify(P, X[0], 0.1, method="paper", variance="solver")
    with pytest.raises(gpcert.InputError, match=r"did you mean threshold=\?"):
        gpcert.certify(P, X[0], 0.1, treshold=0.5)
    with pytest.raises(gpcert.InputError, match="it has one radius for all points: radius="):
        gpcert.certify_many(P, X, radii=[0.1])
    with pytest.raises(gpcert.InputError, match="max_radius="):
        gpcert.certified_radius(P, X[0], radius=0.1)
    with pytest.raises(gpcert.InputError, match="it has X, backend, best_f, beta"):
        gpcert.certify_many(P, X, 0.1, zzz=1)


def test_several_points_in_a_verb_for_one_name_the_verb_for_several():
    several = {
        "certify_many": lambda: gpcert.certify(P, X, 0.1),
        "certified_radius_many": lambda: gpcert.certified_radius(P, X),
        "prediction_range_many": lambda: gpcert.prediction_range(P, X, 0.1),
        r"prediction_range_many\(..., all_outputs=True\)": lambda: gpcert.prediction_ranges(
            P, X, 0.1
        ),
        "call safety_curve once per row": lambda: gpcert.safety_curve(P, X, [0.1]),
        "one point at a time": lambda: explain.sufficient(P, X, 0.1),
    }
    for name, call in several.items():
        with pytest.raises(gpcert.InputError, match=name):
            call()
    with pytest.raises(gpcert.InputError, match="one point at a time"):
        explain.contrastive(P, X, 0.1)
    with pytest.raises(gpcert.InputError, match="one point at a time"):
        explain.pixel_budget(P, X, radius=0.1)


def test_a_range_around_a_point_is_the_range_over_its_ball():
    ball = gpcert.Ball([0.5, 0.0], 0.2, 2, [0], (0.0, 0.6))
    shape = {"norm": 2, "features": [0], "domain": (0.0, 0.6)}
    over, around = (
        gpcert.prediction_range(P, ball),
        gpcert.prediction_range(P, [0.5, 0.0], 0.2, **shape),
    )
    assert (over.minimum, over.maximum) == (around.minimum, around.maximum)
    assert gpcert.prediction_range(P, region=ball).minimum == over.minimum
    for first, second in zip(
        gpcert.prediction_ranges(P, ball),
        gpcert.prediction_ranges(P, [0.5, 0.0], radius=0.2, **shape),
        strict=True,
    ):
        assert first.minimum == second.minimum


def test_words_of_a_region_that_contradict_each_other():
    box = gpcert.Box([0.0, 0.0], [1.0, 1.0])
    wrong = {
        "got a region or none": lambda: gpcert.prediction_range(P, box, 0.1),
        "expected exactly one": lambda: gpcert.prediction_range(P),
        "got x alone": lambda: gpcert.prediction_range(P, [0.0, 0.0]),
        "got x and region=": lambda: gpcert.prediction_range(P, [0.0, 0.0], region=box),
        "got two": lambda: gpcert.prediction_range(P, box, region=box),
        "for several use": lambda: gpcert.prediction_range(P, [box, box]),
        "norm: belongs to a ball": lambda: gpcert.prediction_range(P, box, norm=2),
        "scale: belongs to a ball": lambda: gpcert.certify(P, X[0], region=box, scale=[1.0, 1.0]),
        r"pass \[region\]": lambda: gpcert.prediction_range_many(P, box),
        "one for each of 2 points": lambda: gpcert.certify_many(P, X, region=[box]),
        "row 1 outside": lambda: gpcert.certify_many(P, X - [[0.0, 0.0], [9.0, 0.0]], region=box),
    }
    for message, call in wrong.items():
        with pytest.raises(gpcert.InputError, match=message):
            call()


def test_many_points_in_one_region_or_in_one_each():
    box = gpcert.Box([0.0, 0.0], [1.0, 1.0])
    one = gpcert.certify_many(P, X, region=box)
    each = gpcert.certify_many(P, X, region=[box, box])
    alone = [gpcert.certify(P, x, region=box) for x in X]
    assert [c.margin for c in one] == [c.margin for c in each]
    for together, apart in zip(one, alone, strict=True):  # batches of other sizes round otherwise
        assert together.status is apart.status
        assert together.margin.lower == pytest.approx(apart.margin.lower, rel=1e-12)
        assert together.margin.upper == pytest.approx(apart.margin.upper, rel=1e-12)


def test_reasons_end_with_the_time_of_the_whole_call():
    found = explain.sufficient(P, [0.0, 0.0], 1.0, budget=1e-6)
    assert found.reason is gpcert.StopReason.TIME
    assert len(found.steps) == 1
