"""The array namespace: the same lines of engine code run on NumPy and on torch (CPU, CUDA).

Everything is float64. Arrays enter the engine through a `Backend` and leave it through `to_numpy`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import array_api_compat
import numpy as np

from gpcert.errors import InputError, MissingExtraError

__all__ = ["Array", "Backend", "backend_from_name", "namespace", "to_numpy", "finite_array"]

Array = Any  # numpy.ndarray or torch.Tensor, always float64 inside the engine


@dataclass(frozen=True)
class Backend:
    """Where arrays live: `Backend()` is NumPy; `backend_from_name("torch:cuda")` a GPU.

    >>> Backend().asarray([1, 2]).dtype
    dtype('float64')
    """

    name: str = "numpy"
    device: str | None = None

    @property
    def xp(self) -> Any:
        """The array-API namespace."""
        if self.name == "numpy":
            return array_api_compat.array_namespace(np.empty(0))
        return array_api_compat.array_namespace(_torch().empty(0))

    def asarray(self, values: Any) -> Array:
        """Copy host values into a float64 array of this backend."""
        host = np.asarray(values, dtype=np.float64)
        if self.name == "numpy":
            return host
        return _torch().from_numpy(np.array(host)).to(self.device)


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(
            "backend 'torch' needs PyTorch, which is not installed; "
            "install it with: pip install 'gpcert[torch]'"
        ) from error
    return torch


def backend_from_name(name: str | Backend = "numpy") -> Backend:
    """Return the backend called `"numpy"`, `"torch"`, `"torch:cpu"` or `"torch:cuda"`."""
    if isinstance(name, Backend):
        return name
    if name == "numpy":
        return Backend()
    library, _, device = name.partition(":")
    if library != "torch":
        raise InputError(
            f"backend: expected 'numpy', 'torch', 'torch:cpu' or 'torch:cuda', got {name!r}"
        )
    torch = _torch()
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(f"backend {name!r} asks for a GPU, but torch finds none; use 'torch:cpu'")
    return Backend("torch", device or "cpu")


_KNOWN: dict[type, Any] = {}


def namespace(*arrays: Array) -> Any:
    """Array-API namespace of `arrays`, all of one library (Python scalars are passed over).

    Remembered by the type of the first array: the look-up itself took a seventh of small searches.
    """
    for array in arrays:
        if not isinstance(array, int | float):
            kind = type(array)
            if kind not in _KNOWN:
                _KNOWN[kind] = array_api_compat.array_namespace(*arrays)
            return _KNOWN[kind]
    return array_api_compat.array_namespace(*arrays)  # raises: no arrays


def to_numpy(array: Array) -> np.ndarray:
    """Host copy of an engine array."""
    if array_api_compat.is_torch_array(array):
        return array.detach().cpu().numpy()
    return np.asarray(array)


def finite_array(name: str, values: Any, ndim: int | None = None) -> np.ndarray:
    """Float64 array of finite numbers, or an `InputError` that names the argument.

    >>> finite_array("x", [1, 2.5])
    array([1. , 2.5])
    """
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: expected numbers, got {values!r} ({error})") from error
    if ndim is not None and array.ndim != ndim:
        raise InputError(f"{name}: expected {ndim} dimension(s), got shape {array.shape}")
    if not np.all(np.isfinite(array)):
        bad = int(array.size - np.isfinite(array).sum())
        raise InputError(
            f"{name}: expected finite numbers, got {bad} NaN or infinite of {array.size}; "
            "impute or drop them first"
        )
    return array
