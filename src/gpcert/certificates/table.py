"""Answers for many points as one tidy table of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Generic, TypeVar, get_args

from gpcert.certificates.io import Record
from gpcert.certificates.record import Certificate, PredictionRange, Radius
from gpcert.certificates.shown import Shown
from gpcert.certificates.status import Interval, Status
from gpcert.certificates.text import table_shown
from gpcert.errors import InputError
from gpcert.extras import DataFrame, optional

T = TypeVar("T", bound=Record)

COST = "boxes seconds reason"
"""The columns of what a search cost and why it ended."""


def cells_of(row: Any, names: str) -> dict[str, Any]:
    """Fields of a record by name: of an interval both ends, of an enumeration the name."""
    found: dict[str, Any] = {}
    for name in names.split():
        value = getattr(row, name)
        if isinstance(value, Interval):
            found |= {f"{name}_lower": value.lower, f"{name}_upper": value.upper}
        else:
            found[name] = value.name if isinstance(value, Enum) else value
    return found


@dataclass(frozen=True, eq=False, repr=False)
class RecordTable(Record, Generic[T]):
    """Records of one kind, in order; `complete` is False if the run was interrupted.

    `labels`, one for each row, name the point that a row is about: 0, 1, ... by default. `columns`
    of a subclass are the fields of a row that the data frame shows; of an interval both ends.
    """

    row_kind: ClassVar[type[Record]]
    columns: ClassVar[str]

    rows: tuple[T, ...]
    complete: bool = True
    labels: tuple[Any, ...] = ()

    def __init_subclass__(cls, columns: str = "", **words: str) -> None:
        super().__init_subclass__(**words)
        cls.columns, (cls.row_kind,) = columns, get_args(vars(cls)["__orig_bases__"][0])

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

    def to_frame(self) -> DataFrame:
        """One row a record, with its point's label in front."""
        pandas = optional("pandas", "to_frame")
        return pandas.DataFrame(self._lines())

    def _lines(self) -> list[dict[str, Any]]:
        pairs = zip(self.labels, self.rows, strict=True)
        return [{"point": name, **self.cells(row)} for name, row in pairs]

    def __repr__(self) -> str:
        told = f", {self.summary}" if self.summary else ""
        return f"{type(self).__name__}({len(self)} rows{told})"

    @property
    def summary(self) -> str:
        """The table in a few words, for `repr`."""
        return ""

    def shown(self) -> Shown:
        return table_shown(repr(self), self._lines(), self.complete)

    def cells(self, row: Any) -> dict[str, Any]:
        """What a row of the data frame says about a record."""
        return cells_of(row, self.columns)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON; the rows, which may be many, last."""
        found = super().to_dict()
        return {**found, "rows": found.pop("rows")}


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
class RangeTable(RecordTable[PredictionRange], kind="prediction_ranges"):
    """Prediction ranges around the rows of X, one row for each point and output."""

    def cells(self, row: PredictionRange) -> dict[str, Any]:
        beta = "" if row.beta is None else "beta "
        return cells_of(row, f"output quantity {beta}minimum maximum converged {COST}")


@dataclass(frozen=True, eq=False, repr=False)
class RadiusTable(RecordTable[Radius], kind="radii", columns=f"decision lower upper norm {COST}"):
    """Certified radii of the rows of X."""
