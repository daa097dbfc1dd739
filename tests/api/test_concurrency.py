"""Calls at the same time on one model, from threads and from processes, answer as one after the
other; and no call changes what belongs to the whole process."""

import os
import signal
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import gpcert
from gpcert.kernels import Matern, SquaredExponential
from gpcert.models import GPClassifier
from gpcert.utils.optional_imports import optional

DIM = 3
BOX = gpcert.Box([0.0] * DIM, [1.0] * DIM)


def model(kernel=None):
    """A posterior of which nothing is computed yet."""
    rng = np.random.default_rng(1)
    points, weights = rng.uniform(size=(30, DIM)), rng.normal(size=(2, 30))
    factor = 0.2 * rng.normal(size=(5, 30))
    return gpcert.Posterior(kernel or SquaredExponential(0.4), points, weights, factor)


def asked(posterior, number):
    """One of several questions, and its answer as numbers."""
    x = np.full(DIM, 0.1 + 0.1 * (number % 5))
    if number % 3 == 0:
        found = gpcert.prediction_range(
            posterior, BOX, tol=0.02, quantity="mean", output=number % 2
        )
        return found.minimum, found.maximum, found.boxes
    if number % 3 == 1:
        found = gpcert.prediction_range(posterior, x, 0.1, tol=0.02, quantity="std")
        return found.minimum, found.maximum, found.boxes
    found = gpcert.certify(posterior, x, 0.1, threshold=0.2, quantity="ucb", output=1)
    return found.status.name, found.margin, found.boxes


def asked_here(number):
    """In a process of its own."""
    return asked(model(), number)


def test_threads_on_one_model():
    serial = [asked(model(), number) for number in range(6)]
    shared = model()  # its cached parts are computed by whoever comes first
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda number: asked(shared, number), range(6)))
    assert together == serial


def test_threads_on_several_models_and_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    fitted = GPClassifier(max_epochs=0).fit(X, X[:, 0] > 0)
    posteriors = [model(), model(Matern(0.5, 2.5)), fitted]

    def one(k):
        if k % 3 == 2:
            table = gpcert.certify_many(fitted, X[:6], 0.1)
            return [(c.status.name, c.margin) for c in table]
        return asked(posteriors[k % 3], k)

    serial = [one(k) for k in range(9)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(9))) == serial


@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_processes(start):
    if start == "fork" and os.name != "posix":
        pytest.skip("needs POSIX processes")
    serial = [asked_here(number) for number in range(3)]
    with ProcessPoolExecutor(2, mp_context=get_context(start)) as pool:
        assert list(pool.map(asked_here, range(3))) == serial


def settings():
    """What belongs to the whole process, of Python and NumPy, and of torch where it is there."""
    found = {
        "errors": np.geterr(),
        "print": np.get_printoptions(),
        "random": np.random.get_state()[1].tolist(),  # noqa: NPY002
        "buffer": np.getbufsize(),
        "warnings": list(warnings.filters),
        "signals": [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)],
        "recursion": sys.getrecursionlimit(),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        found |= {
            "threads": torch.get_num_threads(),
            "dtype": torch.get_default_dtype(),
            "device": torch.get_default_device(),
            "gradients": torch.is_grad_enabled(),
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "precision": torch.get_float32_matmul_precision(),
            "torch random": torch.random.get_rng_state().tolist(),
        }
    return found


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_global_settings_stay(backend, tmp_path):
    if backend == "torch":
        pytest.importorskip("torch")
        optional("torch", "a test")
    before = settings()
    posterior = model()
    for number in range(3):
        asked(posterior, number)
    how = {"backend": backend, "tol": 0.02}
    gpcert.prediction_range(posterior, BOX, quantity="mean", **how)
    gpcert.maximize(posterior, [(0.0, 1.0)] * DIM, tol=0.05, checkpoint=tmp_path / "x.ckpt")
    with pytest.raises(gpcert.InputError):
        gpcert.certify(posterior, [np.nan] * DIM, 0.1, threshold=0.0)
    assert settings() == before


def test_settings_stay_while_threads_convert_models():
    pytest.importorskip("sklearn")
    from sklearn.gaussian_process import GaussianProcessRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))

    def convert(k):
        process = GaussianProcessRegressor(alpha=0.1, optimizer=None).fit(X + k, X[:, 0])
        return gpcert.as_posterior(process).fingerprint

    serial, before = [convert(k) for k in range(24)], settings()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(convert, range(24))) == serial
    assert settings() == before


def test_settings_of_the_caller_change_no_bound():
    plain = asked(model(), 0)
    with np.errstate(all="raise"):
        strict = asked(model(), 0)
    assert strict == plain
    torch = pytest.importorskip("torch")
    kind = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        how = {"tol": 0.02, "quantity": "mean", "backend": "torch"}
        first = gpcert.prediction_range(model(), BOX, **how)
        torch.set_default_dtype(torch.float64)
        second = gpcert.prediction_range(model(), BOX, **how)
    finally:
        torch.set_default_dtype(kind)
    assert (first.minimum, first.maximum) == (second.minimum, second.maximum)
