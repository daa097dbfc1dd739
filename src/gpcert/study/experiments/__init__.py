"""The experiments of the paper, one short file each on the public API, and their results."""

from gpcert.study.experiments.base import experiment_named, names, variant_names
from gpcert.study.experiments.results import ExperimentResult
from gpcert.study.experiments.run import is_current, reads_files, redraw, reproduce

__all__ = [
    "reproduce",
    "redraw",
    "is_current",
    "reads_files",
    "names",
    "variant_names",
    "experiment_named",
    "ExperimentResult",
]
