"""Questions about several classes, end to end."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert.certificates import Status
from gpcert.errors import InputError
from gpcert.kernels import Matern, SquaredExponential
from gpcert.likelihoods import Logistic, MultinomialProbit, Softmax
from gpcert.models import GPClassifier
from gpcert.posterior import Posterior
from gpcert.regions import Ball, Box
from gpcert.search import Budget, StopReason
from gpcert.testing.effort import crossed, examples, variants

LIKELIHOODS = [Softmax(), MultinomialProbit()]
CENTERS = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 1.8]])
ROUNDING = 1e-7
"""Of plain predictions; singular covariances are raised by 1e-9 there."""


def fitted(labels):
    rng = np.random.default_rng(0)
    X = np.concatenate([c + 0.4 * rng.normal(size=(6, 2)) for c in CENTERS])
    model = GPClassifier(SquaredExponential(1.2, 4.0), likelihood="softmax", max_epochs=0)
    return model.fit(X, np.repeat(labels, 6))


@pytest.fixture(scope="module")
def model():
    return fitted(["blue", "green", "red"])


def tiny(likelihood=None, coupled=False, m=3, amplitude=2.0, **options):
    """A small posterior of one feature."""
    rng = np.random.default_rng(m)
    Z = np.array([[0.0], [1.0]])
    factor = 0.3 / np.sqrt(amplitude) * rng.normal(size=(m, m, 2)) if coupled else None
    return Posterior(
        SquaredExponential(1.0, amplitude),
        Z,
        rng.normal(size=(m, 2)),
        factor,
        likelihood=likelihood or Softmax(),
        coupled=coupled,
        **options,
    )


def probabilities(posterior, X):
    """(n, m): `prediction`, but for many classes, where that is a rough rule, by the integrals."""
    m = posterior.outputs
    if posterior.coupled or m < 5:
        return posterior.prediction(X)
    find = posterior.likelihood.independent_moments
    return np.stack([find(*posterior.predict(X), row).value for row in np.eye(m)], axis=1)


def check_ranges(model, region, ranges, tol, X=None):
    """Sampled probabilities lie inside, the searches ended, and attained values are attained."""
    posterior = gpcert.as_posterior(model)
    X = region.sample(100, np.random.default_rng(0)) if X is None else X
    p = probabilities(posterior, X)
    for c, found in enumerate(ranges):
        assert found.converged
        assert found.minimum.width <= tol
        assert found.maximum.width <= tol
        assert found.minimum.lower <= p[:, c].min() + ROUNDING
        assert found.maximum.upper >= p[:, c].max() - ROUNDING
        for x, side in ((found.argmin, found.minimum), (found.argmax, found.maximum)):
            assert bool(region.contains(x))
            value = probabilities(posterior, x[None])[0, c]
            assert side.lower - ROUNDING <= value <= side.upper + ROUNDING
    assert sum(r.minimum.lower for r in ranges) <= 1.0 <= sum(r.maximum.upper for r in ranges)


def test_ranges_of_a_trained_classifier(model):
    region = Ball([1.0, 0.6], 0.2)
    ranges = gpcert.prediction_ranges(model, region, tol=0.02)
    assert [r.output for r in ranges] == ["blue", "green", "red"]
    assert {r.quantity for r in ranges} == {"probability"}
    check_ranges(model, region, ranges, 0.02)
    np.testing.assert_allclose(
        model.predict_proba(ranges[2].argmax[None])[0, 2], ranges[2].maximum.lower, atol=0.03
    )


def test_one_class_is_asked_for_by_its_label(model):
    region = Ball([1.0, 0.6], 0.1)
    every = gpcert.prediction_ranges(model, region, tol=0.02)
    one = gpcert.prediction_range(model, region, tol=0.02, output="red")
    assert one.output == "red"
    assert one.minimum.lower <= every[2].minimum.upper
    assert one.minimum.upper >= every[2].minimum.lower
    with pytest.raises(InputError, match="output: expected the label of a class"):
        gpcert.prediction_range(model, region)
    with pytest.raises(InputError, match="output: expected one of"):
        gpcert.prediction_range(model, region, output="pink")
    with pytest.raises(InputError, match="output: expected one of"):
        gpcert.prediction_range(model, region, output=0)


def test_labels_that_are_numbers_but_not_indices():
    model = fitted([3, 5, 8])
    region = Ball([0.2, 0.1], 0.05)
    found = gpcert.prediction_range(model, region, output=5, tol=0.05)
    assert found.output == 5
    p = model.predict_proba([[0.2, 0.1]])[0]
    assert found.minimum.lower <= p[1] <= found.maximum.upper
    assert gpcert.certify(model, [0.0, 0.0], 0.02).decision == 3
    with pytest.raises(InputError, match="output"):
        gpcert.prediction_range(model, region, output=1)


@pytest.mark.parametrize("quantity", ["mean", "variance"])
@pytest.mark.parametrize("coupled", [True, False])
def test_latent_quantities_of_a_class(quantity, coupled):
    posterior = tiny(coupled=coupled, classes=("a", "b", "c"), offset=[0.0, 1.0, 2.0])
    region = Box([0.2], [0.5])
    found = gpcert.prediction_range(posterior, region, quantity=quantity, output="c", tol=1e-3)
    X = np.linspace(0.2, 0.5, 51)[:, None]
    values = posterior.predict(X)[quantity == "variance"][:, 2]
    assert found.minimum.lower <= values.min() + 1e-9
    assert found.maximum.upper >= values.max() - 1e-9
    assert found.minimum.upper == pytest.approx(values.min(), abs=2e-3)


@crossed(
    {
        "likelihood": LIKELIHOODS,
        "coupled, m": [(True, 2), (True, 3), (False, 2), (False, 3), (False, 5)],
    },
    quick=4,
)
def test_posteriors_of_the_user(likelihood, coupled, m):
    posterior = tiny(likelihood, coupled, m)
    region = Box([0.1], [0.4])
    X = np.linspace(0.1, 0.4, 41)[:, None]
    check_ranges(posterior, region, gpcert.prediction_ranges(posterior, region, tol=0.02), 0.02, X)


def two_outputs(likelihood=None):
    """Coupled latent functions, and the binary posterior of their difference."""
    rng = np.random.default_rng(5)
    kernel, Z = SquaredExponential(0.8, 3.0), rng.normal(size=(3, 2))
    t, A = rng.normal(size=(2, 3)), 0.15 * rng.normal(size=(2, 3, 3))
    several = Posterior(kernel, Z, t, A, likelihood=likelihood or Softmax(), coupled=True)
    d = several.differences
    single = Posterior(
        d.kernel,
        d.points,
        d.weights,
        d.factor,
        offset=d.offset,
        noise=d.noise,
        likelihood=Logistic(),
    )
    return several, single


def test_two_classes_agree_with_the_logistic():
    several, single = two_outputs()
    tol = 0.005
    for center in ([0.0, 0.0], [0.5, -0.5]):
        region = Ball(center, 0.15)
        one = gpcert.prediction_range(single, region, tol=tol)
        first, second = gpcert.prediction_ranges(several, region, tol=tol)
        for mine, other in ((one.minimum, second.minimum), (one.maximum, second.maximum)):
            assert mine.lower <= other.upper
            assert other.lower <= mine.upper
        assert first.minimum.lower <= 1.0 - one.maximum.lower
        assert 1.0 - one.maximum.upper <= first.minimum.upper
        decision = gpcert.certify(several, center, 0.15)
        assert decision.status == gpcert.certify(single, center, 0.15).status


@crossed({"likelihood": LIKELIHOODS, "coupled": [True, False], "half": [0.3, 3.0]})
def test_equal_classes(likelihood, coupled, half):
    """Constant means: a third each by symmetry, and no class ever wins by a margin."""
    factor = np.zeros((3, 3, 1))
    factor[[0, 1, 2], [0, 1, 2], 0] = 0.5
    posterior = Posterior(
        SquaredExponential(1.0, 1.0),
        [[0.0]],
        np.zeros((3, 1)),
        factor,
        likelihood=likelihood,
        coupled=coupled,
    )
    for found in gpcert.prediction_ranges(posterior, Box([-half], [half]), tol=0.01):
        assert found.converged
        assert found.minimum.lower <= 1 / 3 + 1e-12
        assert found.maximum.upper >= 1 / 3 - 1e-12
    certificate = gpcert.certify(posterior, [0.0], 0.1, budget=Budget(boxes=50))
    assert certificate.status is not Status.ROBUST


@variants("likelihood", LIKELIHOODS)
def test_one_class_dominates(likelihood):
    posterior = tiny(likelihood, True, offset=[0.0, 60.0, 0.0])
    region = Box([-0.5], [1.0])
    ranges = gpcert.prediction_ranges(posterior, region, tol=1e-3)
    assert ranges[1].minimum.lower > 0.999
    assert ranges[1].maximum.upper <= 1.0
    assert ranges[0].maximum.upper < 1e-3
    assert ranges[0].minimum.lower >= 0.0
    assert gpcert.certify(posterior, [0.2], 0.5).status is Status.ROBUST


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_classes_that_are_almost_perfectly_correlated(likelihood):
    """`f_1 - f_0` is known nearly exactly: the covariance of the differences is near-singular."""
    amplitude = 4.0
    factor = np.zeros((3, 1, 1))
    factor[0, 0, 0], factor[1, 0, 0] = (s * (1 - 1e-9) / np.sqrt(2 * amplitude) for s in (1, -1))
    posterior = Posterior(
        SquaredExponential(1.0, amplitude),
        [[0.0]],
        [[0.5], [0.2], [-0.1]],
        factor,
        likelihood=likelihood,
        coupled=True,
    )
    X = np.linspace(-0.05, 0.05, 21)[:, None]
    V = posterior.covariances(np.zeros((1, 1)))[0]
    assert V[0, 0] + V[1, 1] - 2 * V[0, 1] < 1e-7
    p = posterior.prediction(X)
    ranges = gpcert.prediction_ranges(posterior, Box([-0.05], [0.05]), budget=Budget(boxes=20))
    for c, found in enumerate(ranges):
        assert found.minimum.lower <= p[:, c].min() + ROUNDING
        assert found.maximum.upper >= p[:, c].max() - ROUNDING
        assert found.maximum.upper - found.minimum.lower < 0.3


@crossed({"likelihood": LIKELIHOODS, "coupled": [True, False]})
def test_no_variance(likelihood, coupled):
    """At the only point the posterior is certain: the link of the means."""
    factor = np.zeros((3, 3, 1))
    factor[[0, 1, 2], [0, 1, 2], 0] = 1.0
    g = np.array([1.0, 0.4, -0.5])
    posterior = Posterior(
        SquaredExponential(1.0, 1.0),
        [[0.0]],
        g[:, None],
        factor,
        likelihood=likelihood,
        coupled=coupled,
    )
    ranges = gpcert.prediction_ranges(posterior, Box([0.0], [0.0]), tol=1e-3)
    if likelihood.noise == 0:
        true = np.exp(g) / np.exp(g).sum()
    else:
        found = likelihood.independent_moments(g[None], np.zeros((1, 3)), np.eye(3)[0])
        true = [float(found.value[0])]
    for found, p in zip(ranges, true, strict=False):
        assert found.minimum.lower <= p <= found.maximum.upper
        assert found.maximum.upper - found.minimum.lower < 0.01
    region = Box([-0.02], [0.02])
    check_ranges(posterior, region, gpcert.prediction_ranges(posterior, region, tol=0.02), 0.02)


@crossed({"likelihood": LIKELIHOODS, "coupled": [True, False]})
def test_a_huge_variance(likelihood, coupled):
    posterior = tiny(likelihood, coupled, amplitude=1e4)
    region = Box([0.3], [0.31])
    X = np.linspace(0.3, 0.31, 11)[:, None]
    check_ranges(posterior, region, gpcert.prediction_ranges(posterior, region, tol=0.03), 0.03, X)


@crossed({"likelihood": LIKELIHOODS, "coupled, m": [(True, 3), (False, 3), (False, 8)]}, quick=2)
def test_a_region_of_one_point(likelihood, coupled, m):
    posterior, x = tiny(likelihood, coupled, m), np.array([0.3])
    p = probabilities(posterior, x[None])[0]
    for c, found in enumerate(gpcert.prediction_ranges(posterior, Ball(x, 0.0), tol=1e-4)):
        assert found.minimum.lower <= p[c] + ROUNDING
        assert found.maximum.upper >= p[c] - ROUNDING
        assert found.maximum.upper - found.minimum.lower < 1e-3
    certificate = gpcert.certify(posterior, x, 0.0)
    assert certificate.status is Status.ROBUST
    assert certificate.decision == int(p.argmax())


def check_certificate(posterior, x, certificate, region, rng):
    labels = list(posterior.labels)
    X = region.sample(200, rng)
    winners = posterior.prediction(X).argmax(1)
    if certificate.decision is None:  # a busy machine: not even x was proved in time
        assert (certificate.status, certificate.reason) == (Status.UNKNOWN, StopReason.TIME)
        return
    own = labels.index(certificate.decision)
    assert own == posterior.prediction(x[None])[0].argmax()
    if certificate.status is Status.ROBUST:
        assert certificate.margin.lower > 0
        assert np.all(winners == own)
        gaps = np.sort(posterior.prediction(X), axis=1)
        assert certificate.margin.lower <= (gaps[:, -1] - gaps[:, -2]).min() + ROUNDING
    if certificate.status is Status.NOT_ROBUST:
        other = certificate.counterexample
        assert bool(region.contains(other))
        p = posterior.prediction(other[None])[0]
        assert p.argmax() != own or np.sort(p)[-2] > p[own] - ROUNDING


@settings(max_examples=examples(8, quick=3))
@given(seed=st.integers(0, 2**32 - 1), coupled=st.booleans(), probit=st.booleans())
def test_certificates_hold(seed, coupled, probit):
    rng = np.random.default_rng(seed)
    N, d, m = 4, 2, 3
    kernel = [SquaredExponential(1.0, 2.0), Matern(1.0, 2.5, 2.0)][seed % 2]
    posterior = Posterior(
        kernel,
        rng.normal(size=(N, d)),
        2.0 * rng.normal(size=(m, N)),
        0.15 * rng.normal(size=(m, 3, N)) if coupled else 0.3 * np.eye(N),
        likelihood=MultinomialProbit() if probit else Softmax(),
        coupled=coupled,
        classes=("a", "b", "c"),
    )
    x = rng.normal(size=d)
    for radius in (0.05, 0.5):
        region = Ball(x, radius)
        certificate = gpcert.certify(posterior, x, radius, budget=Budget(seconds=1.0))
        check_certificate(posterior, x, certificate, region, rng)


def test_certificates_of_a_trained_classifier(model):
    x = np.array([0.1, 0.0])
    certificate = gpcert.certify(model, x, 0.3)
    assert (certificate.status, certificate.decision) == (Status.ROBUST, "blue")
    certificate = gpcert.certify(model, x, 2.0)
    assert certificate.status is Status.NOT_ROBUST
    p = model.predict_proba(certificate.counterexample[None])[0]
    assert p.argmax() != 0
    assert model.predict(certificate.counterexample[None])[0] != "blue"


@variants("rtol", [0.6, 0.1])
def test_the_radius_of_a_trained_classifier(model, rtol):
    x = np.array([0.1, 0.0])
    radius = gpcert.certified_radius(model, x, rtol=rtol, budget=Budget(seconds=60.0))
    assert 0.3 <= radius.lower <= radius.upper <= 2.0
    X = Ball(x, radius.lower).sample(500, np.random.default_rng(0))
    assert np.all(model.predict(X) == "blue")
    assert model.predict(radius.counterexample[None])[0] != "blue"


def test_costs_of_mistakes(model):
    x = np.array([1.0, 0.6])
    p = model.predict_proba(x[None])[0]
    costs = {"blue": 1.0, "green": 1.0, "red": 1.0}
    for label, index in (("blue", 0), ("green", 1), ("red", 2)):
        weights = {**costs, label: 100.0 * p.max() / p[index]}
        assert gpcert.certify(model, x, 0.01, class_weight=weights).decision == label
        listed = [weights[c] for c in ("blue", "green", "red")]
        certificate = gpcert.certify(model, x, 0.05, class_weight=listed)
        assert certificate.decision == label
        X = Ball(x, 0.05).sample(100, np.random.default_rng(0))
        if certificate.status is Status.ROBUST:
            assert np.all((model.predict_proba(X) * listed).argmax(1) == index)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0.5}, "threshold: expected two classes"),
        ({"delta": 0.1}, "delta: expected a regression"),
        ({"class_weight": {"blue": 1.0}}, "missing"),
        ({"class_weight": [1.0, 2.0]}, "3 positive weights"),
        ({"class_weight": [1.0, 0.0, 1.0]}, "3 positive weights"),
        ({"class_weight": [1.0, np.nan, 1.0]}, "class_weight"),
    ],
)
def test_decisions_that_are_refused(model, options, message):
    with pytest.raises(InputError, match=message):
        gpcert.certify(model, [0.0, 0.0], 0.1, **options)


def test_inputs_that_are_no_numbers_are_refused(model):
    with pytest.raises(InputError, match="finite"):
        gpcert.certify(model, [np.nan, 0.0], 0.1)
    with pytest.raises(InputError):
        gpcert.prediction_ranges(model, Ball([np.nan, 0.0], 0.1))
    with pytest.raises(InputError):
        gpcert.prediction_ranges(model, Ball([0.0], 0.1))


@crossed({"likelihood": LIKELIHOODS, "coupled, m": [(True, 3), (False, 3), (False, 5)]}, quick=2)
def test_torch_agrees(likelihood, coupled, m):
    pytest.importorskip("torch")
    posterior, region = tiny(likelihood, coupled, m), Box([0.1], [0.3])
    both = [
        gpcert.prediction_ranges(posterior, region, tol=0.02, backend=name)
        for name in ("numpy", "torch")
    ]
    for one, other in zip(*both, strict=True):
        for mine, theirs in ((one.minimum, other.minimum), (one.maximum, other.maximum)):
            assert mine.lower == pytest.approx(theirs.lower, abs=1e-9)
            assert mine.upper == pytest.approx(theirs.upper, abs=1e-6)


@variants("budget", [Budget(boxes=1), Budget(seconds=0.05), Budget(boxes=10)], quick=2)
def test_a_budget_leaves_valid_bounds(model, budget):
    region = Ball([1.0, 0.6], 1.5)
    p = model.predict_proba(region.sample(300, np.random.default_rng(0)))
    for c, found in enumerate(gpcert.prediction_ranges(model, region, budget=budget)):
        assert not found.converged
        assert found.minimum.lower <= p[:, c].min()
        assert found.maximum.upper >= p[:, c].max()


def test_one_box_is_enough_for_a_status(model):
    certificate = gpcert.certify(model, [1.0, 0.6], 0.05, budget=Budget(boxes=1))
    assert certificate.status in set(Status)


def test_an_interrupt_leaves_valid_bounds(model, monkeypatch):
    from gpcert.enclosures.classes import bounds

    calls, original = itertools.count(), bounds.ClassBounds.lower

    def lower(self, weights, target):
        if next(calls) == 9:
            raise KeyboardInterrupt
        return original(self, weights, target)

    monkeypatch.setattr(bounds.ClassBounds, "lower", lower)
    region = Ball([1.0, 0.6], 1.0)
    ranges = gpcert.prediction_ranges(model, region, tol=1e-4)
    p = model.predict_proba(region.sample(100, np.random.default_rng(0)))
    for c, found in enumerate(ranges):
        assert found.reason is StopReason.INTERRUPTED
        assert found.minimum.lower <= p[:, c].min()
        assert found.maximum.upper >= p[:, c].max()


@crossed({"likelihood": LIKELIHOODS, "coupled, m": [(True, 3), (False, 5)]})
def test_a_million_samples_do_not_contradict(likelihood, coupled, m):
    """An independent way to the probabilities: sampled latent values, six standard errors."""
    posterior, x, count = tiny(likelihood, coupled, m), np.array([[0.3]]), 1_000_000
    rng = np.random.default_rng(0)
    covariance = posterior.covariances(x)[0] + likelihood.noise * np.eye(m)
    f = posterior.predict(x)[0] + rng.normal(size=(count, m)) @ np.linalg.cholesky(covariance).T
    if likelihood.noise > 0:
        links = (f == f.max(1, keepdims=True)).astype(float)
    else:
        links = np.exp(f - f.max(1, keepdims=True))
        links = links / links.sum(1, keepdims=True)
    error = 6.0 * links.std(0) / np.sqrt(count)
    for c, found in enumerate(gpcert.prediction_ranges(posterior, Ball(x[0], 0.0), tol=1e-5)):
        assert found.minimum.lower <= links[:, c].mean() + error[c]
        assert found.maximum.upper >= links[:, c].mean() - error[c]
        assert found.maximum.upper - found.minimum.lower < 1e-4


def test_coupled_probit_classes_without_an_integral_have_valid_wider_bounds():
    """More coupled classes than `largest_coupled`: every verb answers, local search included."""
    posterior = tiny(MultinomialProbit(), coupled=True, m=MultinomialProbit.largest_coupled + 1)
    box, few = Box([-0.05], [0.05]), Budget(boxes=3)
    p = posterior.prediction(np.linspace(-0.05, 0.05, 9)[:, None])
    for c, found in enumerate(gpcert.prediction_ranges(posterior, box, budget=few)):
        assert 0.0 <= found.minimum.lower <= p[:, c].min() + 1e-3
        assert 1.0 >= found.maximum.upper >= p[:, c].max() - 1e-3
    first = gpcert.prediction_range(posterior, box, output=posterior.labels[0], budget=few)
    assert first.minimum.lower <= p[:, 0].min() + 1e-3
    radius = gpcert.certified_radius(posterior, [0.0], max_radius=0.5, budget=Budget(seconds=0.5))
    assert 0.0 <= radius.lower <= radius.upper
    certificate = gpcert.certify(posterior, [0.0], 0.01, budget=few)
    assert certificate.margin.lower <= certificate.margin.upper
