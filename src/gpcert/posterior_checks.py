"""What the parts of a posterior that are no numbers must be."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.arrays import finite_array
from gpcert.errors import InputError
from gpcert.kernels import Kernel
from gpcert.likelihoods import ClassLikelihood, Likelihood
from gpcert.posterior_file import check_class_count, checked_classes
from gpcert.regions.linear_map import LinearMap


def check_parts(posterior: Any) -> None:
    """Kernel, likelihood and flags are of the right kind."""
    if not isinstance(posterior.kernel, Kernel):
        raise InputError(
            f"kernel: expected a kernel of gpcert.kernels, got {posterior.kernel!r}; for a "
            "scikit-learn kernel, gpcert.adapters.sklearn_kernels.convert_kernel makes one"
        )
    if not isinstance(posterior.likelihood, Likelihood):
        raise InputError(
            "likelihood: expected a likelihood of gpcert.likelihoods, such as Probit(), got "
            f"{posterior.likelihood!r}"
        )
    if not isinstance(posterior.coupled, bool | np.bool_):
        raise InputError(f"coupled: expected True or False, got {posterior.coupled!r}")
    if not (posterior.features is None or isinstance(posterior.features, LinearMap)):
        raise InputError(f"features: expected a LinearMap or None, got {posterior.features!r}")


def per_output(name: str, value: Any, m: int) -> np.ndarray:
    """(m,): one number an output, or the same for all."""
    values = finite_array(name, value)
    if values.shape not in {(), (1,), (m,)}:
        raise InputError(f"{name}: expected a number or shape ({m},), got {values.shape}")
    return np.broadcast_to(values, (m,)).copy()


def check_signs(posterior: Any) -> None:
    """Scales are positive, noise is not negative."""
    if np.any(posterior.scale <= 0) or np.any(posterior.noise < 0):
        raise InputError("expected scale > 0 and noise >= 0 for every output")


def read_classes(posterior: Any) -> tuple[Any, ...] | None:
    """The labels, once they, outputs and scales are those that the likelihood needs."""
    m, classes = posterior.outputs, checked_classes(posterior.classes)
    if isinstance(posterior.likelihood, ClassLikelihood):
        check_class_count(posterior.likelihood, m, classes)
        if posterior.coupled and np.any(posterior.scale != posterior.scale[0]):
            raise InputError("scale: expected the same for all coupled classes")
        if posterior.coupled and posterior.likelihood.mixes:
            raise InputError("mixing: expected independent outputs, got coupled ones")
    elif classes is not None and (len(classes) != 2 or m != 1):
        raise InputError(f"classes: expected two labels of one output, got {classes!r}")
    return classes
