"""tinygp's conditioned processes and kernels as ours.

`gp.condition(y).gp` keeps the canonical form: `t = mean_function.alpha`, and the Cholesky factor L
of the covariance of the data, `A = L^-1`. Certified are its mean function and the variance of its
kernel, without the `diag` that `condition` adds at its test points.

Distances are L1 by default: on several features `exp(-|d|_1 / l)` is a product over them, and a
Matern function of it is no kernel of ours.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gpcert import kernels as ours
from gpcert.adapters import kernel_tree as tree
from gpcert.adapters.adapter import Conversion, LibraryPrediction, unsupported
from gpcert.adapters.canonical import noise_between
from gpcert.adapters.jax_models import compared, points
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.inputs.tabular import spread_of
from gpcert.kernels import Kernel
from gpcert.kernels.algebra import product_of
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import finite_array
from gpcert.numerics.triangular import Inverse
from gpcert.utils.optional_imports import library

jax: Any = library("jax")
gk: Any = library("tinygp.kernels")
means: Any = library("tinygp.means")
transforms: Any = library("tinygp.transforms")
DirectSolver: Any = library("tinygp.solvers").DirectSolver


def convert(model: Any) -> Conversion:
    """Convert a conditioned `GaussianProcess`."""
    mean, kernel = model.mean_function, model.kernel
    if type(mean) is not means.Conditioned or type(kernel) is not gk.Conditioned:
        raise InputError(
            "model: expected a process conditioned on data, got one that is not; pass "
            "gp.condition(y).gp"
        )
    if type(kernel.solver) is not DirectSolver:
        known = "DirectSolver, with the kernels of tinygp.kernels"
        raise unsupported("solver", kernel.solver, known)
    Z = points("X", mean.X)
    converted, _ = TREE.convert(kernel.kernel, Z.shape[1])
    covariance = finite_array("covariance_value", kernel.solver.covariance_value)
    posterior = Posterior(
        converted,
        Z,
        finite_array("alpha", mean.alpha),
        Inverse.of(finite_array("scale_tril", kernel.solver.scale_tril)),
        offset=_constant(mean),
        training_noise=noise_between(covariance, converted.value(Z, Z)),
        spread=spread_of(Z),
    )
    flat = np.ndim(mean.X) == 1

    def predictions(library_model: Any, X: Any) -> LibraryPrediction:
        rows = X[:, 0] if flat else X
        mu, variance = jax.vmap(library_model.mean_function)(rows), library_model.kernel(rows)
        return LibraryPrediction(np.asarray(mu)[:, None], np.asarray(variance)[:, None])

    return compared(posterior, model, predictions)


def _constant(mean: Any) -> float:
    prior = mean.mean_function
    if prior is None or not mean.include_mean:
        return 0.0
    if type(prior) is not means.Mean or prior.func is not None:
        raise UnsupportedModelError(
            "mean: a function of the inputs is not supported (supported: a constant); fit the "
            "targets less the trend"
        )
    return float(finite_array("mean", prior.value))


def _check_distance(kernel: Any, d: int) -> None:
    """On one feature all distances are alike."""
    if d > 1 and type(kernel.distance) is not gk.distance.L2Distance:
        name = type(kernel).__name__
        raise UnsupportedModelError(
            f"{name} on {d} features with {type(kernel.distance).__name__} is not supported; use "
            f"{name}(distance=tinygp.kernels.distance.L2Distance())"
        )


def _of_distance(converter: tree.Converter) -> tree.Converter:
    def checked(kernel: Any, d: int) -> Kernel | tree.Converted:
        _check_distance(kernel, d)
        return converter(kernel, d)

    return checked


PERIODIC = (
    "a periodic function of a distance is not positive definite there; use a product over features "
    "of Subspace(j, kernel)"
)


def _exponential(kernel: Any, d: int) -> Kernel:
    part = ours.Matern(tree.number(kernel, "scale"), 0.5)
    if d == 1 or type(kernel.distance) is not gk.distance.L1Distance:
        _check_distance(kernel, d)
        return part
    return product_of([ours.ActiveDimensions(part, (j,)) for j in range(d)])


def _periodic(kernel: Any, d: int) -> Kernel:
    return ours.Periodic(tree.number(kernel, "scale"), np.sqrt(2.0 / tree.number(kernel, "gamma")))


def _polynomial(kernel: Any, d: int) -> Kernel:
    variance = 1.0 / tree.vector(kernel, "scale") ** 2
    return tree.polynomial(kernel, kernel.order, variance, float(tree.vector(kernel, "sigma") ** 2))


def _scaled(name: str, power: int) -> tree.Converter:
    """Of inputs that are multiplied (power 1) or divided (-1) by a parameter, feature by feature.

    Every kernel here is the same for x and y as for -x and -y in one feature.
    """

    def converter(kernel: Any, d: int) -> tree.Converted:
        if np.ndim(getattr(kernel, name)) > 1:
            raise UnsupportedModelError(
                f"{type(kernel).__name__} with a matrix is not supported (supported: a number or "
                "one per feature), since a region has no exact image under it; transform the data"
            )
        sizes = np.broadcast_to(np.abs(tree.vector(kernel, name)), (d,)).astype(float) ** power
        if not np.all(np.isfinite(sizes) & (sizes > 0)):
            raise UnsupportedModelError(f"{type(kernel).__name__}.{name}: expected no zero")
        inside = TREE.called(kernel.kernel, d)
        if inside.kernel is None:
            return inside
        return tree.Converted(d, inside.kernel.rescaled(1.0 / sizes, np.zeros(d)), inside.white)

    return converter


def _subspace(kernel: Any, d: int) -> tree.Converted:
    dimensions = np.atleast_1d(np.arange(d)[kernel.axis]).tolist()
    return TREE.called(kernel.kernel, len(dimensions)).on(dimensions, d)


PARAMETERS = tree.ParameterNames("scale")

TREE = tree.KernelTree(
    converters={
        gk.ExpSquared: _of_distance(PARAMETERS.radial(ours.SquaredExponential)),
        gk.Exp: _exponential,
        gk.Matern32: _of_distance(PARAMETERS.radial(partial(ours.Matern, nu=1.5))),
        gk.Matern52: _of_distance(PARAMETERS.radial(partial(ours.Matern, nu=2.5))),
        gk.RationalQuadratic: _of_distance(
            PARAMETERS.radial(ours.RationalQuadratic, alpha="alpha")
        ),
        gk.ExpSineSquared: tree.on_one_feature(_periodic, PERIODIC),
        gk.Cosine: tree.on_one_feature(
            lambda kernel, d: ours.Cosine([2.0 * np.pi / tree.number(kernel, "scale")]), PERIODIC
        ),
        gk.DotProduct: lambda kernel, d: ours.Linear(1.0),
        gk.Polynomial: _polynomial,
        gk.Constant: tree.constant("value"),
        transforms.Linear: _scaled("scale", 1),
        transforms.Cholesky: _scaled("factor", -1),
        transforms.Subspace: _subspace,
    },
    sums=gk.Sum,
    products=gk.Product,
    parts=lambda kernel: (kernel.kernel1, kernel.kernel2),
    example="tinygp.kernels.ExpSquared",
)
