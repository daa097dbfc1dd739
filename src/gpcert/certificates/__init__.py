"""Certificates: what a search proved, as records and tables of them that save and load."""

from gpcert.certificates.box_bounds import BoxBounds
from gpcert.certificates.io import Record, load
from gpcert.certificates.record import Certificate, PredictionRange, Radius
from gpcert.certificates.status import Interval, Status, Unit
from gpcert.certificates.table import CertificateTable, RadiusTable, RangeTable

__all__ = [
    "BoxBounds",
    "Certificate",
    "CertificateTable",
    "Interval",
    "PredictionRange",
    "Radius",
    "RadiusTable",
    "RangeTable",
    "Record",
    "Status",
    "Unit",
    "load",
]
