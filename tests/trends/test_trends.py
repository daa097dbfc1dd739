"""Linear trends through every verb, method and file; what has none is as it was, bit by bit."""

from dataclasses import replace

import numpy as np
import pytest

import gpcert
from gpcert import Ball, Box, Posterior, explain
from gpcert.attacks.functions import Latent
from gpcert.errors import InputError
from gpcert.explain.arguments import features_seen
from gpcert.kernels import ActiveDimensions, Matern, Product, SquaredExponential, Sum
from gpcert.likelihoods import Gaussian, MeanOnly, MultinomialProbit, Probit, Softmax
from gpcert.model.committee import Committee, load_model
from gpcert.model.multi_output import SeparateOutputs
from gpcert.regions import LinearMap
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import THOROUGH, crossed, variants
from gpcert.testing.kernel_references import flint
from gpcert.utils.archive import write_arrays

arb = flint().arb

KERNELS = {
    "squared_exponential": SquaredExponential([0.8, 1.1]),
    "matern": Matern([0.8, 1.1], nu=2.5, variance=20.0),
    "sum": Sum((SquaredExponential(1.0, 0.5), Matern(2.0, nu=1.5, variance=0.2))),
    "product": Product((SquaredExponential(1.5), Matern(1.0, nu=2.5))),
}
SLOPES = np.array([[0.7, -0.4], [0.0, 0.9], [-1.2, 0.3]])
BOX = Box([-0.3, 0.1], [0.2, 0.5])
REGIONS = {
    "box": BOX,
    "ball": Ball([0.0, 0.2], 0.3, norm=2),
    "a fixed feature": Box([-0.3, 0.2], [0.2, 0.2]),
}


def posterior(name="squared_exponential", m=1, seed=0, slope=SLOPES, **options):
    rng = np.random.default_rng(seed)
    kernel, Z = KERNELS[name], rng.normal(size=(12, 2))
    A = np.linalg.inv(np.linalg.cholesky(kernel.value(Z, Z) + 0.05 * np.eye(12)))
    fields = {"offset": rng.normal(size=m), "scale": [0.5, 1.0, 2.0][:m], "noise": 0.1, **options}
    slope = None if slope is None else slope[:m]
    return Posterior(kernel, Z, rng.normal(size=(m, 12)) @ A.T @ A, A, slope=slope, **fields)


def coupled(slope=SLOPES):
    p = posterior(m=3, slope=slope, scale=1.5)
    rows = np.stack([np.roll(p.factor[0], c, axis=0) / 2.0 for c in range(3)])
    return replace(p, factor=rows, coupled=True, likelihood=Softmax())


def separate(likelihood=None):
    members = (posterior(), posterior("matern", seed=1, slope=SLOPES[1:]))
    return SeparateOutputs(members, *([likelihood] if likelihood else []))


def committee(scheme):
    members = tuple(posterior(seed=c, slope=SLOPES[c:], likelihood=Probit()) for c in range(3))
    return Committee(members, ("a", "b", "c"), scheme)


def mapped(**options):
    features = LinearMap([[1.0, 0.5, 0.0], [-0.2, 1.0, 0.3]], [0.1, -0.2])
    return replace(posterior(**options), features=features)


CLASSIFIERS = {
    "probit": lambda: posterior(likelihood=Probit()),
    "probit, matern": lambda: posterior("matern", likelihood=Probit()),
    "coupled": coupled,
    "mixed": lambda: posterior(m=2, likelihood=Softmax([[1.0, 0.2], [0.0, 1.0], [-0.5, 0.3]])),
    "softmax": lambda: posterior(m=3, likelihood=Softmax()),
    "multinomial probit": lambda: posterior(m=3, likelihood=MultinomialProbit()),
    "separate": lambda: separate(Softmax()),
}


def sampled(model, region, values, n=3000):
    X = region.sample(n, np.random.default_rng(1))
    return values(model, X)


def assert_covers(found, values, tol):
    """Of everything sampled, and no wider than the tolerance says."""
    assert found.minimum.lower <= values.min() + 1e-12
    assert found.maximum.upper >= values.max() - 1e-12
    assert found.minimum.upper - found.minimum.lower <= tol * (1.0 + 1e-9)
    assert found.maximum.upper - found.maximum.lower <= tol * (1.0 + 1e-9)


@crossed(
    {
        "name": KERNELS,
        "method": ["taylor", "paper", "both"],
        "region": REGIONS,
        "output": [0, 1],
    },
    quick=6,
)
def test_means(name, method, region, output):
    model, inside = posterior(name, m=2), REGIONS[region]
    found = gpcert.prediction_range(
        model, inside, quantity="mean", output=output, tol=0.04, method=method
    )
    assert_covers(found, sampled(model, inside, lambda p, X: p.mean(X)[:, output]), 0.04)


@variants("name", ["squared_exponential", "sum", "matern", "product"], quick=2)
def test_bands_and_deviations_of_the_standard_kind(name):
    model = posterior(name)
    band = gpcert.prediction_range(model, BOX, quantity="band", beta=2.0, tol=0.05)
    mean, variance = sampled(model, BOX, lambda p, X: p.predict(X))
    assert band.minimum.lower <= (mean - 2.0 * np.sqrt(variance)).min()
    assert band.maximum.upper >= (mean + 2.0 * np.sqrt(variance)).max()
    flat = replace(model, slope=None)
    for quantity in ("std", "variance"):  # a trend is no part of them
        found, plain = (
            gpcert.prediction_range(p, BOX, quantity=quantity, tol=0.02) for p in (model, flat)
        )
        assert found.minimum == plain.minimum
        assert found.maximum == plain.maximum


@variants(
    "name, output",
    [
        ("probit", None),
        ("coupled", 1),
        ("mixed", 2),
        ("probit, matern", None),
        ("coupled", 0),
        ("coupled", 2),
        ("mixed", 0),
        ("mixed", 1),
        *((name, c) for name in ("softmax", "multinomial probit") for c in range(3)),
        ("separate", 0),
        ("separate", 1),
    ],
    quick=4,
)
def test_probabilities(name, output):
    model = CLASSIFIERS[name]()
    found = gpcert.prediction_range(model, BOX, output=output, tol=0.02)
    values = sampled(model, BOX, lambda p, X: p.prediction(X)[:, output or 0], 500)
    assert found.minimum.lower <= values.min() + 1e-6
    assert found.maximum.upper >= values.max() - 1e-6
    assert found.maximum.upper - found.maximum.lower <= 0.02 + 1e-9


@variants(
    "name",
    [
        "separate targets",
        "mapped",
        "one_vs_rest",
        "one_vs_one",
        "pair_votes",
        *CLASSIFIERS,
    ],
    quick=7,
)
def test_decisions_and_radii(name):
    """Proved up to a radius, and a counter-example at another: its decision is another."""
    words, x = {}, np.array([0.1, 0.2])
    rtol = 0.3 if THOROUGH else 0.9
    if name == "separate targets":
        model, words = separate(), {"delta": 0.2, "output_norm": np.inf}
    elif name == "mapped":
        model, x = mapped(likelihood=Probit()), np.array([0.1, 0.2, -0.3])
    elif name == "pair_votes":
        member = posterior(m=3, likelihood=MeanOnly())
        model = Committee((member,), ("a", "b", "c"), "pair_votes")
    else:
        model = committee(name) if name.startswith("one_vs") else CLASSIFIERS[name]()
    found = gpcert.certified_radius(model, x, rtol=rtol, budget=20, **words)
    assert 0.0 < found.lower <= found.upper < np.inf
    inside = gpcert.certify(model, x, radius=0.9 * found.lower, **words)
    outside = gpcert.certify(model, x, radius=1.1 * found.upper, **words)
    assert inside.status.name == "ROBUST"
    assert outside.status.name == "NOT_ROBUST"
    many = gpcert.certify_many(model, x[None], radius=0.9 * found.lower, **words)
    assert many[0].status.name == "ROBUST"


def test_many_boxes():
    model, rng = posterior("matern", m=2), np.random.default_rng(0)
    low = rng.uniform(-2.0, 2.0, size=(40, 2))
    found = gpcert.bound_boxes(model, low, low + 0.1, quantity=("mean", "std"))
    X = low[:, None] + 0.1 * rng.random((40, 50, 2))
    mean, variance = model.predict(X.reshape(-1, 2))
    for name, all_values in (("mean", mean), ("std", np.sqrt(variance))):
        ends, values = found[name], all_values.reshape(40, 50, 2)
        assert np.all(ends[:, :, 0] <= values.min(axis=1) + 1e-12)
        assert np.all(ends[:, :, 1] >= values.max(axis=1) - 1e-12)
        assert np.all(ends[:, :, 1] - ends[:, :, 0] < 3.0)


def test_effects_of_a_trend():
    """A feature that only the trend sees has an effect; behind linear features, those it is of."""
    kernel = ActiveDimensions(SquaredExponential(1.0), (0,))
    model = Posterior(kernel, [[0.0, 0.0, 0.0]], [1.0], slope=[0.0, 2.0, 0.0])
    assert features_seen(model).tolist() == [True, True, False]
    found = explain.effects(model, [[0.1, 0.2, 0.3]], 0.5, tol=1e-6)
    np.testing.assert_allclose(found.lower[0, 0, 1:], [2.0, 0.0], atol=1e-5)
    np.testing.assert_allclose(found.upper[0, 0, 1:], [2.0, 0.0], atol=1e-5)
    W = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert features_seen(replace(model, features=LinearMap(W))).tolist() == [True, False, True]
    assert features_seen(replace(model, features=LinearMap(W), slope=None)).tolist() == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("name", [*KERNELS, "probit", "coupled", "mapped"])
def test_a_slope_of_zero_changes_no_bit(name):
    if name in KERNELS:
        model, ask = posterior(name), {"quantity": "mean", "tol": 0.02}
    else:
        model = mapped() if name == "mapped" else CLASSIFIERS[name]()
        ask = {"tol": 0.3, "output": 1} if name == "coupled" else {"tol": 0.05}
    region = Ball(np.full(model.dim, 0.1), 0.2)
    zero, none = (replace(model, slope=slope) for slope in (np.zeros_like(model.slope), None))
    assert zero.fingerprint == none.fingerprint != model.fingerprint
    found, plain = (gpcert.prediction_range(p, region, **ask) for p in (zero, none))
    assert (found.minimum, found.maximum, found.boxes) == (
        plain.minimum,
        plain.maximum,
        plain.boxes,
    )


def test_differences_are_exact():
    model = coupled(np.array([[0.1, 1e-20], [1e9, 1.0], [-3.7, 2e-20]]))
    pairs = [(0, 1), (0, 2), (1, 2)]
    x, reference = [0.3, -0.7], ArbPosterior(model)
    between = ArbPosterior(model.differences)
    for number, (k, other) in enumerate(pairs):
        gap = between.mean(x, number) - (reference.mean(x, other) - reference.mean(x, k))
        assert abs(gap) < arb(2) ** -100 * 1e10


def test_files(tmp_path):
    for index, model in enumerate(
        (posterior(m=2), coupled(), mapped(), separate(), committee("one_vs_rest"))
    ):
        path = tmp_path / f"{index}.npz"
        model.save(path)
        again = load_model(path)
        assert again.fingerprint == model.fingerprint
        for own, other in zip(model.members, again.members, strict=True):
            assert np.array_equal(own.slope, other.slope)
    model = posterior(m=2)
    header = {"format": "gpcert-posterior-1", **model.header()}
    for slope, message in (
        (np.zeros((2, 3)), "shapes do not belong"),
        (np.zeros(2), "shapes do not belong"),
        (np.full((2, 2), np.nan), "slope"),
        (np.full((2, 2), np.inf), "slope"),
    ):
        write_arrays(tmp_path / "bad.npz", header, {**model.arrays(), "slope": slope})
        with pytest.raises(InputError, match=message):
            Posterior.load(tmp_path / "bad.npz")
    before = {name: array for name, array in model.arrays().items() if name != "slope"}
    write_arrays(tmp_path / "old.npz", header, before)
    assert not Posterior.load(tmp_path / "old.npz").has_trend


@pytest.mark.parametrize(
    "slope", [[1.0, 2.0, 3.0], [[1.0], [2.0]], 1.0, [[np.nan, 0.0]], ["a", "b"]]
)
def test_wrong_slopes_are_refused(slope):
    with pytest.raises(InputError, match="slope"):
        Posterior(SquaredExponential(1.0), [[0.0, 0.0]], [1.0], slope=slope)


def test_a_slope_can_only_be_read():
    with pytest.raises(ValueError, match="read-only"):
        posterior().slope[0, 0] = 1.0


@variants("name", ["squared_exponential", "sum", "matern", "product"], quick=2)
def test_the_same_in_other_units(name):
    """Weights and slopes by 2^w, scale by 2^-w: the same function, and the same bounds."""
    model, ask = posterior(name), {"quantity": "mean", "tol": 0.05}
    expected = gpcert.prediction_range(model, BOX, **ask)
    for w in (-900, -37, 900):
        other = replace(
            model,
            weights=np.ldexp(model.weights, w),
            slope=np.ldexp(model.slope, w),
            scale=np.ldexp(model.scale, -w),
        )
        found = gpcert.prediction_range(other, BOX, **ask)
        assert (found.minimum, found.maximum) == (expected.minimum, expected.maximum)
    for s in (-300, 5, 300):  # inputs
        unit = 2.0**s
        other = replace(
            model,
            kernel=model.kernel.rescaled(np.full(2, unit), np.zeros(2)),
            points=model.points * unit,
            slope=model.slope / unit,
        )
        found = gpcert.prediction_range(other, Box(BOX.lower * unit, BOX.upper * unit), **ask)
        assert found.minimum.lower == pytest.approx(expected.minimum.lower, rel=1e-9)
        assert found.boxes == expected.boxes


def test_latent_classes_have_the_trend():
    model = posterior(m=3, likelihood=Softmax())
    X = BOX.sample(5, np.random.default_rng(0))
    latent = Latent(model, X, range(3))
    np.testing.assert_allclose(latent.mean, model.mean(X), rtol=1e-14)
    assert isinstance(posterior().likelihood, Gaussian)


def test_on_torch():
    pytest.importorskip("torch")
    for model in (posterior(m=2), posterior("matern")):
        found, again = (
            gpcert.prediction_range(
                model, BOX, quantity="mean", output=0, tol=0.02, backend=backend
            )
            for backend in ("numpy", "torch")
        )
        assert found.minimum.lower == pytest.approx(again.minimum.lower, rel=1e-9)
