"""Positive bounds over boxes from their faces."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.enclosures.classes.leading import Leader, face_of, has_faces
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Softmax
from gpcert.model.posterior import Posterior
from gpcert.regions import Ball
from gpcert.testing.arb_reference import ArbPosterior
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import flint
from tests.enclosures.classes.class_cases import evaluation_of, true_sums


def classes_of(rng, f, N=8, shift=0.0):
    """Three classes of one kernel; shift moves the first one's mean up."""
    points = rng.normal(size=(N, f))
    weights = rng.normal(size=(3, N))
    weights[0] += shift
    factor = 0.1 * rng.normal(size=(3, N, N))
    return Posterior(
        SquaredExponential(3.0, 4.0), points, weights, factor, likelihood=Softmax(), coupled=True
    )


def leader_of(posterior, radius, f):
    own = evaluation_of(posterior, Ball(np.zeros(f), radius))
    return Leader(own.pairs, 0, 1), own


@settings(max_examples=examples(60, quick=6), deadline=None)
@given(seed=st.integers(0, 2**31), f=st.integers(2, 20), radius=st.floats(0.05, 1.5))
def test_leads_by_faces_hold(seed, f, radius):
    """Bounds of mean differences, and decisions made from them, at points of the box."""
    rng = np.random.default_rng(seed)
    posterior = classes_of(rng, f, shift=rng.uniform(0.0, 1.5))
    leader, own = leader_of(posterior, radius, f)
    assert has_faces(leader.latent)
    X = radius * np.concatenate(
        [rng.choice([-1.0, 1.0], size=(100, f)), rng.uniform(-1.0, 1.0, size=(50, f))]
    )
    mean = posterior.predict(X)[0]
    found = float(leader.ahead_by_faces(1)[0])
    if found > 0:
        least, exact = X[np.argmin(mean[:, 0] - mean[:, 1])], ArbPosterior(posterior)
        assert not exact.mean(least, 0) - exact.mean(least, 1) < flint().arb(found)
    lead = float(own.by_leader((1.0, -1.0, 0.0))[0])
    assert lead <= true_sums(posterior, X, (1.0, -1.0, 0.0))[1].min()


def test_a_face_is_where_the_function_is_least():
    """Ends of a cell by the signs."""
    leader, _ = leader_of(classes_of(np.random.default_rng(0), 3), 0.5, 3)
    cells = face_of(leader.latent, np.array([1.0, 0.0, -1.0])).cells
    assert cells.lower.tolist() == [[-0.5, -0.5, 0.5]]
    assert cells.upper.tolist() == [[-0.5, 0.5, 0.5]]


def test_faces_prove_what_one_box_does_not():
    """A mean that falls along many features to a small positive number at a corner."""
    f = 20
    rng = np.random.default_rng(1)
    points = 1.5 + 0.5 * rng.normal(size=(12, f))
    weights = np.array([[1.0], [-0.5], [-0.5]]) * (1.0 + 0.2 * rng.normal(size=12))
    factor = np.zeros((3, 12, 12))
    posterior = Posterior(
        SquaredExponential(4.0, 4.0), points, weights, factor, likelihood=Softmax(), coupled=True
    )
    leader, _ = leader_of(posterior, 2.0, f)
    assert float(leader.ahead_of(1)[0]) <= 0
    assert float(leader.ahead_by_faces(1)[0]) > 0
