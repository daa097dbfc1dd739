"""Groups of one-hot columns: searches against enumeration, bounds against every category."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert.enclosures import Evaluation, local_model
from gpcert.enclosures.categories import category_minimum
from gpcert.errors import InputError
from gpcert.kernels import ActiveDimensions, Matern, Product, SquaredExponential
from gpcert.models import GPRegressor
from gpcert.numerics.arrays import Backend
from gpcert.regions import Box, Cells, Discrete, OneHot, Polytope, region_from_dict
from gpcert.regions.held import Slices
from gpcert.testing.arb_reference import ArbPosterior, regression_posterior
from gpcert.testing.effort import examples
from tests.api.test_api_optimum import values

GROUPS = [[0, 1, 2], [4, 3]]
NAMES = ["colour_red", "colour_blue", "colour_green", "size=s", "size=l", "x", "y"]
KERNELS = {
    "se": SquaredExponential([1.5, 1.0, 2.0, 1.2, 0.9, 0.4, 0.5]),
    "matern": Matern([1.5, 1.0, 2.0, 1.2, 0.9, 0.4, 0.5], nu=2.5),
    "rough": Matern(1.0, nu=1.5),
    "product": Product(
        (
            ActiveDimensions(SquaredExponential([1.0, 2.0, 0.5]), (0, 3, 1)),
            ActiveDimensions(Matern([0.5, 1.0, 1.0, 0.4], nu=2.5), (5, 2, 4, 6)),
        )
    ),
}


def cube(d=7):
    return Box(np.zeros(d), np.ones(d))


def combinations(groups=GROUPS, d=7):
    """Every combination of categories, zero elsewhere."""
    rows = []
    for chosen in itertools.product(*groups):
        rows.append(np.isin(np.arange(d), chosen).astype(float))
    return np.array(rows)


def data(seed, N=20):
    rng = np.random.default_rng(seed)
    one = combinations()[rng.integers(0, 6, N)]
    X = np.concatenate([one[:, :5], rng.random((N, 2))], axis=1)
    y = np.sin(5.0 * X[:, 5] + 2.0 * X[:, 0]) + X[:, 4] * X[:, 6] - X[:, 1] + X[:, 2] * X[:, 5]
    return X, y


@pytest.mark.parametrize("kernel", list(KERNELS))
@pytest.mark.parametrize("quantity", ["mean", "ucb"])
def test_a_mixed_space_against_every_combination(kernel, quantity):
    X, y = data(len(kernel))
    model = GPRegressor(KERNELS[kernel], noise=1e-3, max_epochs=0).fit(X, y)
    best = gpcert.maximize(model, OneHot(cube(), GROUPS), quantity, tol=1e-3)
    assert best.converged
    each, rng = [], np.random.default_rng(0)
    for row in combinations():
        low, high = row.copy(), row.copy()
        high[5:] = 1.0
        each.append(gpcert.maximize(model, Box(low, high), quantity, tol=1e-3))
        sample = np.where(low == high, row, rng.random((500, 7)))
        assert values(model, quantity, sample).max() <= best.bound + 1e-9
    assert max(one.value for one in each) <= best.bound
    assert best.value <= max(one.bound for one in each)
    assert bool(OneHot(cube(), GROUPS).contains(best.x))


def test_constraints_and_whole_numbers_with_categories():
    """A budget that joins a category with an amount, and a whole number."""
    X, y = data(5)
    X[:, 6] = np.rint(3.0 * X[:, 6])
    model = GPRegressor(KERNELS["se"], noise=1e-3, max_epochs=0).fit(X, y)
    low, high = np.zeros(7), np.array([1.0, 1, 1, 1, 1, 1, 3])
    points = np.repeat(combinations(), 101 * 4, axis=0)
    points[:, 5:] = np.tile([(x, n) for x in np.linspace(0, 1, 101) for n in range(4)], (6, 1))
    seen = values(model, "mean", points)
    whole = gpcert.maximize(model, OneHot(Discrete(Box(low, high), [6]), GROUPS), tol=1e-3)
    assert seen.max() <= whole.bound + 1e-9
    assert whole.value <= seen.max() + 0.01
    dear = Polytope((low, high), ({0: 1.0, 4: 0.5, 5: 1.0}, "<=", 1.2))
    bound = gpcert.maximize(model, OneHot(dear, GROUPS), tol=1e-3)
    inside = points[:, 0] + 0.5 * points[:, 4] + points[:, 5] <= 1.2
    assert seen[inside].max() <= bound.bound + 1e-9
    assert bool(dear.contains(bound.x))
    assert bound.converged


@pytest.mark.parametrize("kernel", list(KERNELS))
def test_cells_with_categories_of_their_own_against_200_bits(kernel):
    """Mean and variance at centres, and bounds over cells, of decided cells in shared coordinates;
    `product` sees groups in part."""
    X, y = data(7, N=8)
    posterior = regression_posterior(KERNELS[kernel], X, y[:, None].T, 1e-2)
    slices = Slices.of(OneHot(cube(), GROUPS))
    rng, B = np.random.default_rng(1), 12
    low = rng.random((B, 2))
    high = np.minimum(low + 0.2 * rng.random((B, 1)), 1.0)
    choice = np.stack([rng.integers(0, 3, B), rng.integers(0, 2, B)], axis=1)
    cells = slices.cells(low, high, choice)
    evaluation = Evaluation(local_model(posterior, slices, Backend(), True), cells)
    reference = ArbPosterior(posterior)
    centers = cells.points_full(cells.center)
    assert bool(np.all(slices.whole.contains(centers)))
    mean = evaluation.mean_at_center(0)
    variance = evaluation.variance(0).output_at_center
    below = evaluation.mean(0).below.minimum().lower
    offset, scale = float(posterior.offset[0]), evaluation.mean(0).units.factor
    for k, x in enumerate(centers):
        for (lower, upper), exact in ((mean, reference.mean(x)), (variance, reference.variance(x))):
            assert float(lower[k]) <= float(exact.upper())
            assert float(exact.lower()) <= float(upper[k])
        inside = np.tile(x, (20, 1))
        inside[:, 5:] = low[k] + rng.random((20, 2)) * (high[k] - low[k])
        least = (posterior.predict(inside)[0][:, 0] - offset) / scale
        assert float(below[k]) <= least.min() + 1e-9


@given(st.integers(0, 2**32))
@settings(max_examples=examples(100), deadline=None)
def test_quadratics_at_every_point_of_a_cell_in_exact_arithmetic(seed):
    rng = np.random.default_rng(seed)
    region = OneHot(cube(6), [[0, 2, 5], [1, 4]])
    upper = np.ones((1, 6))
    upper[0, rng.permutation([0, 2, 5])[: rng.integers(0, 3)]] = 0.0
    lower = np.zeros((1, 6))
    lower[0, 3], upper[0, 3] = np.sort(rng.random(2))
    cells, empty = Cells(region, lower, upper).contract()
    assert not empty[0]
    H = rng.normal(size=(6, 6)) * 10.0 ** rng.integers(-4, 4)
    g, H = rng.normal(size=(1, 6)), (H + H.T)[None]
    found = Fraction(float(category_minimum(cells, g, H)[0]))
    exact = [[Fraction(float(v)) for v in row] for row in H[0]]
    for row in combinations([[0, 2, 5], [1, 4]], 6):
        if np.any(row > cells.upper[0] + (np.arange(6) == 3)):
            continue
        for y in (cells.lower[0, 3], cells.upper[0, 3], cells.center[0, 3]):
            row[3] = y
            z = [
                Fraction(float(a)) - Fraction(float(c))
                for a, c in zip(row, cells.center[0], strict=True)
            ]
            line = sum(Fraction(float(a)) * b for a, b in zip(g[0], z, strict=True))
            bent = sum(z[i] * z[j] * exact[i][j] for i in range(6) for j in range(6))
            assert found <= line + bent / 2


def test_distances_of_categories_are_not_those_of_the_box():
    """Of k categories the farthest is at 1 - 1/k from the mean of all, the box's corner at k - 2 +
    1/k of it."""
    region = OneHot(cube(8), [list(range(8))])
    root = region.root()
    assert root.squared_norm_maximum(np.ones(8))[0] == pytest.approx(1.0 - 1.0 / 8)
    assert cube(8).root().squared_norm_maximum(np.ones(8))[0] == pytest.approx(2.0)
    g = np.array([np.arange(8.0)])
    assert root.linear_minimum(g)[0] == pytest.approx(-3.5)


def test_halves_hold_half_of_the_categories():
    region = OneHot(cube(), GROUPS)
    low, high = region.lower[None], region.upper[None]
    first, second, last = region.halves(low, high, np.array([1]))
    assert first[0].tolist() == [1, 1, 0, 1, 1, 1, 1]
    assert last[0].tolist() == [0, 0, 1, 1, 1, 1, 1]
    assert second[0].tolist() == [0.0] * 7
    first, second, last = region.halves(low, high, np.array([5]))
    assert (first[0, 5], second[0, 5], last[0, 5]) == (0.5, 0.5, 1.0)


def test_records_names_and_refusals():
    region = OneHot(cube(), GROUPS)
    assert region_from_dict(region.describe()).describe() == region.describe()
    assert str(region) == "box in 7 of 7 features, 2 one-hot groups"
    with pytest.raises(InputError, match="every column once"):
        OneHot(cube(), [[0, 1], [1, 2]])
    with pytest.raises(InputError, match="two or more columns"):
        OneHot(cube(), [[0]])
    with pytest.raises(InputError, match="empty"):
        OneHot(Box(np.zeros(7), np.array([0.5, 0, 0, 1, 1, 1, 1])), GROUPS)
    with pytest.raises(InputError, match="empty"):
        OneHot(Polytope((np.zeros(7), np.ones(7)), ({0: 1, 1: 1, 2: 1}, "<=", 0.5)), GROUPS)
    X, y = data(0)
    model = GPRegressor(KERNELS["se"], max_epochs=0).fit(X, y)
    assert gpcert.maximize(model, region, tol=0.5, proof=True).proof is not None


def test_categories_by_their_names():
    pd = pytest.importorskip("pandas")
    X, y = data(3)
    model = GPRegressor(KERNELS["se"], noise=1e-3, max_epochs=0)
    model.fit(pd.DataFrame(X, columns=NAMES), y)
    named = {"colour": ["red", "green", "blue"], "size": ("s", "l"), "x": (0, 1), "y": (0, 1)}
    best = gpcert.maximize(model, named, tol=1e-3)
    assert best.region == OneHot(cube(), [[0, 1, 2], [3, 4]]).describe()
    fewer = gpcert.maximize(
        model, {**named, "colour": ["red", "green"], "colour_blue": 0}, fixed={"size": "l"}
    )
    assert fewer.x[[1, 3]].tolist() == [0.0, 0.0]
    assert fewer.value <= best.bound
    with pytest.raises(InputError, match="colour_green"):
        gpcert.maximize(model, {**named, "colour": ["red", "blue"]})
    with pytest.raises(InputError, match="one of"):
        gpcert.maximize(model, named, fixed={"colour": "pink"})


def test_any_category_may_be_asked_of_a_verdict():
    """`certify` over all colours at once: the answer of the worst."""
    X, y = data(2)
    model = GPRegressor(KERNELS["se"], noise=1e-3, max_epochs=0).fit(X, y)
    low, high = np.array([0.0] * 5 + [0.3, 0.3]), np.array([1.0] * 5 + [0.4, 0.4])
    over = gpcert.prediction_range(model, OneHot(Box(low, high), GROUPS), tol=1e-3)
    boxes = [Box(np.r_[row[:5], low[5:]], np.r_[row[:5], high[5:]]) for row in combinations()]
    each = [gpcert.prediction_range(model, box, tol=1e-3) for box in boxes]
    assert over.minimum.lower <= min(one.minimum.upper for one in each)
    assert max(one.maximum.lower for one in each) <= over.maximum.upper
    assert over.maximum.upper - max(one.maximum.lower for one in each) < 5e-3


@pytest.mark.parametrize("nu", [None, 2.5])
def test_a_narrow_peak_of_one_combination_is_not_missed(nu):
    """One of 2304 combinations has a peak a hundredth wide; no random point sees it."""
    sizes = (8, 8, 6, 6)
    ends = np.cumsum([0, *sizes])
    groups = [list(range(*pair)) for pair in itertools.pairwise(ends.tolist())]
    d = int(ends[-1]) + 2
    peak, hill = np.zeros((2, d))
    peak[[3, 9, 20, 25]], hill[[0, 8, 16, 22]] = 1.0, 1.0
    peak[-2:], hill[-2:] = (0.7123, 0.3456), (0.2, 0.2)
    lengths = np.r_[np.full(ends[-1], 0.7), 0.01, 0.01]
    shape = SquaredExponential(lengths) if nu is None else Matern(lengths, nu=nu)
    model = gpcert.Posterior(shape, [peak, hill], weights=[1.5, 1.0])
    region = OneHot(cube(d), groups)
    best = gpcert.maximize(model, region, tol=0.01, progress=False)
    assert best.converged
    assert best.bound >= 1.5
    assert np.allclose(best.x, peak, atol=0.01)
    assert values(model, "mean", region.sample(20_000, 0)).max() < 1.3


def with_dropped(groups, dropped, d):
    """Every combination of categories, those without a column too."""
    each = [
        [*group, None] if none else list(group) for group, none in zip(groups, dropped, strict=True)
    ]
    return np.array(
        [np.isin(np.arange(d), [j for j in c if j is not None]) for c in itertools.product(*each)]
    ).astype(float)


@given(st.integers(0, 2**32))
@settings(max_examples=examples(100), deadline=None)
def test_bounds_over_categories_without_a_column(seed):
    """Lines and distances over cells, at every point of them; halves hold every point."""
    rng, groups, dropped = (
        np.random.default_rng(seed),
        [[0, 2, 5], [1, 4], [3]],
        [True, False, True],
    )
    region = OneHot(cube(6), groups, dropped)
    upper = np.ones((1, 6))
    upper[0, rng.permutation(6)[: rng.integers(0, 4)]] = 0.0
    cells, empty = Cells(region, np.zeros((1, 6)), upper).contract()
    points = with_dropped(groups, dropped, 6)
    points = points[np.all(points <= upper, axis=1)]
    assert bool(empty[0]) == (len(points) == 0)
    if not len(points):
        return
    assert np.all(region.contains(points))
    assert np.all((points >= cells.lower) & (points <= cells.upper))
    g, w = rng.normal(size=(1, 6)), rng.uniform(0.1, 2.0, 6)
    away = points - cells.center
    assert float(region.linear_minimum(cells, g)[0]) <= (away @ g[0]).min()
    assert float(region.squared_norm_maximum(cells, w, None)[0]) >= (away**2 @ w).max() * (
        1 - 1e-15
    )
    wide = np.flatnonzero(cells.upper[0] > cells.lower[0])
    if len(wide):
        first, second, last = region.halves(cells.lower, cells.upper, rng.choice(wide, 1))
        for x in points:
            left = np.all((x >= cells.lower[0]) & (x <= first[0]))
            assert left or np.all((x >= second[0]) & (x <= last[0]))
        assert np.any(first < cells.upper)
        assert np.any(second > cells.lower) or np.any(last < cells.upper)
    least = region.linear_minimizer(g[0])
    assert bool(region.contains(least))


@pytest.mark.parametrize("quantity", ["mean", "ucb"])
def test_a_mixed_space_whose_first_categories_are_dropped(quantity):
    X, y = data(3)
    keep = [1, 2, 4, 5, 6]
    kernel = SquaredExponential([1.0, 2.0, 0.9, 0.4, 0.5])
    model = GPRegressor(kernel, noise=1e-3, max_epochs=0).fit(X[:, keep], y)
    region = OneHot(cube(5), [[0, 1], [2]], dropped=True)
    best = gpcert.maximize(model, region, quantity, tol=1e-3)
    assert best.converged
    assert bool(region.contains(best.x))
    each = []
    for row in with_dropped([[0, 1], [2]], [True, True], 5):
        high = row.copy()
        high[3:] = 1.0
        each.append(gpcert.maximize(model, Box(row, high), quantity, tol=1e-3))
    assert len(each) == 6
    assert max(one.value for one in each) <= best.bound
    assert best.value <= max(one.bound for one in each)
    again = region_from_dict(region.describe())
    assert again.groups.dropped == (True, True)
    with pytest.raises(InputError, match="proof"):
        gpcert.maximize(model, region, quantity, tol=1e-3, proof=True)


def test_what_dropped_may_be():
    for wrong in ("first", [True], [True, 1.0], 3):
        with pytest.raises(InputError, match="dropped: expected"):
            OneHot(cube(), GROUPS, dropped=wrong)
    with pytest.raises(InputError, match="two or more"):
        OneHot(cube(), [[0], [1]])
