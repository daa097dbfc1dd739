"""Data sets of the experiments: generated, embedded, from OpenML or from a folder."""

from gpcert.datasets.digits import digits38
from gpcert.datasets.images import fashion, mnist
from gpcert.datasets.record import Dataset
from gpcert.datasets.spam import spambase
from gpcert.datasets.synthetic import synthetic2d

__all__ = ["Dataset", "synthetic2d", "digits38", "spambase", "mnist", "fashion"]
