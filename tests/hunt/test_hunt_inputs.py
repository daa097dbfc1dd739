"""Inputs in every dress: the right answer or a clear error, never a raw one."""

import numpy as np
import pytest
import scipy.sparse

import gpcert
from gpcert.errors import GPCertError, InputError
from gpcert.kernels import SquaredExponential
from gpcert.testing.effort import crossed

POINTS = np.array([[0.0, 0.5], [1.0, -1.0], [2.0, 0.25]])
WEIGHTS = np.array([1.0, -0.5, 0.25])
BUDGET = gpcert.Budget(seconds=5.0, boxes=1)


def read_only(a):
    a = a.copy()
    a.setflags(write=False)
    return a


def strided(a):
    return (
        np.repeat(np.repeat(a, 2, axis=0), 2, axis=-1)[::2, ..., ::2]
        if a.ndim > 1
        else (np.repeat(a, 2)[::2])
    )


def framed(a):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(a) if a.ndim == 2 else pd.Series(a)


def tensor(a):
    return pytest.importorskip("torch").tensor(a)


SAME = {
    "list": lambda a: a.tolist(),
    "tuple": lambda a: tuple(map(tuple, a)) if a.ndim == 2 else tuple(a),
    "data frame": framed,
    "nullable frame": lambda a: framed(a).convert_dtypes(),
    "float32": lambda a: a.astype(np.float32),
    "float16": lambda a: a.astype(np.float16),
    "long double": lambda a: a.astype(np.longdouble),
    "read-only": read_only,
    "strided": strided,
    "reversed view": lambda a: a[::-1].copy()[::-1],
    "Fortran order": np.asfortranarray,
    "big endian": lambda a: a.astype(">f8"),
    "object": lambda a: a.astype(object),
    "matrix": lambda a: a.view(np.matrix) if a.ndim == 2 else a,
    "masked, nothing hidden": np.ma.masked_array,
    "tensor": tensor,
}
"""Dresses of the same numbers; all of POINTS are exact in 11 bits."""

REFUSED = {
    "empty": lambda a: np.zeros((0, 2)) if a.ndim == 2 else np.zeros(0),
    "0-d": lambda a: np.float64(1.0),
    "None": lambda a: None,
    "text": lambda a: "abc",
    "words": lambda a: np.full(a.shape, "a"),
    "complex": lambda a: a + 1j,
    "NaN": lambda a: np.where(a == a.flat[0], np.nan, a),
    "infinite": lambda a: np.where(a == a.flat[0], np.inf, a),
    "three axes": lambda a: np.zeros((2, 2, 2)),
    "a column too many": lambda a: np.concatenate([a, a], axis=-1),
    "ragged": lambda a: [[1.0, 2.0], [3.0]],
    "masked": lambda a: np.ma.masked_array(a, mask=np.ones(a.shape, dtype=bool)),
    "dates": lambda a: np.full(a.shape, np.datetime64("2020-01-01")),
    "a dictionary": lambda a: {"a": 1.0},
    "a set": lambda a: {1.0, 2.0},
    "a function": lambda a: len,
    "an object": lambda a: object(),
}
"""Things that are no points of the model."""


def model(points=POINTS, weights=WEIGHTS):
    return gpcert.Posterior(SquaredExponential(1.0), points, weights)


def plain(answer):
    """An answer without its time."""
    items = answer.certificates if hasattr(answer, "certificates") else [answer]
    return [{k: v for k, v in item.to_dict().items() if k != "seconds"} for item in items]


ASK = {"threshold": 0.1, "budget": BUDGET}
ROWS = {
    "certify_many": lambda X: gpcert.certify_many(model(), X, 0.1, **ASK),
    "points": lambda X: gpcert.certify(model(points=X), [0.0, 0.0], 0.1, **ASK),
}
VECTORS = {
    "certify": lambda x: gpcert.certify(model(), x, 0.1, **ASK),
    "certified_radius": lambda x: gpcert.certified_radius(model(), x, rtol=0.5, **ASK),
    "Box": lambda x: gpcert.prediction_range(
        model(), gpcert.Box(x, POINTS[1] + 3.0), budget=BUDGET
    ),
}


@crossed({"dress": sorted(SAME), "verb": sorted(ROWS)})
def test_the_same_rows_have_the_same_answer(verb, dress):
    assert plain(ROWS[verb](SAME[dress](POINTS))) == plain(ROWS[verb](POINTS))


@crossed({"dress": sorted(SAME), "verb": ["certify", "Box"]})
def test_the_same_vector_has_the_same_answer(verb, dress):
    assert plain(VECTORS[verb](SAME[dress](POINTS[1]))) == plain(VECTORS[verb](POINTS[1]))


@pytest.mark.parametrize("kind", [int, np.int8, np.uint64, bool])
def test_integers_are_numbers(kind):
    X = np.array([[0, 1], [1, 1]], dtype=kind)
    assert plain(ROWS["certify_many"](X)) == plain(ROWS["certify_many"](X.astype(float)))


@pytest.mark.parametrize("dress", sorted(REFUSED))
@pytest.mark.parametrize("verb", sorted(ROWS))
def test_what_is_no_rows_is_refused(verb, dress):
    if (verb, dress) == ("certify_many", "empty"):
        assert len(gpcert.certify_many(model(), np.zeros((0, 2)), 0.1, **ASK)) == 0
        return
    with pytest.raises(InputError):
        ROWS[verb](REFUSED[dress](POINTS))


@pytest.mark.parametrize("dress", sorted(REFUSED))
@pytest.mark.parametrize("verb", sorted(VECTORS))
def test_what_is_no_vector_is_refused(verb, dress):
    with pytest.raises(InputError):
        VECTORS[verb](REFUSED[dress](POINTS[1]))


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_array", "coo_matrix"])
def test_sparse_rows_are_read_or_refused_in_words(kind):
    X = getattr(scipy.sparse, kind)(POINTS)
    try:
        answer = ROWS["certify_many"](X)
    except GPCertError as error:
        text = str(error)
    else:
        assert plain(answer) == plain(ROWS["certify_many"](POINTS))
        return
    assert "sparse" in text


def test_a_tensor_with_a_gradient_is_read():
    torch = pytest.importorskip("torch")
    x = torch.tensor(POINTS, requires_grad=True)
    assert plain(ROWS["certify_many"](x)) == plain(ROWS["certify_many"](POINTS))


@pytest.mark.parametrize("name", ["points", "weights", "factor", "negative_factor", "offset"])
@pytest.mark.parametrize("dress", ["text", "complex", "NaN", "ragged", "masked", "an object"])
def test_a_posterior_refuses_what_is_no_array(name, dress):
    given = {"points": POINTS, "weights": WEIGHTS} | {name: REFUSED[dress](POINTS)}
    with pytest.raises(InputError):
        gpcert.Posterior(SquaredExponential(1.0), **given)
