"""GPJax's posteriors and kernels as ours.

    ExactPosterior    L L^T = K + (jitter + noise) I, t = representer_weights, A = L^-1,
    LatentPosterior   L L^T = K + jitter I, t = L^-T latent, A = L^-1,
    SparsePosterior   q of u, or of L^-1 (u - m), at inducing inputs, L L^T = K_ZZ + jitter I,
    CollapsedPosterior  the same at its optimum, whose covariance is B^-1.

The library adds its jitter to every predictive variance. Its `Periodic` is
`v exp(-1/2 sum_j (sin(pi d_j / p) / l_j)^2)`: our length-scale is twice it. `White` counts where a
point is a training point and nowhere else, so that no continuous function is its prediction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from gpcert import kernels as ours
from gpcert.adapters import canonical
from gpcert.adapters import kernel_tree as tree
from gpcert.adapters.adapter import Conversion, LibraryPrediction, unsupported
from gpcert.adapters.canonical import PriorMean
from gpcert.adapters.jax_models import compared, points
from gpcert.errors import InputError
from gpcert.inputs.tabular import spread_of
from gpcert.likelihoods import Gaussian, LapseProbit, Likelihood
from gpcert.model.posterior import Posterior
from gpcert.model.posterior_parts import known_noise
from gpcert.numerics.arrays import finite_array
from gpcert.numerics.triangular import Inverse
from gpcert.utils.optional_imports import library

gpx: Any = library("gpjax")
jax: Any = library("jax")
conditioning: Any = library("gpjax.conditioning")
unwrap: Any = library("paramax").unwrap
gk: Any = gpx.kernels

SPARSE = (conditioning.SparsePosterior, conditioning.CollapsedPosterior)
POSTERIORS = (conditioning.ExactPosterior, conditioning.LatentPosterior, *SPARSE)

LAPSE = 1e-3
"""Hard-coded in gpjax/likelihoods.py, `inv_probit`."""


def convert(model: Any) -> Conversion:
    """Convert a conditioned posterior."""
    if type(model) not in POSTERIORS:
        if not isinstance(model, conditioning.Posterior):
            raise InputError(
                "model: expected a posterior conditioned on data, got "
                f"{type(model).__name__}; pass model.condition(train_data), a variational family's "
                "too"
            )
        raise unsupported("model", model, POSTERIORS)
    with jax.enable_x64(True):  # else float64 parameters would be rounded
        model = unwrap(model)
    if type(model) in SPARSE:
        return _sparse(model)
    likelihood = _likelihood(model.likelihood)
    Z = points("train_data.X", model.train_data.X)
    kernel, _ = TREE.convert(model.prior.kernel, Z.shape[1])
    L = finite_array("cholesky_factor", model.cholesky_factor)
    noise = float(model.prior.jitter)
    if type(model) is conditioning.ExactPosterior:
        noise += float(np.asarray(model.likelihood.obs_stddev)) ** 2
        weights = finite_array("representer_weights", model.representer_weights)[:, 0]
    else:
        latent = finite_array("latent", model.latent)[:, 0]
        weights = scipy.linalg.solve_triangular(L, latent, lower=True, trans=1)
    posterior = Posterior(
        kernel,
        Z,
        weights,
        Inverse.of(L, owned=True),
        offset=_constant(model.prior.mean_function),
        noise=float(model.prior.jitter),
        training_noise=known_noise(len(Z), noise),
        likelihood=likelihood,
        spread=spread_of(Z),
    )

    return _conversion(posterior, model, lambda each: each.likelihood)


def _sparse(model: Any) -> Conversion:
    """From the distribution at inducing inputs."""
    family = model.family.model
    likelihood, prior = _likelihood(family.likelihood), family.prior
    Z = points("inducing_inputs", model.inducing_inputs)
    kernel, _ = TREE.convert(prior.kernel, Z.shape[1])
    constant, L = _constant(prior.mean_function), finite_array("cholesky_kzz", model.cholesky_kzz)
    if type(model) is conditioning.CollapsedPosterior:
        root = finite_array("cholesky_b", model.cholesky_b)
        spread = scipy.linalg.cho_solve((root, True), np.eye(len(Z)))
        center = L.T @ finite_array("representer_weights", model.representer_weights)[:, 0]
        form = canonical.whitened(L, center, spread)
    else:
        root = finite_array("variational_root", model.variational_root)
        center = finite_array("variational_mean", model.variational_mean)[:, 0]
        solve = canonical.whitened if model.whitened else canonical.unwhitened
        form = solve(L, center if model.whitened else center - constant, root @ root.T)
    mean = PriorMean.of(1, Z.shape[1], constant)
    posterior = form.posterior(kernel, Z, mean, noise=float(prior.jitter), likelihood=likelihood)
    return _conversion(posterior, model, lambda each: each.family.model.likelihood)


def _conversion(
    posterior: Posterior, model: Any, likelihood_of: Callable[[Any], Any]
) -> Conversion:
    """With the predictions of the library's own code."""

    def predictions(library_model: Any, X: Any) -> LibraryPrediction:
        prediction = library_model(X, covariance="diagonal")
        mean, variance = (
            np.asarray(prediction.mean)[:, None],
            np.asarray(prediction.variance)[:, None],
        )
        if not posterior.likelihood.classifies:
            return LibraryPrediction(mean, variance)
        probability = likelihood_of(library_model).predict(library_model(X)).probs
        return LibraryPrediction(mean, variance, np.asarray(probability))

    return compared(posterior, model, predictions)


def _likelihood(likelihood: Any) -> Likelihood:
    kinds = gpx.likelihoods
    if type(likelihood) is kinds.Gaussian:
        return Gaussian()
    if type(likelihood) is kinds.Bernoulli:
        return LapseProbit(LAPSE)
    raise unsupported("likelihood", likelihood, "Gaussian, Bernoulli")


def _constant(mean: Any) -> float:
    if type(mean) in (gpx.mean_functions.Constant, gpx.mean_functions.Zero):
        return float(finite_array("mean_function.constant", mean.constant).reshape(()))
    raise unsupported(
        "mean_function",
        mean,
        "Constant, Zero",
        "; for a linear trend add a Linear kernel instead, or fit the targets less the trend",
    )


PARAMETERS = tree.ParameterNames("lengthscale", "variance")

TREE = tree.KernelTree(
    converters={
        gk.RBF: PARAMETERS.radial(ours.SquaredExponential),
        **PARAMETERS.materns({gk.Matern12: 0.5, gk.Matern32: 1.5, gk.Matern52: 2.5}),
        gk.RationalQuadratic: PARAMETERS.radial(ours.RationalQuadratic, alpha="alpha"),
        gk.Periodic: PARAMETERS.periodic(2.0),
        gk.Linear: tree.linear("variance"),
        gk.Polynomial: lambda kernel, d: tree.polynomial(
            kernel, kernel.degree, tree.number(kernel, "variance"), tree.number(kernel, "shift")
        ),
        gk.Constant: tree.constant("constant"),
    },
    sums=gk.SumKernel,
    products=gk.ProductKernel,
    parts=lambda kernel: kernel.kernels,
    dimensions=lambda kernel, d: np.arange(d)[kernel.active_dims].tolist(),
    example="gpjax.kernels.RBF",
)
