"""Which family of enclosures a search uses: Taylor, the paper's own, or the better of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gpcert.committee import Model
from gpcert.enclosures.goals import DeviationGoal, Goal, ScalarGoal
from gpcert.enclosures.goals.classes import ClassGoal
from gpcert.enclosures.goals.member import BothGoals, MemberGoal
from gpcert.enclosures.goals.paper import PaperGoal
from gpcert.enclosures.paper import PaperEnclosures
from gpcert.errors import InputError
from gpcert.quantities import Probability

MethodName = Literal["taylor", "paper", "both"]
VarianceBound = Literal["solver", "analytic"]


@dataclass(frozen=True)
class Method:
    """`name` is "taylor" (default), "paper" or "both".

    `variance_bound` says how the paper's variance programs are bounded, by "solver" (the paper's;
    default of "paper") or "analytic", in closed form (default of "both", where seconds a box for a
    solver would seldom pay).

    >>> Method("paper").variance_bound, Method("both").variance_bound
    ('solver', 'analytic')
    """

    name: MethodName = "taylor"
    variance_bound: VarianceBound | None = None

    @staticmethod
    def read(words: Mapping[str, Any]) -> Method:
        """From the words of a verb; an attack, which bounds nothing, has the default."""
        return Method(words.get("method", "taylor"), words.get("variance_bound"))

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or self.name not in {"taylor", "paper", "both"}:
            raise InputError(f"method: expected 'taylor', 'paper' or 'both', got {self.name!r}")
        named = self.variance_bound is None or isinstance(self.variance_bound, str)
        if not named or self.variance_bound not in {None, "solver", "analytic"}:
            raise InputError(
                f"variance_bound: expected 'solver' or 'analytic', got {self.variance_bound!r}"
            )
        if self.name == "taylor" and self.variance_bound is not None:
            raise InputError(
                f"variance_bound: {self.variance_bound!r} is a choice of method='paper' or 'both'; "
                "with method='taylor' leave it out"
            )
        if self.name != "taylor" and self.variance_bound is None:
            default = "solver" if self.name == "paper" else "analytic"
            object.__setattr__(self, "variance_bound", default)

    def goals(self, plain: Sequence[Goal], random_state: int | None, model: Model) -> list[Goal]:
        """The goals of one search, bounded by this method; they share the paper's intervals.

        The default takes the paper's closed forms as well where they pay: for the variance of a
        rough kernel, whose Taylor bounds are of order 0 or 1 only (measured in
        benchmarks/results/methods.md), and so for its std and band.
        """
        if any(isinstance(goal, MemberGoal) for goal in plain):
            return [self._of_member(goal, random_state, model) for goal in plain]
        mapped = any(member.features is not None for member in model.members)
        if self.variance_bound is None:
            if mapped or not any(member.kernel.rough for member in model.members):
                return list(plain)
            closed = PaperEnclosures("analytic", random_state)
            return [
                BothGoals(goal, PaperGoal(goal, closed)) if _by_rough_variance(goal) else goal
                for goal in plain
            ]
        joint = (DeviationGoal, ClassGoal)
        if len(model.members) > 1 and any(isinstance(goal, joint) for goal in plain):
            raise InputError(
                "method: the paper's method bounds deviations and class probabilities of outputs "
                "that share a kernel; for outputs with kernels of their own use method='taylor'"
            )
        if mapped:
            raise InputError(
                f"method: {self.name!r} is not known for a model behind linear features (PCA); "
                "leave it out, or ask about regions of the features: fit on them, without a "
                "pipeline"
            )
        enclosures = PaperEnclosures(self.variance_bound, random_state)
        paper = [PaperGoal(goal, enclosures) for goal in plain]
        if self.name == "paper":
            return list(paper)
        return [BothGoals(goal, own) for goal, own in zip(plain, paper, strict=True)]

    def _of_member(self, goal: Goal, random_state: int | None, model: Model) -> Goal:
        assert isinstance(goal, MemberGoal), "goals of separate outputs are not mixed with others"
        (own,) = self.goals([goal.plain], random_state, model.members[goal.index])
        return MemberGoal(goal.index, own)


def _by_rough_variance(goal: Goal) -> bool:
    """Whether the paper's closed forms pay for the goal: variances, stds and bands."""
    if not isinstance(goal, ScalarGoal):
        return False
    return goal.quantity.by_variance and not isinstance(goal.quantity, Probability)
