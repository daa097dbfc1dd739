"""The answers: records of a status, valid bounds and what they cost; tables for many points."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, get_args

import numpy as np

from gpcert.certificates.io import Record
from gpcert.certificates.proof import SUFFIX, Proof, ProofTable, missing_proof
from gpcert.certificates.schema import ADDED, UNSAVED
from gpcert.certificates.text import (
    DIGITS,
    Interval,
    Status,
    TextTable,
    above,
    below,
    cost_text,
    in_unit,
    interval_text,
    region_text,
    table_shown,
)
from gpcert.errors import InputError
from gpcert.regions import region_from_dict
from gpcert.search import StopReason
from gpcert.utils.optional_imports import Axes, DataFrame, optional

T = TypeVar("T", bound=Record)
S = TypeVar("S", bound="Searched")

MOST_MOVED = 3
"""Number of moved features that the text of a certificate names."""

COST = "boxes seconds reason"
"""The columns of what a search cost and why it ended."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Searched(Record):
    """Why a search ended and what it cost, its family of bounds (`method`), the fingerprint of the
    certified `model` and, if requested, the `proof` that `gpcert-check` checks."""

    reason: StopReason
    boxes: int
    seconds: float
    method: str = "taylor"
    model: str = ""
    proof: Proof | None = field(default=None, metadata=UNSAVED)

    def save(self, path: str | Path) -> None:
        """Write as JSON; under a name that ends in ".cert" as a proof that `gpcert-check` checks,
        which `proof=True` prepares."""
        if Path(path).suffix != SUFFIX:
            super().save(path)
            return
        if self.proof is None:
            raise missing_proof(path)
        self.proof.save(path)

    def check(self) -> None:
        super().check()
        fields = vars(self)
        if "maximum" in fields and not fields["minimum"].lower <= fields["maximum"].upper:
            raise InputError("minimum and maximum: expected minimum.lower <= maximum.upper")


@dataclass(frozen=True, eq=False, repr=False)
class PredictionRange(
    Searched, kind="prediction_range", told="minimum maximum quantity output converged reason"
):
    """Bounds of the smallest and of the largest value of a quantity over a region.

    `minimum.lower <= min <= minimum.upper`, the latter attained at `argmin`; likewise for the
    maximum. `converged` says whether both sides are as near as the tolerance asks (else `reason`
    says what ended the search); the bounds are valid either way. `output` is the label of the
    class whose probability it is, the number of the target, or None where there is one latent
    function; `meaning` says in words what is bounded. Of a "band" the minimum is that of
    `mean - beta std` and the maximum that of `mean + beta std`; `beta` is None otherwise.
    `nominal` is the quantity at the region's centre, in plain floating point, for pictures (None:
    it has no finite value there, or is a band): nothing rests on it.
    """

    minimum: Interval
    maximum: Interval
    argmin: np.ndarray | None
    argmax: np.ndarray | None
    converged: bool
    quantity: str
    output: Any
    region: dict[str, Any]
    meaning: str = ""
    beta: float | None = field(default=None, metadata=ADDED)
    nominal: float | None = field(default=None, metadata=ADDED)

    def shown(self) -> TextTable:
        low, high = self.minimum, self.maximum
        rows = {
            self.quantity: self.meaning or f"output {self.output!r}",
            "proved": f"between {below(low.lower)} and {above(high.upper)}",
            "attained": f"{above(low.upper)} and {below(high.lower)}",
            "nominal": "-" if self.nominal is None else f"about {self.nominal:.{DIGITS}g}",
            "region": region_text(self.region),
            "search": self.reason.value,
            "cost": cost_text(self),
        }
        return TextTable("", (), list(rows.items()))

    def check(self) -> None:
        super().check()
        if self.beta is not None and not 0 <= self.beta < math.inf:
            raise InputError(f"beta: expected a number >= 0, got {self.beta!r}")


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Searched, kind="certificate", told="status decision margin rule reason"):
    """Verdict on one region: `margin` bounds the smallest margin of the decision over it.

    The margin is positive where the decision is that of `decision` (the proved label at x; None in
    regression, and where a value is compared that decides between no classes: then `rule` says on
    which side it is at x): `sign * latent mean`, `sign * (value - threshold)`, the least difference
    of the decision's score and another one's, or `delta - deviation`. ROBUST if `margin.lower > 0`;
    NOT_ROBUST if a point with a negative margin, the `counterexample`, is known. `unit` says what
    the margin is measured in, `x` is the point whose decision is meant. `margin_at_x` is the margin
    at x in plain floating point, for pictures; None where it is not known. `feature_names`, if the
    model has some, are those of x; `categories` are the labels of its features of text, by their
    numbers (keys of text, as files have them).

    If the reason is `UNDECIDED_AT_X`, the decision at x could not be proved: `decision` is None,
    and `margin` holds whichever it is (the margin at x of a decision that is made there is small).
    """

    status: Status
    margin: Interval
    counterexample: np.ndarray | None
    decision: Any
    rule: str
    region: dict[str, Any]
    unit: str = ""
    x: np.ndarray | None = None
    margin_at_x: float | None = field(default=None, metadata=ADDED)
    feature_names: tuple[str, ...] = field(default=(), metadata=ADDED)
    categories: Mapping[str, Any] = field(default_factory=dict, metadata=ADDED)

    def check(self) -> None:
        super().check()
        names, dim = self.feature_names, 0 if self.x is None else len(self.x)
        if names and dim and len(names) != dim:
            raise InputError(f"feature_names: expected {dim}, as in x, got {len(names)}")
        proved, refuted = self.margin.lower > 0, self.counterexample is not None
        if self.robust and not proved:
            raise InputError("status: expected a margin above 0 of what is ROBUST")
        if (self.status is Status.NOT_ROBUST) != refuted or (refuted and self.margin.upper >= 0):
            raise InputError(
                "status: expected a counter-example, and a margin that reaches below 0, of what is "
                "NOT_ROBUST and of nothing else"
            )

    @property
    def summary(self) -> str:
        """What is proved, refuted or neither, as a sentence."""
        what, why = f"{_claim(self)} at every point of the region", self.reason.value
        if self.reason is StopReason.UNDECIDED_AT_X:
            return f"not decided: {why}"
        if self.status is Status.NOT_ROBUST:
            return f"refuted: {_claim(self)} at x, but not at the counter-example"
        return f"proved: {what}" if self.robust else f"not decided: whether {what}; {why}"

    def shown(self) -> TextTable:
        unit = f" ({self.unit})" if self.unit else ""
        at_x = "" if self.margin_at_x is None else f"; about {self.margin_at_x:.{DIGITS}g} at x"
        rows = {
            self.status.name: self.summary,
            "rule": self.rule,
            "margin": f"least one in {interval_text(self.margin)}{unit}{at_x}",
            **({"counter-example": moved} if (moved := self._moved_text()) else {}),
            "region": region_text(self.region),
            "cost": cost_text(self),
        }
        return TextTable("", (), list(rows.items()))

    def plot(self, ax: Axes | None = None, *, shape: tuple[int, int] | None = None) -> Axes:
        """The proved bound of the margin against 0, the margin at x and at the counter-example;
        above it the features that the counter-example moves, each within the values that the region
        allows.

        `shape`, the rows and columns of an image, draws the images of x and of the counter-example
        instead of features. Returns the Axes.
        """
        return self._drawn(ax, shape=shape)

    @property
    def moved_features(self) -> tuple[int, ...]:
        """Features in which the counter-example differs from x; those that move over the largest
        part of what the region allows come first."""
        if self.counterexample is None or self.x is None:
            return ()
        change, (low, high) = np.abs(self.counterexample - self.x), self.allowed_values
        part = np.divide(change, high - low, out=np.zeros(len(change)), where=change > 0)
        order = np.argsort(-part, kind="stable")
        return tuple(order[: np.count_nonzero(change)].tolist())

    @property
    def allowed_values(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest value of each feature in the region."""
        points = [each for each in (self.x, self.counterexample) if each is not None]
        try:
            region = region_from_dict(self.region)
        except InputError:  # a region of a class that is not registered: the known points
            return np.min(points, axis=0), np.max(points, axis=0)
        points += [region.lower, region.upper]
        return np.min(points, axis=0), np.max(points, axis=0)

    def feature_label(self, feature: int) -> str:
        """The name of a feature, or x0, x1, ... where there are no names."""
        return self.feature_names[feature] if self.feature_names else f"x{feature}"

    def value_label(self, feature: int, value: float) -> str:
        """A value of a feature as text: a category of text by its label."""
        labels = self.categories.get(str(feature), ())
        return labels[int(value)] if 0 <= value < len(labels) else f"{value:.{DIGITS}g}"

    def _moved_text(self) -> str:
        moved = self.moved_features
        if self.counterexample is None or self.x is None or not moved:
            return ""
        parts = [
            f"{self.feature_label(j)} from {self.value_label(j, self.x[j])} to "
            f"{self.value_label(j, self.counterexample[j])}"
            for j in moved[:MOST_MOVED]
        ]
        more = len(moved) - len(parts)
        return ", ".join(parts) + (f", and {more} more" if more else "")

    @property
    def counterexample_distance(self) -> float:
        """Largest change of a feature from the region's centre to the counter-example; NaN without
        either."""
        center = self.region.get("center")
        if self.counterexample is None or center is None:
            return math.nan
        return float(np.max(np.abs(self.counterexample - np.asarray(center)), initial=0.0))

    @property
    def robust(self) -> bool:
        """Whether the decision is proved to be the same in the whole region."""
        return self.status is Status.ROBUST

    def __bool__(self) -> bool:
        raise InputError(
            "a certificate is not a truth value (one that refutes would pass as true): use "
            "certificate.robust, or compare certificate.status"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Radius(Searched, kind="radius", told="lower upper decision norm reason"):
    """Proved robust up to `lower`; at distance `upper` (inf if none was found) a counter-example.

    The true robustness radius lies in `[lower, upper]`. `region` describes the ball that is proved,
    centre, features and domain included; `unit` is what the decision's margin is measured in.
    `scale`, if given, is what the radius is measured in, one number per feature (0: fixed), and
    `radius_unit` what that unit is called.
    """

    lower: float
    upper: float
    counterexample: np.ndarray | None
    decision: Any
    norm: float
    rule: str = ""
    region: dict[str, Any] = field(default_factory=dict)
    unit: str = ""
    scale: np.ndarray | None = field(default=None, metadata=ADDED)
    radius_unit: str = field(default="", metadata=ADDED)

    def shown(self) -> TextTable:
        undecided, counterexample = self.reason is StopReason.UNDECIDED_AT_X, self.counterexample
        refuted = f"counter-example at {above(self.upper)}"
        refuted = "no counter-example found" if counterexample is None else refuted
        rows = {
            f"radius{in_unit([self])}": (
                f"proved up to {below(self.lower)}, {refuted} (l_{self.norm:g})"
            ),
            "held": "unknown" if undecided else _claim(self),
            "rule": self.rule,
            "search": self.reason.value,
            "cost": cost_text(self),
        }
        return TextTable("", (), list(rows.items()))

    def check(self) -> None:
        super().check()
        if not (0 <= self.lower <= self.upper and self.norm >= 1):
            raise InputError("expected 0 <= lower <= upper and norm >= 1")


def _claim(answer: Certificate | Radius) -> str:
    """What is asked of every point: the decision at x, or where it has no label the rule itself."""
    return answer.rule if answer.decision is None else f"decision {answer.decision!r}"


def cells_of(row: Any, names: str) -> dict[str, Any]:
    """Fields of a record by name: of an interval both ends, of an enumeration the name."""
    values: dict[str, Any] = {}
    for name in names.split():
        value = getattr(row, name)
        if isinstance(value, Interval):
            values |= {f"{name}_lower": value.lower, f"{name}_upper": value.upper}
        else:
            values[name] = value.name if isinstance(value, Enum) else value
    return values


@dataclass(frozen=True, eq=False, repr=False)
class RecordTable(Record, Generic[T]):
    """Records of one kind, in order.

    `complete` says whether all points were reached: False if the run was interrupted. `labels`, one
    for each row, name the point that a row is about: 0, 1, ... by default.

    `columns` of a subclass are the fields of a row that the data frame shows, of an interval both
    ends; `counted` is what `repr` calls the rows.
    """

    row_kind: ClassVar[type[Record]]
    columns: ClassVar[str]
    counted: ClassVar[str]

    rows: tuple[T, ...]
    complete: bool = True
    labels: tuple[Any, ...] = ()

    def __init_subclass__(cls, columns: str = "", counted: str = "rows", **words: str) -> None:
        super().__init_subclass__(**words)
        cls.columns, cls.counted = columns, counted
        (cls.row_kind,) = get_args(vars(cls)["__orig_bases__"][0])

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(self.rows))
        object.__setattr__(self, "labels", tuple(self.labels) or tuple(range(len(self.rows))))
        if len(self.labels) != len(self.rows):
            raise InputError(
                f"labels: expected one for each of {len(self.rows)} rows, got {len(self.labels)}"
            )

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[T]:
        return iter(self.rows)

    def __getitem__(self, index: int) -> T:
        return self.rows[index]

    def save(self, path: str | Path) -> None:
        """Write as JSON; under a name that ends in ".cert" the proofs of all rows that have one,
        in one file that `gpcert-check` checks (`proof=True` prepares them)."""
        if Path(path).suffix != SUFFIX:
            super().save(path)
            return
        proofs = [getattr(row, "proof", None) for row in self]
        ProofTable.of([proof for proof in proofs if proof is not None], path).save(path)

    def to_frame(self) -> DataFrame:
        """One row per record, with its point's label in front."""
        return optional("pandas", "to_frame").DataFrame(self._lines())

    def _lines(self) -> list[dict[str, Any]]:
        """The cells of every row by column: None where a column is only that of other rows."""
        pairs = zip(self.labels, self.rows, strict=True)
        lines = [{"point": name, **self.cells(row)} for name, row in pairs]
        longest = max(lines, key=len, default={})
        columns = dict.fromkeys(name for line in (longest, *lines) for name in line)
        return [{name: line.get(name) for name in columns} for line in lines]

    def __repr__(self) -> str:
        parts = (f"{len(self)} {self.counted}", self.summary, f"complete={self.complete}")
        return f"{type(self).__name__}({', '.join(part for part in parts if part)})"

    @property
    def summary(self) -> str:
        """The table in a few words, for `repr`."""
        return ""

    def shown(self) -> TextTable:
        return table_shown(repr(self), self._lines(), self.complete)

    def cells(self, row: Any) -> dict[str, Any]:
        """What a row of the data frame says about a record."""
        return cells_of(row, self.columns)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON; the rows, which may be many, last."""
        fields = super().to_dict()
        return {**fields, "rows": fields.pop("rows")}


class BoundTable(RecordTable[S]):
    """Records of bounds that were sought to within a tolerance.

    `converged` says whether every search met it; the bounds hold either way. `complete` says
    whether all points were reached.
    """

    @property
    def converged(self) -> bool:
        """Whether all bounds are within the tolerance: no search ended for another reason."""
        return all(row.reason is StopReason.CONVERGED for row in self)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, converged={self.converged})"


@dataclass(frozen=True, eq=False, repr=False)
class CertificateTable(
    RecordTable[Certificate],
    kind="certificates",
    columns=f"status decision margin unit counterexample_distance {COST}",
):
    """Certificates of the rows of X."""

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """The rows."""
        return self.rows

    def count(self, status: Status) -> int:
        """How many points have this status."""
        return sum(certificate.status is status for certificate in self)

    @property
    def summary(self) -> str:
        return ", ".join(f"{self.count(status)} {status.name}" for status in Status)

    @property
    def certified_fraction(self) -> float:
        """Part of the points that are proved robust."""
        return self.count(Status.ROBUST) / max(len(self), 1)


@dataclass(frozen=True, eq=False, repr=False)
class RangeTable(BoundTable[PredictionRange], kind="prediction_ranges"):
    """Prediction ranges around the rows of X, one row for each point and output."""

    def cells(self, row: PredictionRange) -> dict[str, Any]:
        beta = "" if row.beta is None else "beta "
        return cells_of(row, f"output quantity {beta}minimum maximum converged {COST}")


@dataclass(frozen=True, eq=False, repr=False)
class RadiusTable(BoundTable[Radius], kind="radii", columns=f"decision lower upper norm {COST}"):
    """Certified radii of the rows of X."""

    @property
    def summary(self) -> str:
        return f"radius{in_unit(self)}" if in_unit(self) else ""
