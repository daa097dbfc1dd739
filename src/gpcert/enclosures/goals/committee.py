"""The goal that decides whether a committee's decision stays the same."""

from __future__ import annotations

from collections.abc import Sequence

from gpcert.committee import Committee, check_class_weight
from gpcert.enclosures.goals.base import Goal
from gpcert.enclosures.goals.pair_votes import PairVotesGoal
from gpcert.enclosures.goals.rest import RestMarginGoal
from gpcert.enclosures.goals.votes import VotesGoal
from gpcert.errors import InputError

__all__ = ["committee_goal"]


def committee_goal(
    committee: Committee, winner: int, class_weight: Sequence[float] | None = None
) -> Goal:
    """The margin of class number `winner`: positive exactly where the committee decides for it.

    Where several classes have the same score the margin of each is 0, and nothing is claimed.
    """
    m = len(committee.classes)
    if not 0 <= winner < m:
        raise InputError(f"winner: expected 0 to {m - 1}, got {winner!r}")
    weights = check_class_weight(committee, class_weight)
    if committee.scheme == "one_vs_rest":
        return RestMarginGoal(winner, weights)
    return PairVotesGoal(winner, m) if committee.shared else VotesGoal(winner, m)
