"""What an adapter is: one small file that turns the fitted models of a library into posteriors.

An adapter is a module (or any object) with four names:

    LIBRARY              the library's name, as in the table of `gpcert.adapters.supported`;
    SUPPORTED            a tuple of `Supported`, the rows of that table;
    accepts(model)       whether the model is one this file knows: also one that it refuses by name;
    to_posterior(model)  the `Conversion`: the posterior, and what the library itself predicts.

It is imported only when a model of its library is met, and must be importable where the library is
missing (the table lists it anyway): it imports the library inside its functions, or builds on names
of classes. An outside author writes such a module and either calls
`gpcert.adapters.register("mylibrary", module)`, or lets the package declare an entry point

    [project.entry-points."gpcert.adapters"]
    mylibrary = "mypackage.gpcert_adapter"

whose name is the top-level package of the models. `gpcert.testing.adapter_contract` tests it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from gpcert.errors import InputError, UnsupportedModelError
from gpcert.model.committee import Model
from gpcert.model.multi_output import ModelCollection

TOLERANCE = 1e-6
"""Largest accepted distance, in each of the units of `Agreement`.

What rounding explains, measured: 1e-15 to 1e-13 on well-conditioned models; 2e-10 of the prior
variance with jitter 1e-10 and near-duplicate points, where the library's triangular solve and the
stored inverse factor part by up to about cond(L)^2 U; 2e-9 of the mean behind a scaler whose shift
is 1e6 times its scale (the folded points keep the last place of the shift). A wrong conversion
differs by far more; a model that rounding alone moves by more is refused too.
"""


@dataclass(frozen=True, eq=False)
class LibraryPrediction:
    """What the library itself says at n points; None where it does not say.

    `mean` and `variance` have shape (n, m) like those of `Posterior.predict`; `probability` (n,)
    is that of the second class, and `decision` (n,) the index of the class that `predict` returns.
    `response` (n, m) is the prediction of a target behind a link, where it is not the latent mean.
    Of a committee: `mean` (n, outputs of all members) and `probability` (n, members) are each
    member's own, `classes` (n, m) the probabilities of the classes.
    """

    mean: np.ndarray | None = None
    variance: np.ndarray | None = None
    probability: np.ndarray | None = None
    classes: np.ndarray | None = None
    decision: np.ndarray | None = None
    response: np.ndarray | None = None


def concatenated(parts: Sequence[LibraryPrediction], axis: int = 0) -> LibraryPrediction:
    """Means, variances and probabilities of blocks of points as one; or, with `axis=1`, those of
    several models as outputs of one."""

    def joined(name: str) -> np.ndarray | None:
        each = [getattr(part, name) for part in parts]
        return None if each[0] is None else np.concatenate(each, axis=axis)

    parts_of = ("mean", "variance", "probability")
    return LibraryPrediction(*map(joined, parts_of), response=joined("response"))


def regressor_prediction(model: Any, X: np.ndarray) -> LibraryPrediction:
    """What `predict` of a regressor in scikit-learn's manner says, each (n, outputs)."""
    mean, deviation = model.predict(X, return_std=True)
    shape = (len(X), -1)
    return LibraryPrediction(mean.reshape(shape), np.square(deviation).reshape(shape))


ROWS = 512
"""Points asked of a library at once that may form (n, n) covariances."""


def in_blocks(predict: Callable[[Any], LibraryPrediction], X: Any) -> LibraryPrediction:
    """`predict(X)`, a few rows at a time."""
    return concatenated([predict(X[i : i + ROWS]) for i in range(0, len(X), ROWS)])


@dataclass(frozen=True, eq=False)
class Conversion:
    """A posterior, or a committee of them, and the function X (n, d) -> `LibraryPrediction` of the
    model it came from.

    Both take X in the units of the user: scalings in front of the model are folded into both.
    `tolerance` is the largest difference between them that is no reason to refuse the model, in the
    units of `gpcert.adapters.Agreement`: larger for a library that computes in float32. Where
    `predict` is the library's own code in float64, and the user's model computes otherwise (in
    float32, by conjugate gradients, on a GPU, by an inexact formula), `native` is what the model
    itself returns: its distance is measured and reported, not refused.
    """

    posterior: Model
    predict: Callable[[np.ndarray], LibraryPrediction]
    tolerance: float = TOLERANCE
    native: Callable[[np.ndarray], LibraryPrediction] | None = None


@dataclass(frozen=True)
class Supported:
    """One row of the table: a class of models, its likelihoods, its kernels, and what to know."""

    model: str
    likelihood: str
    kernels: tuple[str, ...]
    note: str = ""


@runtime_checkable
class Adapter(Protocol):
    """The four names; see the module."""

    LIBRARY: str
    SUPPORTED: tuple[Supported, ...]
    accepts: Callable[[Any], bool]
    to_posterior: Callable[[Any], Conversion]


def check_adapter(adapter: Any, where: str) -> Adapter:
    """The adapter, or an `InputError` that says which of its names is missing or wrong."""
    for name in ("LIBRARY", "SUPPORTED", "accepts", "to_posterior"):
        if not hasattr(adapter, name):
            raise InputError(
                f"{where}: expected an adapter with LIBRARY, SUPPORTED, accepts(model) and "
                f"to_posterior(model), got {adapter!r} without {name}; see gpcert.adapters.adapter"
            )
    rows = adapter.SUPPORTED
    if not (isinstance(rows, tuple) and rows and all(isinstance(row, Supported) for row in rows)):
        raise InputError(
            f"{where}: expected SUPPORTED to be a tuple of gpcert.adapters.Supported, one per "
            f"class of models, got {rows!r}"
        )
    return adapter


def fitted_names(model: Any) -> tuple[str, ...] | None:
    """Names of the features that a model in scikit-learn's manner was fitted with, if any."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def with_names(model: Model, names: tuple[str, ...] | None) -> Model:
    """The model with these names of its features."""
    if isinstance(model, ModelCollection):
        members = tuple(with_names(member, names) for member in model.members)
        return replace(model, members=members)
    return model if model.feature_names == names else replace(model, feature_names=names)


def with_spread(model: Model, spread: np.ndarray | None) -> Model:
    """The model with these standard deviations of its features in the training data."""
    if isinstance(model, ModelCollection):
        members = tuple(replace(member, spread=spread) for member in model.members)
        return replace(model, members=members)
    return replace(model, spread=spread)


def check_fitted(model: Any, attribute: str) -> Any:
    """The model, or an `InputError` if it lacks an attribute that fitting sets."""
    if not hasattr(model, attribute):
        raise InputError(
            f"{type(model).__name__}: expected a fitted model, got one without {attribute!r}; "
            "call fit(X, y) first (a search: with refit=True)"
        )
    return model


def unsupported(
    part: str, got: Any, known: Iterable[type] | str, why: str = ""
) -> UnsupportedModelError:
    """The refusal of a part by the name of its class: what is supported, and `why`, what to do."""
    names = known if isinstance(known, str) else ", ".join(kind.__name__ for kind in known)
    return UnsupportedModelError(
        f"{part}: {type(got).__name__} is not supported (supported: {names}){why}"
    )


def check_inherited(model: Any, base: type, names: Sequence[str]) -> None:
    """A subclass may fit as it likes, but must predict with the library's own code."""
    for name in names:
        if getattr(type(model), name, None) is not getattr(base, name, None):
            raise UnsupportedModelError(
                f"{type(model).__name__} overrides {name} of {base.__name__}, so it may predict "
                f"something else; pass a fitted {base.__name__}"
            )
