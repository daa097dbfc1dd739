"""Random regions for the property tests, degenerate ones included, and exact arithmetic."""

from fractions import Fraction

import hypothesis.strategies as st
import mpmath
import numpy as np

from gpcert.regions import Ball, Box

SCALES = st.sampled_from([0.0, 1e-8, 1.0, 1.0, 1e3, 1e8])
RADII = st.one_of(
    st.sampled_from([0.0, 1e-300, 1e-12, 1.0, 1e8]), st.floats(1e-3, 10.0, allow_subnormal=False)
)
UNITS = st.sampled_from([None, None, 0.0, 1.0, 8.0, 150.0])
NORMS = st.sampled_from([1.0, 1.001, 1.5, 2.0, 2.5, 3.5, 17.0, 1e6, np.inf])


@st.composite
def boxes(draw, max_dim=6):
    d = draw(st.integers(1, max_dim))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    ends = draw(SCALES) * rng.normal(size=(2, d))
    equal = rng.random(d) < draw(st.sampled_from([0.0, 0.3, 1.0]))
    ends[1, equal] = ends[0, equal]
    return Box(ends.min(axis=0), ends.max(axis=0))


@st.composite
def balls(draw, max_dim=6, norms=NORMS, radii=RADII):
    d = draw(st.integers(1, max_dim))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    center = draw(SCALES) * rng.normal(size=d)
    radius = draw(radii)
    spread = draw(UNITS)
    if spread is not None:  # one radius per feature, of very different sizes, some of them 0
        radius = radius * 10.0 ** rng.uniform(-spread, spread, size=d)
        radius[rng.random(d) < 0.2] = 0.0
    features = draw(st.sampled_from([None, "some"]))
    if features == "some":
        features = np.flatnonzero(rng.random(d) < 0.7)
    domain = None
    kind = draw(st.sampled_from(["none", "array", "edge", "half"]))
    if kind != "none":
        room = radius * rng.uniform(0.0, 1.5, size=(2, d))
        if kind == "edge":
            room[rng.random((2, d)) < 0.5] = 0.0
        low, high = center - room[0], center + room[1]
        domain = (low, np.inf) if kind == "half" else (low, high)
    return Ball(center, radius, draw(norms), features, domain)


def regions():
    return st.one_of(boxes(), balls())


def cell_around(region, x, splits, rng, backend="numpy"):
    """A cell after some splits along random axes that still contains the point x of the region."""
    cells = region.root(backend)
    free = np.asarray(x)[region.free]
    for _ in range(splits if free.size else 0):
        cells = cells.split(np.array([rng.integers(free.size)]))
        lower, upper = np.asarray(cells.lower), np.asarray(cells.upper)
        inside = np.all((lower <= free) & (free <= upper), axis=1)
        cells = cells.take(np.flatnonzero(inside)[:1])
    return cells


def dot(g, x, c):
    """`g.(x - c)` in rational arithmetic."""
    return sum(
        (Fraction(float(a)) * (Fraction(float(b)) - Fraction(float(e))))
        for a, b, e in zip(g, x, c, strict=True)
    )


def weighted_square(w, x, c):
    """`sum w (x - c)^2` in rational arithmetic."""
    return sum(
        (Fraction(float(a)) * (Fraction(float(b)) - Fraction(float(e))) ** 2)
        for a, b, e in zip(w, x, c, strict=True)
    )


def in_region_exactly(region, x):
    """Membership in real arithmetic: rational for boxes and p = 1, 2, else 80 digits."""
    values = [Fraction(float(v)) for v in x]
    if isinstance(region, Box):
        ends = zip(values, region.lower, region.upper, strict=True)
        return all(Fraction(float(a)) <= v <= Fraction(float(b)) for v, a, b in ends)
    if region.domain is not None and not (
        np.all(region.domain[0] <= x) and np.all(x <= region.domain[1])
    ):
        return False
    y = [abs(v - Fraction(float(c))) for v, c in zip(values, region.center, strict=True)]
    if any(v for j, v in enumerate(y) if j not in set(region.features.tolist())):
        return False
    radii = [Fraction(float(r)) for r in np.broadcast_to(region.radius, region.center.shape)]
    if any(v > r for v, r in zip(y, radii, strict=True)):
        return False
    p = region.norm
    ratios = [v / r for v, r in zip(y, radii, strict=True) if v]
    if p == np.inf or len(ratios) < 2:
        return True
    if p in (1.0, 2.0):
        return sum(t ** int(p) for t in ratios) <= 1
    with mpmath.workdps(80):
        parts = [mpmath.mpf(t.numerator) / t.denominator for t in ratios]
        return mpmath.fsum(t ** mpmath.mpf(p) for t in parts) <= 1
