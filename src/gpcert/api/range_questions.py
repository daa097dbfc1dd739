"""What a range is asked of, as a record: functions by output and sign, and what they are called."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpcert.api.options import QuantityLike
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood
from gpcert.model.committee import Model
from gpcert.model.multi_output import Outputs
from gpcert.quantities import OutputQuantity, Quantity


@dataclass(frozen=True, eq=False)
class RangeQuestion:
    """`asked(index, sign)` is sign times the quantity of an output; `labels` name the outputs:
    labels of classes, numbers of targets, or None for the one latent function of two classes.

    `default` is the output that is meant where none is named, None if one must be. `two` classes
    have one probability: `asked` is that of the second, whatever the index, and the first has
    1 less it. `meanings` say in words what is bounded, an output each, `names` in few words.
    `fingerprint` is that of the user's model, which the searched one may differ from. Those of a
    band are not each other's negatives: `mean - beta std` for sign 1, and minus `mean + beta std`.
    """

    model: Model
    quantity: str
    labels: tuple[Any, ...]
    asked: Callable[[int, int], Quantity]
    meanings: tuple[str, ...]
    names: tuple[str, ...]
    default: int | None = 0
    two: bool = False
    fingerprint: str = ""
    beta: float | None = None
    given: QuantityLike | None = None
    """The quantity as it was asked for."""

    @property
    def searched(self) -> int:
        """How many outputs have a quantity of their own: of two classes one."""
        return 1 if self.two else len(self.labels)

    def index(self, output: Any) -> int:
        """Which output a label means; see `default`."""
        if output is None and self.default is not None:
            return self.default
        names = [label for label in self.labels if label is not None]
        if not names:
            reason = "a classifier of two classes has one latent function, and this is its {}"
            if isinstance(self.given, Quantity) and not isinstance(self.given, OutputQuantity):
                reason = "{} names the outputs that it depends on"
            raise InputError(
                f"output: expected none, got {output!r}: {reason.format(self.quantity)}"
            )
        if output is None:
            raise InputError(
                f"output: expected the label of a class, one of {names}; "
                "prediction_ranges gives all of them"
            )
        for index, label in enumerate(names):
            if same_label(label, output):
                return index
        raise InputError(f"output: expected one of {names}, got {output!r}")


def same_label(label: Any, output: Any) -> bool:
    """Whether a user's output is a label: equal, and both or neither are truth values (True == 1).

    >>> same_label(1, np.int64(1)), same_label(1, True), same_label(1, np.array([1, 2]))
    (True, False, False)
    """
    if not isinstance(output, Hashable) or getattr(output, "ndim", 0):
        return False  # several values, not one
    truths = {isinstance(each, bool | np.bool_) for each in (label, output)}
    return len(truths) == 1 and bool(label == output)


class Owner(NamedTuple):
    """One latent function: its label, what it belongs to, and that in few words."""

    label: Any
    owner: str
    whose: str


def owners_of(model: Outputs) -> list[Owner]:
    """Every latent function of a model."""
    likelihood, count = model.likelihood, model.outputs
    if isinstance(likelihood, ClassLikelihood):
        if likelihood.mixes:
            owner, labels = "number {} of those that the classes mix", range(count)
        else:
            owner, labels = "of class {}", model.labels
        texts = [(label, owner.format(label)) for label in labels]
        return [Owner(label, text, f" of the latent function {text}") for label, text in texts]
    if likelihood.classifies:
        return [Owner(None, "that decides between the classes", " of the latent function")]
    return [Owner(c, f"of target {c}", f" of target {c}" * (count > 1)) for c in range(count)]
