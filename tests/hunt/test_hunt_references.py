"""The hunt's own references: complete, and right where another route is known."""

import mpmath
import numpy as np
import pytest
from flint import arb

from gpcert.kernels import KERNELS
from gpcert.likelihoods import MultinomialProbit, Softmax
from tests.hunt.hunt_cases import draw_case
from tests.hunt.hunt_classes import class_probabilities
from tests.hunt.hunt_kernels import FORMULAS, covariance
from tests.hunt.hunt_links import OWN_LINKS, average, logistic, sklearn_logistic
from tests.hunt.hunt_models import LEAVES, draw_kernel
from tests.hunt.hunt_numbers import Balls, above, below, clipped, precise
from tests.hunt.hunt_regions import BallSet


def test_every_kernel_has_a_formula():
    assert {kind.__name__ for kind in KERNELS.values()} == set(FORMULAS)


def test_every_kernel_is_drawn():
    rng = np.random.default_rng(0)
    seen = {type(draw_kernel(rng, 2)).__name__ for _ in range(600)}
    assert seen == set(FORMULAS), set(FORMULAS) - seen
    assert {name.split()[-1] for name in LEAVES} < set(FORMULAS)


@pytest.mark.parametrize("seed", range(20))
def test_formulas_agree_with_the_kernels_own_values(seed):
    rng = np.random.default_rng(seed)
    kernel, d = draw_kernel(rng, 2), 2
    X, Z = rng.normal(size=(2, 3, d))
    values = kernel.value(X, Z)
    with precise():
        for i, j in np.ndindex(3, 3):
            ball = covariance(kernel, *([arb(v) for v in p] for p in (X[i], Z[j])), Balls)
            assert abs(float(ball.mid()) - values[i, j]) <= 1e-11 * max(1.0, abs(values[i, j]))
            assert ball.rad() < 1e-40


@pytest.mark.parametrize(("mu", "v"), [(1.0, 2.0), (-3.0, 0.01), (0.2, 30.0)])
def test_logistic_average_agrees_with_a_quadrature(mu, v):
    with mpmath.workdps(25):

        def density(f):
            return mpmath.npdf(f, mu, mpmath.sqrt(v)) / (1 + mpmath.exp(-f))

        ends = [mu + k * v**0.5 for k in range(-14, 15, 2)]
        expected = float(mpmath.quad(density, ends))
    with precise():
        ball = logistic(arb(mu), arb(v))
    assert abs(float(ball.mid()) - expected) < 1e-15
    assert ball.rad() < 1e-18


def test_average_of_the_constant_link_is_one():
    with precise():
        ball = average(lambda f: f * 0 + 1, arb(0.3), arb(2.0))
    assert not above(ball, 1.0)
    assert not below(ball, 1.0)


def test_the_mixture_of_scikit_learn_is_a_little_below_one_half_at_zero():
    with precise():
        assert below(sklearn_logistic(arb(0), arb(1)), 0.4999999951)


def test_own_links_have_their_averages():
    f = np.array([-1.0, 0.31, 0.8, 2.0])
    with precise():
        for link, mean in OWN_LINKS.values():
            values = [float(mean(arb(x), arb(1e-12)).mid()) for x in f]
            assert np.allclose(values, link(f), atol=1e-6)


@pytest.mark.parametrize("likelihood", [Softmax(), MultinomialProbit(0.5)])
@pytest.mark.parametrize("m", [2, 3, 4])
def test_two_routes_to_class_probabilities_agree(likelihood, m):
    rng = np.random.default_rng(m)
    mu, v = rng.normal(size=m), rng.uniform(0.1, 1.5, m)
    coupled = np.diag(v) + 1e-13 * (1.0 - np.eye(m))  # takes the tensor rule
    with precise():
        one, two = (
            class_probabilities(
                likelihood, [arb(x) for x in mu], [[arb(x) for x in row] for row in cov]
            )
            for cov in (np.diag(v), coupled)
        )
        for a, b in zip(one, two, strict=True):
            assert abs(float(a.mid()) - float(b.mid())) < 1e-8
            assert a.rad() < 1e-8
        total = sum(one[1:], one[0])
        assert total.contains(arb(1))


def test_several_classes_sum_to_one_in_many_dimensions():
    rng = np.random.default_rng(1)
    B = 0.4 * rng.normal(size=(5, 5))
    with precise():
        found = class_probabilities(
            Softmax(), [arb(x) for x in rng.normal(size=5)], [[arb(x) for x in r] for r in B @ B.T]
        )
        assert sum(found[1:], found[0]).contains(arb(1))


def test_membership_is_exact():
    ball = BallSet(np.array([0.1, 0.2]), 0.3, 1.0, None, None)
    assert ball.holds([0.1, 0.2 - 0.3 + 2.0**-54])
    assert not BallSet(np.array([0.0, 0.0]), 0.1, 2.0, None, None).holds([0.1, 1e-300])
    assert not BallSet(np.array([0.0, 0.0]), 0.1, np.inf, (0,), None).holds([0.0, 1e-300])
    assert not BallSet(np.array([0.0]), 1.0, np.inf, None, (0.0, 0.5)).holds([0.75])


def test_clipping_keeps_the_truth():
    with precise():
        assert clipped(arb(-1)) == 0
        assert clipped(arb(0, 1)).contains(arb(0.5))


def test_a_seed_is_a_case():
    first, second = draw_case(5), draw_case(5)
    assert first.text() == second.text()
    assert np.array_equal(first.model.members[0].points, second.model.members[0].points)
