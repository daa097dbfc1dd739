"""GPyTorch's sparse regression: an `ExactGP` whose kernel is an `InducingPointKernel`.

With `F = inv_root^T k(Z, X)`, inv_root inv_root^T = k(Z, Z)^-1 as the library computes it, D the
noise and, by `settings.sgpr_diagonal_correction` (the default), what F^T F lacks of k's diagonal,

    B = F D^-1 F^T = U diag(b) U^T,
    t = inv_root (I + B)^-1 F D^-1 (y - mean(X)),    S = inv_root (I - (I + B)^-1) inv_root^T

are the weights and the precision at the inducing points Z; k(x, x) is that of the base kernel.
Reference: Titsias 2009; with the correction Snelson and Ghahramani 2006.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.adapters import gpytorch_prior as prior
from gpcert.adapters.canonical import Canonical
from gpcert.adapters.gpytorch_prior import gk, gpytorch, torch
from gpcert.errors import UnsupportedModelError
from gpcert.inputs.tabular import spread_of
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import finite_array
from gpcert.numerics.spectral import symmetric_eigh


def inducing_kernel(model: Any) -> Any:
    """The model's kernel, where it is one of inducing points; else None."""
    kernels = prior.outermost(dict(model.named_children()), gk.Kernel)
    sparse = len(kernels) == 1 and type(kernels[0]) is gk.InducingPointKernel
    return kernels[0] if sparse else None


def sparse_posterior(model: Any, noise: np.ndarray) -> Posterior:
    """The posterior of a copied model at its inducing points; noise of the observations."""
    sparse = inducing_kernel(model)
    X = finite_array("train_inputs", model.train_inputs[0])
    y = finite_array("train_targets", model.train_targets)
    Z = finite_array("inducing_points", sparse.inducing_points)
    if X.ndim != 2 or y.shape != (len(X),) or Z.ndim != 2:
        raise UnsupportedModelError(
            "InducingPointKernel: expected training inputs (N, d), targets (N,) and inducing "
            f"points (M, d), got {X.shape}, {y.shape} and {Z.shape}; train one model an output"
        )
    prior.check_parts(dict(model.named_children()))
    mean = prior.mean_of(model, X.shape[1])
    kernel, white = prior.TREE.convert(sparse.base_kernel, X.shape[1])
    assert white == 0.0, "no kernel of the library is white noise"
    with torch.no_grad():
        inv_root = finite_array("inverse root of K_ZZ", sparse._inducing_inv_root)
    F = inv_root.T @ kernel.value(Z, X)
    lacking = np.maximum(kernel.diagonal(X) - np.square(F).sum(0), 0.0)
    corrected = gpytorch.settings.sgpr_diagonal_correction.on()
    D = np.broadcast_to(noise, y.shape) + (lacking if corrected else 0.0)
    b, U = symmetric_eigh((F / D) @ F.T, "F D^-1 F^T")
    b = np.maximum(b, 0.0)
    known = U.T @ (F @ ((y - mean.at(X)[:, 0]) / D)) / (1.0 + b)
    factor = np.sqrt(b / (1.0 + b))[:, None] * (inv_root @ U).T
    form = Canonical(inv_root @ (U @ known), factor, None)
    return form.posterior(kernel, Z, mean, spread=spread_of(X))
