"""The squared exponential on many lines at once, against ball arithmetic without tolerance.

Points and steps are multiples of 2^-20, so that x + t is a float and the reference is exact there.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.evaluation import SectionModel, has_sections
from gpcert.enclosures.goals import QuantityGoal
from gpcert.errors import InputError
from gpcert.kernels import Matern, SquaredExponential
from gpcert.kernels.expansions.base import Combination
from gpcert.kernels.expansions.squared_exponential_sections import Sections
from gpcert.likelihoods import Probit
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import backend_from_name, to_numpy
from gpcert.paper.lines import lines_bound
from gpcert.quantities import Mean, Probability, Variance
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import crossed, examples
from gpcert.testing.kernel_references import exact, flint

arb = flint().arb
seeds = st.integers(0, 2**32 - 1)


def dyadic(values):
    return np.round(np.asarray(values) * 2.0**20) / 2.0**20


def line_case(seed, backend="numpy", exponents=(0, 0, 0)):
    """A posterior of 3 features, 2 points with 4 lines, and a random interval on each line.

    `exponents` are those of powers of two by which kernel, weights and inputs are multiplied.
    """
    rng = np.random.default_rng(seed)
    a, b, c = exponents
    far = 10.0 ** rng.uniform(-1, 3) if rng.random() < 0.3 else 1.0
    kernel = SquaredExponential(rng.uniform(0.3, 2.0, 3), variance=float(rng.uniform(0.2, 30)))
    points = dyadic(rng.uniform(-1, 1, (6, 3)) * far)
    K = kernel.value(points, points) + 0.1 * np.eye(6)
    factor = np.linalg.inv(np.linalg.cholesky(K))
    weights = np.linalg.inv(K) @ rng.normal(size=6)
    posterior = Posterior(
        SquaredExponential(np.ldexp(kernel.length_scale, c), np.ldexp(kernel.variance, a)),
        np.ldexp(points, c),
        np.ldexp(weights, b),
        np.ldexp(factor, -a // 2),
        scale=2.0 ** (-a // 2),
        likelihood=Probit(),
    )
    X = dyadic(points[:2] + rng.normal(size=(2, 3)))
    rows, features = np.array([0, 0, 1, 1]), rng.integers(0, 3, 4)
    size = 10.0 ** rng.uniform(-4, 0.5)
    ends = np.sort(dyadic(rng.uniform(-size, size, (4, 2))), axis=1)
    X, ends = np.ldexp(X, c), np.ldexp(ends, c)
    extent = np.abs(ends).max(axis=1)
    place = backend_from_name(backend)
    parts = SectionModel.parts_of(posterior, place, True)
    model = SectionModel.on(parts, X, (rows, features), extent, place)
    evaluation = model.evaluation(np.arange(4), ends[:, :1], ends[:, 1:])
    return rng, posterior, X[rows], features, ends, evaluation


def points_on(rng, x, feature, low, high):
    steps = dyadic([low, high, *rng.uniform(low, high, 4)])
    found = np.tile(x, (len(steps), 1))
    found[:, feature] += np.clip(steps, low, high)
    return found


@settings(max_examples=examples(20))
@given(seed=seeds)
def test_values_at_centres_have_the_errors_of_their_own_line(seed):
    _, posterior, X, features, _, evaluation = line_case(seed)
    kernel, weights = evaluation.local.kernel, np.stack([evaluation.local.weights[0]] * 2)
    values, errors = kernel.center_values(evaluation.expansion, weights)
    model = kernel.model(evaluation.expansion, Combination(weights[0], 1.0), False)
    assert values.shape == errors.shape == (4, 2)
    np.testing.assert_allclose(errors[:, 0], model.errors[:, 0], rtol=1e-9)
    assert np.all(abs(values[:, 0] - model.value) <= errors[:, 0] + model.errors[:, 0])
    reference = ArbPosterior(posterior)
    low, high = evaluation.mean_at_center(0)
    for k, t in enumerate(evaluation.cells.center[:, 0]):
        x = exact(X[k])
        x[features[k]] += arb(float(t))
        assert not reference.mean(x) < arb(float(low[k]))
        assert not reference.mean(x) > arb(float(high[k]))


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@settings(max_examples=examples(8))
@given(seed=seeds)
def test_goals_hold_on_every_line(backend, seed):
    if backend == "torch":
        pytest.importorskip("torch")
    rng, posterior, X, features, ends, evaluation = line_case(seed, backend)
    reference = ArbPosterior(posterior)
    for sign in (1, -1):
        for goal, function in (
            (QuantityGoal(Mean(0, sign)), reference.mean),
            (QuantityGoal(Variance(0, sign)), reference.variance),
            (QuantityGoal(Probability(posterior.likelihood, 0, sign)), reference.probability),
        ):
            lower = to_numpy(goal.bound(evaluation, None).lower)
            ceiling = to_numpy(goal.ceiling(evaluation))
            center = to_numpy(evaluation.cells.center)
            for b, (low, high) in enumerate(ends):
                for x in points_on(rng, X[b], features[b], low, high):
                    assert not arb(float(lower[b])) > sign * function(x), (goal, b, x)
                at = X[b].copy()
                at[features[b]] += center[b, 0]
                if at[features[b]] - X[b][features[b]] == center[b, 0]:
                    assert not arb(float(ceiling[b])) < sign * function(at), (goal, b)


@settings(max_examples=examples(40))
@given(seed=seeds)
def test_kernel_values_and_moments_are_within_their_errors(seed):
    _, posterior, X, features, _, evaluation = line_case(seed)
    local, expansion = evaluation.local.kernel, evaluation.expansion
    unit = posterior.unit  # kernel and weights as the enclosures see them
    reference = ArbPosterior(posterior)
    a = expansion.K * unit.weights[0]
    moments, cubes = local.moments_and_cubes(a, expansion.scaled)
    errors = local.terms(expansion.K, unit.weights[0])[1]
    box = (expansion.geometry.half, expansion.geometry.rho)
    third = local.higher_terms(a, expansion.scaled, (moments, cubes), box, errors[:, 3])
    errors = errors + local._cubic_floor * np.abs(unit.weights).sum()
    sizes, wrong = local.squared_sizes(expansion.K)
    center = to_numpy(evaluation.cells.center)[:, 0]
    for b, j in enumerate(features):
        at = X[b].copy()
        at[j] += center[b]
        if at[j] - X[b][j] != center[b]:
            continue
        row = [k * arb(2) ** -unit.exponent for k in reference.row(at)]
        length = exact([np.broadcast_to(posterior.kernel.length_scale, (3,))[j]])[0]
        u = [(exact([z[j]])[0] - exact([at[j]])[0]) / length for z in posterior.points]
        for n in range(3):
            real = [sum((k**2 * s ** (2 * n) for k, s in zip(row, u, strict=True)), arb(0))]
            gaps = [k - arb(float(found)) for k, found in zip(row, expansion.K[b], strict=True)]
            real.append(sum((g**2 * s ** (2 * n) for g, s in zip(gaps, u, strict=True)), arb(0)))
            assert not arb(float(sizes[b, n])) < real[0]
            assert not arb(float(wrong[b, n])) < real[1]
        t = exact(unit.weights[0])
        exactly = [
            sum((w * k * s**n for w, k, s in zip(t, row, u, strict=True)), arb(0)) for n in range(4)
        ]
        found = [moments[0][b], moments[1][b, 0], moments[2][b, 0, 0]]
        for n in range(3):
            assert not abs(arb(float(found[n])) - exactly[n]) > arb(float(errors[b, n])), n
        cube = abs(exactly[3]) * exact([expansion.geometry.half[b, 0]])[0] ** 3 / 6
        assert not arb(float(third.size[b])) < cube


@settings(max_examples=examples(20))
@given(seed=seeds)
def test_cheap_bound_from_below_holds_everywhere_on_the_line(seed):
    rng, posterior, X, features, _, evaluation = line_case(seed)
    unit = posterior.unit
    lower = lines_bound(evaluation.local.kernel, evaluation.expansion, unit.weights[0])
    reference = ArbPosterior(posterior)
    size = arb(2) ** (unit.exponent + unit.weight_exponents[0])
    for b, j in enumerate(features):
        for x in points_on(rng, X[b], j, -3.0, 3.0):
            assert not size * arb(float(lower[b])) > reference.canonical_mean(x)


@crossed({"seed": [0, 3], "a": [-1000, 1000], "c": [-900, 0, 900]})
def test_other_units_have_the_same_bounds(seed, a, c):
    """scale 2^(-a/2) brings variance and, with weights of 2^(-a/2), mean back."""
    expected, found = (line_case(seed, exponents=e)[-1] for e in ((0, 0, 0), (a, -a // 2, c)))
    for sign in (1, -1):
        for goal in (
            QuantityGoal(Mean(0, sign)),
            QuantityGoal(Variance(0, sign)),
            QuantityGoal(Probability(Probit(), 0, sign)),
        ):
            for way in (lambda e, goal=goal: goal.bound(e, None).lower, goal.ceiling):
                np.testing.assert_allclose(way(found), way(expected), rtol=1e-13, atol=1e-280)


@pytest.mark.parametrize("exponents", [(0, -900, 0), (-600, 0, 0), (900, -900, 500)])
def test_extreme_models_hold_on_every_line(exponents):
    _, posterior, X, features, ends, evaluation = line_case(1, exponents=exponents)
    reference = ArbPosterior(posterior)
    for sign in (1, -1):
        goal = QuantityGoal(Mean(0, sign))
        lower, ceiling = goal.bound(evaluation, None).lower, goal.ceiling(evaluation)
        for b, (low, high) in enumerate(ends):
            for step in (low, 0.5 * low + 0.5 * high, high):
                at = X[b].copy()
                at[features[b]] += step
                assert not arb(float(lower[b])) > sign * reference.mean(at)
                assert np.isfinite(lower[b])
            assert lower[b] <= ceiling[b]


def test_features_too_many_length_scales_away_are_refused():
    posterior = Posterior(SquaredExponential(1.0), [[0.0, 0.0]], [1.0])
    parts = SectionModel.parts_of(posterior, backend_from_name("numpy"), False)
    for x, extent in ((1e200, 1.0), (1.0, 1e200), (-1e308, 1e308)):
        with pytest.raises(InputError, match="length-scales"):
            SectionModel.on(
                parts,
                np.array([[x, 0.0]]),
                (np.zeros(1, int), np.zeros(1, int)),
                np.full(1, extent),
                backend_from_name("numpy"),
            )


def test_only_squared_exponentials_have_lines():
    for kernel, known in ((SquaredExponential(1.0), True), (Matern(1.0, 2.5), False)):
        assert has_sections(Posterior(kernel, [[0.0]], [1.0])) is known


def test_lines_leave_out_their_own_feature():
    points = np.array([[1.0, 2.0, 4.0]])
    lines = Sections.build(
        (np.array([1.0, 2.0, 4.0]), 1.0),
        points,
        np.zeros((1, 3)),
        (np.zeros(3, int), np.arange(3)),
        np.ones(3),
    )
    assert lines.points[:, 0].tolist() == [1.0, 1.0, 1.0]
    assert lines.fixed[:, 0].tolist() == [2.0, 2.0, 2.0]
