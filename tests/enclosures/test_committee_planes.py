"""Sums of members' probabilities, planes under one, and plain models, against ball arithmetic."""

import numpy as np
from hypothesis import given, settings

from gpcert.enclosures.goals.compound import weighted_sum
from gpcert.enclosures.goals.goal import least_mean
from gpcert.enclosures.lower_model import plain_geometry, region_units
from gpcert.enclosures.probability_plane import (
    ProbabilityPlane,
    latent_range,
)
from gpcert.likelihoods import SklearnLogistic
from gpcert.numerics.arrays import to_numpy
from gpcert.quantities.committee import member_probabilities
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact
from tests.enclosures.committee_cases import Reference, committee_cases
from tests.enclosures.enclosure_checks import (
    arb,
    below,
    points_of,
    unit_mean,
)
from tests.strategies import any_kernels


@settings(max_examples=examples(60, quick=4))
@given(case=committee_cases("one_vs_rest"))
def test_joint_sum_of_probabilities(case):
    """Also with weights of several sizes, and one model at a time."""
    reference, evaluation = Reference(case.committee), case.evaluation()
    m, parts = len(case.committee.classes), member_probabilities(case.committee)
    choices = [np.eye(m)[0], -np.eye(m)[1], case.rng.normal(size=m), 1e3 * case.rng.normal(size=m)]
    for weights in choices:
        bound = weighted_sum(evaluation, parts, weights.tolist())
        lower = to_numpy(bound.lower)
        for b, rows in enumerate(points_of(evaluation, case.rng, bound.point)):
            for x in rows:
                F = reference.probabilities(x)
                value = sum((arb(w) * p for w, p in zip(weights.tolist(), F, strict=True)), arb(0))
                below(float(lower[b]), value, "sum")


@settings(max_examples=examples(60, quick=4))
@given(case=committee_cases("one_vs_rest", max_classes=2))
def test_planes_and_plain_models(case):
    evaluation = case.evaluation()
    reference = ArbPosterior(case.committee.members[0])
    check_models(case, evaluation, reference, SklearnLogistic())


@settings(max_examples=examples(30, quick=4))
@given(case=committee_cases("one_vs_rest", any_kernels, max_classes=2))
def test_planes_and_plain_models_of_other_kernels(case):
    evaluation = case.evaluation()
    reference = ArbPosterior(case.committee.members[0])
    check_models(case, evaluation, reference, SklearnLogistic())


def check_models(case, evaluation, reference, likelihood):
    """Mean, variance and probability lie above their plain models, F above its planes."""
    low, high = (least_mean(evaluation, 0, sign).lower for sign in (1, -1))
    latent = latent_range(evaluation, low, -high)
    slopes = likelihood.slopes(latent.mean, latent.variance)
    far = likelihood.slopes(latent.mean_low, latent.variance_high)
    planes = [
        ProbabilityPlane.under(likelihood, latent, np.maximum(by_mu, 0.0), by_v, sign)
        for by_mu, by_v in (slopes, far, (slopes[0] + 0.5, -0.2 + slopes[1]))
        for sign in (1, -1)
    ]
    geometry = plain_geometry(evaluation.cells)
    mean, variance = evaluation.mean(0), evaluation.variance(0)
    own = ArbPosterior(reference.posterior.unit)  # enclosures are in unit form
    v, g = own.canonical_variance, unit_mean(evaluation)
    models = [
        (mean.below.unweighted(geometry, mean.linear_error), g),
        (mean.above.unweighted(geometry), lambda x, b: -g(x, b)),
        (variance.below.unweighted(geometry), lambda x, _: v(x)),
        (variance.above.unweighted(geometry), lambda x, _: -v(x)),
    ]
    for plane in planes:
        model = plane.model(evaluation, geometry)
        models.append((model, lambda x, _, s=plane.sign: s * reference.probability(x)))
    for b, rows in enumerate(points_of(evaluation, case.rng)):
        for x in rows:
            for model, function in models:
                assert_above(model, b, evaluation, x, function(x, b))
            for plane in planes:
                assert_plane(plane, b, reference, x)


def assert_plane(plane, b, reference, x):
    if np.isinf(plane.value[b]):
        return
    mu, v = reference.mean(x), reference.variance(x)
    height = arb(plane.by_mu[b]) * (mu - arb(plane.mean[b]))
    height += arb(plane.by_v[b]) * (v - arb(plane.variance[b]))
    below(arb(plane.value[b]) + plane.sign * height, plane.sign * reference.probability(x), "plane")


def assert_above(model, b, evaluation, x, value):
    """`value >= model` at x."""
    error = float(model.error[b])
    assert not np.isnan(error)
    if np.isinf(error):
        return
    free = np.asarray(x)[evaluation.cells.region.free]
    units = region_units(evaluation.cells)
    terms = zip(exact(free), exact(evaluation.cells.center[b]), exact(units), strict=True)
    y = [(p - c) / unit for p, c, unit in terms]
    g, H = exact(model.gradient[b]), [exact(row) for row in model.hessian[b]]
    right = arb(float(model.value[b])) - arb(error)
    for j, a in enumerate(y):
        right += g[j] * a + sum((a * H[j][k] * y[k] for k in range(len(y))), arb(0)) / 2
    assert not value < right, f"{value.str(20)} < {right.str(20)}"
    size = abs(float(model.value[b])) + float(
        np.abs(model.gradient[b]) @ (evaluation.cells.half[b] / units)
    )
    assert float(model.size[b]) >= size * (1 - 1e-12)
