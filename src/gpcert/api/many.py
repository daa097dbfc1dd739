"""`certify_many`, `certified_radius_many`, `prediction_range_many`: many points, as one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack, get_args

from gpcert.adapters import as_posterior
from gpcert.api.accuracy import Accuracy
from gpcert.api.batched import POINTS_PER_BATCH, certify_batched, ranges_batched
from gpcert.api.certify import certify_region
from gpcert.api.options import (
    DecisionTableOptions,
    QuantityLike,
    QuantityRequest,
    RadiusTableOptions,
    RangeTableOptions,
    SearchSettings,
    one_of,
    read_jobs,
    read_proof,
    verb,
)
from gpcert.api.questions import range_question, read_decision
from gpcert.api.radius import radii_batched, radius_at, with_proof
from gpcert.api.radius_question import Bracket, RadiusQuestion
from gpcert.api.ranges import RangeGoals, ranges_over
from gpcert.api.regions import RegionSpecification, is_list_of_regions
from gpcert.api.running import numbered_results, prepare, progress_line, read_flag, reason_of
from gpcert.certificates import CertificateTable, RadiusTable, RangeTable
from gpcert.errors import InputError
from gpcert.inputs.tabular import labels_of
from gpcert.model.committee import Model
from gpcert.regions import Region
from gpcert.search import stop_if_interrupted
from gpcert.utils.option_names import Sides


@verb
def certify_many(
    model: Any,
    X: Any,
    radius: Any = None,
    *,
    region: Region | Sequence[Region] | None = None,
    proof: bool = False,
    **options: Unpack[DecisionTableOptions],
) -> CertificateTable:
    """`certify` for every row of X; the budget (60 seconds by default) is that of one point.

    `radius` may also be (n, d), a row of radii per point (a data frame is matched by its columns),
    and `relative=0.05` gives every point radii of 5 % of its own values; `region` is one region for
    all points, or a list of one per point, which contain them. `n_jobs`
    processes (-1: one per core; None: what `joblib.parallel_config` says, a cluster of Dask's or
    Ray's included) are started where what is left to do pays for their start;
    `progress` shows how many points are done, by default only on a terminal. Ctrl-C ends everything
    at once and returns the points finished so far, in a table with `complete=False`; its `labels`
    say which rows of X they are, by the index of a data frame. With `proof=True`,
    `save("name.cert")` writes the proofs of all rows with a verdict into one file. Other parameters
    as in `certify`.

    The first boxes of all points, or balls of one radius, are bounded in shared batches; only
    points that one box does not decide have a search of their own. `seconds` of the others are
    their part of a batch's time.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> p = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0], [3.0]], weights=[1.0, -1.0])
    >>> table = gpcert.certify_many(p, [[0.0], [1.4], [3.0]], radius=0.5, threshold=0.0)
    >>> list(table.to_frame()["status"])
    ['ROBUST', 'NOT_ROBUST', 'ROBUST']
    """
    posterior = as_posterior(model)
    points = posterior.check_inputs(X)
    decision = read_decision(options, posterior)
    regions = RegionSpecification.read(options, radius, region).around_each(posterior, points, X)
    settings = SearchSettings.read(options, proof)
    pairs = zip(points, regions, strict=True)
    work = [(posterior, x, region, decision, settings) for x, region in pairs]
    execution = {"doing": "certifying: ", "at_once": certify_batched}
    certificates, complete = collect(posterior, certify_region, work, options, **execution)
    return CertificateTable(
        tuple(certificates.values()), complete, labels_of(X, tuple(certificates))
    )


@verb
def certified_radius_many(
    model: Any,
    X: Any,
    *,
    max_radius: float | None = None,
    rtol: float = 0.01,
    proof: bool = False,
    **options: Unpack[RadiusTableOptions],
) -> RadiusTable:
    """`certified_radius` for every row of X; the budget (60 seconds by default) is one point's.

    Of up to 12 features, single boxes around all points are bounded in shared batches first.
    `n_jobs`, `progress` and Ctrl-C as in `certify_many`; `proof` as in `certified_radius`: balls
    are searched once more, one by one.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> p = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0], [3.0]], weights=[1.0, -1.0])
    >>> table = gpcert.certified_radius_many(p, [[0.0], [1.0]], threshold=0.0)
    >>> [round(row.upper, 2) for row in table], table.complete
    ([1.5, 0.5], True)
    """
    posterior = as_posterior(model)
    points = posterior.check_inputs(X)
    question = RadiusQuestion.read(options, posterior, max_radius, rtol)
    work = [(posterior, x, question) for x in points]
    wanted = read_proof(proof)
    radii, complete = collect(posterior, radius_at, work, options, at_once=radii_batched)
    if wanted:
        proofs = (with_proof(posterior, points[k], question, radii[k]) for k in radii)
        radii = dict(zip(radii, proofs, strict=True))
    return RadiusTable(tuple(radii.values()), complete, labels_of(X, tuple(radii)))


@verb
def prediction_range_many(
    model: Any,
    X: Any,
    radius: Any = None,
    *,
    region: Region | Sequence[Region] | None = None,
    tol: float | None = None,
    rtol: float | None = None,
    quantity: QuantityLike | None = None,
    beta: float | None = None,
    best_f: float | None = None,
    maximize: bool | None = None,
    output: Any = None,
    sides: Sides = "both",
    all_outputs: bool = False,
    proof: bool = False,
    **options: Unpack[RangeTableOptions],
) -> RangeTable:
    """`prediction_range` around every row of X, or over every region of a list given as X.

    The region of a row x is the ball of `radius` or `relative`, `norm`, `features`, `domain` and
    `scale` around it, or `region=`, as in `certify_many`. Without `output` the table
    has one row per point, of the default output of `prediction_range`: the second of two classes,
    the first target. With `all_outputs`, and of several classes, which have no default, it has one
    row per point and output, searched together as in `prediction_ranges`. The budget (60 seconds by
    default) is that of one point; `n_jobs`, `progress`, `proof` and Ctrl-C as in `certify_many`.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> bump = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0]], weights=[1.0])
    >>> boxes = [gpcert.Box([0.0], [1.0]), gpcert.Box([1.0], [2.0])]
    >>> table = gpcert.prediction_range_many(bump, boxes, tol=1e-3)
    >>> [round(row.maximum.upper, 2) for row in table]
    [1.0, 0.61]
    """
    posterior = as_posterior(model)
    regions = _regions(posterior, X, RegionSpecification.read(options, radius, region))
    accuracy, settings = Accuracy.read(tol, rtol), SearchSettings.read(options, proof)
    request = QuantityRequest(quantity, beta, best_f, maximize)
    asked: tuple[Any, ...] = (request,)
    output_and_sides = (output, one_of("sides", sides, get_args(Sides)))
    question = range_question(posterior, request)
    named = output is not None or sides != "both"
    every = read_flag("all_outputs", all_outputs)
    if every and named:
        raise InputError("all_outputs: expected no output=, and sides='both'; drop one of them")
    if not every and (named or question.default is not None):
        question.index(output)  # which must be known
        asked += output_and_sides
    goals = RangeGoals.of(posterior, *asked)
    near = accuracy.of(goals)  # once: it looks at the model's means
    work = [(posterior, region, asked, near, settings) for region in regions]
    ranges, complete = collect(posterior, ranges_over, work, options, at_once=ranges_batched)
    rows = tuple(row for rows in ranges.values() for row in rows)
    numbers = tuple(number for number, rows in ranges.items() for _ in rows)
    return RangeTable(rows, complete, labels_of(X, numbers))


def collect(
    posterior: Model,
    function: Callable[..., Any],
    work: Sequence[tuple[Any, ...]],
    options: Mapping[str, Any],
    *,
    doing: str = "",
    at_once: Callable[[Model, Sequence[tuple[Any, ...]]], dict[int, Any]] | None = None,
) -> tuple[dict[int, Any], bool]:
    """The function's answers by number, in order, and whether all were reached.

    `words` are those of a verb, of which `n_jobs` and `progress` count. `at_once` answers what it
    can of many pieces of work together, which begin with the model; the function is asked about the
    others, with a `Bracket`, if that is all that is known, as one more argument.
    Ctrl-C, or an answer (or the first of several) that was interrupted, ends the run: what is
    finished is returned.
    """
    jobs, show_progress = read_jobs(options["n_jobs"]), read_flag("progress", options["progress"])
    done: dict[int, Any] = {}
    hints: dict[int, Any] = {}
    complete = True
    batch_starts = range(0, len(work), POINTS_PER_BATCH) if at_once and len(work) > 1 else range(0)
    chunks = [
        (posterior, [piece[1:] for piece in work[k : k + POINTS_PER_BATCH]]) for k in batch_starts
    ]
    try:
        prepare(posterior)
        with progress_line(show_progress) as line:
            suffix = f" of {len(work)} points done"
            for chunk, answers in numbered_results(at_once or function, chunks, jobs):
                for k, answer in answers.items():
                    into = hints if isinstance(answer, Bracket) else done
                    into[chunk * POINTS_PER_BATCH + k] = answer
                line.show(f"{doing}{len(done)}{suffix}")
            left = [k for k in range(len(work)) if k not in done]
            rest = [(*work[k], hints[k]) if k in hints else work[k] for k in left]
            for number, answer in numbered_results(function, rest, jobs):
                done[left[number]] = answer
                line.show(f"{doing}{len(done)}{suffix}")
                stop_if_interrupted(reason_of(answer))
    except KeyboardInterrupt:
        complete = False
    return dict(sorted(done.items())), complete


def _regions(model: Model, X: Any, where: RegionSpecification) -> list[Region]:
    if is_list_of_regions(X):
        name = "region" if where.region is not None else where.given_radius
        if name is not None:
            raise InputError(f"{name}: expected points as X, got regions; leave {name}= out")
        return [replace(where, region=region).given(model) for region in X]
    if isinstance(X, Region):
        raise InputError("X: expected points or a list of regions, got one region; pass [region]")
    return where.around_each(model, model.check_inputs(X), X)
