"""BoTorch's `PairwiseGP`: the latent utility of comparisons, by Laplace's approximation.

With K = k(X, X) of the datapoints, f the mode of the utility and C the Hessian of the negative log
likelihood there,

    mean  m(x) + k(x, X) K^-1 (f - m(X)),   variance  k(x, x) - k(x, X) (K + C^-1)^-1 k(X, x),

the second precision as the library computes it, (C K + I)^-1 C. References: Chu and Ghahramani
2005, Brochu et al. 2010.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.adapters import gpytorch_prior as prior
from gpcert.adapters.adapter import Conversion, LibraryPrediction, check_inherited
from gpcert.adapters.botorch_transforms import input_map
from gpcert.adapters.gpytorch_prior import torch
from gpcert.adapters.sklearn_features import folded
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import finite_array
from gpcert.utils.optional_imports import library

PairwiseGP: Any = library("botorch.models.pairwise_gp").PairwiseGP


FORGOTTEN = (
    *("consolidated_datapoints", "consolidated_comparisons", "consolidated_indices"),
    *("unconsolidated_datapoints", "unconsolidated_comparisons"),
    *("covar", "covar_inv", "covar_chol", "likelihood_hess", "utility", "hlcov_eye"),
)
"""Attributes that a copy of such a model is without."""


def convert(model: Any) -> Conversion:
    """Convert a `PairwiseGP` that has data."""
    check_inherited(model, PairwiseGP, ("posterior", "__call__", "forward"))
    if model.datapoints is None:
        raise InputError("model: expected datapoints and comparisons, got none; set_train_data")
    if model.datapoints.ndim != 2:
        raise UnsupportedModelError(
            "PairwiseGP with batches of data is not supported: one at a time"
        )
    copy = prior.read_only_copy(model)
    for name in FORGOTTEN:
        value = getattr(model, name)
        if value is not None:
            value = value.detach().clone().cpu()
            setattr(copy, name, value.double() if value.is_floating_point() else value)
    with torch.no_grad():
        copy.posterior(copy.datapoints[:1])  # computes what is derived from the utility
        X = finite_array("datapoints", copy.transform_inputs(copy.datapoints))
        utility, root, C, bent = (
            finite_array(name, getattr(copy, name))
            for name in ("utility", "covar_chol", "likelihood_hess", "hlcov_eye")
        )
    known = prior.prior_of(copy, X.shape[1], None, X)
    Z, (mean, fields) = known.seen(X), known.placed(X)
    weights = np.linalg.solve(root @ root.T, utility - known.mean.at(X)[:, 0])
    precision = np.linalg.solve(bent, C)
    posterior = Posterior.from_precision(
        known.kernel,
        Z,
        weights,
        0.5 * (precision + precision.T),
        offset=mean.constant[0],
        slope=mean.slope[0],
        **fields,
    )
    x = input_map(getattr(copy, "input_transform", None), copy.datapoints.shape[1])

    def predictions(library_model: Any, points: Any) -> LibraryPrediction:
        # one by one: jitter is added to covariances of several that are nearly singular
        distribution = library_model.posterior(points[:, None, :])
        ends = (finite_array("", part) for part in (distribution.mean, distribution.variance))
        return LibraryPrediction(*(each.reshape(-1, 1) for each in ends))

    return prior.compared(folded(x, posterior), model, copy, predictions)
