"""Which engine bounds a quantity: Taylor enclosures, the paper's intervals, or both.

All that decides it is here; `method=` and `variance_bound=` are what a user may say about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpcert.enclosures.goals import Goal, QuantityGoal
from gpcert.enclosures.local_posterior import by_residuals
from gpcert.errors import InputError
from gpcert.model.committee import Model
from gpcert.model.unit_form import UnitForm
from gpcert.paper.lines import check_lines
from gpcert.paper.method import PaperMethod
from gpcert.quantities import ClassSums, OutputQuantity, Quantity, Response
from gpcert.utils.option_names import MethodName, VarianceBound

MAX_FEATURES = 3
"""Up to so many features, and from two on, the paper's closed forms pay for variances of kernels
without a derivative: in one, many splits cost less, and in more they are too loose."""


@dataclass(frozen=True)
class Method:
    """`name` is "taylor" (default), "paper" or "both".

    `variance_bound` says how the paper's variance programs are bounded, by "solver" (the paper's;
    default of "paper") or "analytic", in closed form (default of "both", where a solver's seconds
    per box would seldom pay).

    >>> Method("paper").variance_bound, Method("both").variance_bound
    ('solver', 'analytic')
    """

    name: MethodName = "taylor"
    variance_bound: VarianceBound | None = None

    def __post_init__(self) -> None:
        name, bound = self.name, self.variance_bound
        if not isinstance(name, str) or name not in {"taylor", "paper", "both"}:
            raise InputError(f"method: expected 'taylor', 'paper' or 'both', got {name!r}")
        if not isinstance(bound, str | None) or bound not in {None, "solver", "analytic"}:
            raise InputError(f"variance_bound: expected 'solver' or 'analytic', got {bound!r}")
        if name == "taylor" and bound is not None:
            raise InputError(
                f"variance_bound: {bound!r} is a choice of method='paper' or 'both'; "
                "with method='taylor' leave it out"
            )
        default = {"taylor": None, "paper": "solver", "both": "analytic"}[name]
        object.__setattr__(self, "variance_bound", bound or default)

    def goals(
        self, quantities: Sequence[Quantity], random_state: int | None, model: Model
    ) -> list[Goal]:
        """The goals of one search, bounded by this method; they share the paper's intervals.

        "taylor" takes the paper's closed forms as well where they pay: see `_by_rough_variance` and
        `closed_forms_pay`.
        """
        mapped = any(member.features is not None for member in model.members)
        if self.variance_bound is None:
            rough = [not mapped and _by_rough_variance(each, model) for each in quantities]
            closed = PaperMethod("analytic", random_state) if any(rough) else None
            papers = [closed if is_rough else None for is_rough in rough]
            pairs = zip(quantities, papers, strict=True)
            return [QuantityGoal(*pair, paper_pays=closed_forms_pay) for pair in pairs]
        if len(model.members) > 1 and any(isinstance(each, ClassSums) for each in quantities):
            raise InputError(
                "method: the paper's method bounds class probabilities of outputs that share a "
                "kernel; for outputs with kernels of their own use method='taylor'"
            )
        if mapped:
            raise InputError(
                f"method: {self.name!r} is not known for a model behind linear features (PCA, "
                "one-hot columns); "
                "leave it out, or ask about regions of the features: fit on them, without a "
                "pipeline"
            )
        for member in model.members:
            missing = check_lines(member.kernel, member.points)
            if missing is not None:
                raise InputError(f"method: {missing}")
        paper = PaperMethod(self.variance_bound, random_state)
        return [QuantityGoal(each, paper, self.name == "both") for each in quantities]


def _by_rough_variance(quantity: Quantity, model: Model) -> bool:
    """Whether the paper's closed forms may pay: for variances, and so stds and bands, of a kernel
    without a derivative, whose Taylor bounds are of order 0 only (measured in
    benchmarks/results/methods.md)."""
    if not isinstance(quantity, OutputQuantity) or isinstance(quantity, Response):
        return False
    member, _ = model.output(quantity.output)
    rough = quantity.by_variance and member.kernel.rough
    return rough and check_lines(member.kernel, member.points) is None


def closed_forms_pay(f: int, units: Sequence[UnitForm]) -> bool:
    """Whether they pay in f features: their variance is that of the stored factor, so they do not
    where that is too far from the training noise."""
    return 2 <= f <= MAX_FEATURES and not any(map(by_residuals, units))
