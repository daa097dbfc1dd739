"""Posteriors whose training noise is known: what is accepted, kept and refused, and how far their
stored factor is proved to be from (K + noise)^-1, against ball arithmetic."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import Kernel, Matern, SquaredExponential
from gpcert.model.posterior import Posterior
from gpcert.model.posterior_file import FORMAT, TRAINING_NOISE, check_shapes
from gpcert.numerics.spectral import GramBlock, absolute_norm, gram_circles, inverse_distance
from gpcert.numerics.triangular import Inverse
from gpcert.regions import Box, LinearMap
from gpcert.testing.arb_reference import ArbPosterior, kernel_reference
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import dot, exact, flint
from gpcert.utils.archive import write_arrays
from tests.enclosures.residual_cases import KERNELS, TruePrecision, arb, at_most, precisely
from tests.strategies import seeds

KERNEL = SquaredExponential([0.5, 0.7], 2.0)
POINTS = np.random.default_rng(0).uniform(-1, 1, (5, 2))
GOOD: dict[str, Any] = {"kernel": KERNEL, "points": POINTS, "weights": np.arange(5.0)}
TWO: dict[str, Any] = {**GOOD, "weights": np.ones((2, 5))}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"training_noise": 0.0}, r"training_noise: expected variances > 0.*least value of 0"),
        ({"training_noise": -1e-9}, "training_noise: expected variances > 0"),
        ({"training_noise": [0.1, 0.1, -0.1, 0.1, 0.1]}, "training_noise: expected variances > 0"),
        ({"training_noise": np.nan}, "training_noise"),
        ({"training_noise": [np.nan, 0.1, 0.1, 0.1, 0.1]}, "training_noise"),
        ({"training_noise": -np.inf}, "training_noise"),
        ({"training_noise": "much"}, "training_noise: expected numbers"),
        ({"training_noise": [0.1, 0.1]}, r"training_noise: .*got shape \(2,\)"),
        ({"training_noise": np.ones((2, 5))}, r"training_noise: .*\(1, 5\), .*shape \(2, 5\)"),
        ({"training_noise": np.ones((5, 1))}, "training_noise"),
        ({"training_noise": np.ones((1, 1, 5))}, "training_noise"),
        ({"training_noise": []}, "training_noise"),
        ({"training_noise": 0.1, "negative_factor": np.ones((1, 5))}, "negative_factor"),
        ({"training_noise": 1e-40, "points": np.zeros((5, 2))}, "no Cholesky factor"),
    ],
)
def test_refuses(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Posterior(**{**GOOD, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coupled": True, "factor": np.ones((2, 5, 5))}, "coupled outputs"),
        ({"factor": np.ones((2, 5, 5))}, "as many rows as the factor has, 2, got 1"),
        ({"factor": np.eye(5), "training_noise": np.ones((2, 5))}, "factor has, 1, got 2"),
        ({"training_noise": np.ones((3, 5))}, "training_noise"),
    ],
)
def test_refuses_of_several_outputs(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Posterior(**{**TWO, "training_noise": 0.1, **changes})


def test_noise_beyond_float64_in_units_of_the_kernel_is_refused() -> None:
    model = Posterior(
        SquaredExponential(1.0, 1e300), POINTS, np.zeros(5), np.zeros((5, 5)), training_noise=1e-300
    )
    with pytest.raises(InputError, match="training_noise: it is beyond float64 in units"):
        gpcert.prediction_range(model, Box([0.0, 0.0], [0.1, 0.1]), quantity="variance", tol=1.0)


@pytest.mark.parametrize(
    ("noise", "shape"),
    [
        (0.1, (1, 5)),
        (np.full(5, 0.1), (1, 5)),
        (np.full((1, 5), 0.1), (1, 5)),
        ([0.1, 0.2, np.inf, 0.1, 3], (1, 5)),
        (np.linspace(0.1, 1.0, 10).reshape(2, 5), (2, 5)),
    ],
)
def test_shapes_and_factors_that_are_found(noise: Any, shape: tuple[int, int]) -> None:
    """A copy that cannot be written, and A with A^T A about (K + noise)^-1 of what was observed."""
    given = np.array(noise, dtype=float)
    model = Posterior(**(TWO if shape[0] == 2 else GOOD), training_noise=given)
    assert model.training_noise.shape == shape
    assert not model.training_noise.flags.writeable
    before = model.training_noise.copy()
    given[...] = 7.0
    assert np.array_equal(model.training_noise, before)
    assert model.factor.shape == (shape[0], 5, 5)
    K = KERNEL.value(POINTS, POINTS)
    for A, row in zip(model.factor, before, strict=True):
        seen = np.isfinite(row)
        S = np.zeros((5, 5))
        S[np.ix_(seen, seen)] = np.linalg.inv((K + np.diag(row))[np.ix_(seen, seen)])
        np.testing.assert_allclose(A.T @ A, S, atol=1e-10 * np.abs(S).max())
        assert np.array_equal(A, np.tril(A))
        assert not np.any(A[:, ~seen])
        assert not np.any(A[~seen])


def test_a_factor_where_nothing_was_observed() -> None:
    assert not np.any(Posterior(**GOOD, training_noise=np.inf).factor)


def test_an_empty_negative_factor_is_none() -> None:
    model = Posterior(**GOOD, training_noise=0.1, negative_factor=np.zeros((0, 5)))
    assert np.array_equal(model.factor, Posterior(**GOOD, training_noise=0.1).factor)


def models() -> list[Posterior]:
    """Of much noise and next to none, one output or two, behind features, with a known inverse."""
    K = KERNEL.value(POINTS, POINTS)
    inverse = Inverse.of(np.linalg.cholesky(K + 1e-3 * np.eye(5)))
    features = LinearMap([[1.0, 0.5], [0.0, 2.0]], [0.1, 0.2])
    hard = np.concatenate([POINTS, POINTS + 1e-6])
    return [
        Posterior(**GOOD, training_noise=0.1),
        Posterior(**GOOD, training_noise=[0.1, 0.2, np.inf, 0.1, 3.0]),
        Posterior(**GOOD, training_noise=1e-10, features=features, offset=2.0),
        Posterior(**TWO, training_noise=[[1e-8] * 5, [0.1] * 5], scale=[1.0, 30.0]),
        Posterior(**{**GOOD, "factor": inverse}, training_noise=1e-3),
        Posterior(Matern(1.0, 1.5), hard, np.ones(10), training_noise=1e-9),
    ]


@pytest.mark.parametrize("number", range(6))
def test_a_loaded_file_answers_bit_by_bit(number: int, tmp_path: Any) -> None:
    model = models()[number]
    model.save(tmp_path / "model.npz")
    again = Posterior.load(tmp_path / "model.npz")
    for name in ("points", "weights", "factor", "training_noise", "offset", "scale", "noise"):
        assert np.array_equal(getattr(again, name), getattr(model, name)), name
    assert again.training_noise.dtype == np.float64
    assert again.fingerprint == model.fingerprint
    assert again.unit.distances == model.unit.distances
    low = np.random.default_rng(1).uniform(-1, 1, (4, 2))
    boxes = low, low + np.array([[0.0], [1e-3], [0.1], [1.0]])
    quantities: Any = ("mean", "variance", "std")
    first, second = (
        gpcert.bound_boxes(each, *boxes, quantity=quantities) for each in (model, again)
    )
    for name in quantities:
        assert np.array_equal(first[name], second[name]), name
    ranges = [
        gpcert.prediction_range(
            each, Box(*(side[2] for side in boxes)), quantity="variance", tol=1e-3, random_state=0
        )
        for each in (model, again)
    ]
    assert ranges[0].minimum.lower == ranges[1].minimum.lower
    assert ranges[0].maximum.upper == ranges[1].maximum.upper


def test_the_fingerprint_tells_noise_apart() -> None:
    one = Posterior(**GOOD, training_noise=0.1)
    other = replace(one, training_noise=np.nextafter(0.1, 1.0))
    without = replace(one, training_noise=None)
    assert np.array_equal(one.factor, other.factor)
    assert len({one.fingerprint, other.fingerprint, without.fingerprint}) == 3
    assert Posterior(**GOOD, training_noise=[0.1] * 5).fingerprint == one.fingerprint


def test_replacing_and_copying_keep_the_noise() -> None:
    model = Posterior(**GOOD, training_noise=np.linspace(0.1, 0.2, 5))
    for other in (
        replace(model, offset=3.0),
        replace(model, weights=np.zeros(5)),
        copy.copy(model),
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
    ):
        assert np.array_equal(other.training_noise, model.training_noise)
        assert np.array_equal(other.factor, model.factor)
        assert not other.training_noise.flags.writeable
    assert replace(model, training_noise=None).training_noise is None


@pytest.mark.parametrize("shape", [(5,), (2, 5), (1, 4), (1, 5, 1), ()])
def test_files_of_other_shapes_are_refused(shape: tuple[int, ...], tmp_path: Any) -> None:
    model = Posterior(**GOOD, training_noise=0.1)
    arrays = {**model.arrays(), TRAINING_NOISE: np.full(shape, 0.1)}
    check_shapes({name: values.shape for name, values in model.arrays().items()})
    with pytest.raises(InputError):
        check_shapes({name: values.shape for name, values in arrays.items()})
    write_arrays(tmp_path / "model.npz", {"format": FORMAT, **model.header()}, arrays)
    with pytest.raises(InputError, match=r"model\.npz"):
        Posterior.load(tmp_path / "model.npz")


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan])
def test_files_of_other_numbers_are_refused(value: float, tmp_path: Any) -> None:
    model = Posterior(**GOOD, training_noise=0.1)
    arrays = {**model.arrays(), TRAINING_NOISE: np.full((1, 5), value)}
    write_arrays(tmp_path / "model.npz", {"format": FORMAT, **model.header()}, arrays)
    with pytest.raises(InputError, match=r"model\.npz.*training_noise"):
        Posterior.load(tmp_path / "model.npz")


def distance_case(seed: int, name: str, N: int, noise: float, off: float) -> Posterior:
    """A factor that is off by so much, in all directions alike or at random."""
    rng = np.random.default_rng(seed)
    size, lengths = float(rng.choice([1.0, 1e-100, 1e100])), 10.0 ** rng.uniform(-0.5, 0.5, 2)
    kernel: Kernel = KERNELS[name](lengths, size * float(rng.uniform(0.5, 2.0)))
    points = lengths * rng.normal(size=(N, 2)) * rng.choice([0.1, 1.0])
    sigma = size * noise * 10.0 ** rng.uniform(-0.5, 0.5, N)
    L = np.linalg.cholesky(kernel.value(points, points) / size + np.diag(sigma / size))
    factor: Any = Inverse.of(L * np.sqrt(size))
    if off:
        change = off * (rng.normal(size=L.shape) if rng.random() < 0.3 else rng.choice([-1.0, 1.0]))
        factor = np.tril(factor.matrix * (1.0 + change))
    return Posterior(kernel, points, np.zeros(N), factor, training_noise=sigma)


@settings(max_examples=examples(200, quick=50), deadline=None)
@given(
    seed=seeds,
    name=st.sampled_from(sorted(KERNELS)),
    N=st.sampled_from([1, 1, 2, 5, 12]),
    noise=st.sampled_from([1.0, 1e-2, 1e-4, 1e-6]),
    off=st.sampled_from([0.0, 1e-2, 1e-4, 1e-8]),
)
def test_distances_of_factors(seed: int, name: str, N: int, noise: float, off: float) -> None:
    """`|k (S - A^T A) k| <= eta k(x, x)` at points, beside them and anywhere."""
    posterior = distance_case(seed, name, N, noise, off)
    rng, unit = np.random.default_rng(seed), posterior.unit
    (eta,) = unit.distances
    assert unit.training_noise is not None
    assert not np.isnan(eta)
    if np.isinf(eta):
        assert off > 0
        return
    places = posterior.points[rng.integers(N, size=4)]
    places[2:] += rng.normal(size=(2, 2)) * np.abs(posterior.points).max()
    with precisely():
        reference = ArbPosterior(unit)
        truth = TruePrecision(reference.gram().tolist(), unit.training_noise[0])
        for x in places:
            row, at = reference.row(x), exact(x)
            stored = dot(*[[dot(a, row) for a in reference.factors[0]]] * 2)
            gap = abs(truth.form(row, row) - stored)
            at_most(gap, arb(eta) * kernel_reference(unit.kernel, at, at), "distance")


@pytest.mark.parametrize("noise", [1.0, 1e-3, 1e-6, 1e-9, 1e-12])
def test_distances_do_not_depend_on_a_known_inverse(noise: float) -> None:
    """A file holds none: a loaded model answers like the saved one."""
    for seed, N in enumerate((1, 5, 40, 450 if noise == 1e-3 else 130)):
        rng = np.random.default_rng(seed)
        X, sigma = rng.uniform(size=(N, 2)), noise * rng.uniform(0.5, 2.0, N)
        for kernel in (SquaredExponential(0.5, 3.0), Matern(0.5, 0.5) + 0.3):
            known = Inverse.of(np.linalg.cholesky(kernel.value(X, X) + np.diag(sigma)))
            found, alone = (
                Posterior(kernel, X, np.zeros(N), A, training_noise=sigma).unit
                for A in (known, np.array(known.matrix))
            )
            assert found.distances == alone.distances
            assert found.excess == alone.excess


def test_a_distance_is_nearly_attained() -> None:
    """By one point whose factor is off by 1e-4: half of it would be wrong."""
    A = (1.0 + 1e-4) / np.sqrt(1.0 + 1e-3)
    posterior = Posterior(SquaredExponential(1.0), [[0.0]], [1.0], [[A]], training_noise=1e-3)
    (eta,) = posterior.unit.distances
    gap = abs(1.0 / (1.0 + 1e-3) - A * A)
    assert gap <= eta <= 1.1 * gap


@pytest.mark.parametrize("factor", ["dense", "none observed", "far"])
def test_what_cannot_be_compared_is_infinitely_far(factor: str) -> None:
    noise, A = np.full(5, 0.1), Posterior(**GOOD, training_noise=0.1).factor[0]
    if factor == "dense":
        A = A[::-1]
    elif factor == "far":
        A = 2.0 * A
    else:
        noise[2] = np.inf
    assert Posterior(**GOOD, factor=A, training_noise=noise).unit.distances == (np.inf,)


def test_without_noise_the_factor_is_the_model() -> None:
    model = replace(Posterior(**GOOD, training_noise=0.1), training_noise=None)
    assert model.unit.distances == (0.0,)


@settings(max_examples=examples(60, quick=20), deadline=None)
@given(seed=seeds, kind=st.sampled_from(["found", "digits", "any", "residual"]))
def test_inverse_distances_are_not_below_the_truth(seed: int, kind: str) -> None:
    """`|A (K + Sigma) A^T - I|_2`, K anywhere within its errors."""
    rng = np.random.default_rng(seed)
    N = int(rng.integers(1, 9))
    X = rng.uniform(size=(N, 2))
    K = SquaredExponential(0.7).value(X, X)
    noise = 10.0 ** rng.uniform(-4, 1) * rng.uniform(0.5, 2.0, N)
    A = np.tril(np.linalg.inv(np.linalg.cholesky(K + np.diag(noise))))
    if kind == "digits":
        A = A * (1.0 + 1e-3 * rng.normal(size=A.shape))
    if kind == "any":
        A = np.tril(rng.normal(size=(N, N))) + 2.0 * np.eye(N)
    inverse = Inverse.with_matrix(A)
    if kind == "residual":  # the root is that of K + Sigma, and no inverse of A
        inverse = Inverse(1.01 * A, inverse.root, 0.01 * (1.0 + 1e-9) + 1.02 * inverse.residual)
        A = inverse.matrix
    size, error = absolute_norm(A), float(rng.choice([0.0, 1e-6, 1e-3]))
    pieces = [slice(k, min(k + 3, N)) for k in range(0, N, 3)]
    blocks = [
        GramBlock(rows, columns, K[rows, columns], error * np.ones_like(K[rows, columns]))
        for number, rows in enumerate(pieces)
        for columns in pieces[: number + 1]
    ]
    circles = gram_circles(inverse.root, blocks)
    found = inverse_distance(inverse, circles, noise, size)
    signs = rng.choice([-1.0, 1.0], N)
    for moved in (K, K + error, K - error, K + error * np.outer(signs, signs)):
        with flint().ctx.workprec(300):
            balls = [flint().arb_mat([exact(row) for row in M]) for M in (A, moved)]
            for i in range(N):
                balls[1][i, i] += arb(noise[i])
            M = balls[0] * balls[1] * balls[0].transpose()
            E = [[float((M[i, j] - int(i == j)).mid()) for j in range(N)] for i in range(N)]
        true = float(np.abs(scipy.linalg.eigvalsh(np.array(E))).max())
        assert true * (1.0 - 1e-12) <= found


@pytest.mark.parametrize("noise", [0.1, 1e-3, 1e-6])
def test_the_smallest_variances_and_the_trace(noise: float) -> None:
    """The first about, the second at least."""
    model = Posterior(**GOOD, training_noise=noise * np.linspace(1.0, 2.0, 5))
    unit = model.unit
    about = model.predict(POINTS)[1].min() / 2.0**unit.exponent
    assert unit.smallest_variances == pytest.approx((about,), rel=1e-6)
    true = sum(kernel_reference(unit.kernel, exact(z), exact(z)) for z in POINTS)
    assert not arb(unit.trace) < true
    assert unit.trace <= float(true) * (1.0 + 1e-9)
    assert unit.root_trace**2 >= unit.trace
