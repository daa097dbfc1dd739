"""What GPyTorch's and BoTorch's models have alike: a mean, a kernel, predictions; how to read them.

A model is never altered and never read where it lies: it is copied to the CPU, in float64 and in
evaluation mode, without the caches that predictions leave behind. The copy holds the same raw
parameters, so the function certified is the float64 function of them; a float32 model's own
predictions differ from it by what float32 loses, which is measured (`Conversion.native`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from typing import Any

import numpy as np

from gpcert.adapters.conversion import Conversion, LibraryPrediction, unsupported
from gpcert.adapters.gpytorch_kernels import convert_kernel
from gpcert.adapters.prior_mean import PriorMean
from gpcert.arrays import finite_array
from gpcert.committee import Model
from gpcert.errors import ModelWarning, UnsupportedModelError
from gpcert.extras import library
from gpcert.kernels import Kernel

torch: Any = library("torch")
gpytorch: Any = library("gpytorch")

CACHES = ("prediction_strategy", "_memoize_cache", "_mean_cache", "_cached_kernel_mat")
"""Attributes in which the library keeps what it has computed; not part of the model."""

ANY_SIZE = 10**9


def without_caches(model: Any) -> Any:
    """A deep copy of the model as it is, less its caches, in evaluation mode."""
    memo: dict[int, Any] = {}
    for module in model.modules():
        for name in CACHES:
            cache = vars(module).get(name)
            if cache is not None:
                memo[id(cache)] = {} if isinstance(cache, dict) else None
    return deepcopy(model, memo).eval()


def read_only_copy(model: Any) -> Any:
    """The copy that is read: on the CPU, in float64 and evaluation mode.

    Training mode comes in between because BoTorch transforms its training inputs on the way to
    evaluation mode: so they are transformed in float64.
    """
    if model.training:
        warnings.warn(
            f"{type(model).__name__} is in training mode; certified is what it predicts after "
            "model.eval(). Call model.eval() once it is trained",
            ModelWarning,
            stacklevel=2,
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # BoTorch's advice on scaling, given before
        return without_caches(model).train().to(device="cpu", dtype=torch.float64).eval()


@contextmanager
def exact_solves() -> Iterator[None]:
    """The library computes with Cholesky factors whatever the size, and without gradients."""
    settings = gpytorch.settings
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(settings.fast_computations(False, False, False))
        stack.enter_context(settings.max_cholesky_size(ANY_SIZE))
        stack.enter_context(settings.fast_pred_var(False))
        stack.enter_context(settings.skip_posterior_variances(False))
        yield


def numbers(name: str, tensor: Any) -> np.ndarray:
    """A tensor's numbers in float64, all finite."""
    return finite_array(name, tensor.detach().to(device="cpu", dtype=torch.float64).numpy().copy())


def one(name: str, tensor: Any) -> float:
    """The only number of a tensor."""
    values = numbers(name, tensor)
    if values.size != 1:
        raise UnsupportedModelError(
            f"{name}: expected one number, got shape {values.shape}; batches of models are not "
            "supported here: pass the models one by one"
        )
    return float(values.reshape(()))


KNOWN_PARTS = (
    gpytorch.means.Mean,
    gpytorch.kernels.Kernel,
    gpytorch.likelihoods.Likelihood,
    gpytorch.variational.VariationalStrategy,
    gpytorch.variational.UnwhitenedVariationalStrategy,
    gpytorch.variational.IndependentMultitaskVariationalStrategy,
)
"""Parts that a conversion reads; others must have no parameters."""

ROWS = 512
"""Points asked of the library at once."""


def prior_of(model: Any, features: int, output: int | None = None) -> tuple[PriorMean, Kernel]:
    """The mean and the kernel, found among the model's parts; of one output of a batch."""
    parts = dict(model.named_children())
    means = [part for part in parts.values() if isinstance(part, gpytorch.means.Mean)]
    kernels = [part for part in parts.values() if isinstance(part, gpytorch.kernels.Kernel)]
    if len(means) != 1 or len(kernels) != 1:
        raise UnsupportedModelError(
            f"model: expected one mean and one kernel among its parts, got {len(means)} and "
            f"{len(kernels)} (parts: {', '.join(parts) or 'none'})"
        )
    for name, part in parts.items():
        if not isinstance(part, KNOWN_PARTS) and any(True for _ in part.parameters()):
            raise UnsupportedModelError(
                f"model: its part {name!r}, a {type(part).__name__} with parameters, is not "
                "supported: inputs that a network transforms have no exact image of a region; ask "
                "about a GP on the transformed inputs"
            )
    kernel = kernels[0]
    if output is not None and len(kernel.batch_shape) == 1:
        kernel = kernel[output]
    return _mean(means[0], features, output), convert_kernel(kernel, features)[0]


def _mean(mean: Any, features: int, output: int | None) -> PriorMean:
    if type(mean) is gpytorch.means.ZeroMean:
        return PriorMean.of(1, features)
    if type(mean) is gpytorch.means.ConstantMean:
        several = output is not None and mean.constant.ndim == 1
        constant = one("mean.constant", mean.constant[output] if several else mean.constant)
        return PriorMean.of(1, features, constant)
    if type(mean) is gpytorch.means.LinearMean:  # weights (..., d, 1), bias (..., 1) or None
        several = output is not None and mean.weights.ndim == 3
        weights = numbers("mean.weights", mean.weights[output] if several else mean.weights)
        constant = 0.0
        if mean.bias is not None:
            constant = one("mean.bias", mean.bias[output] if several else mean.bias)
        return PriorMean.of(1, features, constant, weights.T)
    why = ", since a posterior here has a linear mean; train on the targets less the mean"
    raise unsupported("mean", mean, "ConstantMean, LinearMean, ZeroMean", why)


Said = Callable[[Any, Any], LibraryPrediction]
"""What a model predicts at points (n, d), a tensor."""


def compared(
    posterior: Model, model: Any, copy: Any, said: Said, native: Said | None = None, points: int = 0
) -> Conversion:
    """The conversion of a model that was read from a `copy`, whose predictions are `said`.

    Where the model itself computes otherwise (in float32, on another device, or, of so many
    `points`, by conjugate gradients) what it returns is `native`, or `said` again, asked of a copy
    in its own precision and on its own device.
    """

    def predict(X: np.ndarray) -> LibraryPrediction:
        with exact_solves():
            return _in_blocks(said, copy, torch.as_tensor(X))

    def returned(X: np.ndarray) -> LibraryPrediction:
        own = without_caches(model)
        with torch.no_grad():
            return _in_blocks(native or said, own, torch.as_tensor(X).to(tensor))

    tensor = next(iter(model.parameters()), None)
    settings = gpytorch.settings
    direct = points <= settings.max_cholesky_size.value() or settings.fast_computations.solves.off()
    same = tensor is None or (
        direct and tensor.dtype == torch.float64 and tensor.device.type == "cpu"
    )
    return Conversion(posterior, predict, native=None if same else returned)


def _in_blocks(said: Said, model: Any, X: Any) -> LibraryPrediction:
    """`said(model, X)` a few rows at a time: the library may form (n, n) covariances."""
    parts = [said(model, rows) for rows in torch.split(X, ROWS)]

    def joined(name: str) -> np.ndarray | None:
        each = [getattr(part, name) for part in parts]
        return None if each[0] is None else np.concatenate(each)

    return LibraryPrediction(joined("mean"), joined("variance"), joined("probability"))


def latent(model: Any, X: Any) -> LibraryPrediction:
    """Mean and variance, each (n, outputs)."""
    found = model(X)
    mean, variance = numbers("mean", found.mean), numbers("variance", found.variance)
    if isinstance(found, gpytorch.distributions.MultitaskMultivariateNormal):
        return LibraryPrediction(mean, variance)
    rows = (-1, len(X))  # of a batch (tasks, n)
    return LibraryPrediction(mean.reshape(rows).T, variance.reshape(rows).T)


def side_by_side(parts: Sequence[LibraryPrediction]) -> LibraryPrediction:
    """Means and variances of several models as those of one."""

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(part, name) for part in parts], axis=1)

    return LibraryPrediction(joined("mean"), joined("variance"))
