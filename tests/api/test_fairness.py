"""`certify_fair`: verdicts hold for sampled individuals, and refuting pairs are what they say."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import ActiveDimensions, Linear, Matern, SquaredExponential
from gpcert.quantities import LeastMeans, SameSide
from gpcert.regions.pairs import Pairs
from gpcert.testing.effort import crossed

pd = pytest.importorskip("pandas")

KERNELS = [
    SquaredExponential([0.9, 1.5, 2.0]),
    Matern([1.0, 2.0, 1.5], 1.5),
    Linear(0.2) + SquaredExponential(1.0),
]
BOX = gpcert.Box([-0.4, -0.3, 0.0], [0.4, 0.5, 0.0])
VALUES = (-0.3, 0.1, 0.4)


def model_of(kernel, seed=0):
    rng = np.random.default_rng(seed)
    return gpcert.Posterior(kernel, rng.normal(size=(12, 3)), rng.normal(size=12), offset=0.2)


def individuals(n, radii, norm, seed=0):
    """Similar pairs, and the means of both for all protected values: (n, values) each."""
    rng = np.random.default_rng(seed)
    pairs = Pairs(BOX, np.array(radii), norm).sample(n, rng)
    x, y = pairs[:, :3], pairs[:, :3] + pairs[:, 3:]
    return x, y


def means(model, X):
    found = []
    for value in VALUES:
        X = X.copy()
        X[:, 2] = value
        found.append(model.mean(X)[:, 0])
    return np.stack(found, axis=1)


def least_margin(model, x, y, delta, threshold):
    first, second = means(model, x), means(model, y)
    both = np.concatenate([first, second], axis=1)
    if delta is None:
        sides = np.maximum(both.min(axis=1) - threshold, threshold - both.max(axis=1))
        return float(sides.min())
    gaps = np.maximum(first.max(1) - second.min(1), second.max(1) - first.min(1))
    return float((delta - gaps).min())


@crossed({"kernel": KERNELS, "similar,norm": [(None, "inf"), ({0: 0.1, 1: 0.05}, 2), (0.05, 1)]})
def test_verdicts_hold_for_sampled_individuals(kernel, similar, norm):
    model = model_of(kernel)
    radii = {"inf": [0.0] * 3, 2: [0.1, 0.05, 0.0], 1: [0.05, 0.05, 0.0]}[norm]
    x, y = individuals(2000, radii, float(norm))
    spread = -least_margin(model, x, y, 0.0, None)
    seen = set()
    for rule in (
        {"delta": 0.7 * spread},
        {"delta": 1.3 * spread},
        {"threshold": float(means(model, x).mean())},
        {"threshold": float(means(model, x).max()) + 0.5},
    ):
        options = {"similar": similar, "norm": norm, "budget": gpcert.Budget(seconds=20.0)}
        found = gpcert.certify_fair(model, BOX, {2: VALUES}, **rule, **options)
        seen.add(found.status.name)
        sampled = least_margin(model, x, y, rule.get("delta"), rule.get("threshold"))
        assert found.margin.lower <= sampled + 1e-9
        if found.status == "ROBUST":
            assert sampled >= 0
        if found.status == "NOT_ROBUST":
            refutes(model, found, np.array(radii), float(norm))
    assert seen == {"ROBUST", "NOT_ROBUST"}


def refutes(model, found, radii, norm):
    first, second = found.pair
    assert BOX.contains([*first[:2], 0.0])
    assert first[2] in VALUES
    assert second[2] in VALUES
    apart = np.abs(first - second)[:2]
    assert np.all(apart[radii[:2] == 0] == 0)
    if np.any(radii):
        assert np.linalg.norm((apart / radii[:2])[radii[:2] > 0], ord=norm) <= 1.0 + 1e-12
    values = model.mean(found.pair)[:, 0]
    for value, ends in zip(values, found.values, strict=True):
        assert ends.lower - 1e-9 <= value <= ends.upper + 1e-9
    if found.delta is not None:
        assert abs(values[0] - values[1]) > found.delta
    else:
        assert (values[0] - found.threshold) * (values[1] - found.threshold) < 0


def test_margins_meet_where_only_the_protected_feature_changes():
    model = model_of(KERNELS[0])
    x, _ = individuals(20000, [0.0] * 3, np.inf)
    gaps = means(model, x)
    largest = float((gaps.max(1) - gaps.min(1)).max())
    for share, status in ((0.99, "NOT_ROBUST"), (1.01, "ROBUST")):
        found = gpcert.certify_fair(model, BOX, {2: VALUES}, delta=share * largest)
        assert found.status == status
    with pytest.raises(InputError, match="truth value"):
        bool(found)


def test_similar_individuals_move_and_stay_within_their_radii():
    """A delta between what the protected feature alone makes, and what both make."""
    model, radii = model_of(KERNELS[0]), [0.1, 0.3, 0.0]
    x, y = individuals(20000, radii, np.inf)
    alone, both = (-least_margin(model, x, other, 0.0, None) for other in (x, y))
    options = {"delta": 0.5 * (alone + both), "similar": {0: 0.1, 1: 0.3}}
    found = gpcert.certify_fair(model, BOX, {2: VALUES}, **options)
    assert found.status == "NOT_ROBUST"
    for a, b, radius in zip(*found.pair.tolist(), radii[:2], strict=False):
        assert abs(Fraction(a) - Fraction(b)) <= Fraction(radius)


def test_a_step_that_rounds_is_not_too_long():
    """1 + 0.1 is a float that is farther from 1 than 0.1 is from 0."""
    bump = gpcert.Posterior(SquaredExponential([1.0, 4.0]), [[0.0, 0.0]], [1.0])
    options = {"delta": 0.02, "similar": {0: 0.1}}
    found = gpcert.certify_fair(bump, [(-1.0, 1.0), 0.0], {1: (0, 1)}, **options)
    first, second = found.pair[:, 0].tolist()
    assert abs(Fraction(second) - Fraction(first)) <= Fraction(0.1)


def test_what_the_model_does_not_see_is_fair():
    model = model_of(ActiveDimensions(SquaredExponential(1.0), (0, 1)))
    for rule in ({"delta": 0.0}, {"threshold": 0.0}):
        assert gpcert.certify_fair(model, BOX, {2: VALUES}, **rule).status == "ROBUST"


def test_categories_and_decisions_of_a_support_vector_machine():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(20.0, 60.0, 120), "pay": rng.normal(3.0, 1.0, 120)})
    frame["sex"] = rng.choice(["f", "m"], 120)
    frame["site"] = rng.choice(["a", "b", "c"], 120)
    score = 0.05 * (frame["age"] - 40.0) + frame["pay"] - 3.0 + 0.5 * (frame["sex"] == "m")
    columns = [("n", StandardScaler(), ["age", "pay"]), ("c", OneHotEncoder(), ["sex", "site"])]
    pipe = make_pipeline(ColumnTransformer(columns), SVC(gamma=0.3)).fit(frame, score > 0)
    verdicts, place = [], {}
    for row in range(8):
        person = frame.iloc[row]
        bounds = {"age": (person["age"] - 0.5, person["age"] + 0.5), "pay": person["pay"]}
        place = bounds | {"sex": 0.0, "site": float("abc".index(person["site"]))}
        found = gpcert.certify_fair(pipe, place, ["sex"])
        verdicts.append(found.status)
        assert found.protected == {"sex": ["f", "m"]}
        ages = np.linspace(*bounds["age"], 40)
        everyone = pd.DataFrame({"age": ages, "pay": person["pay"], "site": person["site"]})
        decisions = [pipe.predict(everyone.assign(sex=sex)) for sex in "fm"]
        if found.status == "ROBUST":
            assert (decisions[0] == decisions[1]).all()
        near = gpcert.certify_fair(pipe, place, ["sex"], similar={"pay": 0.2})
        assert not (found.status == "NOT_ROBUST" and near.status == "ROBUST")
    assert {"ROBUST", "NOT_ROBUST"} <= set(verdicts)
    both = gpcert.certify_fair(pipe, place, ["sex", "site"], delta=5.0)
    assert both.status == "ROBUST"
    process = GaussianProcessRegressor(sk.RBF(2.0) + sk.WhiteKernel(0.1), optimizer=None)
    model = make_pipeline(ColumnTransformer(columns), process).fit(frame, score)
    with pytest.raises(InputError, match="delta"):
        gpcert.certify_fair(model, place, ["sex"])


def test_questions_that_say_nothing_are_refused():
    model = model_of(KERNELS[0])
    wrong = [
        ({"protected": [2], "delta": 1.0}, "not known"),
        ({"protected": {}, "delta": 1.0}, "one feature or more"),
        ({"protected": {2: (1.0,)}, "delta": 1.0}, "two or more"),
        ({"protected": {2: VALUES}}, "threshold="),
        ({"protected": {2: VALUES}, "delta": 1.0, "threshold": 0.0}, "got both"),
        ({"protected": {2: VALUES}, "delta": -1.0}, ">= 0"),
        ({"protected": {2: VALUES}, "delta": 1.0, "similar": {2: 0.1}}, "neither protected"),
        ({"protected": {2: range(40)}, "delta": 1.0}, "combinations"),
    ]
    for options, text in wrong:
        with pytest.raises(InputError, match=text):
            gpcert.certify_fair(model, BOX, **options)


@pytest.mark.parametrize("rule", [{"delta": 2.0}, {"threshold": 9.0}])
def test_the_same_on_torch(rule):
    pytest.importorskip("torch")
    model, options = model_of(KERNELS[1]), {"similar": 0.05, "norm": 2, **rule}
    here, there = (
        gpcert.certify_fair(model, BOX, {2: VALUES}, backend=name, **options)
        for name in ("numpy", "torch")
    )
    assert here.status == there.status
    assert here.margin.lower == pytest.approx(there.margin.lower)


def test_budgets_end_without_a_false_verdict():
    model = model_of(KERNELS[1])
    x, y = individuals(2000, [0.1, 0.1, 0.0], 2.0)
    spread = -least_margin(model, x, y, 0.0, None)
    options = {"similar": 0.1, "norm": 2, "budget": gpcert.Budget(boxes=1)}
    found = gpcert.certify_fair(model, BOX, {2: VALUES}, delta=1.2 * spread, **options)
    assert found.status == "UNKNOWN"
    assert found.margin.lower < 0


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0, np.inf])
def test_cells_without_pairs_are_dropped_and_no_others(norm):
    ball = gpcert.Ball([0.0, 0.0, 0.5], [1.0, 0.5, 0.0], 2.0)
    region = Pairs(ball, np.array([0.3, 0.0, 0.0]), norm)
    wide = Pairs(ball, np.array([0.3, 0.2, 0.0]), norm)
    for each in (region, wide):
        points = each.sample(300, 0)
        assert each.contains(points).all()
        cells = each.root()
        for _ in range(9):
            cells, empty = each.contract(cells)
            cells = cells.take(~empty)
            cells = cells.split(np.argmax(cells.widths, axis=1))
        cells, empty = each.contract(cells)
        free = points[:, each.free]
        kept = cells.take(~empty)
        low, high = kept.lower[:, None], kept.upper[:, None]
        assert np.all((low <= free) & (free <= high), axis=2).any(axis=0).all()
        if each is wide and norm < 3:
            assert empty.any()
    outside = np.array([[0.0, 0.0, 0.5, 0.29, 0.19, 0.0]])
    assert wide.contains(outside)[0] == np.isinf(norm)


def test_quantities_bound_their_values():
    rng = np.random.default_rng(0)
    low = rng.normal(size=(50, 3))
    high = low + rng.uniform(0.0, 1.0, size=(50, 3))
    rows = ((1.0, -1.0, 0.0), (0.0, 2.0, -1.0))
    for quantity in (SameSide(3, 0.25), LeastMeans(rows)):
        ends = list(low.T), list(high.T)
        least, most = quantity.lowest(*ends), quantity.highest(*ends)
        for _ in range(50):
            y = low + rng.random(low.shape) * (high - low)
            value = quantity.value(y)
            assert np.all(least <= value)
            assert np.all(value <= most)
            step = 1e-6 * rng.normal(size=y.shape)
            near = value + np.sum(quantity.slopes(y) * step, axis=1)
            assert np.mean(np.abs(quantity.value(y + step) - near) < 1e-9) > 0.9


@pytest.mark.parametrize("kind", ["votes", "one against the rest", "largest mean"])
def test_decisions_of_several_classes(kind):
    """Verdicts hold for sampled individuals, and pairs are of other classes."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(90, 2)), rng.integers(0, 2, 90)]).astype(float)
    y = np.digitize(X[:, 0] + 0.8 * X[:, 2] + 0.1 * rng.normal(size=90), [-0.4, 0.6])
    if kind == "votes":
        model = SVC(C=3.0).fit(X, y)
        decided = model.predict
    elif kind == "one against the rest":
        kernel = sk.RBF([1.0, 1.0, 3.0])
        model = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)
        decided = model.predict
    else:
        targets = np.eye(3)[y] - 0.3
        K = SquaredExponential([1.0, 1.0, 3.0])
        weights = np.linalg.solve(K.value(X, X) + 0.1 * np.eye(90), targets).T
        model = gpcert.Posterior(K, X, weights, likelihood=gpcert.likelihoods.Softmax())

        def decided(points):
            return np.argmax(model.mean(points), axis=1)

    statuses, half = [], np.array([0.1, 0.1, 0.0])
    for x in X[:12]:
        box = gpcert.Box(x - half, x + half)
        fair = gpcert.certify_fair(model, box, {2: (0, 1)}, budget=5.0)
        statuses.append(fair.status.name)
        points = x + half * rng.uniform(-1, 1, (100, 3))
        first, second = (np.column_stack([points[:, :2], np.full(100, v)]) for v in (0.0, 1.0))
        if fair.status.name == "ROBUST":
            assert np.array_equal(decided(first), decided(second))
        if fair.status.name == "NOT_ROBUST":
            assert decided(fair.pair).tolist() == list(fair.decisions)
            assert fair.decisions[0] != fair.decisions[1]
            assert all(value.lower > 0 for value in fair.values)
            assert "class" in fair.summary
    assert {"ROBUST", "NOT_ROBUST"} <= set(statuses)
    near = gpcert.certify_fair(model, gpcert.Box(X[0], X[0]), {2: (0, 1)}, similar={0: 1e-3})
    assert near.threshold is None
    assert near.delta is None
