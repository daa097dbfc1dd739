"""Files of several classes and of committees: what is written is read again, the rest refused."""

import json

import numpy as np
import pytest

from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import MultinomialProbit, Probit, Softmax
from gpcert.model.committee import Committee, load_model
from gpcert.model.posterior import Posterior
from gpcert.utils.archive import write_arrays
from tests.model.coupled_cases import coupled_posterior


@pytest.mark.parametrize("likelihood", [Softmax(), MultinomialProbit(0.3)])
@pytest.mark.parametrize("coupled", [True, False])
@pytest.mark.parametrize(
    "classes",
    [("a", "b", "ä"), (3, 5, 8), tuple(np.array([3, 5, 8])), None, (True, False, "maybe")],
)
def test_saving_several_classes(tmp_path, likelihood, coupled, classes):
    posterior = coupled_posterior(4, 3, likelihood=likelihood, classes=classes)
    if not coupled:
        posterior = Posterior(
            posterior.kernel,
            posterior.points,
            posterior.weights,
            likelihood=likelihood,
            classes=classes,
        )
    path = tmp_path / "model.npz"
    posterior.save(path)
    for loaded in (Posterior.load(path), load_model(path)):
        assert isinstance(loaded, Posterior)
        assert loaded.labels == posterior.labels
        assert (loaded.coupled, loaded.likelihood) == (coupled, likelihood)
        X = posterior.points + 0.1
        np.testing.assert_array_equal(loaded.prediction(X), posterior.prediction(X))
        np.testing.assert_array_equal(loaded.covariances(X), posterior.covariances(X))


def binary(center):
    return Posterior(SquaredExponential(1.0), [[center]], [2.0], [[0.5]], likelihood=Probit())


@pytest.mark.parametrize("scheme", ["one_vs_rest", "one_vs_one"])
@pytest.mark.parametrize("classes", [("a", "b", "c"), (3, 5, 8), tuple(np.array([3, 5, 8]))])
def test_saving_a_committee(tmp_path, scheme, classes):
    committee = Committee(tuple(binary(c) for c in (0.0, 1.0, 3.0)), classes, scheme)
    path = tmp_path / "committee.npz"
    committee.save(path)
    X = np.linspace(-1.0, 4.0, 7)[:, None]
    for loaded in (Committee.load(path), load_model(path)):
        assert isinstance(loaded, Committee)
        assert (loaded.classes, loaded.scheme) == (classes, scheme)
        np.testing.assert_array_equal(loaded.scores(X), committee.scores(X))
    with pytest.raises(InputError, match="format"):
        Posterior.load(path)


def test_a_posterior_is_no_committee(tmp_path):
    binary(0.0).save(tmp_path / "model.npz")
    with pytest.raises(InputError, match="expected format 'gpcert-committee-1'"):
        Committee.load(tmp_path / "model.npz")


@pytest.mark.parametrize("header", [{}, {"format": "other"}, [1, 2], {"format": None}])
def test_other_formats_are_refused(tmp_path, header):
    path = tmp_path / "model.npz"
    write_arrays(path, header, {"points": np.zeros(3)})
    with pytest.raises(InputError, match="expected format"):
        load_model(path)


def parts_of(path):
    with np.load(path) as file:
        arrays = dict(file)
    return json.loads(str(arrays.pop("header"))), arrays


@pytest.mark.parametrize("drop", ["members", "classes", "scheme", "0.points", "1.weights"])
def test_committees_with_parts_missing_are_refused(tmp_path, drop):
    path = tmp_path / "model.npz"
    Committee((binary(0.0), binary(1.0)), ("a", "b"), "one_vs_rest").save(path)
    header, arrays = parts_of(path)
    del (header if drop in header else arrays)[drop]
    write_arrays(path, header, arrays)
    with pytest.raises(InputError, match="missing or unknown"):
        load_model(path)


@pytest.mark.parametrize("content", [b"", b"not a file", b"PK\x03\x04 broken"])
def test_garbage_is_refused(tmp_path, content):
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="expected a file"):
        load_model(path)
