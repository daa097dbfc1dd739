"""Certificates: what a search proved, as records that save and load."""

from gpcert.certificates.record import Certificate, PredictionRange, Radius
from gpcert.certificates.status import Interval, Status, Unit
from gpcert.certificates.table import CertificateTable

__all__ = [
    "Certificate",
    "CertificateTable",
    "Interval",
    "PredictionRange",
    "Radius",
    "Status",
    "Unit",
]
