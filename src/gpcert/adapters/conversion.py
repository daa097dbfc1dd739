"""What an adapter hands over: the posterior, and the library's own predictions beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpcert.committee import Model
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.several import Several

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
    Of a committee: `mean` (n, outputs of all members) and `probability` (n, members) are each
    member's own, `classes` (n, m) the probabilities of the classes.
    """

    mean: np.ndarray | None = None
    variance: np.ndarray | None = None
    probability: np.ndarray | None = None
    classes: np.ndarray | None = None
    decision: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Conversion:
    """A posterior, or a committee of them, and the function X (n, d) -> `LibraryPrediction` of the
    model it came from.

    Both take X in the units of the user: scalings in front of the model are folded into both.
    `tolerance` is the largest difference between them that is no reason to refuse the model, in the
    units of `gpcert.adapters.Agreement`: larger for a library that computes in float32. Where
    `predict` is the library's own code in float64, and the user's model computes otherwise (in
    float32, by conjugate gradients, on a GPU), `native` is what the model itself returns: its
    distance is measured and reported, not refused.
    """

    posterior: Model
    predict: Callable[[np.ndarray], LibraryPrediction]
    tolerance: float = TOLERANCE
    native: Callable[[np.ndarray], LibraryPrediction] | None = None


def fitted_names(model: Any) -> tuple[str, ...] | None:
    """Names of the features that a model in scikit-learn's manner was fitted with, if any."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def with_names(model: Model, names: tuple[str, ...] | None) -> Model:
    """The model with these names of its features."""
    if isinstance(model, Several):
        members = tuple(with_names(member, names) for member in model.members)
        return replace(model, members=members)
    return model if model.feature_names == names else replace(model, feature_names=names)


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
