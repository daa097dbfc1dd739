"""Functions of one number that do not decrease, with certified values: what stands between a user's
units and a model's, for inputs and for targets.

>>> import numpy as np
>>> curve = Curve((Log(), Affine(0.0, 2.0)))
>>> float(curve(np.array([np.e]))[0])
0.5
>>> curve_from_config(curve.config()) == curve
True
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpcert.errors import InputError
from gpcert.functions.base import Curve, Increasing
from gpcert.functions.elementary import (
    Affine,
    Bilog,
    Clip,
    Exp,
    Expm1,
    InverseBilog,
    InversePowerBend,
    Kumaraswamy,
    Log,
    Log1p,
    Power,
    PowerBend,
    Round,
)
from gpcert.functions.means import MeanFunction, PolynomialMean, register_mean
from gpcert.functions.quantiles import NormalCdf, NormalQuantile, Piecewise
from gpcert.utils.registry import Registry

__all__ = [
    "Affine",
    "Bilog",
    "Clip",
    "Curve",
    "Exp",
    "Expm1",
    "FUNCTIONS",
    "Increasing",
    "InverseBilog",
    "InversePowerBend",
    "Kumaraswamy",
    "Log",
    "Log1p",
    "MeanFunction",
    "NormalCdf",
    "NormalQuantile",
    "Piecewise",
    "PolynomialMean",
    "Power",
    "PowerBend",
    "Round",
    "curve_from_config",
    "register_mean",
]

FUNCTIONS: Registry[type[Increasing]] = Registry(
    "function",
    Increasing,
    (
        Affine,
        Bilog,
        Clip,
        Exp,
        Expm1,
        InverseBilog,
        InversePowerBend,
        Kumaraswamy,
        Log,
        Log1p,
        NormalCdf,
        NormalQuantile,
        Piecewise,
        Power,
        PowerBend,
        Round,
    ),
)
"""Every function by the name that saved posteriors carry."""


def curve_from_config(config: Any) -> Curve:
    """Rebuild a curve from what its `config()` returned."""
    pairs: list[Any] = config if isinstance(config, list) else [None]
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise InputError(f"curve: expected a list of [name, parameters], got {config!r}")

    def made(kind: type[Increasing], parameters: Any) -> Increasing:
        if not isinstance(parameters, Mapping):
            raise TypeError("expected a table of names and values")
        return kind(**parameters)

    return Curve(
        tuple(
            FUNCTIONS.built(name, lambda kind, given=parameters: made(kind, given))
            for name, parameters in pairs
        )
    )
