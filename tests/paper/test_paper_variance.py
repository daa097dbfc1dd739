"""Variance intervals by closed forms and by solvers, against 200 bits; solvers never looser."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from gpcert.enclosures import Evaluation, LocalPosterior
from gpcert.kernels import Matern, SquaredExponential
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import Backend, backend_from_name, to_numpy
from gpcert.paper.method import PaperMethod
from gpcert.paper.programs import CellProgram
from gpcert.paper.relaxation import Multipliers, dual_bound
from gpcert.paper.variance import SquareForm, least_difference
from gpcert.regions import Box
from gpcert.testing.arb_reference import ArbPosterior, assert_encloses, regression_posterior
from gpcert.testing.effort import examples
from gpcert.testing.node_case import cell_points
from tests.enclosures.enclosure_checks import arb
from tests.strategies import any_kernels, cases, ill_conditioned, kernels, random_cells


def intervals(posterior, cells, how, backend="numpy"):
    local = LocalPosterior.build(posterior, cells.region, backend_from_name(backend), True)
    evaluation = Evaluation(local, cells)
    found = PaperMethod(how).of(evaluation)
    return found, evaluation  # the memo holds the evaluation weakly


def check_variance(case, how, splits=4, keep=3):
    cells = random_cells(case.region, case.rng, splits, keep)
    found, _kept = intervals(case.posterior, cells, how)
    reference = ArbPosterior(case.posterior.unit)
    for c in range(case.posterior.outputs):
        low, high = (to_numpy(side.bound) for side in found.variance(c))
        for b in range(len(cells)):
            for x in cell_points(cells, b, case.rng):
                value = reference.canonical_variance(x, c).max(arb(0))
                assert_encloses(low[b], high[b], value)


@settings(max_examples=examples(40))
@given(case=cases())
def test_closed_forms(case):
    check_variance(case, "analytic")


@settings(max_examples=examples(30))
@given(case=cases(max_points=5, make_kernels=any_kernels))
def test_closed_forms_of_any_kernel(case):
    check_variance(case, "analytic")


@settings(max_examples=examples(15))
@given(case=cases(max_points=6))
def test_solvers(case):
    check_variance(case, "solver", keep=2)


@settings(max_examples=examples(12))
@given(case=cases(max_points=5, make_kernels=any_kernels))
def test_solvers_with_any_kernel(case):
    check_variance(case, "solver", keep=2)


@pytest.mark.parametrize("how", ["analytic", "solver"])
@pytest.mark.parametrize("name", ["noise", "duplicates", "short", "long"])
def test_ill_conditioned_models(name, how):
    posterior = ill_conditioned(name)
    center = posterior.points[3]
    for size in (0.0, 1e-9, 1e-3, 0.1):
        region = Box(center - size, center + size)
        found, _kept = intervals(posterior, region.root(), how)
        low, high = (float(side.bound[0]) for side in found.variance(0))
        reference = ArbPosterior(posterior.unit)
        for x in cell_points(region.root(), 0, np.random.default_rng(0)):
            assert_encloses(low, high, reference.canonical_variance(x).max(arb(0)))


@settings(max_examples=examples(20))
@given(case=cases(max_points=6, make_kernels=kernels), seed=st.integers(0, 99))
def test_indefinite_precision(case, seed):
    """S = A^T A - C^T C: each part on its own side."""
    p, rng = case.posterior, np.random.default_rng(seed)
    A = p.factors_of(0)[0]
    C = rng.normal(size=(2, len(p.points))) * np.abs(A).max(initial=0.0)
    model = Posterior(p.kernel, p.points, p.weights, A, negative_factor=C)
    cells = random_cells(case.region, rng, 3, 2)
    reference = ArbPosterior(model.unit)
    for how in ("analytic", "solver"):
        found, _kept = intervals(model, cells, how)
        low, high = (to_numpy(side.bound) for side in found.variance(0))
        for b in range(len(cells)):
            for x in cell_points(cells, b, rng)[:5]:
                value = reference.canonical_variance(x).max(arb(0))
                assert_encloses(low[b], high[b], value)


def small_problem(kernel, half, ridge=1e-2):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.5, 1.5, (15, 2))
    posterior = regression_posterior(kernel, X, np.sin(2 * X[:, 0])[None], ridge)
    return posterior, Box([0.1 - half, 0.2 - half], [0.1 + half, 0.2 + half])


@pytest.mark.parametrize("half", [0.02, 0.1, 0.3, 1.0])
@pytest.mark.parametrize(
    "kernel", [SquaredExponential([0.7, 1.0]), Matern([0.7, 1.0], 1.5)], ids=["se", "matern"]
)
def test_solvers_are_at_least_as_tight(kernel, half):
    posterior, region = small_problem(kernel, half)
    closed, _first = intervals(posterior, region.root(), "analytic")
    solved, _second = intervals(posterior, region.root(), "solver")
    (low, high), (low2, high2) = closed.variance(0), solved.variance(0)
    slack = 1e-9
    assert float(low2.bound[0]) >= float(low.bound[0]) - slack
    assert float(high2.bound[0]) <= float(high.bound[0]) + slack


def test_solvers_tighten():
    """On a moderate box the programs are worth their time: the upper bound falls clearly."""
    posterior, region = small_problem(SquaredExponential([0.7, 1.0]), 0.3)
    closed, _first = intervals(posterior, region.root(), "analytic")
    solved, _second = intervals(posterior, region.root(), "solver")
    assert float(solved.variance(0)[1].bound[0]) < 0.95 * float(closed.variance(0)[1].bound[0])


@pytest.mark.parametrize("half", [0.05, 0.3])
def test_safe_duals_reach_the_programs_optima(half):
    """Nothing is lost by not trusting: the proved bound is the solver's optimum, or above it."""
    posterior, region = small_problem(SquaredExponential([0.7, 1.0]), half)
    found, _kept = intervals(posterior, region.root(), "analytic")
    (relaxation,) = [own.relaxation for own in found.programs]
    system = CellProgram.of(relaxation, 0)
    rng = np.random.default_rng(0)
    for c in rng.normal(size=(5, system.points)):
        under, over = system.minimise(c)
        multipliers = Multipliers(under[None, None], over[None, None])
        bound = float(dual_bound(relaxation, c[None], multipliers).lower[0, 0])
        objective = np.concatenate([np.zeros(system.lifted), c])
        optimum = linprog(
            objective,
            A_ub=-system.matrix,
            b_ub=-system.lower,
            bounds=np.stack([system.low, system.high], axis=1),
        ).fun
        assert bound >= optimum - 1e-7 * np.abs(c).sum()
    A = posterior.factors_of(0)[0]
    r, (under, over) = system.minimise_square(A, np.zeros(system.points))
    form = SquareForm.build(A, 1.0, Backend())
    tangent = form.tangent((A @ r)[None], relaxation.sizes)
    multipliers = Multipliers(under[None, None], over[None, None])
    bound = dual_bound(relaxation, tangent.c[:, None], multipliers).lower[0, 0]
    assert float(bound + tangent.constant[0]) >= np.square(A @ r).sum() - 1e-6


@pytest.mark.parametrize("how", ["analytic", "solver"])
def test_width_falls_with_the_box(how):
    """Second order: lines lose with the square of the half-width."""
    widths = []
    for half in (0.02, 0.01, 0.005):
        posterior, region = small_problem(SquaredExponential([0.7, 1.0]), half, 0.1)
        found, _kept = intervals(posterior, region.root(), how)
        low, high = (float(side.bound[0]) for side in found.variance(0))
        corners = np.stack(
            np.meshgrid(*np.linspace(region.lower, region.upper, 21).T), axis=-1
        ).reshape(-1, 2)
        v = posterior.predict(corners)[1]
        widths.append((high - low) - (v.max() - v.min()))
    for coarse, fine in pairwise(widths):
        assert 0 <= fine <= coarse / 3.0


class Stopped:
    """Solvers stopped after one iteration, or whose answers were shuffled."""

    def __init__(self, relaxation, shuffle):
        self.relaxation = relaxation
        self.rng = np.random.default_rng(0)
        self.shuffle = shuffle

    def _spoiled(self, pair):
        if not self.shuffle:
            return pair
        return [self.rng.permutation(part) * 10.0 ** self.rng.normal() for part in pair]

    def linear(self, c):
        relaxation = self.relaxation
        rows = np.broadcast_to(c, (len(relaxation), *c.shape[-2:]))
        found = np.zeros((2, *rows.shape))
        for b in range(len(relaxation)):
            for m in range(rows.shape[1]):
                program = CellProgram.of(relaxation, b)
                pair = program.minimise(rows[b, m], None if self.shuffle else 1)
                if pair is not None:
                    found[:, b, m] = self._spoiled(pair)
        return Multipliers(*found)

    def quadratic(self, form, c):
        relaxation = self.relaxation
        B, N = c.shape
        p, found = np.zeros((B, len(form))), np.zeros((2, B, 1, N))
        for b in range(B):
            answer = CellProgram.of(relaxation, b).minimise_square(form.factor, c[b], 1)
            if answer is not None:
                r, pair = answer
                p[b], found[:, b, 0] = form.factor @ r, self._spoiled(pair)
        return p, Multipliers(*found)


@pytest.mark.parametrize("shuffle", [False, True])
@settings(max_examples=examples(8), deadline=None)
@given(case=cases(max_points=5))
def test_solvers_that_stop_early_or_lie(shuffle, case):
    """Whatever solvers return, both least differences stay bounds."""
    cells = random_cells(case.region, case.rng, 3, 2)
    found, _kept = intervals(case.posterior, cells, "analytic")
    (relaxation,) = [own.relaxation for own in found.programs]
    A = SquareForm.build(case.posterior.factors_of(0)[0], found.local.kernel.variance, Backend())
    none = SquareForm.build(np.zeros((0, len(case.posterior.points))), 1.0, Backend())
    programs = Stopped(relaxation, shuffle)
    upward = least_difference(programs, A, none).lower
    downward = least_difference(programs, none, A).lower
    reference = ArbPosterior(case.posterior.unit)
    for b in range(len(cells)):
        for x in cell_points(cells, b, case.rng)[:5]:
            row = reference.row(x)
            square = arb(0)
            for a in case.posterior.factors_of(0)[0]:
                product = arb(0)
                for t, k in zip(a, row, strict=True):
                    product += arb(float(t)) * k
                square += product * product
            assert not arb(float(upward[b])) > square
            assert not arb(float(downward[b])) > -square


def test_backends_agree():
    pytest.importorskip("torch")
    posterior, region = small_problem(SquaredExponential([0.7, 1.0]), 0.1)
    for how in ("analytic", "solver"):
        ends = []
        for name in ("numpy", "torch"):
            found, _kept = intervals(posterior, region.root(backend_from_name(name)), how, name)
            ends.append([float(to_numpy(side.bound)[0]) for side in found.variance(0)])
        np.testing.assert_allclose(ends[0], ends[1], rtol=1e-9)
