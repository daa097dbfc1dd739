"""Data sets of the experiments: generated, embedded, from OpenML or from a folder."""

from gpcert.datasets.embedded import digits
from gpcert.datasets.images import fashion, mnist
from gpcert.datasets.record import Dataset
from gpcert.datasets.reduction import l1_features
from gpcert.datasets.spam import spambase
from gpcert.datasets.synthetic import synthetic2d

__all__ = ["Dataset", "synthetic2d", "digits", "spambase", "mnist", "fashion", "l1_features"]
