"""Which expansion a kernel gets inside a region."""

from __future__ import annotations

import numpy as np

from gpcert.arrays import Backend
from gpcert.kernels.base import Kernel
from gpcert.kernels.expansions.base import LocalKernel
from gpcert.kernels.expansions.squared_exponential import LocalSquaredExponential
from gpcert.kernels.expansions.taylor import LocalTaylor
from gpcert.kernels.squared_exponential import SquaredExponential
from gpcert.regions import Region

__all__ = ["localize"]


def localize(kernel: Kernel, points: np.ndarray, region: Region, backend: Backend) -> LocalKernel:
    """Bind a kernel to points Z (N, d) and to the free coordinates of a region.

    The squared exponential has a weighted, orthogonal expansion of its own; every other kernel is
    expanded plainly from its tree of nodes.
    """
    if isinstance(kernel, SquaredExponential):
        lengths = np.broadcast_to(kernel.length_scale, (points.shape[1],))
        return LocalSquaredExponential.build(points, lengths, kernel.variance, region, backend)
    return LocalTaylor.build(kernel, points, region, backend)
