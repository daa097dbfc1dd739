"""`prediction_range`: the smallest and the largest prediction over a region; and what a range is
of, from a quantity and an output to goals and the model that is searched."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Unpack, get_args

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.accuracy import Accuracy
from gpcert.api.regions import Where, region_of
from gpcert.api.running import progress_line, ranges_text
from gpcert.api.words import Means, RangeWords, one_of, verb
from gpcert.arrays import finite_array
from gpcert.certificates import Interval, PredictionRange
from gpcert.choices import QuantityName, Sides
from gpcert.class_layout import class_layout
from gpcert.committee import Committee, Model
from gpcert.enclosures.goals import QuantityGoal
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood, ScalarLikelihood
from gpcert.quantities import Band, ClassSums, Mean, Probability, Quantity, Share, Std, Variance
from gpcert.quantities.committee import member_probabilities
from gpcert.regions import Region
from gpcert.rounding import difference_down, difference_up
from gpcert.search import GoalResult, SearchResult, StopReason, Watch, solve
from gpcert.search.tolerance import Tolerance
from gpcert.several import Outputs

QUANTITIES: tuple[QuantityName, ...] = get_args(QuantityName)

DEFAULT_BETA = 2.0
"""Standard deviations of a band: about 95 % of a Gaussian lie within two."""


@verb
def prediction_range(
    model: Any,
    x: Any = None,
    radius: Any = None,
    *,
    region: Region | None = None,
    tol: float | None = None,
    rtol: float | None = None,
    quantity: QuantityName | None = None,
    beta: float | None = None,
    output: Any = None,
    sides: Sides = "both",
    **words: Unpack[RangeWords],
) -> PredictionRange:
    """Proved bounds on the smallest and the largest prediction over a region.

    Parameters
    ----------
    model : a `Posterior`, or a fitted model that an adapter converts (scikit-learn's GPs, also in
        a `Pipeline` with scalers).
    x : a region, `Box` or `Ball`, in the units of the model's inputs (also as `region=`); or a
        point, and the region is the ball around it of the words below.
    radius, norm, features, domain, scale : the ball around x, as in `certify`.
    tol, rtol : the search goes on until each side is known to within `tol` (absolute), or to within
        `rtol` times what is proved of its own size, whichever is more; of the two the one that is
        not given is 0. By default a probability is known to within 0.01, a mean and a band to
        within 0.01 standard deviations of the model's means at its own points, and a variance and
        a std to within 1 % of themselves, or to within 0.0001 of those deviations (their square).
    quantity : "probability" of a class, "mean", "variance" or "std" (standard deviation) of the
        latent function, or "band"; by default what the model's decision is made from. The variance
        includes the model's noise term, if it has one (`Posterior.noise`: of scikit-learn's models
        that of a WhiteKernel), and so do std and band: the range's `meaning` says so. A "band"
        holds `mean +- beta std` at every point of the region: its minimum is that of
        `mean - beta std`, its maximum that of `mean + beta std`.
    beta : how many standard deviations a band reaches; 2 by default. Of a band only.
    output : of a probability the label of the class; of two classes the second is meant by default,
        and `output` of the range is its label. In a regression the number of the target, 0 by
        default. Mean and variance of two classes are those of one latent function: leave it out.
    sides : search for "both", or only for the "minimum" or the "maximum"; the side left out keeps
        valid but useless bounds.
    budget : `Budget(seconds, boxes, memory)`, or a number of seconds; 60 seconds by default. When
        it ends the bounds so far are returned; `Budget` says what may overrun it.
    backend : "numpy", "torch", "torch:cuda" or, for long work, "torch:cuda:compiled".
    random_state : seed of the local search's starting points, and of the paper's random splits: a
        whole number, None, or a generator of NumPy's, from which a seed is drawn.
    method : "taylor" (default), "paper" (Algorithm 1 of the paper with its own bounds and random
        splits: a reference, much slower) or "both" (the better bound of each box).
    variance_bound : how the paper's variance programs are bounded: "solver" (default of "paper") or
        "analytic", in closed form (default of "both").
    progress : show the bounds so far while the call works; by default only on a terminal.

    Ctrl-C ends the search and returns the bounds so far, with `StopReason.INTERRUPTED`; a second
    one is raised.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> bump = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0]], weights=[1.0])
    >>> rng = gpcert.prediction_range(bump, gpcert.Box([-1.0], [2.0]), tol=1e-3, quantity="mean")
    >>> rng.minimum.lower <= float(np.exp(-2.0)) <= rng.minimum.upper
    True
    >>> rng.maximum.lower <= 1.0 <= rng.maximum.upper, rng.converged
    (True, True)
    >>> box = gpcert.Box([1.0], [2.0])  # far from all data: mean exp(-x^2 / 2), variance 1
    >>> band = gpcert.prediction_range(bump, box, tol=1e-3, quantity="band", beta=3)
    >>> band.maximum.lower <= float(np.exp(-0.5)) + 3.0 <= band.maximum.upper
    True
    """
    start, posterior = time.perf_counter(), as_posterior(model)
    where = Where.read(words, radius, region)
    place = region_of(posterior, x, where, "prediction_range_many")
    asked = (quantity, beta, output, one_of("sides", sides, get_args(Sides)))
    how = (Accuracy.read(tol, rtol), Means.read(words), start, words.get("progress"))
    return ranges_over(posterior, place, asked, *how)[0]


@verb
def prediction_ranges(
    model: Any,
    x: Any = None,
    radius: Any = None,
    *,
    region: Region | None = None,
    tol: float | None = None,
    rtol: float | None = None,
    quantity: QuantityName | None = None,
    beta: float | None = None,
    **words: Unpack[RangeWords],
) -> tuple[PredictionRange, ...]:
    """`prediction_range` for every output or class of the model, in one search over one tree of
    boxes and with one budget, 60 seconds by default. Arguments as there."""
    start, posterior = time.perf_counter(), as_posterior(model)
    where = Where.read(words, radius, region)
    place = region_of(posterior, x, where, "prediction_range_many(..., all_outputs=True)")
    how = (Accuracy.read(tol, rtol), Means.read(words), start, words.get("progress"))
    return ranges_over(posterior, place, (quantity, beta), *how)


def ranges_over(
    model: Model,
    region: Region,
    asked: tuple[Any, ...],
    accuracy: Accuracy | Tolerance,
    means: Means,
    start: float | None = None,
    progress: Any = False,
) -> tuple[PredictionRange, ...]:
    """The ranges that are `asked` (see `RangeGoals.of`) over a region, as accurate as that."""
    goals = RangeGoals.of(model, *asked)
    tol = accuracy.of(goals) if isinstance(accuracy, Accuracy) else accuracy
    with progress_line(progress) as line:
        watch = Watch(start, lambda state: line.show(ranges_text(state)))
        stop: dict[str, Any] = {"tol": tol, "watch": watch}
        problem = means.problem(goals.question.model, region, goals.quantities, **stop)
        return goals.records(solve(problem), region, means)


@dataclass(frozen=True, eq=False)
class RangeGoals:
    """The goals of one search, and for every range that is made of it the number of its output and
    the places of its goals by sign."""

    question: RangeQuestion
    quantities: list[Quantity]
    rows: list[tuple[int, dict[int, int]]]

    @staticmethod
    def of(
        model: Model,
        quantity: QuantityName | None,
        beta: float | None,
        output: Any = None,
        sides: Sides | None = None,
    ) -> RangeGoals:
        """Of one output, on one side or both; without `sides` of all outputs on both."""
        question = range_question(model, quantity, beta)
        if sides is None:
            last = question.searched - 1
            asked = [question.asked(c, sign) for c in range(last + 1) for sign in (1, -1)]
            pairs = [min(c, last) for c in range(len(question.labels))]
            rows = [(c, {1: 2 * k, -1: 2 * k + 1}) for c, k in enumerate(pairs)]
            return RangeGoals(question, asked, rows)
        signs = {"both": (1, -1), "minimum": (1,), "maximum": (-1,)}[sides]
        index = question.index(output)
        if question.two and index == 0:
            signs = tuple(-sign for sign in signs)  # least where the second class has most
        asked = [question.asked(index, sign) for sign in signs]
        return RangeGoals(question, asked, [(index, {sign: k for k, sign in enumerate(signs)})])

    def nominal(self, regions: Sequence[Region]) -> list[list[float | None]]:
        """For every range, region by region: the quantity at the region's centre, in plain floating
        point; a band has no single one."""
        question = self.question
        if question.beta is not None:
            return [[None] * len(regions) for _ in self.rows]
        X, found = np.stack([region.center for region in regions]), []
        for index, _ in self.rows:
            values = QuantityGoal(question.asked(index, 1)).plain_values(question.model, X)
            if question.two and index == 0:
                values = [None if value is None else 1.0 - value for value in values]
            found.append(values)
        return found

    def records(
        self,
        result: SearchResult,
        region: Region,
        means: Means,
        nominal: Sequence[float | None] | None = None,
    ) -> tuple[PredictionRange, ...]:
        """The ranges over a region, from what was found of the goals of sign 1 and -1."""
        if nominal is None:
            nominal = [values[0] for values in self.nominal([region])]
        question, place, found = self.question, region.describe(), []
        for (index, goals), value in zip(self.rows, nominal, strict=True):
            sides = {sign: result.goals[k] for sign, k in goals.items()}
            if question.two and index == 0:
                sides = _complement(sides)
            for sign in (1, -1):
                if sign not in sides:  # the maximum is at least the minimum (of a band too)
                    sides[sign] = GoalResult(-np.inf, -sides[-sign].lower, None)
            low, high = sides[1], sides[-1]
            record = PredictionRange(
                minimum=Interval(low.lower, low.upper),
                maximum=Interval(0.0 - high.upper, 0.0 - high.lower),  # never -0.0
                argmin=low.point,
                argmax=high.point,
                converged=result.reason is StopReason.CONVERGED,
                quantity=question.quantity,
                output=question.labels[index],
                region=place,
                meaning=question.meanings[index],
                beta=question.beta,
                nominal=value,
                reason=result.reason,
                boxes=result.boxes,
                seconds=result.seconds,
                method=means.method.name,
                model=question.fingerprint,
            )
            found.append(record)
        return tuple(found)


def _complement(found: dict[int, GoalResult]) -> dict[int, GoalResult]:
    """Goals of the first of two classes from those of the second, whose probability is F.

    Statement: `sign (1 - F) = sign + (-sign F)`, so that the goal of either sign is that of the
    other one plus a sign; one rounding outwards.
    """
    ends = {}
    for sign, side in ((-sign, side) for sign, side in found.items()):
        by = Fraction(-sign)
        lower, upper = difference_down(side.lower, by), difference_up(side.upper, by)
        ends[sign] = GoalResult(lower, upper, side.point)
    return ends


@dataclass(frozen=True, eq=False)
class RangeQuestion:
    """`asked(index, sign)` is sign times the quantity of an output; `labels` name the outputs:
    labels of classes, numbers of targets, or None for the one latent function of two classes.

    `default` is the output that is meant where none is named, None if one must be. `two` classes
    have one probability: `asked` is that of the second, whatever the index, and the first has
    1 less it. `meanings` say in words what is bounded, an output each. `fingerprint` is that of
    the user's model, which the searched one may differ from. Those of a band are not each
    other's negatives: `mean - beta std` for sign 1, and minus `mean + beta std`.
    """

    model: Model
    quantity: QuantityName
    labels: tuple[Any, ...]
    asked: Callable[[int, int], Quantity]
    meanings: tuple[str, ...]
    default: int | None = 0
    two: bool = False
    fingerprint: str = ""
    beta: float | None = None

    @property
    def searched(self) -> int:
        """How many outputs have a quantity of their own: of two classes one."""
        return 1 if self.two else len(self.labels)

    def index(self, output: Any) -> int:
        """Which output a label means; see `default`."""
        if output is None and self.default is not None:
            return self.default
        names = [label for label in self.labels if label is not None]
        if not names:
            raise InputError(
                f"output: expected none, got {output!r}: a classifier of two classes has one "
                f"latent function, and this is its {self.quantity}"
            )
        if output is None:
            raise InputError(
                f"output: expected the label of a class, one of {names}; "
                "prediction_ranges gives all of them"
            )
        for index, label in enumerate(names):
            if same_label(label, output):
                return index
        raise InputError(f"output: expected one of {names}, got {output!r}")


def same_label(label: Any, output: Any) -> bool:
    """Whether a user's output is a label: equal, and both or neither are truth values (True == 1).

    >>> same_label(1, np.int64(1)), same_label(1, True), same_label(1, np.array([1, 2]))
    (True, False, False)
    """
    if not isinstance(output, Hashable) or getattr(output, "ndim", 0):
        return False  # several values, not one
    truths = {isinstance(each, bool | np.bool_) for each in (label, output)}
    return len(truths) == 1 and bool(label == output)


def read_beta(beta: Any, quantity: str | None) -> float | None:
    """How many standard deviations a band reaches; None for any other quantity.

    >>> read_beta(None, "band"), read_beta(3, "band"), read_beta(None, "mean")
    (2.0, 3.0, None)
    """
    if quantity != "band":
        if beta is not None:
            raise InputError(f"beta: belongs to quantity='band', got quantity={quantity!r}")
        return None
    value = DEFAULT_BETA if beta is None else float(finite_array("beta", beta, ndim=0))
    if value < 0:
        raise InputError(f"beta: expected a number of standard deviations >= 0, got {beta!r}")
    return value


def range_question(
    model: Model, quantity: QuantityName | None, beta: float | None = None
) -> RangeQuestion:
    """The question that the model's kind and the quantity ask; `beta` belongs to a band."""
    asked = one_of("quantity", quantity, (None, *QUANTITIES))
    reach = read_beta(beta, asked)
    return replace(_question(model, asked, reach), fingerprint=model.fingerprint, beta=reach)


def _question(model: Model, quantity: QuantityName | None, beta: float | None) -> RangeQuestion:
    if isinstance(model, Committee):
        return _committee(model, quantity)
    likelihood = model.likelihood
    classifies = likelihood.classifies
    probable = classifies and likelihood.has_variance
    name: QuantityName = quantity or ("probability" if probable else "mean")
    if name != "mean":
        model.check_has_variance(f"quantity {name!r}")
    if name != "probability":
        return _latent(model, name, beta)
    if isinstance(likelihood, ClassLikelihood):
        layout, searched = class_layout(model)

        def asked(index: int, sign: int) -> ClassSums:
            weights = tuple(float(sign) if c == index else 0.0 for c in range(layout.classes))
            return ClassSums(layout, likelihood, (weights,))

        return _probabilities(model, searched, asked)
    if not classifies:
        raise InputError("quantity: a regression model has no probability; use 'mean'")
    assert isinstance(likelihood, ScalarLikelihood)
    found = _probabilities(model, model, lambda _, sign: Probability(likelihood, 0, sign))
    return replace(found, default=1, two=True)


def _probabilities(
    model: Model, searched: Model, asked: Callable[[int, int], Quantity]
) -> RangeQuestion:
    meanings = tuple(f"probability of class {label}" for label in model.labels)
    return RangeQuestion(searched, "probability", model.labels, asked, meanings, None)


def _latent(model: Outputs, name: QuantityName, beta: float | None) -> RangeQuestion:
    """Of every latent function; variance, std and band include the model's noise term."""
    likelihood = model.likelihood
    several = isinstance(likelihood, ClassLikelihood)
    labels: tuple[Any, ...]
    labels, owner = tuple(range(model.outputs)), "of target {}"
    if several and likelihood.mixes:
        owner = "number {} of those that the classes mix"
    elif several:
        labels, owner = model.labels, "of class {}"
    elif likelihood.classifies:
        labels, owner = (None,), "that decides between the classes"
    each = zip(labels, model.noise.tolist(), strict=True)
    meanings = tuple(
        _latent_meaning(name, owner.format(label), noise, beta) for label, noise in each
    )
    kinds: dict[str, Any] = {"mean": Mean, "variance": Variance, "std": Std}
    # a band of no deviations is the mean, and needs no variance
    kinds["band"] = partial(Band, beta=beta) if beta else Mean
    return RangeQuestion(model, name, labels, kinds[name], meanings, None if several else 0)


def _latent_meaning(name: QuantityName, owner: str, noise: float, beta: float | None) -> str:
    """In words, for people who did not ask: which function, and whether noise is in it."""
    whose = f"of the latent function {owner}"
    if beta is not None:
        text = f"mean {whose}, less (minimum) or plus (maximum) {beta:g} standard deviations"
        return text if noise == 0 else f"{text}, the model's noise variance {noise:.6g} in them"
    text = f"{'standard deviation' if name == 'std' else name} {whose}"
    if noise == 0 or name == "mean":
        return text
    noisy = f"the model's noise variance {noise:.6g}"
    return f"{text}, plus {noisy}" if name == "variance" else f"{text}, {noisy} in it"


def _committee(committee: Committee, quantity: QuantityName | None) -> RangeQuestion:
    if quantity not in {None, "probability"}:
        raise InputError(
            f"quantity: a one-vs-rest or one-vs-one classifier has several latent functions; ask "
            f"for the {quantity} of one of as_posterior(model).members"
            + (" (output= numbers its pairs of classes)" if committee.shared else "")
        )
    if committee.shared:
        committee.members[0].check_has_variance("quantity 'probability'")
    if committee.scheme == "one_vs_one":
        raise InputError(
            "quantity: a one-vs-one classifier votes and has no class probabilities (nor has "
            "scikit-learn's predict_proba); use certify, or multi_class='one_vs_rest'"
        )
    return _probabilities(committee, committee, partial(Share, member_probabilities(committee)))
