"""What the adapters of torch libraries share: a copy to read from, and its numbers.

A model is never altered and never read where it lies: it is copied to the CPU, in float64 and in
evaluation mode, without the caches that predictions leave behind. The copy holds the same raw
parameters, so the function certified is the float64 function of them; a float32 model's own
predictions differ from it by what float32 loses, which is measured (`Conversion.native`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from typing import Any

import numpy as np

from gpcert.arrays import finite_array
from gpcert.errors import ModelWarning, UnsupportedModelError
from gpcert.extras import library

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
