"""Small problems whose shadow runs meet most counts of roundings: cases of the hunt, by seed.

A case is asked with a budget of few boxes; what it answers does not matter here.
"""

import warnings

import gpcert
from gpcert.errors import GPCertError
from gpcert.testing.rounding.ledger import Ledger
from gpcert.testing.rounding.shadow_run import counted
from tests.hunt.hunt_cases import draw_case

BUDGET = gpcert.Budget(boxes=2, seconds=120.0)
"""Boxes end it, also on a busy machine: a run repeats."""

QUICK = (29, 66, 108, 93, 65, 105, 60)
"""Seeds that together meet many of the counts, each in about a second."""

SLOW = (7, 94, 52, 26, 101, 6, 16, *range(6), *range(8, 25))
"""Others."""


def shadow_run(seed, ledger=None, budget=BUDGET):
    """What the case of a seed shows of the counts."""
    ledger = Ledger() if ledger is None else ledger
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draw_case(seed)  # what is imported and kept is computed before, on plain arrays
        with counted(ledger):
            case = draw_case(seed)
            try:
                case.ask(budget=budget)
            except GPCertError:
                return ledger  # refused: what was seen until then counts
    return ledger
