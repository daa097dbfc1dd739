import numpy as np
import pytest

from gpcert.numerics.arrays import to_numpy
from gpcert.regions import Ball, Box, Cells

torch = pytest.importorskip("torch")

REGIONS = [
    Box([0.0, 1.0, -1.0], [1.0, 1.0, 2.0]),
    Ball([0.0, 1.0, -1.0], 0.5, domain=(-1.2, 1.2)),
    *[Ball([0.0, 1.0, -1.0], 0.5, p, domain=(-1.2, 1.2)) for p in (1.0, 1.5, 2.0, 3.5)],
    Ball([0.0, 1.0], 0.0, 2),
]


@pytest.mark.parametrize("region", REGIONS)
def test_torch_agrees_with_numpy(region):
    rng = np.random.default_rng(0)
    f = region.free.size
    here, there = region.root(), region.root("torch:cpu")
    for axis in range(2 if f else 0):
        here = here.split(np.full(len(here), axis % f))
        there = there.split(torch.full((len(there),), axis % f))
    assert there.lower.dtype == torch.float64
    assert np.array_equal(to_numpy(there.center), here.center)
    assert np.array_equal(to_numpy(there.half), here.half)
    g, w = rng.normal(size=(len(here), 2, f)), rng.uniform(0.1, 2.0, f)
    pairs = [
        (here.linear_minimum(g), there.linear_minimum(torch.from_numpy(g))),
        (here.linear_maximum(g[:, 0]), there.linear_maximum(torch.from_numpy(g[:, 0]))),
        (here.squared_norm_maximum(w), there.squared_norm_maximum(torch.from_numpy(w))),
    ]
    for a, b in pairs:
        np.testing.assert_allclose(to_numpy(b), a, rtol=1e-12, atol=1e-15)
    assert np.array_equal(to_numpy(there.empty()), here.empty())
    assert np.array_equal(to_numpy(there.can_split()), here.can_split())
    kept = Cells.concatenate([there.take(~there.empty()), there])
    assert kept.points_full(kept.center).shape == (len(kept), region.dim)
