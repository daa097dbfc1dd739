"""Values and derivatives of class probabilities and of their sums at a reference."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.classes.jets import (
    class_jet,
    coupled_jet,
    independent_jet,
    weighted_jet,
)
from gpcert.integrals.moments import ClassMoments
from gpcert.testing.effort import examples
from tests.enclosures.classes.class_cases import (
    class_cases,
    random_evaluation,
)


@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 5))
def test_the_rounding_of_weighted_sums(seed, count):
    """Sums in rational arithmetic, terms that cancel among them."""
    rng = np.random.default_rng(seed)
    n = 2

    def jet():
        moments = ClassMoments(
            rng.random((1, 1)),
            (rng.normal(size=(1, 1, n)), rng.normal(size=(1, 1, n, n))),
            rng.random((1, 3)) * float(rng.choice([0.0, 1e-15, 0.1])),
        )
        return class_jet(moments, 0)

    first = jet()
    parts = [(1.0 / 3.0, first), (-1.0 / 3.0 * (1 + 2.0**-50), first)]
    parts += [(float(rng.normal() * 10.0 ** rng.uniform(-5, 5)), jet()) for _ in range(count)]
    found = weighted_jet(tuple(parts))

    def gap(pick):
        exact_sum = [
            sum(
                Fraction(w) * Fraction(float(x))
                for w, x in zip([w for w, _ in parts], row, strict=True)
            )
            for row in zip(*[np.ravel(pick(own)) for _, own in parts], strict=True)
        ]
        gaps = [
            Fraction(float(x)) - y for x, y in zip(np.ravel(pick(found)), exact_sum, strict=True)
        ]
        return sum(g * g for g in gaps)

    for j, pick in enumerate(
        [lambda own: own.value, *(lambda own, k=k: own.derivatives[k] for k in (0, 1))]
    ):
        claimed = sum(Fraction(abs(w)) * Fraction(float(own.errors[0, j])) for w, own in parts)
        room = Fraction(float(found.errors[0, j])) - claimed
        assert room >= 0
        assert gap(pick) <= room * room
    assert found.total >= sum(abs(w) for w, _ in parts)


@settings(max_examples=examples(40))
@given(case=class_cases(coupled=False))
def test_two_ways_to_the_same_jet(case):
    """One-dimensional integrals for independent outputs, and moments of the differences."""
    own = random_evaluation(case, keep=3)
    if not own.by_moments:
        return
    moments = own.likelihood.moments(own.place.change.means.reference, own.place.L, 2)
    for c in range(own.layout.classes):
        one, other = independent_jet(own.likelihood, own.place, c), class_jet(moments, c)
        room = one.errors + other.errors
        assert np.all(np.abs(one.value - other.value) <= room[:, 0])
        gap = np.linalg.norm(one.derivatives[0] - other.derivatives[0], axis=1)
        assert np.all(gap <= room[:, 1])
        gap = np.linalg.norm(one.derivatives[1] - other.derivatives[1], ord=2, axis=(1, 2))
        assert np.all(gap <= room[:, 2])
        assert one.products is not None
        other = coupled_jet(own.likelihood, moments, own.place, c)
        room = (one.products_error + other.products_error)[:, None]
        assert np.all(np.abs(one.products - other.products) <= room)
        assert np.all(room[:, :3] < 1e-3)
