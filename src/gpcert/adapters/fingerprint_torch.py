"""What a torch module or tensor consists of, for the fingerprint of a model.

A tensor is its type, shape and numbers. A module is all its attributes, those of a user's own class
too (conversion reads the mean, the kernel and the data among them, never the code of `forward`),
less what is computed from them and what only training or loading reads. A function counts only if
torch or a library on it defines it and nothing else is bound to it: it stays the same.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any

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
    if isinstance(value, torch.nn.Module):
        return _module_parts(value, kind)
    rules: dict[type, Callable[[Any], list[Any] | None]] = {
        torch.Tensor: _tensor_parts,
        torch.nn.Parameter: _tensor_parts,
        torch.Size: lambda size: [int(length) for length in size],
        torch.dtype: lambda dtype: [str(dtype)],
        torch.device: lambda device: [str(device)],
        OrderedDict: lambda pairs: [part for item in pairs.items() for part in item],
        set: lambda parts: sorted(parts) if all(isinstance(p, str) for p in parts) else None,
        FunctionType: _function_parts,
        BuiltinFunctionType: _function_parts,
    }
    return rules[kind](value) if kind in rules else None


def _module_parts(module: Any, kind: type) -> list[Any]:
    if any(base.__module__ == "gpytorch.priors.prior" for base in kind.__mro__):
        return []  # of hyper-parameters: read in training only
    state = {name: part for name, part in vars(module).items() if name not in LEFT_OUT}
    return [part for item in state.items() for part in item]


def _tensor_parts(tensor: Any) -> list[Any] | None:
    numbers = tensor.detach().cpu()
    try:
        return [str(tensor.dtype), str(tensor.device), numbers.numpy()]
    except (TypeError, RuntimeError):  # sparse, quantised, or of a type that NumPy has not
        return None


def _function_parts(function: Any) -> list[Any] | None:
    package = (getattr(function, "__module__", None) or "").partition(".")[0]
    bound = getattr(function, "__closure__", None) or getattr(function, "__defaults__", None)
    if package not in PACKAGES or bound:
        return None
    return [function.__module__, function.__qualname__]
