"""A region of another package is one class, as CONTRIBUTING says: every verb takes it."""

import numpy as np
import pytest

import gpcert
from gpcert.certificates import Status
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.numerics.rounding import down, up
from gpcert.regions import Box, Discrete, Region, Union, region_from_dict, register


class Annulus(Region):
    """`inner <= |x|_2 <= outer` in the plane: not convex, with a hole."""

    kind = "annulus"

    def __init__(self, inner, outer):
        self.radii = (float(inner), float(outer))
        self.lower, self.upper = np.full(2, -self.radii[1]), np.full(2, self.radii[1])
        self.center = np.array([0.5 * inner + 0.5 * outer, 0.0])

    def contains(self, X):
        points = np.atleast_2d(np.asarray(X, dtype=float))
        square = np.sum(points**2, axis=1)
        inner, outer = self.radii
        inside = (down(square, 4) >= up(inner**2, 2)) & (up(square, 4) <= down(outer**2, 2))
        return inside if np.ndim(X) == 2 else inside[0]

    def sample(self, n, random_state=None):
        rng = np.random.default_rng(random_state)
        angle = rng.uniform(0.0, 2.0 * np.pi, n)
        radius = rng.uniform(self.radii[0] * (1 + 1e-9), self.radii[1] * (1 - 1e-9), n)
        return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)

    def describe(self):
        return {"kind": self.kind, "inner": self.radii[0], "outer": self.radii[1]}

    # what follows makes it faster: without it cells are dropped or split until they are points

    def project(self, X):
        points = np.atleast_2d(np.asarray(X, dtype=float))
        size = np.maximum(np.linalg.norm(points, axis=1), 1e-300)
        inner, outer = self.radii
        points = points * (np.clip(size, inner * (1 + 1e-9), outer * (1 - 1e-9)) / size)[:, None]
        return self.pulled_in(points) if np.ndim(X) == 2 else self.pulled_in(points)[0]

    def contract(self, cells):
        """Cells that lie in the hole, or beyond the outer circle, hold no point."""
        nearest = np.maximum(np.maximum(cells.lower, -cells.upper), 0.0)
        farthest = np.maximum(abs(cells.lower), abs(cells.upper))
        hole = up(np.sum(farthest**2, axis=1), 6) < self.radii[0] ** 2
        return cells, hole | (down(np.sum(nearest**2, axis=1), 6) > self.radii[1] ** 2)


POINTS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.5]])
MODEL = gpcert.Posterior(SquaredExponential(0.7), POINTS, weights=[5.0, 0.5, -0.5])
RING = Annulus(1.0, 2.0)


def test_a_range_over_it():
    rng = gpcert.prediction_range(MODEL, RING, tol=1e-3, quantity="mean")
    means = MODEL.predict(RING.sample(5000, 0))[0][:, 0]
    assert rng.converged
    assert rng.minimum.lower <= means.min() <= rng.minimum.lower + 0.1
    assert rng.maximum.upper - 0.1 <= means.max() <= rng.maximum.upper
    assert RING.contains(np.stack([rng.argmin, rng.argmax])).all()
    # the hole is left out: there the mean is 5
    assert rng.maximum.upper < 3.0
    assert "annulus" in str(rng)


def test_a_verdict_on_it():
    cert = gpcert.certify(MODEL, [1.5, 0.0], region=RING, threshold=-1.0)
    assert cert.status is Status.ROBUST
    refuted = gpcert.certify(MODEL, [1.5, 0.0], region=RING, threshold=1.0)
    assert refuted.status is Status.NOT_ROBUST
    assert RING.contains(refuted.counterexample)
    table = gpcert.certify_many(MODEL, [[1.5, 0.0], [0.0, -1.2]], region=RING, threshold=-1.0)
    assert [row.status for row in table] == [Status.ROBUST] * 2
    with pytest.raises(InputError, match="expected a point of the region"):
        gpcert.certify(MODEL, [0.0, 0.0], region=RING, threshold=-1.0)


def test_it_is_attacked_and_combined():
    found = gpcert.attack(MODEL, [[1.5, 0.0]], region=RING, threshold=1.0)
    assert all(RING.contains(row.point) for row in found)
    both = Union(RING, Box([4.0, 4.0], [5.0, 5.0]))
    assert gpcert.prediction_range(MODEL, both, tol=0.01, quantity="mean").converged
    ring = Annulus(0.9, 2.1)
    grid = Discrete(ring, integers=[0, 1])
    rng = gpcert.prediction_range(MODEL, grid, tol=1e-3, quantity="mean")
    X = np.stack(np.meshgrid(*[np.arange(-2.0, 3.0)] * 2), axis=-1).reshape(-1, 2)
    means = MODEL.predict(X[ring.contains(X)])[0][:, 0]
    ends = [rng.minimum.lower, rng.maximum.upper]
    np.testing.assert_allclose(ends, [means.min(), means.max()], atol=2e-3)


def test_files_hold_it_once_it_is_registered(tmp_path):
    rng = gpcert.prediction_range(MODEL, RING, tol=0.1, quantity="mean")
    rng.save(tmp_path / "range.json")
    with pytest.raises(InputError, match=r"gpcert\.regions\.register"):
        region_from_dict({"kind": "unheard", "inner": 1.0})
    register(Annulus)
    again = gpcert.load(tmp_path / "range.json")
    assert region_from_dict(again.region).radii == RING.radii
    assert "annulus in 2 of 2 features" in str(again)
