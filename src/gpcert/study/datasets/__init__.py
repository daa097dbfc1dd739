"""Data sets of the experiments: generated, embedded, from OpenML or from a folder."""

from gpcert.study.datasets.files import Dataset
from gpcert.study.datasets.images import digits, fashion, mnist
from gpcert.study.datasets.tables import l1_features, spambase, synthetic2d, table_file

__all__ = [
    "Dataset",
    "synthetic2d",
    "digits",
    "spambase",
    "mnist",
    "fashion",
    "l1_features",
    "table_file",
]
