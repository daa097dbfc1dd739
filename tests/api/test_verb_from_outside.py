"""A verb of another package is a function and a record, as CONTRIBUTING says."""

import time
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import pytest

import gpcert
from gpcert.api.options import SearchOptions, SearchSettings, read_tolerance, verb
from gpcert.api.running import progress_line, ranges_text
from gpcert.certificates.record import Searched
from gpcert.certificates.text import Interval
from gpcert.errors import InputError, UnknownArgumentError
from gpcert.kernels import SquaredExponential
from gpcert.numerics.rounding import add_down, add_up
from gpcert.quantities import Mean
from gpcert.search import Progress, StopReason, solve
from gpcert.search.problem import Tolerance


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Variation(Searched, kind="variation", told="width reason"):
    """Bounds of the largest difference between two values of a mean over a region."""

    width: Interval
    region: dict[str, Any]


@verb
def variation(
    model: Any, region: Any, *, tol: float = 0.01, **options: Unpack[SearchOptions]
) -> Variation:
    """By how much the mean varies over a region."""
    start, posterior = time.perf_counter(), gpcert.as_posterior(model)
    settings = SearchSettings.read(options)
    signs = [Mean(0, 1), Mean(0, -1)]
    with progress_line(options.get("progress")) as line:
        progress = Progress(start, lambda state: line.show(ranges_text(state)))
        when = {"tol": Tolerance(0.5 * read_tolerance(tol)), "progress": progress}
        result = solve(settings.problem(posterior, region, signs, **when))
    least, greatest = result.goals  # of the mean and of its negative
    ends = add_down(-greatest.upper, -least.upper), add_up(-greatest.lower, -least.lower)
    return Variation(
        width=Interval(max(float(ends[0]), 0.0), float(ends[1])),
        region=region.describe(),
        reason=result.reason,
        boxes=result.boxes,
        seconds=result.seconds,
        method=settings.method.name,
        model=posterior.fingerprint,
    )


RNG = np.random.default_rng(0)
MODEL = gpcert.Posterior(
    SquaredExponential(0.7), points=RNG.normal(size=(20, 2)), weights=RNG.normal(size=20)
)
SQUARE = gpcert.regions.Box([-0.5, -0.5], [0.5, 0.5])


def test_its_bounds_hold_and_converge():
    found = variation(MODEL, SQUARE, tol=0.01)
    means = MODEL.predict(SQUARE.sample(20_000, 0))[0][:, 0]
    assert np.ptp(means) <= found.width.upper <= np.ptp(means) + 0.05
    assert found.width.upper - found.width.lower <= 0.01
    assert found.reason is StopReason.CONVERGED


def test_a_budget_leaves_valid_bounds():
    found, sharp = variation(MODEL, SQUARE, budget=gpcert.Budget(boxes=1)), variation(MODEL, SQUARE)
    assert found.reason is StopReason.BOXES
    assert found.width.lower <= sharp.width.upper
    assert sharp.width.lower <= found.width.upper


def test_options_of_all_verbs_are_its_own():
    both = variation(MODEL, SQUARE, method="paper", tol=0.5, random_state=1, progress=False)
    assert both.method == "paper"
    with pytest.raises(InputError, match="tol: expected a number >= 0"):
        variation(MODEL, SQUARE, tol=-1.0)
    with pytest.raises(UnknownArgumentError, match="variation has no radius="):
        variation(MODEL, SQUARE, radius=1.0)


def test_its_record_is_saved_loaded_and_told(tmp_path):
    found = variation(MODEL, SQUARE)
    found.save(tmp_path / "variation.json")
    again = gpcert.load(tmp_path / "variation.json")
    assert again.to_dict() == found.to_dict()
    assert "width" in str(again)
    assert repr(again).startswith("Variation(width=")


def test_an_interrupted_one_is_resumed(tmp_path):
    path = tmp_path / "variation.ckpt"
    some = variation(MODEL, SQUARE, tol=1e-4, budget=gpcert.Budget(boxes=4), checkpoint=path)
    assert some.reason is StopReason.BOXES
    whole = gpcert.resume(path, budget=60)
    assert whole.reason is StopReason.CONVERGED
    assert whole.width.upper <= some.width.upper
