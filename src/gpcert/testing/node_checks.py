"""Checks of a kernel inside one region, against its reference in ball arithmetic.

Every function states one line of the contract of `gpcert.kernels.nodes.base` for a `NodeCase`, with
no tolerance on the unsafe side; `gpcert.testing.node_contract` draws the cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpcert.kernels.nodes.moments import sorted_index
from gpcert.numerics.arrays import to_numpy
from gpcert.numerics.rounding import TINY, gamma
from gpcert.paper.lines import affine_lower_bound, affine_relaxation, has_lines
from gpcert.regions import Cells
from gpcert.regions.scaled import ScaledCells
from gpcert.testing.kernel_references import (
    coefficients,
    diagonal_coefficients,
    dot,
    exact,
    flint,
    line_surface,
    remainder_length,
    series_length,
    total,
)
from gpcert.testing.node_case import NodeCase


def _norm(vector: Sequence[Any]) -> Any:
    return dot(vector, vector).sqrt()


def _form(matrix: np.ndarray, direction: Sequence[Any]) -> Any:
    """`e^T M e`, exactly."""
    return dot(direction, [dot(exact(row), direction) for row in matrix])


def check_values(case: NodeCase) -> None:
    """`value`, `gradients` within `errors`; `sizes` bound the norms."""
    arb = flint().arb
    B, N = case.shape
    f = len(case.frame.free)
    value, gradients = case.host(case.batch.value), case.host(case.batch.gradients(), (B, f, N))
    sizes, errors = ([case.host(part) for part in t] for t in (case.batch.sizes, case.batch.errors))
    assert np.all(np.isfinite(value))
    assert np.all(np.isfinite(gradients))
    for b, i in np.ndindex(B, N):
        x, z = case.centers[b], case.targets[i]
        real = case.reference(x, z)
        assert not abs(real - arb(value[b, i])) > arb(errors[0][b, i]), "value off its error"
        assert not abs(real) > arb(sizes[0][b, i]), "size of the value"
        axes = [case.raw(exact(row)) for row in np.eye(f)]
        slope = [case.derivatives(x, axis, z, 1)[1] for axis in axes]
        gap = [s - arb(g) for s, g in zip(slope, gradients[b, :, i], strict=True)]
        assert not _norm(gap) > arb(errors[1][b, i]), "gradient off its error"
        if math.isfinite(errors[1][b, i]):  # else there is none
            assert not _norm(slope) > arb(sizes[1][b, i]), "size of the gradient"
        if math.isfinite(errors[2][b, i]):
            for e in case.directions(1):
                second = case.derivatives(x, case.raw(exact(e)), z, 2)[2]
                assert not abs(second) > arb(sizes[2][b, i]) * _norm(exact(e)) ** 2, "curvature"


def check_contraction(case: NodeCase) -> None:
    """`contract` within `sum |a_i| errors + gamma(N + 4f + 32) sum |a_i| sizes`."""
    arb = flint().arb
    B, N = case.shape
    a = case.rng.normal(size=(B, N)) * 10.0 ** case.rng.uniform(-3, 3)
    if case.rng.random() < 0.5:
        a = a * (np.arange(N) == case.rng.integers(N, size=(B, 1)))
    rounding = arb(gamma(N + 4 * len(case.frame.free) + 32))
    pairs = zip(case.batch.errors, case.batch.sizes, strict=True)
    parts = [(case.host(error), case.host(size)) for error, size in pairs]
    for b, jet in enumerate(_jets(case, case.batch.contract(case.place(a)))):
        sums = (
            total(
                abs(arb(a[b, i])) * (arb(error[b, i]) + rounding * arb(size[b, i]))
                for i in np.flatnonzero(a[b])
            )
            for error, size in parts
        )
        allowed = [arb(TINY) + each for each in sums]  # what `up` adds on the caller's side
        _check_jet(case, b, case.targets, exact(a[b]), jet, allowed)


def _jets(case: NodeCase, jet: Any) -> list[tuple[Any, np.ndarray, np.ndarray]]:
    """Value, gradient and symmetric Hessian of every cell."""
    B, f = len(case.cells), len(case.frame.free)
    value, gradient = case.host(jet.value, (B,)), case.host(jet.gradient, (B, f))
    hessian = case.host(jet.hessian, (B, f, f))
    assert np.array_equal(hessian, np.swapaxes(hessian, 1, 2)), "Hessian not symmetric"
    return list(zip(value, gradient, hessian, strict=True))


def _check_jet(
    case: NodeCase,
    b: int,
    targets: list[list[Any]],
    weights: list[Any],
    jet: tuple[Any, np.ndarray, np.ndarray],
    allowed: Sequence[Any],
) -> None:
    """A jet at centre b against `sum_i w_i k(., target_i)`: value, and along random directions."""
    arb = flint().arb
    value, gradient, hessian = jet
    for e in case.directions(2):
        direction = exact(e)
        real = [arb(0)] * 3
        for w, z in zip(weights, targets, strict=True):
            if w != 0:
                parts = case.derivatives(case.centers[b], case.raw(direction), z, 2)
                real = [r + w * k for r, k in zip(real, parts, strict=True)]
        slope = dot(exact(gradient), direction)
        curvature = _form(hessian, direction)
        length = _norm(direction)
        for n, computed in enumerate((arb(float(value)), slope, curvature)):
            gap = abs(computed - real[n])
            assert not gap > allowed[n] * length**n, f"derivative {n} of the jet off its error"


def check_diagonal_jet(case: NodeCase) -> None:
    """`diagonal_jet` within its errors, and `mixed`, the derivatives' inner products."""
    arb = flint().arb
    B, f = len(case.cells), len(case.frame.free)
    diagonal_jet, parts = case.batch.diagonal_jet()
    errors = [case.host(part, (B,)) for part in parts]
    matrix, error = case.batch.mixed()
    matrix, error = case.host(matrix, (B, f, f)), case.host(error, (B,))
    assert np.all(np.isfinite(matrix))
    for b, jet in enumerate(_jets(case, diagonal_jet)):
        here, allowed = case.centers[b], [arb(part[b]) for part in errors]
        _check_jet(case, b, [here], [arb(1)], jet, allowed)
        for e in case.directions(1) if math.isfinite(error[b]) else []:
            direction = exact(e)
            form = _form(matrix[b], direction)
            gap = abs(form - _mixed(case, here, case.raw(direction)))
            assert not gap > arb(error[b]) * _norm(direction) ** 2, "mixed derivatives"


def _mixed(case: NodeCase, x: list[Any], step: list[Any]) -> Any:
    """`<D_step phi(x), D_step phi(x)>`: K(tau, tau) has `a_11 + 2 a_02` before tau^2."""
    with series_length(5):
        tau = flint().arb_series([0, 1])
        at = [a + s * tau for a, s in zip(x, step, strict=True)]
        both = coefficients(case.reference(at, at), 3)[2]
        return both - 2 * coefficients(case.reference(at, x), 3)[2]


def check_derivative_bounds(case: NodeCase) -> None:
    """Inner products of derivatives at points of the cell, remainders from its centre to there."""
    module = flint()
    arb = module.arb
    sizes, B = case.node.derivative_bounds(case.geometry), len(case.cells)
    gram = [[None if g is None else case.host(g, (B,)) for g in row] for row in sizes.gram]
    remainders = [case.host(sizes.remainder(n), (B,)) for n in range(3)]
    with module.ctx.workprec(800):  # the lengths cancel for tiny displacements
        for b in range(B):
            rows = case.inside(b, 2)
            for x, end in zip(rows, rows[::-1], strict=True):
                center = case.centers[b]
                step = [s - c for s, c in zip(exact(end), center, strict=True)]
                K = line_surface(case.reference, center, step)
                at_center = diagonal_coefficients(K)
                for n in range(3):
                    if math.isfinite(remainders[n][b]):
                        length = remainder_length(K, n, at_center)
                        assert not length > arb(remainders[n][b]), f"remainder R{n}"
                at_x = diagonal_coefficients(line_surface(case.reference, exact(x), step))
                for (i, j), a in at_x.items():
                    bound = gram[i][j]
                    largest = arb(0 if bound is None else bound[b])
                    product = abs(math.factorial(i) * math.factorial(j) * a)
                    if bound is None or math.isfinite(bound[b]):
                        assert not product > largest, f"<D^{i} phi, D^{j} phi>"


def check_variations(case: NodeCase) -> None:
    """`S_n >= |D_d^n k(x, z_i)|` for x, d of the cell, and `S_1 >= |k(x, z_i) - k(c, z_i)|`."""
    arb = flint().arb
    bounds = [case.host(part) for part in case.batch.variations()]
    for part, bound in zip(case.batch.first_and_third(), bounds[1::2], strict=True):
        assert np.array_equal(case.host(part), bound), "S_1 and S_3 by themselves"
    for b in range(len(case.cells)):
        rows = case.inside(b, 4)
        for x, end in zip(rows, rows[::-1], strict=True):
            at, center = exact(x), case.centers[b]
            step = [s - c for s, c in zip(exact(end), center, strict=True)]
            for i, z in enumerate(case.targets):
                real = case.derivatives(at, step, z, 3)
                for n, derivative in enumerate(real):
                    if math.isfinite(bounds[n][b, i]):
                        bound = arb(bounds[n][b, i])
                        assert not abs(derivative) > bound, f"variation S_{n} = {bound}"
                change = abs(case.reference(at, z) - case.reference(center, z))
                assert not change > arb(bounds[1][b, i]), "S_1 against the change of k"


def check_second_order_remainder(case: NodeCase) -> None:
    """What degree 2 leaves of a weighted sum, and of k(., c) itself, at points of the cells; and
    what is left once the sum's own degree 3 is added, where it is known.

    Points whose third derivative is not bounded on a cell have no weight there, as for the caller.
    """
    module = flint()
    arb = module.arb
    third = case.batch.variations()[3]
    bounded = np.isfinite(case.host(third))
    a = np.where(bounded, case.rng.normal(size=case.shape) * case.rng.choice([1.0, 1e-3, 1e3]), 0.0)
    beyond, count = case.batch.second_order_remainder(case.place(a), third), (len(case.cells),)
    bound, cubic = case.host(beyond.size, count), beyond.cubic
    rest = None if cubic is None else case.host(cubic.rest, count)
    bounds = case.batch.diagonal_second_order_remainder()
    bounds = None if bounds is None else case.host(bounds, (len(case.cells),))
    with module.ctx.workprec(800):  # the differences cancel for tiny displacements
        for b in range(len(case.cells)):
            for x in case.inside(b, 3):
                targets = [(w, z) for w, z in zip(a[b], case.targets, strict=True) if w != 0]
                left = total(arb(float(w)) * _third_order(case, b, x, z) for w, z in targets)
                assert not abs(left) > arb(bound[b]), "what degree 2 leaves"
                if cubic is not None and rest is not None and math.isfinite(rest[b]):
                    left = left - _cubic(case, b, x, to_numpy(cubic.tensor)[b])
                    assert not abs(left) > arb(rest[b]), "what degree 3 leaves"
                if bounds is not None and math.isfinite(bounds[b]):
                    left = _third_order(case, b, x, case.centers[b])
                    assert not abs(left) > arb(bounds[b]), "what degree 2 leaves of k(., c)"


def _cubic(case: NodeCase, b: int, x: np.ndarray, tensor: np.ndarray) -> Any:
    """`T[d, d, d] / 6` at x, d in the units of the frame."""
    at, free = exact(x), case.frame.free
    units = zip(free, exact(case.frame.unit), strict=True)
    d = [(at[j] - case.centers[b][j]) / unit for j, unit in units]
    entries, orders = sorted_index(len(d), 3)
    terms = zip(entries, exact(orders * tensor), strict=True)
    return total(t * d[j] * d[k] * d[m] / 6 for (j, k, m), t in terms)


def _third_order(case: NodeCase, b: int, x: np.ndarray, z: list[Any]) -> Any:
    """`k(x, z)` less its polynomial of degree 2 at the centre of cell b."""
    at, center = exact(x), case.centers[b]
    step = [s - c for s, c in zip(at, center, strict=True)]
    value, slope, bend = case.derivatives(center, step, z, 2)
    return case.reference(at, z) - value - slope - bend / 2


def check_lines(case: NodeCase) -> None:
    """`low <= k <= high`, and sums of lines stay below sums of `t_i k(x, z_i)`, where the kernel
    has lines."""
    if not has_lines(case.batch):
        return
    arb = flint().arb
    B, N = case.shape
    lines = affine_relaxation(case.batch)
    low, high = case.host(lines.low), case.host(lines.high)
    signs = case.rng.choice([-2.0, -1.0, 0.0, 0.5, 1.0], (2, B, N))
    alone = (np.arange(N) == case.rng.integers(N, size=(2, B, 1))) * np.asarray([[[1.0]], [[-1.0]]])
    sums = [(t, lines_minimum(case, t)) for t in (*signs, *alone)]
    any_weights = case.rng.normal(size=(B, N))
    for t in (any_weights, alone[0]):
        bounds = case.host(affine_lower_bound(lines, case.place(t)), (B,))
        sums.append((t, [arb(bound) for bound in bounds]))
    for b in range(B):
        for x in case.inside(b):
            real = [case.reference(exact(x), z) for z in case.targets]
            for i, k in enumerate(real):
                assert not arb(low[b, i]) > k, "low is above k"
                assert not arb(high[b, i]) < k, "high is below k"
            for t, bound in sums:
                assert not bound[b] > dot(exact(t[b]), real), "the lines' minimum is above the sum"


def lines_minimum(case: NodeCase, t: np.ndarray) -> list[Any]:
    """Lower bounds, as balls, of `sum_i t_i k(x, z_i)` by lines: under for t_i > 0, else over.

    For t that are powers of two or zero: `t_i slope_i` is exact.
    """
    arb = flint().arb
    lines = affine_relaxation(case.batch)
    sums = [arb(0)] * len(case.cells)
    slopes: dict[int, tuple[Any, np.ndarray]] = {}
    for weights, line in (
        (np.maximum(t, 0.0), lines.under),
        (np.minimum(t, 0.0), lines.over),
    ):
        intercept = case.host(line.intercept)
        for b, i in np.argwhere(weights != 0.0):
            sums[b] = sums[b] + arb(weights[b, i]) * arb(intercept[b, i])
        assert len({id(carrier) for carrier, _ in line.slopes}) == len(line.slopes)
        for carrier, slope in line.slopes:
            part = np.where(weights == 0.0, 0.0, weights * case.host(slope))
            _, before = slopes.get(id(carrier), (carrier, np.zeros_like(part)))
            slopes[id(carrier)] = (carrier, before + part)  # no point is in both: exact
    for carrier, slope in slopes.values():
        least = case.host(carrier.minimum(case.place(slope)), (len(case.cells),))
        sums = [a + arb(m) for a, m in zip(sums, least, strict=True)]
    return [arb.neg_inf() if a.is_nan() else a for a in sums]


def check_lines_at_points(case: NodeCase) -> None:
    """Each line itself lies on its side of k at points x of the cell.

    A carrier's minimum over the cell {x} is `slope phi(x, z_i)`, rounded down: so a line found for
    the whole cell is evaluated by the carriers of the node at {x}. For carriers phi that do not
    depend on the cell.
    """
    if not has_lines(case.batch):
        return
    arb = flint().arb
    lines = affine_relaxation(case.batch)
    N = len(case.points)
    for b in range(len(case.cells)):
        for x in case.inside(b, 2):
            free = case.place(x[None, case.frame.free])
            there = case.node.at(
                ScaledCells.in_frame(Cells(case.cells.region, free, free), case.frame)
            )
            points = affine_relaxation(there)
            for sign, line, local in (
                (1.0, lines.under, points.under),
                (-1.0, lines.over, points.over),
            ):
                assert len(line.slopes) == len(local.slopes)
                intercept = case.host(line.intercept)
                for i in range(N):
                    value = arb(sign * intercept[b, i])
                    for (_, slope), (carrier, _) in zip(line.slopes, local.slopes, strict=True):
                        one = (np.arange(N) == i) * sign * case.host(slope)[b]
                        least = case.host(carrier.minimum(case.place(one[None, :])), (1,))
                        value = value + arb(least[0])
                    real = sign * case.reference(exact(x), case.targets[i])
                    assert value.is_nan() or not value > real, "a line crosses k"


CHECKS: dict[str, Callable[[NodeCase], None]] = {
    "values": check_values,
    "contraction": check_contraction,
    "diagonal_jet": check_diagonal_jet,
    "feature sizes": check_derivative_bounds,
    "variations": check_variations,
    "beyond second": check_second_order_remainder,
    "lines": check_lines,
}
