"""GPy models as posteriors, whatever the inference: the library itself keeps the canonical form.

    t = posterior.woodbury_vector,  S = posterior.woodbury_inv,  Z = _predictive_variable,

with Z the training inputs or, of a sparse model, the inducing ones; `normalizer` scales outputs.
Certified is the latent function (`predict_noiseless`; its mean is that of `predict`), and of a
classifier the probability that `predict` returns. Kernels that differ from ours:

    RatQuad       v (1 + r^2 / 2)^-power              our length-scale is theirs / sqrt(power),
    StdPeriodic   v exp(-1/2 sum_j (sin(pi d_j / p_j) / l_j)^2)    our length-scale is twice it,
    Cosine        v cos(r), r the scaled distance     one feature only: else not positive definite,
    Poly          v (scale x.y + bias)^order,
    Brownian      v min(x, y) of positive inputs: with u = log x it is v e^(u/2) e^(u'/2)
                  e^(-|u - u'| / 2), an exponential tilt and a Matern 1/2 of length 2 behind a
                  logarithm of that input. At 0 it vanishes: points there count for nothing.

>>> k, white = TREE.convert(gk.RBF(2, variance=3.0, lengthscale=2.0) + gk.White(2, 0.5), 2)
>>> k.config(), white
({'length_scale': 2.0, 'variance': 3.0}, 0.5)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpcert import kernels as ours
from gpcert.adapters import kernel_tree as tree
from gpcert.adapters.adapter import Conversion, LibraryPrediction, unsupported
from gpcert.adapters.canonical import PriorMean, in_units, join_outputs
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.functions import Curve, Log
from gpcert.inputs.tabular import spread_of
from gpcert.kernels import Kernel
from gpcert.kernels.algebra import product_of, scaled_by
from gpcert.likelihoods import (
    ExpLink,
    Gaussian,
    Likelihood,
    Probit,
    ResponseLikelihood,
    SoftplusLink,
)
from gpcert.model.posterior import Posterior
from gpcert.model.posterior_parts import known_noise
from gpcert.numerics.arrays import finite_array
from gpcert.regions import LinearMap
from gpcert.utils.optional_imports import library

GPy: Any = library("GPy")
gk: Any = GPy.kern

JITTER = 1e-8
"""What the library adds to the covariance of the observations of exact regression."""

MODELS = (
    GPy.models.GPRegression,
    GPy.models.GPHeteroscedasticRegression,
    GPy.models.GPCoregionalizedRegression,
    GPy.models.SparseGPCoregionalizedRegression,
    GPy.models.GPVariationalGaussianApproximation,
    GPy.models.GPClassification,
    GPy.models.SparseGPRegression,
    GPy.models.SparseGPClassification,
    GPy.core.GP,
    GPy.core.SparseGP,
)


INSTEAD = {
    "WarpedGP": (
        "; transform the targets by a known function instead (scikit-learn's "
        "TransformedTargetRegressor is supported), and fit a GPRegression"
    ),
    "InputWarpedGP": "; BoTorch's Warp is supported, and transforms in scikit-learn's pipelines",
    "GPMultioutRegression": "; fit a GPRegression to each output, or GPCoregionalizedRegression",
    "SVGP": "; fit a SparseGPRegression or SparseGPClassification, or GPflow's or GPyTorch's SVGP",
}
"""Models by name, and what to do."""


def convert(model: Any) -> Conversion:
    """Convert a GPy model."""
    if type(model) not in MODELS:  # others predict by other formulas: warped, multi-output, ...
        raise unsupported("model", model, MODELS, INSTEAD.get(type(model).__name__, ""))
    likelihood = _likelihood(model.likelihood)
    Z = model._predictive_variable
    if not isinstance(Z, np.ndarray) or not isinstance(model.X, np.ndarray):
        raise UnsupportedModelError(
            "model: uncertain inputs (X_variance) are not supported; fit it on plain inputs"
        )
    if model.posterior is None:
        raise InputError("model: expected a model with a posterior, got none; call initialize")
    Z = np.asarray(Z)
    layout = _layout(model.kern, Z.shape[1])
    timed = _times(model.kern, Z, layout)
    kernel, noise = TREE.convert(model.kern, Z.shape[1], layout)
    inputs, fields = np.asarray(model.X), {}
    spread = spread_of(inputs)
    if layout is not None:
        if model.mean_function is not None:
            raise unsupported("mean_function", model.mean_function, "none beside Coregionalize")
        fields["features"], Z = layout.features(), layout.features()(Z)
        spread[list(layout.levels)] = 0.0  # a region keeps tasks
    weights = finite_array("woodbury_vector", model.posterior.woodbury_vector).reshape(len(Z), -1).T
    S = finite_array("woodbury_inv", model.posterior.woodbury_inv).reshape(len(Z), len(Z), -1)
    mean = _mean(model.mean_function, len(weights), Z.shape[1])
    felt = np.full(len(Z), True)
    if timed:
        felt = np.asarray(model.kern.Kdiag(Z)) > 0.0
        fields["features"] = LinearMap(
            np.eye(Z.shape[1]), curves=dict.fromkeys(timed, Curve((Log(),)))
        )
        if np.any(Z[felt][:, timed] <= 0.0) or np.any(mean.slope[:, timed]):
            raise UnsupportedModelError(
                "Brownian: expected positive inputs and no linear mean of them, got others; count "
                "time from the motion's beginning, before the fit"
            )
        Z, weights, S = fields["features"](Z[felt]), weights[:, felt], S[felt][:, felt]
    options = {"noise": noise, "likelihood": likelihood, "spread": spread, **fields}

    observed = _training_noise(model, noise)

    def outputs(chosen: Any, precision: np.ndarray) -> Posterior:
        trend = {"offset": mean.constant[chosen], "slope": mean.slope[chosen]}
        if observed is not None:
            exact = known_noise(len(Z), observed[felt] if observed.size > 1 else observed)
            return Posterior(kernel, Z, weights[chosen], training_noise=exact, **trend, **options)
        symmetric = precision / 2 + precision.T / 2
        return Posterior.from_precision(kernel, Z, weights[chosen], symmetric, **trend, **options)

    if S.shape[2] == 1:  # of all outputs
        latent = outputs(slice(None), S[:, :, 0])
    else:
        latent = join_outputs([outputs(slice(c, c + 1), S[:, :, c]) for c in range(len(weights))])
    assert isinstance(latent, Posterior), "one kernel for all outputs"
    posterior = in_units(latent, *_normalizer(model, len(weights)))

    def predict(X: np.ndarray) -> LibraryPrediction:
        mean, variance = model.predict(X, include_likelihood=False)
        variance = np.broadcast_to(variance, mean.shape)
        if isinstance(likelihood, ResponseLikelihood):  # which the library integrates numerically
            return LibraryPrediction(mean, variance, response=model.predict(X)[0])
        if not likelihood.classifies:
            return LibraryPrediction(mean, variance)
        return LibraryPrediction(mean, variance, model.predict(X)[0][:, 0])

    return Conversion(posterior, predict)


def _training_noise(model: Any, white: float) -> np.ndarray | None:
    """Of exact regression: that of the likelihood, of the kernel's White parts, and the jitter that
    the library adds."""
    exact = GPy.inference.latent_function_inference.ExactGaussianInference
    if type(model.inference_method) is not exact:
        return None
    noise = finite_array("variance", model.likelihood.gaussian_variance(model.Y_metadata))
    return np.ravel(noise) + white + JITTER


def _times(kernel: Any, Z: np.ndarray, layout: tree.CategoryLayout | None) -> list[int]:
    """The inputs of kernels of Brownian motion, which other kernels must not see."""
    parts = list(_leaves(kernel))
    times = sorted({int(p.active_dims[0]) for p in parts if type(p) is gk.Brownian})
    if times and (
        layout is not None
        or any(
            set(p.active_dims) & set(times)
            for p in parts
            if type(p) not in (gk.Brownian, gk.Bias, gk.White)
        )
    ):
        raise UnsupportedModelError(
            f"Brownian: expected input {times[0]} of no other kernel, and none of tasks, got some; "
            "give the others active_dims without it"
        )
    return times


def _layout(kernel: Any, d: int) -> tree.CategoryLayout | None:
    """Of an expression with kernels of tasks; else None."""
    blocks = {}
    for part in _leaves(kernel):
        if type(part) is gk.Coregionalize:
            covariance = finite_array("Coregionalize.B", part.B)
            block = tree.CategoryBlock.of_covariance(int(part.active_dims[0]), covariance)
            blocks[id(part)] = (block,)
    return tree.CategoryLayout(d, blocks) if blocks else None


def _leaves(kernel: Any) -> Iterator[Any]:
    if type(kernel) not in (gk.Add, gk.Prod):
        yield kernel
        return
    for part in kernel.parts:
        yield from _leaves(part)


def _likelihood(likelihood: Any) -> Likelihood:
    kinds = GPy.likelihoods
    parts = getattr(likelihood, "likelihoods_list", [])
    if type(likelihood) in (kinds.Gaussian, kinds.HeteroscedasticGaussian, kinds.StudentT):
        return Gaussian()  # whose mean is that of the latent function
    if type(likelihood) is kinds.MixedNoise and all(type(p) is kinds.Gaussian for p in parts):
        return Gaussian()
    link = type(likelihood.gp_link).__name__ if hasattr(likelihood, "gp_link") else "of its own"
    if type(likelihood) is kinds.Poisson and link in {"Log", "Log_ex_1"}:
        return ExpLink() if link == "Log" else SoftplusLink()
    if type(likelihood) is kinds.Bernoulli and link == "Probit":
        return Probit()
    raise UnsupportedModelError(
        f"likelihood: {type(likelihood).__name__} with the link {link} is not supported "
        "(supported: Gaussian, HeteroscedasticGaussian, MixedNoise of Gaussian ones, StudentT, "
        "Poisson with the links Log and Log_ex_1, Bernoulli with the Probit link); pass a model "
        "with one of these"
    )


def _normalizer(model: Any, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Shift and scale of every output."""
    normalizer = getattr(model, "normalizer", None)
    if normalizer is None:
        return np.zeros(m), np.ones(m)
    if type(normalizer).__name__ != "Standardize":
        why = "; scale the targets before fitting"
        raise unsupported("normalizer", normalizer, "Standardize", why)
    shift, scale = finite_array("mean", normalizer.mean), finite_array("std", normalizer.std)
    return np.broadcast_to(shift, (m,)), np.broadcast_to(scale, (m,))


def _mean(mean: Any, m: int, d: int) -> PriorMean:
    """The prior's mean of every output."""
    if mean is None:
        return PriorMean.of(m, d)
    if type(mean) is GPy.mappings.Constant:
        return PriorMean.of(m, d, mean.C)
    if type(mean) is GPy.mappings.Linear:
        return PriorMean.of(m, d, slope=np.asarray(mean.A).T)
    if type(mean) is GPy.mappings.Additive:
        return _mean(mean.mapping1, m, d) + _mean(mean.mapping2, m, d)
    known = "Constant, Linear and Additive of these of GPy.mappings"
    raise unsupported("mean_function", mean, known, "; fit the targets less the mean")


PARAMETERS = tree.ParameterNames("lengthscale", "variance")


def _rational_quadratic(kernel: Any, d: int) -> Kernel:
    power = tree.number(kernel, "power")
    lengths = tree.vector(kernel, "lengthscale") / np.sqrt(power)
    return ours.RationalQuadratic(lengths, power, tree.number(kernel, "variance"))


def _brownian(kernel: Any, d: int) -> Kernel:
    variance = tree.number(kernel, "variance")
    if variance == 0.0:
        raise UnsupportedModelError("Brownian: expected a positive variance, got 0")
    return product_of([ours.ExponentialTilt([0.5], np.log(variance)), ours.Matern(2.0, 0.5)])


def _polynomial(kernel: Any, d: int) -> Kernel:
    power = tree.polynomial(
        kernel, kernel.order, tree.number(kernel, "scale"), tree.number(kernel, "bias")
    )
    return scaled_by(power, tree.number(kernel, "variance"))


def _dimensions(kernel: Any, d: int) -> list[int]:
    # a sum or product hands all features to its parts, which select
    joined = type(kernel) in (gk.Add, gk.Prod)
    return list(range(d)) if joined else [int(j) for j in kernel.active_dims]


TREE = tree.KernelTree(
    converters={
        **dict.fromkeys((gk.RBF, gk.ExpQuad), PARAMETERS.radial(ours.SquaredExponential)),
        **PARAMETERS.materns({gk.Exponential: 0.5, gk.OU: 0.5, gk.Matern32: 1.5, gk.Matern52: 2.5}),
        gk.RatQuad: _rational_quadratic,
        gk.StdPeriodic: PARAMETERS.periodic(2.0),
        gk.Cosine: tree.on_one_feature(
            lambda kernel, d: ours.Cosine(
                [1.0 / tree.number(kernel, "lengthscale")], tree.number(kernel, "variance")
            ),
            "it is a cosine of the Euclidean distance, which for more than one feature is not "
            "positive definite",
        ),
        gk.Linear: tree.linear("variances"),
        gk.Poly: _polynomial,
        gk.Brownian: _brownian,
        gk.Bias: tree.constant("variance"),
        gk.White: tree.white("variance"),
    },
    sums=gk.Add,
    products=gk.Prod,
    parts=lambda kernel: kernel.parts,
    dimensions=_dimensions,
    example="GPy.kern.RBF",
)
