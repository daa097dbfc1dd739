"""The seeded mutants: one wrong line each, and the tests that must notice."""

from __future__ import annotations

from mutant import Mutant
from mutants_of_analyses import ANALYSIS_MUTANTS
from mutants_of_class_links import CLASS_LINK_MUTANTS
from mutants_of_classes import CLASS_MUTANTS
from mutants_of_committees import COMMITTEE_MUTANTS
from mutants_of_enclosures import ENCLOSURE_MUTANTS
from mutants_of_explanations import EXPLANATION_MUTANTS
from mutants_of_kernels import KERNEL_MUTANTS
from mutants_of_paper import PAPER_MUTANTS
from mutants_of_parts import OTHER_MUTANTS
from mutants_of_search import SEARCH_MUTANTS
from mutants_of_verdicts import VERDICT_MUTANTS

__all__ = ["MUTANTS", "Mutant"]

MUTANTS = (
    SEARCH_MUTANTS
    + ENCLOSURE_MUTANTS
    + KERNEL_MUTANTS
    + PAPER_MUTANTS
    + OTHER_MUTANTS
    + CLASS_MUTANTS
    + CLASS_LINK_MUTANTS
    + COMMITTEE_MUTANTS
    + ANALYSIS_MUTANTS
    + EXPLANATION_MUTANTS
    + VERDICT_MUTANTS
)
