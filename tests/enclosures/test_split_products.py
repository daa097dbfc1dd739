"""Products that are exact but for the last rounding: rows split into two parts, and bounds of the
errors of products with a Gram matrix and with each other, against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.split_gram import SplitGram, split
from gpcert.numerics.arrays import Backend, to_numpy
from gpcert.numerics.rounding import TINY, gamma, up
from gpcert.testing.effort import examples
from tests.strategies import seeds

LARGEST = 2.0**970
"""Entries of rows that can be split."""


def fractions(values: Any) -> list[Fraction]:
    return [Fraction(float(v)) for v in np.ravel(to_numpy(values))]


def bits_of(N: int) -> int:
    return SplitGram.of(np.eye(N), False, Backend()).bits


def hostile_rows(rng: np.random.Generator, n: int, N: int, most: float = 1e290) -> np.ndarray:
    """Zeros, tiny and huge numbers, and rows of every size, some of which cancel."""
    rows = rng.normal(size=(n, N)) * 10.0 ** (rng.choice([0.0, 2.0, 6.0]) * rng.normal(size=N))
    kind = rng.integers(0, 8, n)
    rows[kind == 0] = 0.0
    rows[kind == 1] *= 1e-310
    rows[kind == 2] = rng.choice([most, -most, 0.0, 1.0, 5e-324], (n, N))[kind == 2]
    rows[kind == 3] *= 1e-155
    rows[kind == 4] = np.round(rows[kind == 4])
    rows[kind == 5] *= 2.0 ** -np.arange(N)
    rows[kind == 6, N // 2 :] = -rows[kind == 6, : N - N // 2]
    return rows


def unit_of(values: list[Fraction]) -> Fraction:
    """The largest power of two that all of them are multiples of."""
    some = [v for v in values if v]
    lowest = [(v.numerator & -v.numerator).bit_length() - v.denominator.bit_length() for v in some]
    return Fraction(2) ** min(lowest, default=0)


@settings(max_examples=examples(200, quick=60))
@given(seed=seeds, N=st.sampled_from([1, 2, 3, 7, 8, 30, 300]))
def test_split_is_exact(seed: int, N: int) -> None:
    check_split(seed, N, Backend())


def test_split_is_exact_on_every_backend(backend: Backend) -> None:
    for seed, N in ((0, 1), (1, 2), (2, 7), (3, 30)):
        check_split(seed, N, backend)


def check_split(seed: int, N: int, backend: Backend) -> None:
    """Both parts are exact; whole multiples, at most 2^bits, of a power of two, and small rests;
    sums of products of such parts are exact in any order."""
    rng = np.random.default_rng(seed)
    bits = bits_of(N)
    rows = hostile_rows(rng, 4, N, float(rng.choice([1e290, 0.99 * LARGEST])))
    high, low = (to_numpy(part) for part in split(backend.asarray(rows), bits))
    for row, own, rest in zip(rows, high, low, strict=True):
        assert fractions(row) == [
            a + b for a, b in zip(fractions(own), fractions(rest), strict=True)
        ]
        unit, largest = unit_of(fractions(own)), max(map(abs, fractions(own)))
        assert largest <= unit * 2**bits
        least = max(float(np.abs(row).max()), 2.0**-900)
        assert np.all(np.abs(rest) <= 2.0 ** (1 - bits) * least)
    K = rng.normal(size=(N, N)) * 10.0 ** float(rng.choice([-8.0, 0.0, 8.0]))
    gram = SplitGram.of(K, True, Backend())
    assert np.array_equal(gram.both[:N], gram.high)
    for column in (0, N // 2):
        parts = (fractions(part[:, column]) for part in (gram.high, gram.both[N:]))
        assert fractions(K[:, column]) == [a + b for a, b in zip(*parts, strict=True)]
    other, _ = split(rng.normal(size=(1, N)), bits)
    for left, right in ((high[0], gram.high[:, 0]), (high[1], other[0]), (high[2], gram.high[0])):
        if np.abs(left).max() > 1e250 or 0 < np.abs(left).max() < 1e-250:
            continue  # the products leave float64
        true = sum(
            (a * b for a, b in zip(fractions(left), fractions(right), strict=True)), Fraction(0)
        )
        for order in (np.arange(N), rng.permutation(N), np.argsort(-np.abs(left * right))):
            sums = np.cumsum(left[order] * right[order])
            assert Fraction(float(sums[-1])) == true
        assert Fraction(float(left @ right)) == true


@pytest.mark.parametrize("size", [1e293, 1e300, 1.7e308])
def test_split_of_the_largest_numbers(size: float) -> None:
    rows = np.array([[size, -size / 3.0, 1.0]])
    high, low = split(rows, 20)
    assert fractions(rows) == [a + b for a, b in zip(fractions(high), fractions(low), strict=True)]


def own_roundings(value: float) -> Fraction:
    """Two roundings of its own size, and what may underflow."""
    return Fraction(gamma(2)) * abs(Fraction(float(value))) + Fraction(TINY)


@settings(max_examples=examples(150, quick=50))
@given(seed=seeds, N=st.sampled_from([1, 2, 3, 8, 30]), exactly=st.booleans())
def test_products_with_a_gram_matrix(seed: int, N: int, exactly: bool) -> None:
    """`W K` of the computed K against fractions, for rows of every size."""
    check_times(seed, N, exactly, Backend())


@settings(max_examples=examples(150, quick=50))
@given(seed=seeds, N=st.sampled_from([1, 2, 3, 8, 30]), exactly=st.booleans())
def test_products_of_rows(seed: int, N: int, exactly: bool) -> None:
    """`first second^T` against fractions; an infinite bound where squares leave float64."""
    check_dots(seed, N, exactly, Backend())


@pytest.mark.parametrize("exactly", [True, False])
def test_products_on_every_backend(backend: Backend, exactly: bool) -> None:
    for seed in range(4):
        check_times(seed, 8, exactly, backend)
        check_dots(seed, 8, exactly, backend)


def check_times(seed: int, N: int, exactly: bool, backend: Backend) -> None:
    rng = np.random.default_rng(seed)
    K = rng.normal(size=(N, N)) * 10.0 ** rng.uniform(-3, 1, (N, N))
    K = np.tril(K) + np.tril(K, -1).T
    gram = SplitGram.of(K, exactly, backend)
    W = hostile_rows(rng, 4, N)
    for n, row in enumerate(W):
        if N > 1 and 1e-200 < np.abs(row).max() < 1e200:  # the products cancel
            W[n, -1] = -float(row[:-1] @ K[:-1, 0]) / float(K[-1, 0])
    one = backend.asarray(up(np.abs(W).sum(axis=1), N))
    product, rest, error = gram.times(backend.asarray(W), one)
    parts = to_numpy(product), np.zeros(W.shape) + to_numpy(rest), to_numpy(error)
    for row, product, rest, bound in zip(W, *parts, strict=True):
        for j in range(N):
            true = sum(
                (a * b for a, b in zip(fractions(row), fractions(K[:, j]), strict=True)),
                Fraction(0),
            )
            gap = abs(Fraction(float(product[j])) + Fraction(float(rest[j])) - true)
            own = Fraction(TINY) if exactly else own_roundings(product[j])
            assert gap <= Fraction(float(bound)) + own
            assert abs(rest[j]) * gamma(2 * N) <= bound + TINY


def check_dots(seed: int, N: int, exactly: bool, backend: Backend) -> None:
    rng = np.random.default_rng(seed)
    gram = SplitGram.of(np.eye(N), exactly, backend)
    first, second = (hostile_rows(rng, 6, N, 1e140).reshape(2, 3, N) for _ in range(2))
    if N > 1:  # some cancel
        first[0, 0], second[0, 0] = rng.normal(size=(2, N))
        second[0, 0, -1] = -float(first[0, 0, :-1] @ second[0, 0, :-1]) / first[0, 0, -1]
    found, rest, error = gram.dots(backend.asarray(first), backend.asarray(second))
    found, error = to_numpy(found), to_numpy(error)
    rest = np.zeros(found.shape) + to_numpy(rest)
    for place in np.ndindex(2, 3, 3):
        b, i, j = place
        assert not math.isnan(error[place])
        if math.isinf(error[place]):
            assert max(np.abs(first[b, i]).max(), np.abs(second[b, j]).max()) > 1e139
            continue
        true = sum(
            (x * y for x, y in zip(fractions(first[b, i]), fractions(second[b, j]), strict=True)),
            Fraction(0),
        )
        gap = abs(Fraction(float(found[place])) + Fraction(float(rest[place])) - true)
        own = own_roundings(rest[place] if exactly else found[place])
        assert gap <= Fraction(float(error[place])) + own


def test_sums_are_exact_but_for_the_last_rounding() -> None:
    """What exact sums are for: a bound that is smaller by the digits that were split off."""
    rng = np.random.default_rng(0)
    K, W = rng.uniform(0, 1, (100, 100)), rng.normal(size=(5, 100))
    one = np.abs(W).sum(axis=1)
    plain, sharp = (SplitGram.of(K, exactly, Backend()) for exactly in (False, True))
    assert np.all(sharp.times(W, one)[2] <= 1e-5 * plain.times(W, one)[2])
    rows = W[None]
    assert np.all(sharp.dots(rows, rows)[2] <= 1e-5 * plain.dots(rows, rows)[2])
