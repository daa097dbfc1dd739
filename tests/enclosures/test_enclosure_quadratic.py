"""Minima of quadratics over cells, eigenvalues, and the level form of `QuadraticLowerModel`."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.lower_model import QuadraticLowerModel
from gpcert.enclosures.polynomials import quadratic_minimum, smallest_eigenvalue
from gpcert.kernels import SquaredExponential
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import Backend
from gpcert.regions import Ball, Box
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import exact, flint
from tests.enclosures.enclosure_checks import arb, below, displacement, evaluation_of, quadratic
from tests.strategies import Case


def geometry_of(region, lengths=1.0):
    kernel = SquaredExponential(lengths)
    local = kernel.localize(np.zeros((1, region.dim)), region, Backend())
    return local.geometry(region.root())


def rational(g, H, d):
    d = [Fraction(float(x)) for x in d]
    total = sum((Fraction(float(a)) * x for a, x in zip(g, d, strict=True)), Fraction(0))
    for j, x in enumerate(d):
        for k, y in enumerate(d):
            total += Fraction(float(H[j, k])) * x * y / 2
    return total


def random_quadratic(rng, f, kind):
    H = rng.normal(size=(f, f))
    H = H + H.T
    g = rng.normal(size=f)
    if kind == "convex":
        H = H @ H.T
    elif kind == "concave":
        H = -H @ H.T
    elif kind == "steep":
        g = 100.0 * np.sign(g)
    elif kind == "huge":
        H, g = 1e12 * H, 1e12 * g
    elif kind == "cancelling":
        g = -H @ rng.uniform(-1.0, 1.0, f)
    elif kind == "rough":  # symmetric only up to rounding, as computed Hessians are
        H = H * (1.0 + 1e-15 * rng.normal(size=(f, f)))
    return g, H


@settings(max_examples=examples(150))
@given(
    seed=st.integers(0, 2**32 - 1),
    f=st.integers(1, 4),
    kind=st.sampled_from(["convex", "concave", "steep", "huge", "cancelling", "plain", "rough"]),
    width=st.sampled_from([1e-12, 0.1, 1.0, 1e3]),
)
def test_box_minimum_in_rational_arithmetic(seed, f, kind, width):
    """Below the quadratic at corners, random points and its own point: exact fractions."""
    rng = np.random.default_rng(seed)
    g, H = random_quadratic(rng, f, kind)
    w = width * rng.random(f)
    w[rng.random(f) < 0.2] = 0.0
    geometry = geometry_of(Box(-w, w)) if w.any() else None
    if geometry is None:
        return
    free = np.flatnonzero(w > 0)
    g, H = g[free], H[np.ix_(free, free)]
    result = quadratic_minimum(geometry, g[None], H[None])
    half = geometry.half[0]
    corners = itertools.product(*[(-1.0, 0.0, 1.0)] * len(free))
    samples = [np.asarray(c) * half for c in corners]
    samples += list(rng.uniform(-1.0, 1.0, (10, len(free))) * half)
    samples.append(np.clip(result.point[0], -half, half))
    lower = Fraction(float(result.lower[0]))
    assert all(lower <= rational(g, H, d) for d in samples)
    if kind == "steep" and width <= 1.0:  # the gradient dominates: exact up to rounding
        best = min(float(rational(g, H, d)) for d in samples)
        assert float(lower) >= best - 1e-12 * abs(best)


@pytest.mark.parametrize("f", [1, 2])
def test_never_above_the_minimum_on_a_fine_grid(f):
    rng = np.random.default_rng(f)
    for kind in ("convex", "concave", "cancelling", "plain", "steep"):
        for _ in range(20):
            g, H = random_quadratic(rng, f, kind)
            w = rng.random(f) + 0.01
            geometry = geometry_of(Box(-w, w))
            lower = quadratic_minimum(geometry, g[None], H[None]).lower[0]
            axes = [np.linspace(-a, a, 101) for a in w]
            grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, f)
            values = grid @ g + 0.5 * np.einsum("nj,jk,nk->n", grid, H, grid)
            best = grid[values.argmin()]
            assert Fraction(float(lower)) <= rational(g, H, best)
            if f == 1:  # one feature: nothing is relaxed
                assert lower >= values.min() - 1e-3 * (1 + abs(values.min()))


@settings(max_examples=examples(60))
@given(
    seed=st.integers(0, 2**32 - 1),
    p=st.sampled_from([1.0, 2.0, 3.5]),
    kind=st.sampled_from(["convex", "concave", "steep", "cancelling", "plain"]),
)
def test_ball_minimum(seed, p, kind):
    """Inside a ball the bound may be larger than on its box, never above the quadratic."""
    rng = np.random.default_rng(seed)
    f = int(rng.integers(2, 5))
    g, H = random_quadratic(rng, f, kind)
    region = Ball(rng.normal(size=f), float(rng.random() + 0.01), norm=p)
    lengths = 10.0 ** rng.uniform(-1.0, 1.0, f)
    geometry = geometry_of(region, lengths)
    lower = float(quadratic_minimum(geometry, g[None], H[None]).lower[0])
    points = np.concatenate([region.sample(10, rng), region.linear_minimizer(g / lengths)[None]])
    for x in points:
        d = [
            (a - c) / b
            for a, c, b in zip(
                exact(x), exact(geometry.cells.center[0]), exact(lengths), strict=True
            )
        ]
        below(lower, quadratic(g, H, d), "ball")


@settings(max_examples=examples(40), deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["convex", "concave", "cancelling", "plain", "huge", "hard"]),
    several=st.booleans(),
)
def test_a_round_ball_is_minimised_exactly(seed, kind, several):
    """Statement 5.13: never above the quadratic, and hardly below it at the proposed point, where
    the cell is the ball; cells inside it are bounded, too."""
    rng = np.random.default_rng(seed)
    f = int(rng.integers(2, 6))
    g, H = random_quadratic(rng, f, "plain" if kind == "hard" else kind)
    if kind == "hard":  # no slope along the least eigenvector
        vector = np.linalg.eigh(H)[1][:, 0]
        g = g - vector * (vector @ g)
    radius = 10.0 ** rng.uniform(-2.0, 1.0, f if several else None)
    region, lengths = Ball(rng.normal(size=f), radius, norm=2), 10.0 ** rng.uniform(-1.0, 1.0, f)
    geometry = geometry_of(region, lengths)
    result = quadratic_minimum(geometry, g[None], H[None])
    points = [*region.sample(10, rng), region.linear_minimizer(g / lengths)]
    points.append(region.project(region.center + result.point[0] * lengths))
    scale, values = radius * np.ones(f), []
    for x in points:
        pairs = zip(exact(x), exact(region.center), exact(lengths), strict=True)
        d = [(a - c) / b for a, c, b in pairs]
        below(float(result.lower[0]), quadratic(g, H, d), "round ball")
        values.append(float(quadratic(g, H, d)))
    size = np.linalg.norm(H * np.outer(scale / lengths, scale / lengths))
    size += np.linalg.norm(g * scale / lengths)
    assert values[-1] - float(result.lower[0]) <= 1e-9 * size
    low, high = region.lower.copy(), region.upper.copy()
    low[0] = region.center[0]
    part = region.root().with_ends(low[None], high[None])
    kernel = SquaredExponential(lengths)
    local = kernel.localize(np.zeros((1, f)), region, Backend()).geometry(part)
    lower = quadratic_minimum(local, g[None], H[None]).lower[0]
    for x in region.sample(40, rng):
        if x[0] >= low[0]:
            d = (x - part.center[0]) / lengths
            value = g @ d + 0.5 * d @ H @ d
            assert lower <= value + 1e-12 * (abs(value) + size * (1.0 + abs(d).max()) ** 2)


@settings(max_examples=examples(60))
@given(
    seed=st.integers(0, 2**32 - 1),
    f=st.integers(1, 5),
    size=st.sampled_from([1e-12, 1.0, 1e12]),
    kind=st.sampled_from(["convex", "concave", "plain", "rough", "singular"]),
)
def test_smallest_eigenvalue(seed, f, size, kind):
    """At most the exact eigenvalue: sym(H) - lambda I is positive definite just below it."""
    rng = np.random.default_rng(seed)
    _, H = random_quadratic(rng, f, kind)
    if kind == "singular":
        a = rng.normal(size=(f, 1))
        H = -a @ a.T
    H = size * H
    bound = float(smallest_eigenvalue(H[None])[0])
    assert bound <= 0.0
    matrix = flint().arb_mat([[arb(float(H[j, k])) for k in range(f)] for j in range(f)])
    symmetric = (matrix + matrix.transpose()) / 2
    shifted = symmetric - flint().arb_mat(
        [[arb(bound) if j == k else arb(0) for k in range(f)] for j in range(f)]
    )
    minors = [
        flint().arb_mat([row[:n] for row in shifted.tolist()[:n]]).det() for n in range(1, f + 1)
    ]
    if f == 1:
        assert not minors[0] < 0
    else:  # Sylvester: all leading minors positive
        assert all(minor > 0 for minor in minors)
    lowest = min(np.linalg.eigvalsh((H + H.T) / 2)[0], 0.0)
    assert bound >= lowest - 1e-11 * np.abs(H).max() * f


@settings(max_examples=examples(80))
@given(
    seed=st.integers(0, 2**32 - 1),
    rate=st.sampled_from([0.0, 0.5, 1.0]),
    width=st.sampled_from([0.0, 1e-9, 0.1, 1.0, 5.0, 30.0]),
    level=st.sampled_from([None, 0.0, 1.0, -1.0, 1e6]),
)
def test_level_form(seed, rate, width, level):
    """`q = exp(-rate |d|^2) (polynomial - error)` is the least function of a model: test it."""
    rng = np.random.default_rng(seed)
    f = int(rng.integers(1, 4))
    w = width * rng.random(f)
    region = Box(-w, w) if width else Box(np.zeros(f), np.zeros(f))
    geometry = geometry_of(region)
    f = len(region.free)
    g, H = random_quadratic(rng, f, "plain") if f else (np.zeros(0), np.zeros((0, 0)))
    coefficients = (rng.normal(size=1) * 3.0, g[None], H[None])
    model = QuadraticLowerModel(geometry, *coefficients, np.array([0.1 * rng.random()]), rate)
    lower = model.minimum(None if level is None else np.array([level])).lower
    for x in region.sample(12, rng)[:, region.free]:
        d = exact(x - 0.0)
        center = exact(geometry.cells.center[0])
        d = [a - c for a, c in zip(d, center, strict=True)]
        square = sum((a * a for a in d), arb(0))
        least = arb(float(model.value[0])) - arb(float(model.error[0])) + quadratic(g, H, d)
        below(float(lower[0]), least * (-arb(rate) * square).exp(), "level form")


@pytest.mark.parametrize("rate", [0.5, 1.0])
def test_a_level_above_zero_sees_the_whole_weight(rate):
    """`q = exp(-rate d^2) (2 + 2 rate d^2)` falls below 2 away from the centre: the tangent of the
    weight alone would prove `q >= 2` at the level 2."""
    geometry = geometry_of(Box([-1.0], [1.0]))
    hessian = np.full((1, 1, 1), 4.0 * rate)
    model = QuadraticLowerModel(
        geometry, np.array([2.0]), np.zeros((1, 1)), hessian, np.zeros(1), rate
    )
    lower = float(model.minimum(np.array([2.0])).lower[0])
    assert lower <= np.exp(-rate) * (2.0 + 2.0 * rate) < 2.0


def test_displacements_are_scaled_by_length():
    """`displacement` of the checks is (x - c) / l: one case by hand."""
    posterior = Posterior(SquaredExponential([2.0, 4.0]), [[0.0, 0.0]], [1.0])
    case = Case(posterior, Box([0.0, 0.0], [2.0, 2.0]), np.random.default_rng(0))
    evaluation = evaluation_of(case, variance=False, cells=case.region.root())
    assert [float(a) for a in displacement(evaluation, 0, [2.0, 2.0])] == [0.5, 0.25]
