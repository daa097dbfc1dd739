"""Certificates of many points as one tidy table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpcert.certificates.io import load_record, write_record
from gpcert.certificates.record import Certificate, Status
from gpcert.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CertificateTable"]


@dataclass(frozen=True, eq=False)
class CertificateTable:
    """Certificates of the rows of X, in order; `complete` is False if the run was interrupted.

    `labels` are the rows' numbers in X (0, 1, ... by default): after an interrupt some may be
    missing.
    """

    certificates: tuple[Certificate, ...]
    complete: bool = True
    labels: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if not self.labels:
            object.__setattr__(self, "labels", tuple(range(len(self.certificates))))
        if len(self.labels) != len(self.certificates):
            raise InputError(
                f"labels: expected one for each of {len(self.certificates)} rows, "
                f"got {len(self.labels)}"
            )

    def __len__(self) -> int:
        return len(self.certificates)

    def __iter__(self) -> Iterator[Certificate]:
        return iter(self.certificates)

    def __getitem__(self, index: int) -> Certificate:
        return self.certificates[index]

    def count(self, status: Status) -> int:
        """How many points have this status."""
        return sum(certificate.status is status for certificate in self.certificates)

    @property
    def certified_fraction(self) -> float:
        """Part of the points that are proved robust."""
        return self.count(Status.ROBUST) / max(len(self), 1)

    def to_frame(self) -> pd.DataFrame:
        """One row a point: status, decision, margin bounds, counter-example's distance, cost."""
        import pandas as pd  # takes half a second: only when a table is asked for

        rows = []
        for index, c in zip(self.labels, self.certificates, strict=True):
            rows.append(
                {
                    "point": index,
                    "status": c.status.name,
                    "decision": c.decision,
                    "margin_lower": c.margin.lower,
                    "margin_upper": c.margin.upper,
                    "counterexample_distance": _distance(c),
                    "boxes": c.boxes,
                    "seconds": c.seconds,
                    "reason": c.reason.name,
                }
            )
        return pd.DataFrame(rows)

    def save(self, path: str | Path) -> None:
        """Write as JSON, counter-examples included."""
        write_record(path, self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        rows = [certificate.to_dict() for certificate in self.certificates]
        return {
            "kind": "table",
            "complete": self.complete,
            "labels": list(self.labels),
            "certificates": rows,
        }

    @staticmethod
    def load(path: str | Path) -> CertificateTable:
        """Read what `save` wrote."""
        return load_record(path, "table", CertificateTable.from_dict)

    @staticmethod
    def from_dict(record: dict[str, Any]) -> CertificateTable:
        """Inverse of `to_dict`."""
        rows = tuple(Certificate.from_dict(row) for row in record["certificates"])
        return CertificateTable(rows, record["complete"], tuple(record["labels"]))


def _distance(certificate: Certificate) -> float:
    """Largest change of a feature from the region's centre to the counter-example."""
    center = certificate.region.get("center")
    if certificate.counterexample is None or center is None:
        return float("nan")
    return float(np.max(np.abs(certificate.counterexample - np.asarray(center)), initial=0.0))
