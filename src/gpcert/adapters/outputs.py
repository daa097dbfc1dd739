"""Several independent outputs, each converted on its own, as one model.

A `Posterior` has one kernel; outputs with kernels of their own are `SeparateOutputs`. Outputs whose
kernels are the same up to a factor fit into it: the factor of output c becomes `scale_c`^2. Points
of all outputs are listed once each; the weights and factors of an output are zero at the points of
others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpcert.kernels import Kernel
from gpcert.posterior import Posterior
from gpcert.several import Outputs, SeparateOutputs


def join_outputs(outputs: Sequence[Posterior], **options: Any) -> Outputs:
    """All outputs as one model; `options` replace fields of it, such as its `likelihood`."""
    if len(outputs) == 1:
        return replace(outputs[0], **options) if options else outputs[0]
    common = _common_kernel([output.kernel for output in outputs])
    if common is None:
        return _separate(outputs, **options)
    kernel, factors = common
    points = [output.points for output in outputs]
    shared = all(np.array_equal(points[0], other) for other in points[1:])
    starts = np.zeros(len(outputs), dtype=int) if shared else _starts(points)
    Z = points[0] if shared else np.concatenate(points)
    roots = np.sqrt(factors)

    def placed(name: str) -> np.ndarray:
        """(m, r, N): the factors in units of the common kernel, `A_c k_c = (A_c r_c) (r_c k)`."""
        each = [getattr(output, name)[0] for output in outputs]
        found = np.zeros((len(each), max(len(A) for A in each), len(Z)))
        for c, A in enumerate(each):
            found[c, : len(A), starts[c] : starts[c] + A.shape[1]] = A * roots[c]
        return found

    weights = np.zeros((len(outputs), len(Z)))
    for c, output in enumerate(outputs):
        own = output.weights[0]
        weights[c, starts[c] : starts[c] + len(own)] = own * roots[c]
    fields: dict[str, Any] = {
        "kernel": kernel,
        "points": Z,
        "weights": weights,
        "factor": placed("factor"),
        "negative_factor": placed("negative_factor"),
        "offset": np.concatenate([output.offset for output in outputs]),
        "scale": np.concatenate([output.scale for output in outputs]) * roots,
        "noise": np.concatenate([output.noise for output in outputs]),
        "slope": np.concatenate([output.slope for output in outputs]) / roots[:, None],
        "likelihood": outputs[0].likelihood,
        "feature_names": outputs[0].feature_names,
        "spread": outputs[0].spread if shared else None,  # else the outputs' data differ
    }
    return Posterior(**{**fields, **options})


def _starts(points: Sequence[np.ndarray]) -> np.ndarray:
    return np.cumsum([0] + [len(Z) for Z in points[:-1]])


def _separate(outputs: Sequence[Posterior], **options: Any) -> SeparateOutputs:
    """Outputs with kernels of their own, latent functions under one likelihood."""
    likelihood = options.pop("likelihood", outputs[0].likelihood)
    classes = options.pop("classes", None)
    return SeparateOutputs(
        tuple(replace(output, **options) for output in outputs), likelihood, classes
    )


def _common_kernel(kernels: Sequence[Kernel]) -> tuple[Kernel, np.ndarray] | None:
    """The kernel, and the factor of each output's own; None where they differ otherwise."""
    parts = [kernel.parted() for kernel in kernels]
    first = parts[0][1]
    if any((each.name, each.config()) != (first.name, first.config()) for _, each in parts):
        return None
    if len({factor for factor, _ in parts}) == 1:
        return kernels[0], np.ones(len(kernels))
    return first, np.asarray([factor for factor, _ in parts])
