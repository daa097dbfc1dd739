"""The contract suite notices: a sound kernel passes, each seeded defect fails the right test."""

from __future__ import annotations

import dataclasses
import inspect

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from gpcert.kernels import SquaredExponential
from gpcert.kernels.linear import Linear
from gpcert.kernels.nodes.base import DerivativeBounds, Jet
from gpcert.testing.kernel_contract import COMPARED_SIZES, seeds, sizes
from gpcert.testing.node_contract import NodeContract
from tests.testing.broken_kernels import BrokenKernel

EXAMPLES = 10
"""Fewer than the contract's own tests draw in `make test-slow`."""

SOUND = SquaredExponential([1.0, 0.5], 2.0)


def suite(changes):
    class Spoiled(NodeContract):
        kernel = BrokenKernel(SOUND, changes)
        dim = 2
        typical = (1.0, 0.5)
        compose = False
        tight = 1 + 1e-9
        tight_remainders = 1.5

    return Spoiled()


def direct(order, factor):
    """A remainder too small by a factor, where the bound by b_{n+1} does not save it."""

    def change(found: DerivativeBounds):
        parts = [r * factor if n == order else r for n, r in enumerate(found.direct)]
        return dataclasses.replace(found, direct=tuple(parts))

    return {"derivative_bounds": change}


def gram_entry(i, j, factor):
    def change(found: DerivativeBounds):
        rows = [list(row) for row in found.gram]
        rows[i][j] = rows[i][j] * factor
        return dataclasses.replace(found, gram=tuple(tuple(row) for row in rows))

    return {"derivative_bounds": change}


def part(name, n, change):
    def spoil(triple, batch):
        return tuple(change(x) if m == n else x for m, x in enumerate(triple))

    return {name: spoil}


def zero(x):
    return x * 0.0


def first_axis_positive(gradients, batch):
    return np.concatenate([np.abs(gradients[:, :1]), gradients[:, 1:]], axis=1)


def jet(**changes):
    """Change parts of the jet that `contract` or `diagonal_jet` returns."""

    def spoil(found, batch):
        if isinstance(found, Jet):
            return dataclasses.replace(
                found, **{k: c(getattr(found, k)) for k, c in changes.items()}
            )
        return spoil(found[0], batch), found[1]

    return spoil


def tilted(hessian):
    wrong = np.array(hessian)
    wrong[:, 0, -1] *= 1 + 1e-9
    return wrong


def at_the_centre_only(found, batch):
    """S_1 from the gradient at the centre: the cell's far end is forgotten."""
    half = np.asarray(batch.__dict__["reach_of_test"].half)
    slopes = np.einsum("bfn,bf->bn", np.abs(np.asarray(batch.gradients())), half)
    return (found[0], slopes * (1 + 1e-9), *found[2:])


def value_at_the_centre(found, batch):
    return (np.abs(np.asarray(batch.value)) * (1 + 1e-9), *found[1:])


def lines(**changes):
    def spoil(found, batch):
        return dataclasses.replace(found, **{k: change(found) for k, change in changes.items()})

    return {"affine_relaxation": spoil}


def lifted(name, amount):
    def change(found):
        line = getattr(found, name)
        return dataclasses.replace(line, intercept=line.intercept + amount)

    return change


NODE = "test_node"
DEFECTS = {
    "R0 halved": (direct(0, 0.5), "test_feature_map_remainders", {}),
    "R1 halved": (direct(1, 0.5), "test_feature_map_remainders", {}),
    "R2 halved": (direct(2, 0.5), "test_feature_map_remainders", {}),
    "R1 without its rounding": (direct(1, 1 - 1e-9), "test_feature_map_remainders", {}),
    "b2 short by 1e-9": (gram_entry(2, 2, 1 - 1e-9), "test_feature_map_remainders", {}),
    "b3 short by 1e-9": (gram_entry(3, 3, 1 - 1e-9), "test_feature_map_remainders", {}),
    "b3 twice too large": (gram_entry(3, 3, 4.0), "test_remainders_are_tight", {}),
    "R0 does not shrink": (
        {"derivative_bounds": lambda f: dataclasses.replace(
            f, direct=tuple(r + 1e-3 for r in f.direct), gram=tuple(
                tuple(None if g is None else g + 1e-6 for g in row) for row in f.gram))},
        "test_remainders_shrink", {}),
    "value of the kernel off by 1e-9": (
        {"kernel_value": lambda K: K * (1 + 1e-9)}, "test_value", {}),
    "diagonal": ({"diagonal": lambda k: 1.001 * k}, "test_value", {}),
    "gradient without its sign": ({"gradient": np.abs}, "test_gradient", {}),
    "gradient_product without its sign": ({"gradient_product": np.abs}, "test_gradient", {}),
    "rescaled forgets the scale": ({"rescaled": lambda k: SOUND}, "test_rescaled", {}),
    "error of the gram matrix is zero": (
        part("errors", 0, zero), "test_gram_with_error", {}),
    "error of the value is zero": (part("errors", 0, zero), NODE, {"check": "values"}),
    "error of the gradient is zero": (part("errors", 1, zero), NODE, {"check": "values"}),
    "error of the Hessian is zero": (
        {**part("errors", 2, zero), **{"sizes": lambda t, batch: (t[0], t[1], 1e-3 * t[2])}},
        NODE, {"check": "contraction"}),
    "errors are huge": (part("errors", 0, lambda x: x + 1e-6), "test_errors_are_small", {}),
    "NaN": (part("errors", 1, lambda x: x * np.nan), NODE, {"check": "values"}),
    "size of the value": (part("sizes", 0, lambda x: x * 0.5), NODE, {"check": "values"}),
    "size of the gradient": (part("sizes", 1, lambda x: x * 0.5), NODE, {"check": "values"}),
    "gradients without a sign": (
        {"gradients": first_axis_positive}, NODE, {"check": "values"}),
    "contracted gradient": (
        {"contract": jet(gradient=np.abs)}, NODE, {"check": "contraction"}),
    "contracted Hessian negated": (
        {"contract": jet(hessian=lambda h: -h)}, NODE, {"check": "contraction"}),
    "Hessian not symmetric": ({"contract": jet(hessian=tilted)}, NODE, {"check": "contraction"}),
    "remainder halved inside a region": (direct(1, 0.5), NODE, {"check": "feature sizes"}),
    "inner product of phi and its second derivative": (
        gram_entry(0, 2, 0.5), NODE, {"check": "feature sizes"}),
    "itself: value": (
        {"diagonal_jet": jet(value=lambda v: v * (1 + 1e-11))}, NODE, {"check": "diagonal_jet"}),
    "itself: Hessian halved": (
        {"diagonal_jet": jet(hessian=lambda h: 0.5 * h)}, NODE, {"check": "diagonal_jet"}),
    "mixed derivatives negated": (
        {"mixed": lambda m, batch: (-m[0], m[1])}, NODE, {"check": "diagonal_jet"}),
    "S_0 at the centre only": (
        {"variations": value_at_the_centre}, NODE, {"check": "variations"}),
    "S_1 at the centre only": (
        {"variations": at_the_centre_only}, NODE, {"check": "variations"}),
    "S_2 halved": (
        {"variations": lambda s, batch: (s[0], s[1], 0.5 * s[2], s[3])},
        NODE, {"check": "variations"}),
    "S_3 at a third": (
        {"variations": lambda s, batch: (*s[:3], s[3] / 3.0)}, NODE, {"check": "variations"}),
    "S_3 does not shrink": (
        {"variations": lambda s, batch: (*s[:3], s[3] + 1e-6)}, "test_variations_shrink", {}),
    "low is the value at the centre": (
        {"affine_relaxation": lambda e, batch: dataclasses.replace(e, low=batch.value)},
        NODE, {"check": "lines"}),
    "high is the value at the centre": (
        {"affine_relaxation": lambda e, batch: dataclasses.replace(e, high=batch.value)},
        NODE, {"check": "lines"}),
    "a line above psi: the chord for the tangent": (
        lines(under=lambda e: e.over), "test_lines_at_points", {}),
    "a line below psi: the tangent for the chord": (
        lines(over=lambda e: e.under), "test_lines_at_points", {}),
    "a line too high by 1e-9": (lines(under=lifted("under", 1e-9)), "test_lines_at_points", {}),
    "lines too high by 1e-9, as sums": (
        lines(under=lifted("under", 1e-9)), NODE, {"check": "lines"}),
    "lines too low by 1e-9, as sums": (
        lines(over=lifted("over", -1e-9)), NODE, {"check": "lines"}),
}  # fmt: skip


DRAWN = {
    "seed": seeds,
    "backend": st.just("numpy"),
    "size": sizes,
    "spread": st.sampled_from([1e-6, 1.0, 30.0]),
}


def run(changes, test, arguments):
    """The inherited test, its examples not shrunk: one that fails is enough."""
    instance = suite(changes)
    method = getattr(instance, test)
    if not hasattr(method, "hypothesis"):
        method(**arguments)
        return
    inner = method.hypothesis.inner_test
    names = set(inspect.signature(inner).parameters) - {"self", *arguments}
    drawn = {name: DRAWN[name] for name in names}
    if test == "test_remainders_are_tight":
        drawn["size"] = st.sampled_from(sorted(COMPARED_SIZES))

    @settings(max_examples=EXAMPLES, phases=[Phase.generate], deadline=None)
    @given(**drawn)
    def trial(**values):
        inner(instance, **arguments, **values)

    trial()


@pytest.mark.parametrize("defect", sorted(DEFECTS))
def test_a_defect_is_noticed(defect):
    changes, test, arguments = DEFECTS[defect]
    with pytest.raises((AssertionError, ExceptionGroup)) as noticed:
        run(changes, test, arguments)
    if isinstance(noticed.value, ExceptionGroup):
        assert noticed.value.subgroup(AssertionError) is not None


def test_a_forgotten_shift_is_noticed():
    def forget(moved):
        return Linear(moved.weights, 0.5)

    class Shifted(NodeContract):
        kernel = BrokenKernel(Linear([1.0, 2.0], 0.5), {"rescaled": forget})
        dim = 2
        compose = False

    with pytest.raises(AssertionError):
        Shifted().test_rescaled()


@pytest.mark.parametrize(
    ("test", "check"),
    sorted({(test, arguments.get("check", "")) for _, test, arguments in DEFECTS.values()}),
)
def test_a_sound_kernel_passes(test, check):
    """The same wrapper without a defect: it is the defect that is noticed, not the wrapper."""
    run({}, test, {"check": check} if check else {})
