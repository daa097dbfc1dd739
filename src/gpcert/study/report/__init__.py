"""Results of experiments as one page to read: HTML that needs no network, or markdown."""

from gpcert.study.report.page import FORMATS, write_report

__all__ = ["FORMATS", "write_report"]
