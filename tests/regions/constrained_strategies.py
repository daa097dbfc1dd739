"""Random polytopes, discrete regions and unions, and membership in rational arithmetic."""

from fractions import Fraction

import hypothesis.strategies as st
import numpy as np

from gpcert.errors import InputError
from gpcert.regions import Ball, Box, Discrete, OneHot, Polytope, Union
from tests.regions.region_strategies import in_region_exactly

SIZES = st.sampled_from([1e-6, 1.0, 1.0, 1e5])


def random_polytope(rng, d, size=1.0):
    """A box around a point with constraints that the point satisfies: inequalities, some of them
    redundant or through the point, equations, ranges."""
    inside = size * rng.normal(size=d)
    low = inside - size * rng.uniform(0.0, 2.0, d) * (rng.random(d) < 0.9)
    high = inside + size * rng.uniform(0.0, 2.0, d) * (rng.random(d) < 0.9)
    rows = []
    for _ in range(int(rng.integers(0, 4))):
        a = rng.normal(size=d) * (rng.random(d) < 0.8)
        a = np.rint(4 * a) if rng.random() < 0.3 else a
        at = float(a @ inside)
        room = size * float(rng.choice([0.0, 1e-9, 0.3, 1.0, 50.0])) * max(1.0, float(abs(a).sum()))
        room += 1e-12 * float(abs(a) @ (abs(inside) + size))
        kind = rng.choice(["<=", ">=", "in", "=="], p=[0.35, 0.25, 0.2, 0.2])
        end = {"<=": at + room, ">=": at - room, "in": (at - room, at + 0.5 * room), "==": at}
        rows.append((a, kind, end[kind]))
    try:
        return Polytope((low, high), *rows)
    except InputError:  # thinner than rounding, in a few of a thousand
        return random_polytope(rng, d, size)


@st.composite
def polytopes(draw, max_dim=5):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return random_polytope(rng, draw(st.integers(1, max_dim)), draw(SIZES))


@st.composite
def discretes(draw, max_dim=4):
    """Whole numbers and values in boxes, balls and polytopes; those found empty are replaced."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    d = draw(st.integers(1, max_dim))
    whole = np.flatnonzero(rng.random(d) < 0.5)
    center = 4.0 * rng.normal(size=d)
    base = draw(st.sampled_from(["box", "ball", "polytope"]))
    if base == "box":
        region = Box(center - 3.0 * rng.random(d), center + 3.0 * rng.random(d))
    elif base == "ball":
        region = Ball(center, 3.0 * rng.random(), float(rng.choice([1.0, 2.0, np.inf])))
    else:
        region = random_polytope(rng, d, 4.0)
    others = [j for j in range(d) if j not in whole]
    values = {
        j: np.sort(rng.uniform(region.lower[j] - 1.0, region.upper[j] + 1.0, 4))
        for j in others[: 1 if len(whole) else len(others)]
    }
    try:
        return Discrete(region, whole, values)
    except InputError:  # no values inside
        return Discrete(Box([-3.5] * d, [3.5] * d), [0])


@st.composite
def unions(draw, max_dim=4):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    d = draw(st.integers(1, max_dim))
    parts = [Box(*np.sort(rng.normal(size=(2, d)), axis=0)), random_polytope(rng, d)]
    fixed = np.flatnonzero(rng.random(d) < 0.7)
    parts.append(Ball(3.0 * rng.normal(size=d), rng.random(), float(rng.choice([1.0, 2.0])), fixed))
    count = int(rng.integers(1, 4))
    return Union(*[parts[k] for k in rng.permutation(3)[:count]])


@st.composite
def one_hots(draw):
    """Groups of two to four columns in boxes, polytopes and discrete regions, some categories
    excluded."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = rng.integers(2, 5, int(rng.integers(1, 4))).tolist()
    rest, d = int(rng.integers(0, 3)), sum(sizes)
    order = rng.permutation(d + rest)
    groups = [order[end - k : end].tolist() for k, end in zip(sizes, np.cumsum(sizes), strict=True)]
    low, high = np.zeros(d + rest), np.ones(d + rest)
    low[order[d:]], high[order[d:]] = np.sort(4.0 * rng.normal(size=(2, rest)), axis=0)
    for group in groups:  # one of them stays
        high[group[1:]] = rng.random(len(group) - 1) < 0.8
    base = draw(st.sampled_from(["box", "discrete", "polytope"]))
    box = Box(low, high)
    if base == "discrete" and rest:
        high[order[d]] = max(high[order[d]], np.ceil(low[order[d]]))
        return OneHot(Discrete(Box(low, high), [order[d]]), groups)
    if base == "polytope":
        a = rng.normal(size=d + rest)
        inside = OneHot(box, groups).sample(1, rng)[0]
        return OneHot(Polytope((low, high), (a, "<=", float(a @ inside) + rng.random())), groups)
    return OneHot(box, groups)


def constrained():
    return st.one_of(polytopes(), discretes(), unions(), one_hots())


def exactly_in(region, x):
    """Membership in real arithmetic."""
    if isinstance(region, Union):
        return any(exactly_in(part, x) for part in region.parts)
    if isinstance(region, OneHot):
        groups = [x[group].tolist() for group in region.groups.columns]
        one = all(sorted(group) == [0.0] * (len(group) - 1) + [1.0] for group in groups)
        return one and exactly_in(region.region, x)
    if isinstance(region, Discrete):
        whole = all(float(x[j]).is_integer() for j in region.integers)
        listed = all(x[j] in values.tolist() for j, values in region.values.items())
        return whole and listed and exactly_in(region.region, x)
    if isinstance(region, Polytope):
        box = Box(*region.bounds)
        sums = [
            sum(Fraction(float(c)) * Fraction(float(v)) for c, v in zip(a, x, strict=True))
            for a in region.A
        ]
        rows = zip(sums, region.low.tolist(), region.high.tolist(), strict=True)
        return in_region_exactly(box, x) and all(low <= v <= high for v, low, high in rows)
    return in_region_exactly(region, x)
