"""Certificates: what a search proved, as records that save and load."""

from gpcert.certificates.record import Certificate, Interval, PredictionRange, Radius, Status
from gpcert.certificates.table import CertificateTable

__all__ = ["Certificate", "CertificateTable", "Interval", "PredictionRange", "Radius", "Status"]
