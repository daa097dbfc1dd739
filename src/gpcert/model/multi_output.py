"""Several posteriors over the same inputs: what they have in common, and outputs with kernels of
their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from gpcert.errors import InputError
from gpcert.functions import Curve
from gpcert.inputs.tabular import Levels, common_names
from gpcert.likelihoods import ClassLikelihood, Gaussian, Likelihood, ResponseLikelihood
from gpcert.model.posterior import Posterior
from gpcert.model.posterior_file import (
    check_labels,
    check_shapes,
    read_likelihood,
    written_labels,
)
from gpcert.model.posterior_parts import check_class_count, checked_classes
from gpcert.utils.archive import Shape, fingerprint, plain_label, read_arrays, write_arrays


@dataclass(frozen=True, eq=False)
class ModelCollection:
    """Posteriors of the same features: their inputs, and the file that holds them all."""

    members: tuple[Posterior, ...]

    FORMAT: ClassVar[str]
    HEADER: ClassVar[tuple[str, ...]] = ()
    """What a file of this kind says besides its members."""

    def __post_init__(self) -> None:
        members = self.members if isinstance(self.members, tuple | list) else ()
        if not members or not all(isinstance(member, Posterior) for member in members):
            raise InputError(
                f"{type(self).__name__}: expected a tuple of posteriors, got {self.members!r}"
            )
        object.__setattr__(self, "members", tuple(members))
        if len({member.dim for member in members}) != 1:
            raise InputError("members: expected the same number of features for all")
        if not all(dict(member.levels) == dict(members[0].levels) for member in members):
            raise InputError("members: expected the same categories for all")
        if len({tuple(curves_of(member).items()) for member in members}) != 1:
            raise InputError(
                "members: expected the same functions of the inputs (`LinearMap.curves`) in front "
                "of all, got others; ask about one model at a time"
            )
        names = common_names("members", (member.feature_names for member in members))
        if names is not None and not all(member.feature_names for member in members):
            raise InputError(
                "members: expected names of features for all or for none, got some without; give "
                f"each the same, as in dataclasses.replace(member, feature_names={names!r})"
            )

    @property
    def dim(self) -> int:
        """Number of input features d."""
        return self.members[0].dim

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the input features, or None; the first member's, as all see the same inputs."""
        return self.members[0].feature_names

    @property
    def levels(self) -> Levels:
        """The labels of the inputs that hold categories; the first member's, as all see the same
        inputs."""
        return self.members[0].levels

    @property
    def spread(self) -> np.ndarray | None:
        """The features' standard deviations in the training data of all, or None."""
        first = self.members[0].spread
        return first if all(np.array_equal(first, each.spread) for each in self.members) else None

    @property
    def places(self) -> np.ndarray:
        """Inputs at all points that any member knows."""
        return np.concatenate([member.places for member in self.members])

    def output(self, c: int) -> tuple[Posterior, int]:
        """The posterior that has output c, and its number there: each member has one, or the only
        one has all."""
        alone = len(self.members) == 1
        return self.members[0 if alone else c], c if alone else 0

    def check_inputs(self, X: Any, name: str = "X") -> np.ndarray:
        """X as a finite (n, d) array, or an `InputError`."""
        return self.members[0].check_inputs(X, name)

    def save(self, path: str | Path) -> None:
        """Write a `.npz` file that holds numbers and text only (no code), for `load`."""
        members = [member.header() for member in self.members]
        header = {"format": self.FORMAT, **self._described(True), "members": members}
        arrays = {
            f"{index}.{name}": array
            for index, member in enumerate(self.members)
            for name, array in member.arrays().items()
        }
        write_arrays(path, header, arrays)

    def _described(self, written: bool) -> dict[str, Any]:
        """What a file says besides the members, or, not written, what a fingerprint sees: labels
        and functions that no file can hold, too."""
        return {}

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that tell this model from others: a hash of all that is saved."""
        members = [member.fingerprint for member in self.members]
        header = {"format": self.FORMAT, **self._described(False), "members": members}
        return fingerprint(header, {})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote; never executes code from the file."""
        return cls.from_arrays(*read_arrays(path, {cls.FORMAT: cls.check_arrays}), path)

    @classmethod
    def from_arrays(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray], path: str | Path
    ) -> Self:
        """What a file holds, once read; `path` is named in errors."""
        members = []
        for index, member_header in enumerate(header["members"]):
            parts = _starting(arrays, f"{index}.").items()
            numbered = {name.partition(".")[2]: array for name, array in parts}
            members.append(Posterior.from_arrays(member_header, numbered, path))
        try:
            return cls(tuple(members), **cls._fields(header))
        except InputError as error:
            raise InputError(f"{path}: {error}") from error

    @classmethod
    def _fields(cls, header: dict[str, Any]) -> dict[str, Any]:
        """The other fields of the record, from a file's header."""
        return {}

    @classmethod
    def check_arrays(cls, header: dict[str, Any], shapes: Mapping[str, Shape]) -> None:
        """An `InputError` unless the header has its parts and these are its members' arrays."""
        members = header.get("members")
        parts = isinstance(members, list) and all(isinstance(member, dict) for member in members)
        if not parts or not all(name in header for name in cls.HEADER):
            expected = " and ".join(("members", *cls.HEADER))
            raise InputError(f"a part is missing or unknown: expected {expected}")
        known = {f"{index}." for index in range(len(header["members"]))}
        unknown = sorted(name for name in shapes if name.partition(".")[0] + "." not in known)
        if unknown:
            raise InputError(f"a part is unknown: {unknown[:9]}")
        for prefix in sorted(known):
            check_shapes(_starting(shapes, prefix), prefix)


@dataclass(frozen=True, eq=False)
class SeparateOutputs(ModelCollection):
    """Independent latent functions, each a posterior of one output with its own kernel.

    With the likelihood `Gaussian()` a regression of several targets; with one of several classes a
    classifier, `classes` its labels. The members are latent functions, with the likelihood
    `Gaussian()` each. What reads a `Posterior` of several outputs reads this as well; outputs whose
    kernels are the same up to a factor are better one `Posterior`, which evaluates the kernel once.

    >>> from gpcert.kernels import SquaredExponential
    >>> short, long = (Posterior(SquaredExponential(s), [[0.0]], [2.0]) for s in (0.1, 10.0))
    >>> SeparateOutputs((short, long)).mean([[1.0]]).round(3).tolist()
    [[0.0, 1.99]]
    """

    likelihood: Likelihood = field(default_factory=Gaussian)
    classes: tuple[Any, ...] | None = None

    FORMAT = "gpcert-separate-outputs-1"

    coupled = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for member in self.members:
            if member.outputs != 1 or not isinstance(member.likelihood, Gaussian):
                raise InputError(
                    "members: expected latent functions of one output each, with the likelihood "
                    f"Gaussian(), got {member.outputs} outputs and {member.likelihood}"
                )
        if len(self.members) < 2:
            raise InputError("members: expected two or more; one is a Posterior by itself")
        object.__setattr__(self, "classes", checked_classes(self.classes))
        if isinstance(self.likelihood, ClassLikelihood):
            check_class_count(self.likelihood, self.outputs, self.classes)
        elif (
            not isinstance(self.likelihood, Gaussian | ResponseLikelihood)
            or self.classes is not None
        ):
            raise InputError(
                "likelihood: expected Gaussian() or a ResponseLikelihood and no classes, or one of "
                f"several classes, such as Softmax(), got {self.likelihood!r} and classes "
                f"{self.classes!r}"
            )

    def _described(self, written: bool) -> dict[str, Any]:
        likelihood = self.likelihood
        if isinstance(likelihood, Gaussian):
            return {}
        parameters = likelihood.config() if written else likelihood.identity()
        labels = described_labels(self.classes, written)
        return {"likelihood": [likelihood.name, parameters], "classes": labels}

    @classmethod
    def _fields(cls, header: dict[str, Any]) -> dict[str, Any]:
        if "likelihood" not in header:
            return {}
        classes = header.get("classes")
        labels = None if classes is None else check_labels(classes)
        return {"likelihood": read_likelihood(header), "classes": labels}

    @property
    def labels(self) -> tuple[Any, ...]:
        """Labels of the classes, or numbers of the targets."""
        if self.classes is not None:
            return self.classes
        likelihood, m = self.likelihood, self.outputs
        several = isinstance(likelihood, ClassLikelihood)
        return tuple(range(len(likelihood.mixed(m)) if several else m))

    @property
    def classifies(self) -> bool:
        """Whether the model decides between classes."""
        return self.likelihood.classifies

    @property
    def outputs(self) -> int:
        """Number of outputs m."""
        return len(self.members)

    @property
    def noise(self) -> np.ndarray:
        """(m,): noise in the variance of every output."""
        return np.concatenate([member.noise for member in self.members])

    @property
    def offset(self) -> np.ndarray:
        """(m,): constant part of every output's mean."""
        return np.concatenate([member.offset for member in self.members])

    def prior_variance(self, X: Any) -> np.ndarray:
        """(n, m): the variance before any data, noise included."""
        return np.concatenate([member.prior_variance(X) for member in self.members], axis=1)

    def predict(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Latent mean and variance at X (n, d), each (n, m), in plain floating point."""
        predictions = [member.predict(X) for member in self.members]
        mean, variance = (np.concatenate(parts, axis=1) for parts in zip(*predictions, strict=True))
        return mean, variance

    def mean(self, X: Any) -> np.ndarray:
        """Latent mean alone at X (n, d), (n, m), in plain floating point."""
        return np.concatenate([member.mean(X) for member in self.members], axis=1)

    def prediction(self, X: Any) -> np.ndarray:
        """What is decided on: the means, or probabilities of the classes."""
        if isinstance(self.likelihood, Gaussian):
            return self.mean(X)
        mean, variance = self.predict(X)
        if isinstance(self.likelihood, ResponseLikelihood):
            return np.asarray(self.likelihood.value(mean, variance))
        assert isinstance(self.likelihood, ClassLikelihood), "checked"
        return self.likelihood.probabilities(mean, variance[:, :, None] * np.eye(self.outputs))

    def check_has_variance(self, asked: str) -> None:
        """Every member has one."""


def curves_of(member: Posterior) -> Mapping[int, Curve]:
    """The increasing functions that inputs go through first, by the inputs' numbers."""
    return {} if member.features is None else member.features.curves


Outputs = Posterior | SeparateOutputs
"""Latent functions, one per output, with or without a kernel of their own."""


def described_labels(classes: tuple[Any, ...] | None, written: bool) -> list[Any] | None:
    """Labels of classes for a file, which holds plain ones only, or for a fingerprint."""
    if written or classes is None:
        return written_labels(classes)
    return [plain_label(label) for label in classes]


def _starting(items: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name: item for name, item in items.items() if name.startswith(prefix)}
