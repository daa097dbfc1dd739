"""What a torch module or tensor consists of, for the fingerprint of a model.

A tensor is its type, shape and numbers. A module is all its attributes, those of a user's own class
too (conversion reads the mean, the kernel and the data among them, never the code of `forward`),
less what is computed from them and what only training or loading reads. A function counts only if
torch or a library on it defines it and nothing else is bound to it: such a function does not change.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from types import BuiltinFunctionType, FunctionType
from typing import Any

__all__ = ["torch_parts"]

PACKAGES = frozenset({"torch", "gpytorch", "botorch", "linear_operator"})

LEFT_OUT = frozenset(
    {
        # caches
        "prediction_strategy",
        "_memoize_cache",
        "_mean_cache",
        "_cached_kernel_mat",
        "distance_module",
        # read when a model is trained, loaded or saved
        "_priors",
        "_added_loss_terms",
        "_load_state_dict_pre_hooks",
        "_load_state_dict_post_hooks",
        "_state_dict_hooks",
        "_state_dict_pre_hooks",
        "_load_strict_shapes",
    }
)
"""Attributes of modules that predictions do not depend on."""


def torch_parts(value: Any, kind: type) -> list[Any] | None:
    """The parts of a value that only torch's libraries know; None for all others."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if kind in (torch.Tensor, torch.nn.Parameter):
        numbers = value.detach().cpu()
        if numbers.is_sparse or numbers.is_quantized or numbers.dtype is torch.bfloat16:
            return None
        return [str(value.dtype), str(value.device), numbers.numpy()]
    if any(base.__module__ == "gpytorch.priors.prior" for base in kind.__mro__):
        return []  # of hyper-parameters: read in training only
    if isinstance(value, torch.nn.Module):
        state = {name: part for name, part in vars(value).items() if name not in LEFT_OUT}
        return [part for item in state.items() for part in item]
    if kind is torch.Size:
        return [int(length) for length in value]
    if kind in (torch.dtype, torch.device):
        return [str(value)]
    if kind is OrderedDict:
        return [part for item in value.items() for part in item]
    if kind is set and all(isinstance(part, str) for part in value):
        return sorted(value)
    if kind in (FunctionType, BuiltinFunctionType):
        return _function_parts(value)
    return None


def _function_parts(function: Any) -> list[Any] | None:
    package = (getattr(function, "__module__", None) or "").partition(".")[0]
    bound = getattr(function, "__closure__", None) or getattr(function, "__defaults__", None)
    if package not in PACKAGES or bound:
        return None
    return [function.__module__, function.__qualname__]
