"""What is compiled on a GPU is the same lines: traced here, without a GPU or a compiler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gpcert
from gpcert.enclosures import Evaluation, LocalPosterior
from gpcert.enclosures.goals import QuantityGoal
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.numerics import arrays as fusion
from gpcert.numerics.arrays import Backend, backend_from_name, to_numpy
from gpcert.quantities import Mean, OutputQuantity, Probability
from gpcert.regions import Cells
from gpcert.testing.effort import variants
from tests import shapes

CPU = Backend("torch", "cpu", compiled=True)
TORCH = Backend("torch", "cpu")


MOST = frozenset({"least_on_boxes", "paper_lower_bound", "exponential_remainder"})
"""Where most of the work is; what they call is traced with them."""


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Functions are traced whole and then run operation by operation; their names.

    The parameter, if there is one, says which: others run as they are.
    """
    chosen = getattr(request, "param", None)
    torch = pytest.importorskip("torch")
    names: list[str] = []
    compiler = torch.compile

    def trace(function, options):
        assert options["emulate_precision_casts"], "products and sums may be contracted"
        names.append(function.__name__)
        if chosen is not None and function.__name__ not in chosen:
            return function
        return compiler(function, fullgraph=True, backend="eager")

    monkeypatch.setattr(torch, "compile", trace)
    monkeypatch.setattr(shapes, "compiling", torch.compiler.is_compiling)
    fusion._compiled.cache_clear()
    yield names
    fusion._compiled.cache_clear()


MEAN = [Mean(0, 1)]
PROBABILITY = [Probability(Probit(), 0, sign) for sign in (1, -1)]


def _bounds(
    backend: Backend, quantities: Sequence[OutputQuantity] = PROBABILITY
) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    points = rng.uniform(size=(20, 3))
    kernel = SquaredExponential([0.5, 0.7, 0.9])
    scaled = points / [0.5, 0.7, 0.9]
    matrix = np.exp(-0.5 * np.sum((scaled[:, None] - scaled) ** 2, axis=2)) + 0.1 * np.eye(20)
    factor = np.linalg.inv(np.linalg.cholesky(matrix))
    weights = factor.T @ factor @ np.sin(7 * points[:, 0])
    posterior = gpcert.Posterior(kernel, points, weights, factor, likelihood=Probit())
    region = gpcert.Box(np.zeros(3), np.ones(3))
    local = LocalPosterior.build(posterior, region, backend, variance=quantities is not MEAN)
    low = rng.uniform(0.0, 0.6, (8, 3))
    high = low + np.array([0.0, 0.1, 0.4])
    cells = Cells(region, backend.asarray(low), backend.asarray(high))
    evaluation = Evaluation(local, cells)
    goals = [QuantityGoal(quantity) for quantity in quantities]
    with fusion.running_on(backend):
        return [to_numpy(goal.bound(evaluation, None).lower) for goal in goals]


@variants(
    ("traced", "quantities"), [(MOST, MEAN), (None, PROBABILITY)], ids=["most", "all"],
    indirect=["traced"],
)  # fmt: skip
def test_what_is_fused_has_no_host_values_inside_and_the_same_results(
    traced: list[str], quantities: Sequence[OutputQuantity]
) -> None:
    fused = _bounds(CPU, quantities)
    assert set(traced) >= MOST
    for compiled, plain in zip(fused, _bounds(TORCH, quantities), strict=True):
        np.testing.assert_allclose(compiled, plain, rtol=1e-13)  # sums in another order


def test_nothing_is_compiled_for_other_backends(traced: list[str]) -> None:
    _bounds(Backend())
    _bounds(TORCH)
    assert traced == []


def test_compiled_is_for_gpus_only() -> None:
    with pytest.raises(InputError, match="'torch:cuda:compiled', got 'torch:cpu:compiled'"):
        backend_from_name("torch:cpu:compiled")


def test_an_error_inside_leaves_no_backend_behind() -> None:
    with pytest.raises(ZeroDivisionError), fusion.running_on(CPU):
        raise ZeroDivisionError
    assert fusion._active.backend == Backend()


def test_another_thread_has_its_own_backend() -> None:
    with fusion.running_on(CPU), ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: fusion._active.backend).result() == Backend()
        assert fusion._active.backend is CPU
