"""Likelihoods: from the latent mean and variance to the prediction, with certified bounds.

>>> likelihood_from_config("probit").name
'probit'
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpcert.likelihoods.base import (
    BinaryLikelihood,
    ClassLikelihood,
    Likelihood,
    ResponseLikelihood,
    ScalarLikelihood,
)
from gpcert.likelihoods.discretised import Discretised
from gpcert.likelihoods.gaussian import CurveLink, Gaussian, MeanOnly, SignOnly
from gpcert.likelihoods.logistic import Logistic, SklearnLogistic
from gpcert.likelihoods.multinomial_probit import MultinomialProbit
from gpcert.likelihoods.positive_links import ExpLink, SoftplusLink
from gpcert.likelihoods.probit import LapseProbit, Probit
from gpcert.likelihoods.softmax import Softmax
from gpcert.utils.registry import Registry

__all__ = [
    "BinaryLikelihood",
    "ClassLikelihood",
    "CurveLink",
    "Discretised",
    "ExpLink",
    "Gaussian",
    "LIKELIHOODS",
    "LapseProbit",
    "Likelihood",
    "Logistic",
    "MeanOnly",
    "MultinomialProbit",
    "Probit",
    "ResponseLikelihood",
    "ScalarLikelihood",
    "SignOnly",
    "SklearnLogistic",
    "Softmax",
    "SoftplusLink",
    "likelihood_from_config",
    "register",
]

LIKELIHOODS: Registry[type[Likelihood]] = Registry(
    "likelihood",
    Likelihood,
    (
        Gaussian,
        Probit,
        LapseProbit,
        Logistic,
        SklearnLogistic,
        Softmax,
        MultinomialProbit,
        MeanOnly,
        SignOnly,
        ExpLink,
        SoftplusLink,
        CurveLink,
    ),
)
"""Every likelihood by the name that saved posteriors carry; `Discretised` holds a function, which
is code, and is not saved."""

register = LIKELIHOODS.register
"""Let saved posteriors hold a likelihood of your own: `@gpcert.likelihoods.register`."""


def likelihood_from_config(name: str, config: Mapping[str, Any] | None = None) -> Likelihood:
    """Rebuild a likelihood from its `name` and the parameters its `config()` returned.

    >>> likelihood_from_config("logistic", {})
    Logistic()
    """

    def made(kind: type[Likelihood]) -> Likelihood:
        if not (config is None or isinstance(config, Mapping)):
            raise TypeError("expected a table of names and values")
        return kind(**(config or {}))

    return LIKELIHOODS.built(name, made)
