"""GPflow models as posteriors.

    GPR    exact regression,
    VGP    q of L^-1 (f - m) at the training inputs, L L^T = K + jitter I,
    SVGP   q of u, or of L^-1 (u - m), at inducing inputs, diagonal or full,
           (of a LinearCoregionalization mixtures of them by its W),
    SGPR   the same at its optimum: with A = L^-1 K_uf / sigma and B = I + A A^T the whitened values
           have the covariance B^-1 and the mean B^-1 A (y - m) / sigma (Titsias 2009).

See `gpcert.adapters.canonical`. Jitter is in K_uu only. Kernels that differ from ours:

    Exponential   v exp(-r / 2)                                  Matern 1/2 of twice the length,
    Periodic      of a SquaredExponential: v exp(-1/2 sum_j (sin(pi d_j / p_j) / l_j)^2); our
                  length-scale is twice it,
    Cosine        v cos(2 pi sum_j d_j / l_j).

Certified is the latent function (`predict_f`), and of a classifier the probability of `predict_y`.
Latent functions of an SVGP may have kernels and inducing inputs of their own. Of a float32 model
the float64 function of the same numbers is certified; how far its own predictions are from that is
measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.linalg

from gpcert import kernels as ours
from gpcert.adapters import canonical, tasks
from gpcert.adapters import kernel_tree as tree
from gpcert.adapters.adapter import Conversion, LibraryPrediction, unsupported
from gpcert.adapters.canonical import Canonical, PriorMean
from gpcert.errors import UnsupportedModelError
from gpcert.functions import PolynomialMean
from gpcert.inputs.tabular import spread_of
from gpcert.kernels import Kernel
from gpcert.likelihoods import Gaussian, LapseProbit, Likelihood, Softmax
from gpcert.numerics.arrays import finite_array
from gpcert.utils.optional_imports import library

gpflow: Any = library("gpflow")
gk: Any = gpflow.kernels

LAPSE = 1e-3
"""Hard-coded in gpflow/likelihoods/utils.py, `inv_probit`."""

SINGLE_TOLERANCE = 1e-2
"""Largest accepted difference from what a float32 model itself returns: 1e-4 is usual, and a jitter
of 1e-6 below float32's own rounding of K_uu can cost a hundred times that."""


def convert(model: Any) -> Conversion:
    """Convert a GPflow model."""
    reader = READERS.get(type(model))
    if reader is None:
        raise unsupported("model", model, READERS, "; classes derived from them neither")
    likelihood = _likelihood(model.likelihood)
    latent, W = _latent(model), _mixing(model)
    count, d = len(latent) if W is None else len(W), latent[0].inputs
    mean = _mean(model.mean_function, count, d)
    X = np.asarray(model.data[0]) if hasattr(model, "data") else None
    spread = None if X is None else spread_of(X)
    seen, added = mean, [0] * len(latent) if W is not None else range(count)
    if W is not None and isinstance(likelihood, Softmax):
        raise UnsupportedModelError(
            "LinearCoregionalization with Softmax is not supported: the library takes the outputs "
            "for independent there; use Gaussian(), or SeparateIndependent"
        )
    if W is not None:
        seen = PriorMean.of(1, d)  # that of the outputs is added to their mixtures
    fields: dict[str, Any] = {"spread": spread}
    if latent[0].layout is not None:
        fields["features"] = latent[0].layout.features()
        seen = _without_categories(mean, latent[0].layout)
        if spread is not None:
            spread[list(latent[0].layout.levels)] = 0.0  # a region keeps tasks
    outputs = [
        solution.posterior(process.kernel, process.points, seen, c, noise=process.white, **fields)
        for c, solution, process in zip(added, reader(model, latent, mean), latent, strict=True)
    ]
    if W is not None:
        if mean.function is not None:
            raise UnsupportedModelError(
                "mean_function: Polynomial beside a LinearCoregionalization is not supported; fit "
                "the targets less the mean"
            )
        each = [PriorMean(mean.constant[p : p + 1], mean.slope[p : p + 1]) for p in range(count)]
        outputs = tasks.mixed(outputs, W, each)
    posterior = canonical.join_outputs(outputs, likelihood=likelihood)
    binary = isinstance(likelihood, LapseProbit)
    dtype = np.asarray(model.q_mu).dtype if X is None else X.dtype  # in which it computes

    def predict(X: np.ndarray) -> LibraryPrediction:
        config = replace(gpflow.config.config(), float=dtype.type)
        with gpflow.config.as_context(config):
            points = np.asarray(X, dtype=dtype)
            mean, variance = (np.asarray(part, float) for part in model.predict_f(points))
            probability = np.asarray(model.predict_y(points)[0], float)[:, 0] if binary else None
        return LibraryPrediction(mean, variance, probability)

    if dtype == np.float64:
        return Conversion(posterior, predict)
    return Conversion(posterior, predict, SINGLE_TOLERANCE, native=predict)


@dataclass(frozen=True, eq=False)
class _Latent:
    """Kernel, white noise and points of one latent function."""

    kernel: Kernel
    white: float
    points: np.ndarray
    inputs: int
    layout: tree.CategoryLayout | None = None

    def seen(self, X: np.ndarray) -> np.ndarray:
        """What the kernel sees of inputs."""
        return X if self.layout is None else self.layout.features()(X)

    def covariance(self, added: Any) -> np.ndarray:
        """k(Z, Z), white noise included, with something more on the diagonal."""
        Z = self.points
        return self.kernel.value(Z, Z) + np.diag(np.broadcast_to(self.white + added, (len(Z),)))

    @cached_property
    def factor(self) -> np.ndarray:
        """Cholesky factor of the covariance of inducing inputs."""
        K = self.covariance(gpflow.default_jitter())
        return canonical.lower_factor(K, "covariance of the inducing inputs")


def _latent(model: Any) -> list[_Latent]:
    """One of every latent function; the same one where they share all."""
    count, kernel = int(model.num_latent_gps), model.kernel
    kernels, points = [kernel], _points(model)
    if isinstance(kernel, gpflow.kernels.MultioutputKernel):
        if type(kernel) not in (*INDEPENDENT, gk.LinearCoregionalization):
            raise UnsupportedModelError(
                f"kernel: {type(kernel).__name__} is not supported (supported: "
                "SeparateIndependent, SharedIndependent, LinearCoregionalization, or one kernel "
                "for all)"
            )
        if type(model) is not gpflow.models.SVGP:
            raise UnsupportedModelError(
                f"{type(model).__name__} with a {type(kernel).__name__} kernel is not supported: "
                "the library predicts with it in an SVGP only; use that, or one kernel for all"
            )
        kernels = list(kernel.latent_kernels)
    pairs = max(len(kernels), len(points))
    kernels, points = (each * pairs if len(each) == 1 else each for each in (kernels, points))
    latent = []
    for library_kernel, Z in zip(kernels, points, strict=True):
        layout = _layout(library_kernel, Z.shape[1])
        converted, white = TREE.convert(library_kernel, Z.shape[1], layout)
        seen = Z if layout is None else layout.features()(Z)
        latent.append(_Latent(converted, white, seen, Z.shape[1], layout))
    if any(each.layout is not None for each in latent) and len(latent) > 1:
        raise UnsupportedModelError(
            "Coregion in kernels of several latent functions is not supported: use one kernel"
        )
    return latent * count if len(latent) == 1 else latent


def _mixing(model: Any) -> np.ndarray | None:
    """W (outputs, latent functions) of a coregionalisation."""
    kernel = model.kernel
    linear = type(kernel) is gk.LinearCoregionalization
    return finite_array("kernel.W", kernel.W) if linear else None


def _layout(kernel: Any, d: int) -> tree.CategoryLayout | None:
    """Of an expression with kernels of tasks; else None."""
    blocks = {}
    for part in _leaves(kernel):
        if type(part) is gk.Coregion:
            (column,) = TREE.dimensions(part, d)
            covariance = finite_array("Coregion", part.output_covariance())
            blocks[id(part)] = (tree.CategoryBlock.of_covariance(int(column), covariance),)
    return tree.CategoryLayout(d, blocks) if blocks else None


def _leaves(kernel: Any) -> Iterator[Any]:
    if type(kernel) not in (gk.Sum, gk.Product):
        yield kernel
        return
    for part in kernel.kernels:
        yield from _leaves(part)


def _without_categories(mean: PriorMean, layout: tree.CategoryLayout) -> PriorMean:
    """The mean as a function of what the kernel sees."""
    if np.any(mean.slope[:, list(layout.levels)]) or mean.function is not None:
        raise UnsupportedModelError(
            "mean_function: expected none of the column of a Coregion, got a Linear or Polynomial; "
            "train with a Constant"
        )
    slope = np.zeros((len(mean.slope), layout.total))
    slope[:, : len(layout.plain)] = mean.slope[:, layout.plain]
    return PriorMean(mean.constant, slope)


def _points(model: Any) -> list[np.ndarray]:
    """Training inputs or inducing inputs: of all latent functions, or of each."""
    if type(model) in (gpflow.models.GPR, gpflow.models.VGP):
        return [finite_array("data[0]", model.data[0])]
    kinds, inducing = gpflow.inducing_variables, model.inducing_variable
    several = (
        kinds.SharedIndependentInducingVariables,
        kinds.SeparateIndependentInducingVariables,
    )
    each = inducing.inducing_variables if type(inducing) in several else (inducing,)
    for variable in each:
        if type(variable) is not kinds.InducingPoints:
            known = "InducingPoints, also in " + " and ".join(kind.__name__ for kind in several)
            raise unsupported("inducing_variable", variable, known)
    return [finite_array("inducing_variable.Z", variable.Z) for variable in each]


def _noise(model: Any, X: np.ndarray) -> np.ndarray:
    return finite_array("likelihood.variance_at", model.likelihood.variance_at(X)).reshape(-1)


def _exact(model: Any, latent: list[_Latent], mean: PriorMean) -> list[Canonical]:
    X, Y = finite_array("data[0]", model.data[0]), finite_array("data[1]", model.data[1])
    process, noise = latent[0], _noise(model, X)
    K, noise = process.covariance(noise), process.white + noise
    return [canonical.exact_regression(K, errors, noise) for errors in (Y - mean.at(X)).T]


def _sparse(model: Any, latent: list[_Latent], mean: PriorMean) -> list[Canonical]:
    X, Y = finite_array("data[0]", model.data[0]), finite_array("data[1]", model.data[1])
    sigma, process = np.sqrt(_noise(model, X)), latent[0]
    L = process.factor
    A = scipy.linalg.solve_triangular(
        L, process.kernel.value(process.points, process.seen(X)) / sigma, lower=True
    )
    root = canonical.lower_factor(np.eye(len(L)) + A @ A.T, "I + A A^T")
    spread = scipy.linalg.cho_solve((root, True), np.eye(len(L)))
    errors = (Y - mean.at(X)).T / sigma
    return [
        canonical.whitened(L, scipy.linalg.cho_solve((root, True), A @ e), spread) for e in errors
    ]


def _variational(model: Any, latent: list[_Latent], mean: PriorMean) -> list[Canonical]:
    centers, roots = finite_array("q_mu", model.q_mu).T, finite_array("q_sqrt", model.q_sqrt)
    if roots.ndim == 2:  # standard deviations, (M, P)
        spreads = [np.diag(np.square(deviations)) for deviations in roots.T]
    else:
        lower = np.tril(roots)
        spreads = list(lower @ lower.transpose(0, 2, 1))
    # u less its prior mean is not what an unwhitened q of the library describes: m(Z) is ignored
    solve = canonical.whitened if getattr(model, "whiten", True) else canonical.unwhitened
    return [
        solve(process.factor, center, spread)
        for process, center, spread in zip(latent, centers, spreads, strict=True)
    ]


def _likelihood(likelihood: Any) -> Likelihood:
    kinds = gpflow.likelihoods
    if type(likelihood) is kinds.Gaussian:
        return Gaussian()
    if type(likelihood) is kinds.Softmax:
        return Softmax()
    if type(likelihood) is kinds.Bernoulli:
        if likelihood.invlink is kinds.utils.inv_probit:
            return LapseProbit(LAPSE)
        raise UnsupportedModelError(
            "likelihood: Bernoulli with another invlink than inv_probit is not supported: "
            "predict_y approximates it by quadrature; use Bernoulli()"
        )
    raise unsupported("likelihood", likelihood, "Gaussian, Bernoulli, Softmax")


def _mean(mean: Any, count: int, d: int) -> PriorMean:
    """The prior's mean of every output."""
    kinds = gpflow.functions
    if type(mean) is kinds.Zero:
        return PriorMean.of(count, d)
    if type(mean) is kinds.Constant:
        return PriorMean.of(count, d, finite_array("mean_function.c", mean.c).reshape(-1))
    if type(mean) is kinds.Linear:  # A (d, outputs) or (d, 1), b (outputs,) or (1,)
        A, b = finite_array("mean_function.A", mean.A), finite_array("mean_function.b", mean.b)
        return PriorMean.of(count, d, b.reshape(-1), A.T)
    if type(mean) is kinds.Polynomial:
        powers = finite_array("mean_function.powers", mean.powers)
        w = np.broadcast_to(finite_array("mean_function.w", mean.w), (count, len(powers)))
        return PriorMean.of(count, d).plus_function(PolynomialMean(powers, w))
    if type(mean) is kinds.Additive:
        return _mean(mean.add_1, count, d) + _mean(mean.add_2, count, d)
    known = "Constant, Zero, Linear, Polynomial and sums of these"
    raise unsupported("mean_function", mean, known, "; fit the targets less the mean")


INDEPENDENT = (gpflow.kernels.SeparateIndependent, gpflow.kernels.SharedIndependent)
"""Kernels of several outputs that are independent."""

READERS: dict[type, Callable[..., list[Canonical]]] = {
    gpflow.models.GPR: _exact,
    gpflow.models.SGPR: _sparse,
    gpflow.models.VGP: _variational,
    gpflow.models.SVGP: _variational,
}


PARAMETERS = tree.ParameterNames("lengthscales", "variance")


def _periodic(kernel: Any, d: int) -> Kernel:
    base = kernel.base_kernel
    if type(base) is not gk.SquaredExponential:
        raise UnsupportedModelError(
            f"Periodic of a {type(base).__name__} is not supported (supported: of a "
            "SquaredExponential)"
        )
    lengths = 2.0 * tree.vector(base, "lengthscales")
    return ours.Periodic(tree.vector(kernel, "period"), lengths, tree.number(base, "variance"))


def _cosine(kernel: Any, d: int) -> Kernel:
    frequency = 2.0 * np.pi / tree.vector(kernel, "lengthscales")
    return ours.Cosine(np.broadcast_to(frequency, (d,)), tree.number(kernel, "variance"))


def _polynomial(kernel: Any, d: int) -> Kernel:
    degree = np.asarray(kernel.degree)
    return tree.polynomial(
        kernel, degree, tree.vector(kernel, "variance"), tree.number(kernel, "offset")
    )


TREE = tree.KernelTree(
    converters={
        gk.SquaredExponential: PARAMETERS.radial(ours.SquaredExponential),
        **PARAMETERS.materns({gk.Matern12: 0.5, gk.Matern32: 1.5, gk.Matern52: 2.5}),
        gk.Exponential: PARAMETERS.radial(partial(ours.Matern, nu=0.5), 2.0),
        gk.RationalQuadratic: PARAMETERS.radial(ours.RationalQuadratic, alpha="alpha"),
        gk.Periodic: _periodic,
        gk.Cosine: _cosine,
        gk.Linear: tree.linear("variance"),
        gk.Polynomial: _polynomial,
        gk.Constant: tree.constant("variance"),
        gk.White: tree.white("variance"),
    },
    sums=gk.Sum,
    products=gk.Product,
    parts=lambda kernel: kernel.kernels,
    dimensions=lambda kernel, d: np.arange(d)[kernel.active_dims].tolist(),
    example="SquaredExponential",
)
