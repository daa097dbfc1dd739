"""What expansions of class probabilities leave out, against certified moments at both ends."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.classes.jets import (
    ClassJet,
    class_jet,
    coupled_jet,
    law_jet,
    weighted_jet,
)
from gpcert.enclosures.classes.remainder import (
    degree_bound,
    higher_degrees,
    orthogonal_rest,
    shrunk_bounds,
    unexplained,
)
from gpcert.enclosures.classes.taylor_bound import (
    center_range,
    missed_bends,
    taylor_bound,
)
from gpcert.integrals.moments import UNIMODAL_BOUNDS, ClassMoments
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import MultinomialProbit, Softmax
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import to_numpy
from gpcert.regions import Box
from gpcert.testing.effort import crossed, examples
from tests.enclosures.classes.class_cases import (
    evaluation_of,
    true_sums,
)

LIKELIHOODS = [Softmax(), MultinomialProbit()]

LINES = {
    "seed": st.integers(0, 2**32 - 1),
    "n": st.sampled_from([1, 2, 3]),
    "probit": st.booleans(),
}

ROUNDING = 1e-10
"""The far end's covariance is factored in floating point."""


def test_degree_bounds_are_the_formulas():
    """Binomials and powers of 1/2, written out."""
    t = np.array([2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0])
    A, W = np.array([0.3]), np.array([0.7])
    first = t[0] * A + t[1] * W / 2
    second = (t[1] * A**2 + t[2] * A * W + t[3] * W**2 / 4) / 2
    third = (t[2] * A**3 + 1.5 * t[3] * A**2 * W + 0.75 * t[4] * A * W**2 + t[5] * W**3 / 8) / 6
    fourth = t[3] * A**4 + 2 * t[4] * A**3 * W + 1.5 * t[5] * A**2 * W**2
    fourth = (fourth + 0.5 * t[6] * A * W**3 + t[7] * W**4 / 16) / 24
    for degree, expected in enumerate((first, second, third, fourth), 1):
        found = degree_bound(degree, list(t), A, W)
        assert np.all(found >= expected * (1 - 1e-16))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    rest = higher_degrees([A] * 4, list(t), A, W)
    np.testing.assert_allclose(rest, third, rtol=1e-12)
    unexpanded = (t[2] * A * W + t[3] * W**2 / 4) / 2
    np.testing.assert_allclose(
        higher_degrees([A] * 2, list(t), A, W), third + unexpanded, rtol=1e-12
    )


@pytest.mark.parametrize("operator", [0.0, 0.3, 0.99, 1.0, 5.0, math.inf])
def test_bounds_shrink_with_the_covariance(operator):
    found = shrunk_bounds([1.0, 2.0], np.array([operator]))
    for j, bound in enumerate(found, 1):
        if operator >= 1:
            assert math.isinf(bound[0])
        else:
            assert bound[0] >= j * (1 - operator) ** (-j / 2)
            assert bound[0] == pytest.approx(j * (1 - operator) ** (-j / 2), rel=1e-9)


@pytest.mark.parametrize("mean", [0.0, 2.0**-1000, 1.0])
@pytest.mark.parametrize("spread", [0.0, 2.0**-1000, 1.0])
def test_nothing_known_is_infinite_not_undefined(mean, spread):
    """Without a warning, too: equal classes have constant means, on cells of any size."""
    A, W, zero, far = (np.array([value]) for value in (mean, spread, 0.0, math.inf))
    for known in ([zero] * 6, [zero] * 2):
        assert math.isinf(higher_degrees(known, [far] * 8, A, W)[0])
    for degree in (1, 2, 3, 4):
        assert math.isinf(degree_bound(degree, [far] * 8, A, W)[0])


def random_line(rng, n, size):
    """Reference (a_0, L_0), and a move (u, W) in its metric, W > -I."""
    deviations = 10.0 ** rng.uniform(-1.0, 1.0, n)
    root = rng.normal(size=(n, n)) * deviations[:, None]
    L = np.linalg.cholesky(root @ root.T + 0.01 * np.eye(n))
    a = 2.0 * rng.normal(size=n) * np.sqrt(np.diag(L @ L.T)) * rng.random()
    u = size * rng.normal(size=n) * (1.0 if rng.random() < 0.8 else 1e-9)
    vectors = np.linalg.qr(rng.normal(size=(n, n)))[0]
    values = np.clip(size * rng.normal(size=n), -0.8, 5.0) * (1.0 if rng.random() < 0.8 else 1e-9)
    return a, L, u, (vectors * values) @ vectors.T


def either_likelihood(probit, n):
    return MultinomialProbit() if probit and n < 3 else Softmax()


def both_ends(rng, likelihood, n, size):
    """L and the move of a random line, and the moments at its ends: all orders, and the values."""
    a, L, u, W = random_line(rng, n, size)
    far = np.linalg.cholesky(L @ (np.eye(n) + W) @ L.T)
    there = likelihood.moments((a + L @ u)[None], far[None], 0)
    return (L, u, W), likelihood.moments(a[None], L[None], likelihood.highest_order), there


def expansion(derivatives, u, W):
    """Degrees 1 and 2 of (B,) functions, `derivatives` (B, n, ..., n); all of order 4."""
    D1, D2, D3, D4 = derivatives[:4]
    first = D1 @ u + 0.5 * np.einsum("bij,ij->b", D2, W)
    second = np.einsum("bij,i,j->b", D2, u, u) + np.einsum("bijk,i,jk->b", D3, u, W)
    second = second + 0.25 * np.einsum("bijkl,ij,kl->b", D4, W, W)
    return first + 0.5 * second


def norms_of(moments, c):
    """Frobenius norms of the derivatives of class c, at least the true ones."""
    return [
        np.atleast_1d(np.linalg.norm(d[0, c])) + moments.errors[:1, j]
        for j, d in enumerate(moments.derivatives, 1)
    ]


@settings(max_examples=examples(150))
@given(**LINES, size=st.sampled_from([0.02, 0.2, 0.7, 2.0]))
def test_the_rest_of_an_expansion(seed, n, probit, size):
    rng, likelihood = np.random.default_rng(seed), either_likelihood(probit, n)
    (L, u, W), here, there = both_ends(rng, likelihood, n, size)
    eigenvalues = np.abs(np.linalg.eigvalsh(W))
    A, spread = np.array([np.linalg.norm(u)]), np.array([eigenvalues.sum()])
    operator = np.array([eigenvalues.max()])
    uniform = shrunk_bounds(UNIMODAL_BOUNDS, operator)
    plain = plain_sizes(L, u, W)
    for c in range(n + 1):
        derivatives = [d[:, c] for d in here.derivatives]
        left = there.value[:, c] - here.value[:, c] - expansion(derivatives, u, W)
        errors = here.errors[0]
        off = errors[0] + there.errors[0, 0] + ROUNDING + errors[1] * A + 0.5 * errors[2] * spread
        off = off + 0.5 * (errors[2] * A**2 + errors[3] * A * spread + 0.25 * errors[4] * spread**2)
        known = norms_of(here, c)
        assert np.all(np.abs(left) <= higher_degrees(known, uniform, A, spread) + off)
        own = [likelihood.link_bound(order) for order in range(1, 7)]
        if math.isfinite(own[-1]):
            assert np.all(np.abs(left) <= higher_degrees(known[:4], own, *plain) + off)
        # what is left where only two orders are known
        short = expansion([*derivatives[:2], 0 * derivatives[2], 0 * derivatives[3]], u, W)
        left = there.value[:, c] - here.value[:, c] - short
        assert np.all(np.abs(left) <= higher_degrees(known[:2], uniform, A, spread) + off)


@settings(max_examples=examples(200, quick=40))
@given(**LINES, size=st.sampled_from([0.02, 0.2, 0.5]))
def test_the_rest_by_orthogonality(seed, n, probit, size):
    """Sums of classes, expanded with the orders 1 and 2, and to 4."""
    rng, likelihood = np.random.default_rng(seed), either_likelihood(probit, n)
    (L, u, W), here, there = both_ends(rng, likelihood, n, size)
    values = np.abs(np.linalg.eigvalsh(W))
    A, spread, operator, frobenius = (
        np.array([x]) for x in (np.linalg.norm(u), values.sum(), values.max(), np.linalg.norm(W))
    )
    sizes = SimpleNamespace(mean=A, spread=spread, operator=operator, frobenius=frobenius)
    place = SimpleNamespace(R=np.linalg.inv(L)[None], inflation=np.array([1e-8]))
    for weights in (np.eye(n + 1)[0], -np.eye(n + 1)[n], rng.normal(size=n + 1)):
        parts = {c: coupled_jet(likelihood, here, place, c) for c in range(n + 1) if weights[c]}
        whole = law_jet(tuple(weights.tolist()), parts)
        moved = (there.value - here.value)[0] @ weights
        e = whole.errors[0]
        off = e[0] + np.abs(weights).sum() * (there.errors[0, 0] + ROUNDING)
        off = off + e[1] * A + 0.5 * e[2] * (spread + A**2)
        for order in (2, 4):
            kept = whole.derivatives[:order]
            jet = replace(whole, derivatives=kept, errors=whole.errors[:, : order + 1])
            shown = kept if order >= 4 else (*kept, *(0.0 * d for d in whole.derivatives[2:4]))
            left = moved - expansion(shown, u, W)
            own = off + (e[3] * A * spread + 0.25 * e[4] * spread**2 if order >= 4 else 0.0)
            assert np.all(np.abs(left) <= orthogonal_rest(jet, sizes) + own)


def test_no_known_degree_is_forgotten():
    """`sum_i A^(k - 2 i) W^i / ((k - 2 i)! i! 2^i)` written out, without what is expanded."""
    n, A, W = 2, 0.3, 0.2
    names = ("mean", "spread", "operator", "frobenius")
    sizes = SimpleNamespace(**{k: np.array([A if k == "mean" else W]) for k in names})
    degrees = {
        3: A**3 / 6,
        4: A**4 / 24 + A**2 * W / 4,
        5: A**5 / 120 + A**3 * W / 12 + A * W**2 / 8,
        6: A**6 / 720 + A**4 * W / 48 + A**2 * W**2 / 16 + W**3 / 48,
    }
    for k, expected in degrees.items():
        tensors = tuple(float(j == k) * np.ones((1, *[n] * j)) for j in range(1, 7))
        jet = ClassJet(np.zeros(1), tensors, np.zeros((1, 7)), square=np.zeros(1))
        found = float(orthogonal_rest(jet, sizes)[0])
        assert found == pytest.approx(2.0 ** (k / 2) * expected, rel=1e-9)


@pytest.mark.parametrize("n", [1, 2])
def test_what_the_known_degrees_leave_of_a_sum(n):
    """`unexplained` against a product rule: the sum's mean square less those of its degrees."""
    rng = np.random.default_rng(n)
    a, L, _, _ = random_line(rng, n, 1.0)
    L = L / np.abs(L).max()
    weights = np.array([1.0, -0.7, 0.4])[: n + 1]
    here = Softmax().moments(a[None], L[None], 4)
    place = SimpleNamespace(R=np.linalg.inv(L)[None], inflation=np.array([1e-12]))
    parts = {c: coupled_jet(Softmax(), here, place, c) for c in range(n + 1)}
    jet = law_jet(tuple(weights.tolist()), parts)
    z, w = np.polynomial.hermite_e.hermegauss(80)
    z = np.stack(np.meshgrid(*[z] * n, indexing="ij"), axis=-1).reshape(-1, n)
    w = np.prod(np.stack(np.meshgrid(*[w] * n, indexing="ij")), axis=0).ravel()
    f = np.column_stack([np.zeros(len(z)), a + z @ L.T])
    p = np.exp(f - f.max(axis=1, keepdims=True))
    s = (p / p.sum(axis=1, keepdims=True)) @ weights
    square = float(w @ s**2) / np.sqrt(2.0 * np.pi) ** n
    assert jet.square is not None
    assert square <= float(jet.square[0]) <= square + 1e-7
    left = square - float(jet.value[0]) ** 2
    for order, tensor in enumerate(jet.derivatives, 1):
        left -= float(np.sum(tensor**2)) / math.factorial(order)
        own = replace(jet, derivatives=jet.derivatives[:order], errors=jet.errors[:, : order + 1])
        assert left <= float(unexplained(own)[0]) ** 2 <= left + 1e-6


def test_errors_of_derivatives_explain_nothing():
    """Each degree counts as the least that its error allows, for a form by `n^((k - 1) / 2)`."""
    value, first, second = np.array([0.4]), np.array([[0.3, 0.0]]), np.diag([0.3, 0.2])[None]
    jet = ClassJet(value, (first, second), np.array([[0.1, 0.05, 0.02]]), square=np.array([0.5]))
    explained = 0.3**2 + 0.25**2 + (np.sqrt(0.13) - np.sqrt(2.0) * 0.02) ** 2 / 2.0
    found = float(unexplained(jet)[0]) ** 2
    assert 0.5 - explained <= found <= 0.5 - explained + 1e-12


def plain_sizes(L, u, W):
    """The move's sizes in the links' metric."""
    n = len(L)
    C = np.linalg.cholesky(2.0 * (np.eye(n) - 1.0 / (n + 1))) * (1 + 1e-9)
    moved = C.T @ L @ W @ L.T @ C
    spread = np.abs(np.linalg.eigvalsh(moved)).sum()
    return np.array([np.linalg.norm(C.T @ L @ u)]), np.array([spread])


@settings(max_examples=examples(60))
@given(**LINES)
def test_derivatives_stay_below_their_bounds_along_the_line(seed, n, probit):
    """Orders 1 to 4 at points of the line, in the metric of its beginning."""
    rng = np.random.default_rng(seed)
    likelihood = either_likelihood(probit, n)
    a, L, u, W = random_line(rng, n, float(rng.choice([0.1, 0.5])))
    bounds = shrunk_bounds(UNIMODAL_BOUNDS, np.array([np.abs(np.linalg.eigvalsh(W)).max()]))
    for s in rng.random(3):
        root = np.linalg.cholesky(np.eye(n) + s * W)
        there = likelihood.moments((a + s * L @ u)[None], (L @ root)[None], 4)
        v = rng.normal(size=n)
        v = v / np.linalg.norm(v)
        turned = np.linalg.solve(root, v)  # the same direction in standard deviations there
        for c in range(n + 1):
            for j, tensor in enumerate(there.derivatives, 1):
                size = tensor[0, c]
                for _ in range(j):
                    size = size @ turned
                error = there.errors[0, j] * np.linalg.norm(turned) ** j + ROUNDING
                assert abs(float(size)) <= float(bounds[j - 1][0]) + error


class Perturbed(Softmax):
    """A softmax whose derivatives of one order are off by as much as it says."""

    def with_error(self, order, size):
        object.__setattr__(self, "off", (order, size))
        return self

    def moments(self, a, L, order):
        found = super().moments(a, L, order)
        off, size = self.off
        n = a.shape[1]
        u = np.full(n, n**-0.5)
        tensors, errors = [found.value, *found.derivatives], found.errors.copy()
        if off <= order:
            tensor = np.ones(())
            for _ in range(off):
                tensor = tensor[..., None] * u
            tensors[off] = tensors[off] + size * tensor
            errors[:, off] += abs(size) * (1 + 1e-12)
        return ClassMoments(tensors[0], tuple(tensors[1:]), errors)


def moving(coupled, m):
    """Means and variances that move across a cell of half-width 0.3."""
    kernel = SquaredExponential(1.0, 4.0)
    Z = np.array([[0.0], [1.0]])
    weights = 0.4 * np.array([[1.0, -1.0], [-0.5, 0.8], [0.2, 0.3], [0.0, -0.2]])[:m]
    factor = np.zeros((m, m, 2))
    for c in range(m):
        factor[c, c, 0] = 0.45
    return Posterior(kernel, Z, weights, factor, likelihood=Softmax(), coupled=coupled)


@crossed({"order": [0, 1, 2, 3, 4, 5, 6], "size": [-0.4, -0.01, 0.01, 0.4], "m": [2, 3]})
def test_honest_errors_of_tensors_are_counted(order, size, m):
    posterior = moving(True, m)
    region = Box([0.3], [0.9])
    own = evaluation_of(posterior, region)
    likelihood = Perturbed().with_error(order, size)
    moments = likelihood.moments(own.place.change.means.reference, own.place.L, 4)
    place = replace(own.place, likelihood=likelihood)
    X = np.linspace(0.3, 0.9, 61)[:, None]
    for c in range(m):
        for sign in (1.0, -1.0):
            weights = tuple(sign * float(k == c) for k in range(m))
            jet = weighted_jet(((sign, class_jet(moments, c)),))
            lower = float(taylor_bound(own.latent, place, jet).lower[0])
            assert lower <= true_sums(posterior, X, weights)[1].min()
            low, high = (float(to_numpy(end)[0]) for end in center_range(own.latent, place, jet))
            true_low, true_high = true_sums(posterior, np.array([[0.6]]), weights)
            assert low <= true_high[0]
            assert high >= true_low[0]


@crossed({"coupled": [True, False], "m": [2, 3, 4]}, quick=2)
def test_the_expansion_converges_with_the_cell(coupled, m):
    """Third order: an eighth of the gap for half of the width, at least a quarter."""
    posterior, e = moving(coupled, m), np.eye(m)
    gaps = []
    for half in (0.08, 0.04, 0.02):
        own = evaluation_of(posterior, Box([0.6 - half], [0.6 + half]))
        X = np.linspace(0.6 - half, 0.6 + half, 41)[:, None]
        low = [float(own.lower(tuple(row), None).lower[0]) for row in e]
        true = [true_sums(posterior, X, tuple(row))[0].min() for row in e]
        gaps.append(max(np.subtract(true, low)))
    assert gaps[2] < gaps[1] / 3.5 < gaps[0] / 12


def test_honest_errors_bite_where_little_else_is_lost():
    """Constant covariance, means on a nearly straight line: only the quadratic form's error counts;
    and a covariance that moves with the means: those of orders 3 and 4."""
    steady = Posterior(
        SquaredExponential(1e2, 2.0),
        [[-1e2], [1e2]],
        np.outer([-0.5, 0.5], [-1.0, 1.0]) * 1e2 / 2.0,
        np.zeros((2, 1, 2)),
        likelihood=Softmax(),
        coupled=True,
    )
    region = Box([-0.6], [0.6])
    X = np.linspace(-0.6, 0.6, 61)[:, None]
    cases = [(steady, region, X, order, size) for order in (1, 2) for size in (-0.5, 0.5)]
    region, X = Box([0.45], [0.75]), np.linspace(0.45, 0.75, 61)[:, None]
    cases += [(moving(True, 2), region, X, order, size) for order in (3, 4) for size in (-9.0, 9.0)]
    for posterior, region, X, order, size in cases:
        own = evaluation_of(posterior, region)
        likelihood = Perturbed().with_error(order, size)
        moments = likelihood.moments(own.place.change.means.reference, own.place.L, 4)
        place = replace(own.place, likelihood=likelihood)
        for c, sign in ((0, 1.0), (0, -1.0), (1, 1.0), (1, -1.0)):
            weights = tuple(sign * float(k == c) for k in range(2))
            jet = weighted_jet(((sign, class_jet(moments, c)),))
            lower = float(taylor_bound(own.latent, place, jet).lower[0])
            assert lower <= true_sums(posterior, X, weights)[1].min()


def test_what_bends_is_the_formula():
    """Sizes of tensors meet bends, and their errors meet the whole change."""
    rng = np.random.default_rng(0)
    value, tensors = rng.random((1, 1)), [rng.normal(size=(1, 1, *[2] * j)) for j in range(1, 5)]
    errors = rng.random((1, 5))
    jet = class_jet(ClassMoments(value, tuple(tensors), errors), 0)
    t = [np.linalg.norm(np.ravel(tensor)) + errors[0, j] for j, tensor in enumerate(tensors, 1)]
    second = tensors[1][0, 0] + tensors[1][0, 0].T  # a symmetric form: its largest eigenvalue
    e, t[1] = errors[0], np.linalg.norm(second / 2.0, 2) + errors[0, 2]
    A, a, W, w = 0.7, 0.2, 0.5, 0.1
    sizes = SimpleNamespace(
        mean=np.array([A]), mean_bend=np.array([a]), spread=np.array([W]), spread_bend=np.array([w])
    )
    second = t[1] * (2 * A * a + a * a) / 2 + e[2] * A * A / 2
    third = t[2] * (a * W + A * w) / 2 + e[3] * A * W / 2
    fourth = t[3] * (2 * W * w + w * w) / 8 + e[4] * W * W / 8
    found = float(missed_bends(jet, sizes)[0])
    assert found == pytest.approx(second + third + fourth, rel=1e-12)
    assert found >= second + third + fourth
