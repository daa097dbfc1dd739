"""Class probabilities by the paper's discretised integral: ranges hold what is certified there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert.enclosures.goals import QuantityGoal
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Softmax
from gpcert.model.class_layout import class_layout
from gpcert.numerics.arrays import backend_from_name, to_numpy
from gpcert.paper import class_grid
from gpcert.paper.class_grid import (
    grid_ranges,
    latent_ranges,
    link_range,
)
from gpcert.paper.method import PaperMethod
from gpcert.quantities import ClassSums
from gpcert.quantities.compound import margins
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import crossed, examples
from tests.enclosures.enclosure_checks import arb, below, evaluation_of, points_of
from tests.paper.paper_class_cases import LIKELIHOODS, certified, class_posterior
from tests.strategies import Case, kernels, regions_near, seeds, units


@st.composite
def class_cases(draw):
    rng = np.random.default_rng(draw(seeds))
    d, N = draw(st.integers(1, 2)), draw(st.integers(1, 4))
    kernel = draw(kernels(d))
    points = units(kernel, d) * rng.normal(size=(N, d))
    likelihood = draw(st.sampled_from(LIKELIHOODS))
    posterior = class_posterior(
        rng, kernel, points, draw(st.sampled_from([2, 3, 3])), draw(st.booleans()), likelihood,
        draw(st.sampled_from([0.3, 3.0, 30.0])),
    )  # fmt: skip
    return posterior, draw(regions_near(posterior)), rng


def latent_at(reference, layout, noise, x):
    """Balls of the differences' means and covariance at x, from the searched outputs."""
    a = []
    for k in range(1, layout.classes):
        a.append(sum((s * reference.mean(x, j) for j, s in layout.pair(0, k)), arb(0)))
    y = [reference.variance(x, j) for j in range(layout.outputs)]
    V = [
        [
            sum((float(part) * v for part, v in zip(row, y, strict=True)), arb(0))
            + arb(noise) * (1 + (k == other))
            for other, row in enumerate(rows)
        ]
        for k, rows in enumerate(np.moveaxis(layout.matrices, 0, -1))
    ]
    return a, V


@settings(max_examples=examples(60), deadline=None)
@given(drawn=class_cases())
def test_latent_ranges(drawn):
    """Means, variances and the covariance of the differences at points of every cell."""
    posterior, region, rng = drawn
    layout, searched = class_layout(posterior)
    noise = posterior.likelihood.noise
    evaluation = evaluation_of(Case(searched, region, rng), splits=3, keep=2)
    intervals = PaperMethod("analytic").of(evaluation)
    ranges = latent_ranges(intervals, layout, noise)
    reference = ArbPosterior(searched)
    for b, rows in enumerate(points_of(evaluation, rng)):
        for x in rows:
            a, V = latent_at(reference, layout, noise, x)
            values = [*a, *(V[k][k] for k in range(layout.n)), V[0][-1]]
            pairs = (*ranges.means, *ranges.variances, ranges.covariance)
            for (low, high), value in zip(pairs, values, strict=True):
                assert not ranges.known[b] or not arb(float(low[b])) > value
                assert not ranges.known[b] or not arb(float(high[b])) < value


def check_lower(case, goal, function, evaluation):
    """`lower <= goal` on every cell, also at the bound's own point."""
    bound = goal.bound(evaluation, None)
    for b, rows in enumerate(points_of(evaluation, case.rng, bound.point)):
        for x in rows:
            below(float(to_numpy(bound.lower)[b]), function(x), type(goal).__name__)
    return bound


@settings(max_examples=examples(40, quick=4), deadline=None)
@given(drawn=class_cases())
def test_goals(drawn):
    """Every class and every margin, on cells of every size; also by both methods at once."""
    posterior, region, rng = drawn
    layout, searched = class_layout(posterior)
    case = Case(searched, region, rng)
    likelihood = posterior.likelihood
    evaluation = evaluation_of(case, splits=3, keep=2)
    reference = ArbPosterior(searched)
    m = layout.classes
    rows = [
        ((0.0,) * c + (sign,) + (0.0,) * (m - c - 1),) for c in range(m) for sign in (1.0, -1.0)
    ]
    rows.append(margins(m, 1, (1.0, 1.5, 0.8)[:m]))
    known = {}

    def function(x, weights):
        if x.tobytes() not in known:
            known[x.tobytes()] = certified(
                likelihood, *latent_at(reference, layout, likelihood.noise, x)
            )
        values = known[x.tobytes()]
        sums = [sum((w * p for w, p in zip(row, values, strict=True)), arb(0)) for row in weights]
        return sums[0] if len(sums) == 1 else sums[0].min(sums[1])

    enclosures = PaperMethod("analytic")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(class_grid, "PIECES", (5, 15))
        for weights in rows:
            sums = ClassSums(layout, likelihood, weights)
            paper = QuantityGoal(sums, enclosures, taylor=False)
            bound = check_lower(case, paper, lambda x, w=weights: function(x, w), evaluation)
            assert np.all(to_numpy(bound.lower) >= min(min(row) for row in weights))
        both = QuantityGoal(sums, enclosures)
        check_lower(case, both, lambda x, w=weights: function(x, w), evaluation)


def test_torch_equals_numpy():
    pytest.importorskip("torch")
    backend = backend_from_name("torch")
    rng = np.random.default_rng(0)
    kernel = SquaredExponential(1.0, 2.0)
    posterior = class_posterior(rng, kernel, rng.normal(size=(4, 1)), 3, True, Softmax())
    layout, searched = class_layout(posterior)
    case = Case(searched, gpcert.Box([0.0], [0.4]), rng)
    found = []
    for name in ("numpy", backend):
        evaluation = evaluation_of(case, splits=0, backend=name)
        intervals = PaperMethod("analytic").of(evaluation)
        ranges = latent_ranges(intervals, layout, 0.0)
        for likelihood in LIKELIHOODS:
            found.append([to_numpy(x) for x in grid_ranges(ranges, likelihood, np.array([15, 15]))])
    for first, second in zip(found[:2], found[2:], strict=True):
        np.testing.assert_allclose(first, second, atol=1e-9)


@pytest.fixture(scope="module")
def tiny():
    """Three classes of one feature, with coupled outputs."""
    rng = np.random.default_rng(3)
    return class_posterior(
        rng, SquaredExponential(1.0, 2.0), np.array([[-1.0], [0.0], [1.0]]), 3, True, Softmax(), 2.0
    )


@crossed({"method": ["paper", "both"], "c": [0, 1, 2]}, quick=1)
def test_prediction_range_agrees_with_taylor(tiny, method, c):
    region = gpcert.Box([0.1], [0.3])
    taylor = gpcert.prediction_range(tiny, region, output=c, tol=1e-3)
    other = gpcert.prediction_range(
        tiny, region, output=c, tol=0.05, method=method, variance_bound="analytic",
        budget=gpcert.Budget(seconds=20.0),
    )  # fmt: skip
    assert other.converged
    for first, second in ((taylor.minimum, other.minimum), (taylor.maximum, other.maximum)):
        assert max(first.lower, second.lower) <= min(first.upper, second.upper)


def test_solver_and_decision(tiny):
    """The paper's own programs, once; a decision by the paper's condition."""
    region = gpcert.Box([0.2], [0.25])
    found = gpcert.prediction_range(
        tiny, region, output=0, tol=0.1, method="paper", sides="minimum"
    )
    assert found.converged
    assert found.argmin is not None
    decided = gpcert.certify(tiny, [0.2], 0.01, method="paper")
    assert decided.status == gpcert.certify(tiny, [0.2], 0.01).status == gpcert.Status.ROBUST


def test_more_classes_are_refused():
    rng = np.random.default_rng(0)
    posterior = class_posterior(
        rng, SquaredExponential(1.0), np.array([[0.0], [1.0]]), 4, False, Softmax()
    )
    with pytest.raises(InputError, match=r"1/eps\^3.*taylor"):
        gpcert.prediction_range(posterior, gpcert.Box([0.0], [0.1]), output=0, method="paper")


def test_other_links_are_refused():
    with pytest.raises(InputError, match="taylor"):
        link_range(object(), 0, [(np.zeros(1), np.zeros(1))])


@pytest.mark.parametrize("coupled", [True, False])
def test_ranges_of_differences(coupled):
    """Means and covariance of the differences at a point, against the posterior's own."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(5, 2))
    posterior = class_posterior(rng, SquaredExponential(0.8, 3.0), points, 3, coupled, Softmax())
    layout, searched = class_layout(posterior)
    x = np.array([0.1, -0.2])
    case = Case(searched, gpcert.Box(x, x), rng)
    evaluation = evaluation_of(case, splits=0)
    found = latent_ranges(PaperMethod("analytic").of(evaluation), layout, 0.7)
    D = np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    mean = D @ posterior.predict(x[None])[0][0]
    V = D @ (posterior.covariances(x[None])[0] + 0.7 * np.eye(3)) @ D.T
    for pair, value in zip(
        (*found.means, *found.variances, found.covariance),
        (*mean, V[0, 0], V[1, 1], V[0, 1]),
        strict=True,
    ):
        np.testing.assert_allclose([float(end[0]) for end in pair], value, rtol=1e-6, atol=1e-6)
