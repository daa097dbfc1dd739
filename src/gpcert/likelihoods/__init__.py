"""Likelihoods: from the latent mean and variance to the prediction, with certified bounds.

>>> likelihood_from_config("probit").name
'probit'
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpcert.errors import InputError
from gpcert.likelihoods.base import BinaryLikelihood, Likelihood, ScalarLikelihood
from gpcert.likelihoods.classes import ClassLikelihood
from gpcert.likelihoods.discretised import Discretised
from gpcert.likelihoods.erf_mixture import SklearnLogistic
from gpcert.likelihoods.gaussian import Gaussian
from gpcert.likelihoods.logistic import Logistic
from gpcert.likelihoods.multinomial_probit import MultinomialProbit
from gpcert.likelihoods.probit import Probit
from gpcert.likelihoods.softmax import Softmax

__all__ = [
    "BinaryLikelihood",
    "ClassLikelihood",
    "Discretised",
    "Gaussian",
    "LIKELIHOODS",
    "Likelihood",
    "Logistic",
    "MultinomialProbit",
    "Probit",
    "ScalarLikelihood",
    "SklearnLogistic",
    "Softmax",
    "likelihood_from_config",
]

LIKELIHOODS: dict[str, type[Likelihood]] = {
    kind.name: kind
    for kind in (Gaussian, Probit, Logistic, SklearnLogistic, Softmax, MultinomialProbit)
}
"""Every likelihood by the name that saved posteriors carry; a user's own link is code, and is not
saved."""


def likelihood_from_config(name: str, config: Mapping[str, Any] | None = None) -> Likelihood:
    """Rebuild a likelihood from its `name` and the parameters its `config()` returned.

    >>> likelihood_from_config("logistic", {})
    Logistic()
    """
    if name not in LIKELIHOODS:
        raise InputError(f"likelihood: expected one of {sorted(LIKELIHOODS)}, got {name!r}")
    try:
        return LIKELIHOODS[name](**(config or {}))
    except TypeError as error:
        raise InputError(
            f"likelihood {name!r}: its parameters {dict(config or {})!r} do not fit ({error}); "
            "use what its config() returns"
        ) from error
