"""The first order of a mean without a Hessian, and the votes that are counted from it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert.enclosures import Evaluation, local_model
from gpcert.enclosures.goals import QuantityGoal
from gpcert.kernels import (
    Constant,
    Linear,
    Matern,
    Polynomial,
    Scale,
    SquaredExponential,
    Sum,
)
from gpcert.likelihoods import MeanOnly
from gpcert.model.committee import Committee
from gpcert.numerics.arrays import Backend, backend_from_name, to_numpy
from gpcert.quantities import Mean, PairVotes
from gpcert.regions import Ball, Box
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import REFERENCES, flint


def exact(value):
    """A float as an exact ball."""
    return flint().arb(float(value))


seeds = st.integers(0, 2**32 - 1)


def sparse_posterior(rng, f, outputs, kernel=None, N=12):
    """Outputs over shared points, each with weights on some of them only."""
    weights = rng.normal(size=(outputs, N)) * (rng.random((outputs, N)) < 0.5)
    weights[:, 0] = rng.normal(size=outputs)
    lengths = np.exp(rng.normal(size=f) * 0.3) * math.sqrt(f)
    return gpcert.Posterior(
        kernel or SquaredExponential(lengths, float(np.exp(rng.normal()))),
        rng.normal(size=(N, f)),
        weights,
        offset=rng.normal(size=outputs) * 0.2,
        scale=np.exp(rng.normal(size=outputs) * 0.5),
        likelihood=MeanOnly(),
    )


def mean_in_balls(posterior, x, output):
    """The mean at x in ball arithmetic, from the definition."""
    lengths = np.broadcast_to(posterior.kernel.length_scale, (posterior.dim,))
    total = flint().arb(0)
    for z, t in zip(posterior.points, posterior.weights[output], strict=True):
        square = sum(
            (
                ((exact(a) - exact(b)) / exact(c)) ** 2
                for a, b, c in zip(x, z, lengths, strict=True)
            ),
            flint().arb(0),
        )
        total += exact(t) * exact(posterior.kernel.variance) * (-square / 2).exp()
    return exact(posterior.offset[output]) + exact(posterior.scale[output]) * total


def region_of(rng, x, kind, size):
    if kind == "box":
        return Box(x - size, x + size)
    if kind == "slice":  # some features fixed, at least 13 free
        radii = np.where(np.arange(len(x)) < 13, size, 0.0)
        return Ball(x, radii)
    return Ball(x, size, norm=2)


@settings(max_examples=examples(20), deadline=None)
@given(
    seeds,
    st.sampled_from(["box", "slice", "ball"]),
    st.sampled_from([0.0, 1e-9, 1e-3, 0.05, 0.3, 2.0, 1e3]),
)
def test_the_first_order_bounds_the_mean(seed, kind, size):
    rng = np.random.default_rng(seed)
    f = int(rng.integers(14, 18))
    posterior = sparse_posterior(rng, f, 3)
    x = posterior.points[0] if seed % 3 == 0 else rng.normal(size=f)
    region = region_of(rng, x, kind, size)
    local = local_model(posterior, region, Backend(), False)
    cells = region.root()
    evaluation = Evaluation(local, cells)
    inside = np.concatenate([region.sample(4, rng), x[None]])
    for output in range(3):
        models = local.linear_models(evaluation.expansion, [output])
        model = None if models is None else models[0]
        if size == 0.0:
            assert kind == "ball" or model is None  # no features are free
        if model is None:
            continue
        scale = exact(local.unit.mean_scale[output])
        values = [mean_in_balls(posterior, point, output) for point in inside]
        functions = [(value - exact(posterior.offset[output])) / scale for value in values]
        for sign in (1, -1):
            level = np.asarray([float(rng.normal())])
            enclosure = local.first_order(evaluation.expansion, model, (output, sign))
            assert enclosure.rate == 0.5
            q = float(enclosure.minimum(level).lower[0])
            assert not math.isnan(q)
            if math.isfinite(q):
                assert all(sign * value > exact(q) for value in functions)


@settings(max_examples=examples(15), deadline=None)
@given(seeds, st.sampled_from([1, 3, 14]))
def test_values_at_centres_are_enclosed(seed, f):
    rng = np.random.default_rng(seed)
    posterior = sparse_posterior(rng, f, 4)
    region = Ball(rng.normal(size=f), 0.1)
    local = local_model(posterior, region, Backend(), False)
    evaluation = Evaluation(local, region.root())
    lows, highs = local.center_range(evaluation.expansion, range(4))
    center = evaluation.cells.points_full(evaluation.cells.center)[0]
    for c in range(4):
        mean = mean_in_balls(posterior, center, c)
        assert highs[0, c] - lows[0, c] < 2e-9 * (local.unit.mean_scale[c] + abs(lows[0, c]))
        low, high = evaluation.mean_at_center(c)  # before and after the enclosure is there
        evaluation.mean(c)
        all_at_once = (lows[:, c], highs[:, c])
        for ends in ((low, high), evaluation.mean_at_center(c), all_at_once):
            assert not mean < exact(float(ends[0][0]))
            assert not mean > exact(float(ends[1][0]))


@settings(max_examples=examples(10), deadline=None)
@given(seeds)
def test_points_without_weight_do_not_matter(seed):
    """An output is bounded with its own points alone; alone in a posterior it has these bounds."""
    rng = np.random.default_rng(seed)
    posterior = sparse_posterior(rng, 14, 3)
    region = Ball(rng.normal(size=14), 0.2)
    # without what a portfolio may rest: it would see other batches in both
    evaluation = Evaluation(local_model(posterior, region, Backend(), False), region.root(), False)
    for c in range(3):
        used = posterior.weights[c] != 0
        alone = gpcert.Posterior(
            posterior.kernel,
            posterior.points[used],
            posterior.weights[c][used],
            offset=posterior.offset[c],
            scale=posterior.scale[c],
        )
        own = Evaluation(local_model(alone, region, Backend(), False), region.root(), False)
        for sign in (1, -1):
            shared = QuantityGoal(Mean(c, sign)).bound(evaluation, 0.0).lower
            single = QuantityGoal(Mean(0, sign)).bound(own, 0.0).lower
            np.testing.assert_allclose(shared, single, rtol=1e-9, atol=1e-9)


def committee_of(rng, f, classes, kernel=None):
    pairs = classes * (classes - 1) // 2
    return Committee(
        (sparse_posterior(rng, f, pairs, kernel),), tuple(range(classes)), "pair_votes"
    )


@settings(max_examples=examples(25), deadline=None)
@given(seeds, st.sampled_from([1, 13, 20]), st.sampled_from([0.01, 0.05, 0.3]))
def test_bounds_of_votes_hold_at_samples(seed, f, size):
    rng = np.random.default_rng(seed)
    classes = int(rng.integers(2, 6))
    kernel = Matern(np.full(f, math.sqrt(f)), 2.5) if seed % 5 == 0 else None
    if seed % 5 in (1, 2):
        kernel = [*POWERS.values()][seed // 5 % len(POWERS)]
    committee = committee_of(rng, f, classes, kernel)
    x = rng.normal(size=f)
    region = Box(x - size, x + size) if seed % 2 else Ball(x, size * math.sqrt(f), norm=2)
    evaluation = Evaluation(local_model(committee, region, Backend(), False), region.root())
    inside = np.concatenate([region.sample(200, rng), x[None]])
    scores = committee.scores(inside)
    for winner in range(classes):
        goal = QuantityGoal(PairVotes(winner, classes))
        lower = float(goal.bound(evaluation, 0.0).lower[0])
        others = np.delete(scores, winner, axis=1).max(axis=1)
        margins = scores[:, winner] - others
        assert lower <= margins.min() + 1e-12
        assert margins[-1] - 1e-12 <= float(goal.ceiling(evaluation)[0])
        low, high = goal.known
        assert low <= margins.min()
        assert margins.max() <= high


def test_many_features_are_proved_without_a_hessian(monkeypatch):
    rng = np.random.default_rng(0)
    committee = committee_of(rng, 40, 3)

    def fail(*_):
        raise AssertionError("a Hessian was formed")

    monkeypatch.setattr("gpcert.enclosures.goals.pair_votes._second_order", fail)
    certs = [
        gpcert.certify(committee, x, 1e-4, budget=gpcert.Budget(boxes=1))
        for x in rng.normal(size=(5, 40))
    ]
    assert [cert.status.name for cert in certs] == ["ROBUST"] * 5


POWERS = {
    "linear": Linear(0.3, center=0.1),
    "quadratic": Polynomial(2, 0.2, offset=0.0),
    "cubic": Polynomial(3, 0.1, offset=0.0, center=-0.2),
    "ninth": Polynomial(9, 0.05, offset=1.0),
    "sum": Sum((Scale(Polynomial(5, 0.1, 0.5), 0.7), Linear(0.2), Constant(0.4))),
}


def powers_in_balls(posterior, x, output):
    """The mean in unit form at x, from the kernel's definition."""
    config = posterior.kernel.config()
    formula, total = REFERENCES[posterior.kernel.name], flint().arb(0)
    for z, t in zip(posterior.points, posterior.weights[output], strict=True):
        total += exact(t) * formula(config, [exact(v) for v in x], [exact(v) for v in z])
    return total


@pytest.mark.parametrize("name", POWERS)
@settings(max_examples=examples(10), deadline=None)
@given(seeds, st.sampled_from([0.0, 1e-9, 0.03, 0.4, 3.0]))
def test_the_first_order_of_powers_bounds_the_mean(name, seed, size):
    """At vertices against the gradient and elsewhere; of the linear machine it is exact."""
    rng = np.random.default_rng(seed)
    posterior = sparse_posterior(rng, 14, 2, POWERS[name], N=5)
    x = rng.normal(size=14)
    region = region_of(rng, x, "ball" if seed % 3 == 0 else "box", size)
    local = local_model(posterior, region, Backend(), False)
    evaluation = Evaluation(local, region.root())
    models = local.linear_models(evaluation.expansion, range(2))
    for output, model in enumerate(models or ()):
        factor = exact(local.unit.mean_scale[output]) / exact(posterior.scale[output])
        inside = np.concatenate([region.sample(3, rng), x[None]])
        if size > 0:
            vertex = size * np.sign(to_numpy(model.gradient)[0])
            inside = np.concatenate([inside, region.project(np.stack([x - vertex, x + vertex]))])
        values = [powers_in_balls(posterior, point, output) / factor for point in inside]
        for sign in (1, -1):
            enclosure = local.first_order(evaluation.expansion, model, (output, sign))
            q = float(enclosure.minimum(np.zeros(1)).lower[0])
            assert all(sign * value > exact(q) for value in values)
            if name == "linear" and size > 0 and not isinstance(region, Ball):
                least = min(float(sign * value) for value in values)
                assert least - q <= 1e-12 * (1.0 + abs(least))


@pytest.mark.parametrize("degree", [2, 3, 9])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_first_order_of_a_power_is_attained(degree, sign):
    """Of one point: at the vertex where the power is largest nothing is lost."""
    posterior = gpcert.Posterior(
        Polynomial(degree, 0.5, 1.0), np.ones((1, 14)), [-sign], likelihood=MeanOnly()
    )
    x, size = np.full(14, 0.2), 0.1
    region = Box(x - size, x + size)
    local = local_model(posterior, region, Backend(), False)
    evaluation = Evaluation(local, region.root())
    (model,) = local.linear_models(evaluation.expansion, [0])
    enclosure = local.first_order(evaluation.expansion, model, (0, int(sign)))
    q = float(enclosure.minimum(np.zeros(1)).lower[0])
    truth = sign * powers_in_balls(posterior, x + size, 0) / exact(local.unit.mean_scale[0])
    assert truth > exact(q)
    assert float(truth) - q <= 1e-12 * abs(q)


@pytest.mark.parametrize("name", POWERS)
def test_votes_of_powers_on_torch_are_about_the_same(name):
    pytest.importorskip("torch")
    committee = committee_of(np.random.default_rng(2), 16, 4, POWERS[name])
    region, bounds = Ball(np.zeros(16), 0.05), []
    for backend in map(backend_from_name, ("numpy", "torch")):
        local = local_model(committee, region, backend, False)
        models = local[0].linear_models if isinstance(local, tuple) else local.linear_models
        found = models(Evaluation(local, region.root(backend)).expansion, range(6))
        bounds.append([to_numpy(model.value - model.remainder) for model in found])
    np.testing.assert_allclose(*bounds, rtol=1e-12, atol=1e-14)


def test_votes_on_torch_are_the_same():
    pytest.importorskip("torch")
    rng = np.random.default_rng(2)
    for f in (2, 16):
        committee = committee_of(rng, f, 4)
        region = Ball(rng.normal(size=f), 0.05)
        bounds = []
        for name in ("numpy", "torch"):
            backend = backend_from_name(name)
            local = local_model(committee, region, backend, False)
            evaluation = Evaluation(local, region.root(backend))
            goal = QuantityGoal(PairVotes(1, 4))
            found = (goal.bound(evaluation, 0.0).lower, goal.ceiling(evaluation))
            bounds.append([float(to_numpy(each)[0]) for each in found])
        assert bounds[0] == bounds[1]


@pytest.mark.parametrize("size", [0.05, 0.2])
@pytest.mark.parametrize(("points", "weights"), [([0.0], [1.0]), ([0.3, -0.3], [-1.0, -1.0])])
def test_the_first_order_is_sharp_on_a_diagonal(points, weights, size):
    """One point at the centre tests the weight, two on the diagonal the remainder: both are about
    attained at a vertex, so that a bound with any less would be wrong there."""
    f = 14
    posterior = gpcert.Posterior(
        SquaredExponential(1.0), np.outer(points, np.ones(f)), weights, likelihood=MeanOnly()
    )
    region = Box(np.full(f, -size), np.full(f, size))
    local = local_model(posterior, region, Backend(), False)
    evaluation = Evaluation(local, region.root())
    (model,) = local.linear_models(evaluation.expansion, [0])
    enclosure = local.first_order(evaluation.expansion, model, (0, 1))
    q = float(enclosure.minimum(np.zeros(1)).lower[0])
    vertex = np.full(f, size)
    truth = mean_in_balls(posterior, vertex, 0) / exact(local.unit.mean_scale[0])
    assert truth > exact(q)
