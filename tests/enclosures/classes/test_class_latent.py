"""Latent means and variances to first order, and their sizes in a metric, in ball arithmetic."""

import math

import numpy as np
from hypothesis import given, settings

from gpcert.enclosures import Evaluation, LocalPosterior
from gpcert.enclosures.classes.latent import (
    mean_first_order,
    orders_at_center,
    variance_first_order,
)
from gpcert.enclosures.classes.metric import measure
from gpcert.enclosures.classes.outputs import LatentOutputs
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Softmax
from gpcert.model.class_layout import ClassLayout
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import backend_from_name, to_numpy
from gpcert.regions import Box
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import examples, variants
from gpcert.testing.kernel_references import exact, flint
from tests.enclosures.classes.class_cases import (
    ClassCase,
    class_cases,
    displacement,
    points_of_cells,
    random_classifier,
    random_evaluation,
    random_region,
)
from tests.strategies import any_kernels, cases, random_cells

arb, arb_mat = flint().arb, flint().arb_mat


def dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), arb(0))


def within(gap, bound, what):
    """|gap| <= bound, the bound maybe infinite but never undefined."""
    bound = float(bound)
    assert not math.isnan(bound), what
    assert math.isinf(bound) or not abs(gap) > arb(bound), f"{what}: {abs(gap).str(20)} > {bound}"


def check_first_order(evaluation, found, truth, rng):
    """`|q - reference - slope.d| <= bend` and `|q - reference| <= reach` on every cell."""
    for b, points in enumerate(points_of_cells(evaluation, rng)):
        for x in points:
            d = displacement(evaluation, b, x)
            for j in range(found.reference.shape[1]):
                q = truth(x, j) - arb(float(found.reference[b, j]))
                within(q - dot(exact(to_numpy(found.slope[b, j])), d), found.bend[b, j], "bend")
                within(q, found.reach[b, j], "reach")


def check_center(evaluation, found, truth):
    centers = evaluation.cells.points_full(evaluation.cells.center)
    for b, x in enumerate(centers):
        for j in range(found.reference.shape[1]):
            within(truth(x, j) - arb(float(found.reference[b, j])), found.bend[b, j], "centre")
    assert np.all(to_numpy(found.slope) == 0.0)


def check_latent(case, optional=True):
    local = LocalPosterior.build(case.posterior, case.region, backend_from_name("numpy"), True)
    evaluation = Evaluation(local, random_cells(case.region, case.rng, 5, 3), optional)
    reference, m = ArbPosterior(case.posterior), case.posterior.outputs
    check_first_order(
        evaluation, mean_first_order(LatentOutputs(evaluation), m), reference.mean, case.rng
    )
    check_first_order(
        evaluation, variance_first_order(LatentOutputs(evaluation), m), reference.variance, case.rng
    )
    still = orders_at_center(LatentOutputs(evaluation), ClassLayout(m, np.eye(m)))
    for found, truth in zip(still, (reference.mean, reference.variance), strict=True):
        check_center(evaluation, found, truth)


@settings(max_examples=examples(50))
@given(case=cases(max_points=5))
def test_squared_exponential(case):
    check_latent(case)


@settings(max_examples=examples(25))
@given(case=cases(max_points=4, max_dim=2, make_kernels=any_kernels))
def test_other_kernels(case):
    check_latent(case)


@settings(max_examples=examples(15))
@given(case=cases(max_points=5))
def test_without_the_optional_bounds(case):
    check_latent(case, optional=False)


class Truth:
    """Change of latent differences and covariance from a reference, in standard deviations."""

    def __init__(self, own):
        self.own, self.place = own, own.place
        self.reference = ArbPosterior(own.evaluation.local.posterior)
        self.noise = own.likelihood.noise

    def inverse(self, b, metric=None):
        """`L^-1` (or another metric) in ball arithmetic."""
        rows = [exact(row) for row in to_numpy(self.place.L[b] if metric is None else metric)]
        matrix = arb_mat(rows)
        return matrix.inv() if metric is None else matrix

    def changes(self, b, x):
        """`d - d_0` (n, 1) and `V - L L^T` (n, n)."""
        layout, n = self.own.layout, self.own.layout.n
        means = [self.reference.mean(x, j) for j in range(layout.outputs)]
        variances = [self.reference.variance(x, j) for j in range(layout.outputs)]
        at = exact(to_numpy(self.place.change.means.reference[b]))
        da = arb_mat(
            [
                [dot([means[j] for j, _ in p], [arb(s) for _, s in p]) - at[k]]
                for k, p in enumerate(layout.pair(0, k) for k in range(1, layout.classes))
            ]
        )
        L = arb_mat([exact(row) for row in to_numpy(self.place.L[b])])
        V0 = L * L.transpose()
        matrices = layout.matrices
        dV = arb_mat(
            [
                [
                    dot(variances, exact(matrices[:, i, j]))
                    + arb(self.noise) * (1 + (i == j))
                    - V0[i, j]
                    for j in range(n)
                ]
                for i in range(n)
            ]
        )
        return da, dV

    def linear(self, sizes, b, d):
        """The linear parts of both, as the sizes have them."""
        n = self.own.layout.n
        slope, spread = to_numpy(sizes.slope[b]), to_numpy(sizes.spread_slope[b])
        da = arb_mat([[dot(exact(slope[i]), d)] for i in range(n)])
        dV = arb_mat([[dot(exact(spread[i, j]), d) for j in range(n)] for i in range(n)])
        return da, dV


def length(column):
    return math.sqrt(sum(float(x) ** 2 for row in column.tolist() for x in row))


def spectrum(matrix):
    """Absolute eigenvalues in floating point, of exact entries rounded once."""
    values = np.array([[float(x) for x in row] for row in matrix.tolist()])
    return np.abs(np.linalg.eigvalsh((values + values.T) / 2))


ROUNDED = 1.0 + 1e-13
"""The references are sums of float eigenvalues of exact matrices: their own few roundings."""


def check_sizes(own, sizes, metric, rng):
    truth, evaluation = Truth(own), own.evaluation
    for b, points in enumerate(points_of_cells(evaluation, rng)):
        R = truth.inverse(b, metric)
        for x in points[:5]:
            d = displacement(evaluation, b, x)
            da, dV = truth.changes(b, x)
            da, dV = R * da, R * dV * R.transpose()
            assert length(da) <= float(sizes.mean[b]) * ROUNDED
            values = spectrum(dV)
            assert values.sum() <= float(sizes.spread[b]) * ROUNDED
            assert values.max() <= float(sizes.operator[b]) * ROUNDED
            linear = truth.linear(sizes, b, d)
            assert length(da - linear[0]) <= float(sizes.mean_bend[b]) * ROUNDED
            assert spectrum(dV - linear[1]).sum() <= float(sizes.spread_bend[b]) * ROUNDED


@settings(max_examples=examples(40))
@given(case=class_cases())
def test_sizes_of_the_change(case):
    """n = 1, 2, 3 and more, in the metric of V_0."""
    own = random_evaluation(case, keep=3)
    check_sizes(own, own.place.sizes, None, case.rng)


@settings(max_examples=examples(15))
@given(case=class_cases())
def test_sizes_in_the_metric_of_the_links(case):
    """`2 |u - mean u|^2 >= (max u - min u)^2`, u_0 = 0."""
    own = random_evaluation(case, keep=3)
    n = own.layout.n
    C = np.linalg.cholesky(2.0 * (np.eye(n) - 1.0 / (n + 1)))
    u = case.rng.normal(size=(100, n))
    whole = np.concatenate([np.zeros((100, 1)), u], axis=1)
    assert np.all(np.linalg.norm(u @ C, axis=1) * (1 + 1e-12) >= np.ptp(whole, axis=1))
    check_sizes(own, own.place.plain_sizes, C.T * (1.0 + 1e-12), case.rng)


@settings(max_examples=examples(15))
@given(case=class_cases())
def test_a_metric_that_is_known_roughly(case):
    """With `inflation` the sizes hold for T R: here R is 1 / (1 + t) of what is meant."""
    own = random_evaluation(case, keep=2)
    place, t = own.place, 0.25
    rough = measure(
        place.change, place.R / (1.0 + t), 0.0 * place.inflation + t * 1.001, place.geometry
    )
    truth = Truth(own)
    for b, points in enumerate(points_of_cells(own.evaluation, case.rng)):
        R = truth.inverse(b)
        for x in points[:3]:
            da, dV = truth.changes(b, x)
            linear = truth.linear(rough, b, displacement(own.evaluation, b, x))
            da, dV = R * da, R * dV * R.transpose()
            assert length(da) <= float(rough.mean[b]) * ROUNDED
            assert length(da - linear[0]) <= float(rough.mean_bend[b]) * ROUNDED
            assert spectrum(dV).sum() <= float(rough.spread[b]) * ROUNDED
            assert spectrum(dV - linear[1]).sum() <= float(rough.spread_bend[b]) * ROUNDED


@settings(max_examples=examples(25))
@given(case=class_cases())
def test_the_reference(case):
    """`L L^T` is what the sizes are measured from; its inverse is proved."""
    own = random_evaluation(case, keep=3)
    place, n = own.place, own.layout.n
    assert np.all(np.linalg.eigvalsh(place.L @ np.swapaxes(place.L, 1, 2))[:, 0] > 0.9e-2)
    for b in range(len(own.evaluation.cells)):
        R = arb_mat([exact(row) for row in to_numpy(place.R[b])])
        L = arb_mat([exact(row) for row in to_numpy(place.L[b])])
        T = (R * L).inv()
        gap = T - arb_mat([[arb(i == j) for j in range(n)] for i in range(n)])
        size = math.sqrt(sum(float(x) ** 2 for row in gap.tolist() for x in row))
        assert size <= float(place.inflation[b]) < 1e-6


@variants("optional", [True, False])
def test_the_center_of_a_wide_cell(optional):
    """The expansion's reference may lie anywhere; at the centre the sizes count the step."""
    for seed in range(15):
        rng = np.random.default_rng(seed)
        posterior = random_classifier(rng, bool(seed % 2), 3, Softmax(), 2)
        case = ClassCase(posterior, random_region(rng, posterior), rng)
        own = random_evaluation(case, optional, keep=2)
        place, known = own.place.at_center(own.latent)
        truth, centers = Truth(own), own.evaluation.cells.points_full(own.evaluation.cells.center)
        for b, x in enumerate(centers):
            R = truth.inverse(b)
            da, dV = truth.changes(b, x)
            assert length(R * da) <= float(place.sizes.mean[b]) * ROUNDED
            assert spectrum(R * dV * R.transpose()).sum() <= float(place.sizes.spread[b]) * ROUNDED
            for k in range(own.layout.n):
                gap = da[k, 0] + arb(float(place.change.means.reference[b, k]))
                within(gap - arb(float(place.change.means.center[b, k])), known[b, k], "known")


def test_a_variance_that_stays_the_prior_does_not_bend():
    """Far from the one point it is 1 throughout: its weight grows, it does not."""
    posterior = Posterior(SquaredExponential(1.0), [[50.0, 0.0]], [[1.0]], np.eye(1))
    region = Box([-0.3, -0.3], [0.3, 0.3])
    local = LocalPosterior.build(posterior, region, backend_from_name("numpy"), True)
    found = variance_first_order(LatentOutputs(Evaluation(local, region.root())), 1)
    within(arb(1) - arb(float(found.reference[0, 0])), found.bend[0, 0], "bend")
