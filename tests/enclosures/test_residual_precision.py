"""Variances by float weights and residuals: what weights prove of (K + Sigma)^-1, against ball
arithmetic of 500 bits."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.square import second_covariance
from gpcert.kernels import Matern, SquaredExponential
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import Backend, to_numpy
from gpcert.regions.scaled import Stretch
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import dot, exact
from tests.enclosures.residual_cases import (
    FeatureCase,
    KernelCase,
    arb,
    at_most,
    check_center,
    explained_of,
    feature_cases,
    kernel_cases,
    precisely,
)


class Errors(NamedTuple):
    """Of the entries of K, and the lengths of those of rows: as large as they are said to be."""

    gram: float
    rows: float


LARGEST_ERRORS = st.builds(
    Errors, *[st.sampled_from([0.0, 0.0, 1e-12, -1e-6, 1e-2, -1e-2]) for _ in range(2)]
)


def computed(
    case: FeatureCase, errors: Errors, vectors: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """K, the centre's row and those of some vectors, off in the directions in which that counts
    most for their weights."""

    def moved(vector: np.ndarray) -> np.ndarray:
        y = case.weights(vector)
        length = float(np.linalg.norm(y))
        return case.row(vector) + (errors.rows * (y / length) if length > 0.0 else 0.0)

    own = case.weights(vectors[0] if len(vectors) else case.center)
    signs = np.where(own < 0, -1.0, 1.0)
    gram = case.gram - errors.gram * np.outer(signs, signs)
    rows = np.array([moved(vector) for vector in vectors]).reshape(-1, len(case.points))
    return gram, moved(case.center), rows


def center_of(case: FeatureCase, precision: Any, row: np.ndarray, backend: Backend) -> Any:
    """What the precision says of the centre, with the true error of its row; where sums are exact
    it asks the kernel for a row anew."""
    sizes = [np.linalg.norm(each) * (1.0 + 1e-14) for each in (row, row - case.row(case.center))]
    numbers = tuple(backend.asarray(np.nextafter([size], np.inf)) for size in sizes)
    local: Any = SimpleNamespace(row_sizes=lambda expansion, order: numbers)
    geometry = SimpleNamespace(rho2=backend.asarray(np.zeros(1)))
    expansion: Any = SimpleNamespace(K=backend.asarray(row[None]), geometry=geometry)
    found = precision.center(local, expansion, case.center[None])
    return found._replace(
        **{name: to_numpy(getattr(found, name)) for name in found._fields if name != "residual"}
    )


@settings(max_examples=examples(300, quick=80))
@given(case=feature_cases(), errors=LARGEST_ERRORS, exactly=st.booleans())
def test_center_with_the_largest_errors(case: FeatureCase, errors: Errors, exactly: bool) -> None:
    check_feature_center(case, errors, exactly, Backend())


def nearer(case: FeatureCase, errors: Errors) -> np.ndarray:
    """The centre's row with errors of its entries, where they count most."""
    y = case.weights(case.center)
    return case.row(case.center) + errors.rows * np.where(y < 0, -1.0, 1.0)


def check_feature_center(
    case: FeatureCase, errors: Errors, exactly: bool, backend: Backend
) -> None:
    with precisely():
        gram, row, _ = computed(case, errors, np.zeros((0, len(case.center))))
        precision = case.precision(gram, exactly, backend, nearer(case, errors))
        found = center_of(case, precision, row, backend)
        prior = dot(exact(case.center), exact(case.center))
        check_center(case.truth, prior, exact(case.row(case.center)), found, 0)


def one_point(noise: float, factor: float) -> FeatureCase:
    """K = 1 and a row of 1/2."""
    one, half, none = np.ones((1, 1)), np.array([0.5]), np.ones((1, 1))
    A = np.array([[factor]])
    return FeatureCase(one, half, none, none, np.array([noise]), A, np.random.default_rng(0))


@pytest.mark.parametrize("exactly", [True, False])
@pytest.mark.parametrize(
    ("errors", "factor"),
    [
        (Errors(0.0, 0.0), 0.0),
        (Errors(0.0, 1e-3), 1e4**-0.5),
        (Errors(1e-3, 0.0), 1e4**-0.5),
        (Errors(-1e-3, 1e-4), 1e4**-0.5),
    ],
)
def test_what_is_missed_is_attained(errors: Errors, factor: float, exactly: bool) -> None:
    """By one observation of much noise: an estimate of r.S r that were smaller would be wrong."""
    case = one_point(1e4, factor)
    check_feature_center(case, errors, exactly, Backend())
    gram, row, _ = computed(case, errors, np.zeros((0, 1)))
    precision = case.precision(gram, exactly, Backend(), nearer(case, errors))
    found = center_of(case, precision, row, Backend())
    with precisely():
        r = case.truth.residual(exact(found.weights[0]), exact(case.row(case.center)))
        at_most(arb(float(found.missed[0])), case.truth.form(r, r) * arb("1.5"), "attained")


def test_the_deviation_is_attained_to_a_factor_of_two() -> None:
    """`|Phi S r| <= |Sigma^-1/2 r| / 2`, an equality where the noise is K's only eigenvalue."""
    case = one_point(1.0, 0.0)
    check_feature_center(case, Errors(0.0, 0.0), True, Backend())
    precision = case.precision(case.gram, False, Backend())
    found = center_of(case, precision, case.row(case.center), Backend())
    assert 0.25 <= float(found.deviation[0]) <= 2.0 * 0.25 * (1.0 + 1e-9)


def test_noise_of_weights_is_not_above_the_truth() -> None:
    """`noisy <= w.Sigma w`, also of few points: what was added in rounding up is taken off."""
    rng = np.random.default_rng(0)
    for noise in 10.0 ** rng.uniform(-3, 1, 20):
        case = one_point(noise, (1.0 + noise) ** -0.5)
        precision = case.precision(case.gram, False, Backend())
        found = center_of(case, precision, case.row(case.center), Backend())
        w = Fraction(float(found.weights[0, 0]))
        assert Fraction(float(found.noisy[0])) <= w * Fraction(noise) * w


@settings(max_examples=examples(200, quick=40))
@given(case=kernel_cases(), anew=st.booleans())
def test_center_of_kernels(case: KernelCase, anew: bool) -> None:
    found = case.center(anew)
    prior, error = case.local.kernel.center_variance(case.expansion)
    with precisely():
        for b, x in enumerate(case.places):
            row, own = case.reference.row(x), case.prior(x)
            check_center(case.truth, own, row, found, b)
            at_most(abs(own - arb(float(prior[b]))), float(error[b]), "k(c, c)")


def unit_vector(rng: np.random.Generator, often: np.ndarray) -> list[Any]:
    """Coefficients of rows that count so often, of a vector of length one over all tuples."""
    e = exact(rng.normal(size=len(often)))
    length = dot(exact(often), [a * a for a in e]).sqrt()
    return [o * a / length for o, a in zip(exact(often), e, strict=True)]


def combined(coefficients: list[Any], rows: Any) -> list[Any]:
    """`sum_j a_j rows_j`."""
    columns = zip(*[exact(row) for row in rows], strict=True)
    return [dot(coefficients, column) for column in columns]


@settings(max_examples=examples(200, quick=50))
@given(case=feature_cases(6), errors=LARGEST_ERRORS, exactly=st.booleans())
def test_forms_with_the_largest_errors(case: FeatureCase, errors: Errors, exactly: bool) -> None:
    check_forms(case, errors, exactly, Backend())


DIRECTIONS = ("anything", "the best", "one of them", "zero", "large and small")


def directions_of(case: FeatureCase, kind: str) -> np.ndarray:
    """Columns, of which weights are made."""
    rng, N = case.rng, len(case.points)
    columns = rng.normal(size=(N, int(rng.integers(1, N + 1))))
    if kind in ("the best", "one of them"):
        roots = 1.0 / np.sqrt(case.noise)
        columns = roots[:, None] * np.linalg.eigh(roots[:, None] * case.gram * roots)[1]
    if kind == "one of them":
        columns = columns[:, -1:]
    if kind == "large and small":
        columns = columns * 10.0 ** rng.uniform(-20.0, 20.0, columns.shape[1])
    return 0.0 * columns if kind == "zero" else columns


@settings(max_examples=examples(200, quick=50))
@given(
    case=feature_cases(6),
    errors=LARGEST_ERRORS,
    exactly=st.booleans(),
    kind=st.sampled_from(DIRECTIONS),
)
def test_forms_of_weights_out_of_any_directions(
    case: FeatureCase, errors: Errors, exactly: bool, kind: str
) -> None:
    check_forms(case, errors, exactly, Backend(), directions_of(case, kind))


def check_forms(
    case: FeatureCase,
    errors: Errors,
    exactly: bool,
    backend: Backend,
    directions: np.ndarray | None = None,
) -> None:
    """`k_a.S k_b` for sums of rows of degree 1 and 2, and what their weights make of the residual
    at the centre."""
    with precisely():
        vectors, truth = case.vectors, case.truth
        gram, row, rows = computed(case, errors, vectors)
        row_anew = nearer(case, errors)
        precision = case.precision(gram, exactly, backend, row_anew, directions)
        center = center_of(case, precision, row, backend)
        true = np.array([case.row(vector) for vector in vectors])
        degrees = case.degrees(rows, true, backend)
        forms = precision.explained_forms(backend.asarray(rows[None]), degrees, center)
        matrix = to_numpy(forms.matrix)[0]
        w = exact(to_numpy(center.weights)[0])
        k = exact(case.row(case.center))
        r = truth.residual(w, k)
        sums: list[tuple[Any, ...]] = []
        for degree in degrees:
            e = unit_vector(case.rng, to_numpy(degree.often))
            sums.append((e, combined(e, true[degree.rows])))
            if directions is None:
                own = combined(e, to_numpy(precision.kept.value)[degree.rows])
                crossed = float(forms.crossed[len(sums) - 1][0])
                at_most(abs(dot(own, r)), crossed, "crossed")
        for a, b in forms.errors:
            (e, first), (g, second) = sums[a], sums[b]
            part = matrix[degrees[a].rows, degrees[b].rows]
            left = truth.form(first, second) - dot(e, [dot(exact(line), g) for line in part])
            error, missed = (arb(float(x[a, b][0])) for x in (forms.errors, forms.missed))
            at_most(left, error + missed, f"{a}, {b} from above")
            at_most(-left, error + (0 if a == b else missed), f"{a}, {b} from below")
        # of the centre and degree one together: what the upper bound of the variance rests on
        e, first = sums[0]
        whole = [a + b for a, b in zip(k, first, strict=True)]
        part = matrix[degrees[0].rows, degrees[0].rows]
        least = explained_of(center, 0) - float(center.error[0]) + 2 * dot(w, first)
        least += dot(e, [dot(exact(line), e) for line in part]) - float(forms.errors[0, 0][0])
        least -= 2 * arb(float(forms.crossed[0][0]))
        at_most(least, truth.form(whole, whole), "degree 0 and 1")


def test_residuals_on_every_backend(backend: Backend) -> None:
    rng = np.random.default_rng(0)
    for noise in (1.0, 1e-4, 1e-12):
        points, center, *derivatives = (
            rng.integers(-2047, 2048, (n, 5)) / 1024.0 for n in (7, 1, 2, 3)
        )
        sigma = np.full(7, noise)
        A = np.linalg.inv(np.linalg.cholesky(points @ points.T + np.diag(sigma)))
        case = FeatureCase(points, center[0], *derivatives, sigma, np.tril(A), rng)
        for exactly in (False, True):
            check_feature_center(case, Errors(1e-9, 1e-9), exactly, backend)
            check_forms(case, Errors(1e-9, 1e-9), exactly, backend)
            columns = directions_of(case, "the best")
            check_forms(case, Errors(1e-9, 1e-9), exactly, backend, columns)


@settings(max_examples=examples(200, quick=40))
@given(case=kernel_cases(8), anew=st.booleans())
def test_derivative_covariance_of_kernels(case: KernelCase, anew: bool) -> None:
    """`d^T G d` for directions d, and centre and derivative together from both sides."""
    kernel, expansion, precision = case.local.kernel, case.expansion, case.precision()
    center = case.center(anew)
    with np.errstate(invalid="ignore"):  # as goals do: some derivatives do not exist
        form, missed, crossed = precision.derivative_covariance(kernel, expansion, center)
    f = case.places.shape[1]
    assert not np.any(np.isnan(form.error))
    with precisely():
        truth = case.truth
        for b, x in enumerate(case.places):
            if not np.isfinite(form.error[b]):
                continue
            k, w = case.reference.row(x), exact(center.weights[b])
            for direction in (np.eye(f)[0], case.rng.normal(size=f)):
                row, prior = case.along(x, direction)
                d = exact(direction)
                size = dot(d, d)
                error, more, cross, off, gone, apart = (
                    arb(float(part[b]))
                    for part in (
                        form.error,
                        missed,
                        crossed,
                        center.error,
                        center.missed,
                        center.deviation,
                    )
                )
                stored = dot(d, [dot(exact(line), d) for line in form.matrix[b]])
                own = prior - truth.form(row, row)
                at_most(own, stored + error * size, "G from above")
                at_most(stored - (error + more) * size, own, "G from below")
                whole = [p + q for p, q in zip(k, row, strict=True)]
                both = truth.form(whole, whole)
                explained = explained_of(center, b)
                middle = explained + 2 * dot(w, row) + prior - stored
                at_most(
                    middle - off - error * size - 2 * cross * size.sqrt(), both, "centre, above"
                )
                step = 2 * apart * prior.sqrt()
                at_most(both, middle + off + gone + (error + more) * size + step, "centre, below")


def test_what_is_missed_is_a_number_where_derivatives_do_not_exist() -> None:
    rng = np.random.default_rng(0)
    kernel, points = Matern(1.0, 0.5), np.array([[0.0], [1.0]])
    posterior = Posterior(kernel, points, [1.0, 2.0], training_noise=1e-3)
    case = KernelCase(posterior, points, rng)
    precision = case.precision()
    center = case.center(True)
    found = precision.derivative_covariance(case.local.kernel, case.expansion, center)
    assert np.all(np.isinf(found.form.error))
    assert not np.any(np.isnan(found.missed))


@settings(max_examples=examples(150, quick=30))
@given(case=kernel_cases(6, ("squared exponential",)), some=st.booleans(), narrow=st.booleans())
def test_second_covariance_of_squared_exponentials(
    case: KernelCase, some: bool, narrow: bool
) -> None:
    """Forms of degree 2, 3 and 4 against `k_i (u_i.d)^n` for random d; of some pairs of features,
    and with errors in stretched displacements."""
    local, expansion, precision = case.local.kernel, case.expansion, case.precision()
    center, f = case.center(True), case.places.shape[1]
    places = list(combinations_with_replacement(range(f), 2))
    pairs = None
    if some:
        pairs = tuple(k for k in range(len(places)) if case.rng.random() < 0.5)
    kept = [places[k] for k in range(len(places)) if pairs is None or k in pairs]
    degrees = local.second_degree(expansion, pairs)
    assert degrees is not None
    factors = np.ones((len(case.places), f))
    if narrow:
        factors = 2.0 ** case.rng.integers(-12, 1, factors.shape)
    one = np.ones(len(factors))
    stretch = Stretch(factors, one, one, 1.0) if narrow else None
    *found, forms = second_covariance(precision, degrees, f, center, stretch)
    kernel = case.posterior.unit.kernel
    assert isinstance(kernel, SquaredExponential)
    lengths = exact(np.broadcast_to(kernel.length_scale, (f,)))
    with precisely():
        s2 = arb(local.variance)
        for b, x in enumerate(case.places):
            k, d = case.reference.row(x), exact(case.rng.normal(size=f))
            scaled = [a / length for a, length in zip(d, lengths, strict=True)]
            along = [
                dot(scaled, [z - c for z, c in zip(point, exact(x), strict=True)])
                for point in case.reference.points
            ]
            first = [v * t for v, t in zip(k, along, strict=True)]
            steps = [
                [a * (z - c) for a, z, c in zip(scaled, point, exact(x), strict=True)]
                for point in case.reference.points
            ]
            second = [
                v * sum((u[j] * u[j] / 2 if j == m else u[j] * u[m] for j, m in kept), arb(0))
                for v, u in zip(k, steps, strict=True)
            ]
            squares = [(d[j] * d[m]) ** 2 / (2 if j == m else 1) for j, m in kept]
            size = dot(d, d)
            one, mixed, two = (
                case.truth.form(*pair) for pair in ((first,) * 2, (first, second), (second,) * 2)
            )
            real = [s2 * size - one, -2 * mixed, s2 * sum(squares, arb(0)) - two]
            size = sum(((a / t) ** 2 for a, t in zip(d, factors[b].tolist(), strict=True)), arb(0))
            missed = [arb(float(forms.missed[pair][b])) for pair in ((0, 0), (0, 1), (1, 1))]
            allowed = [(missed[0], 0), (missed[1], missed[1]), (missed[2] / 4, 0)]
            for value, (form, error), more, n in zip(real, found, allowed, (2, 3, 4), strict=True):
                stored = arb(0)
                for index in np.ndindex(*(f,) * n):
                    term = arb(float(form[(b, *index)]))
                    for j in index:
                        term *= d[j]
                    stored += term
                length, off = size.sqrt() ** n, arb(float(error[b]))
                at_most(stored - (off + more[0]) * length, value, f"degree {n} from below")
                at_most(value, stored + (off + more[1]) * length, f"degree {n} from above")
