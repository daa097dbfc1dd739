"""The contract of a likelihood: a new one inherits its soundness and tightness tests from here.

Subclass `LikelihoodContract`, give the likelihood and a reference in ball arithmetic
(python-flint), and pytest collects the rest. Needs pytest, hypothesis and python-flint.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.errors import InputError
from gpcert.likelihoods.base import BinaryLikelihood, ScalarLikelihood, mean_lower, monotone_minimum
from gpcert.numerics.arrays import Array, Backend, to_numpy
from gpcert.testing.arb_reference import assert_encloses
from gpcert.testing.effort import backend_or_skip, examples
from gpcert.testing.kernel_references import BITS

means = st.one_of(
    st.floats(-12.0, 12.0),
    st.floats(-1e8, 1e8),
    st.sampled_from([0.0, -0.0, 1e-300, -1e-300, 38.0, -38.0, 1e8, -1e8]),
)
variances = st.one_of(
    st.floats(0.0, 4.0),
    st.floats(0.0, 1e8),
    st.sampled_from([0.0, 5e-324, 1e-300, 1e-16, 1.0, 1e8]),
)


Segment = tuple[float, float, float, float]


@st.composite
def segments(draw: st.DrawFn) -> Segment:
    """`(alpha, beta, v_low, v_high)`, among them points, short, ordinary and huge segments."""
    v_low = draw(variances)
    width = draw(
        st.one_of(st.just(0.0), st.floats(0.0, 1e-6), st.floats(0.0, 4.0), st.floats(0.0, 1e8))
    )
    beta = draw(
        st.one_of(
            st.sampled_from([0.0, 1e-300, -1e-300]), st.floats(-2.0, 2.0), st.floats(-1e8, 1e8)
        )
    )
    # shifts the line so that its mean is moderate somewhere on the segment
    at = v_low + draw(st.floats(0.0, 1.0)) * width
    alpha = draw(st.floats(-6.0, 6.0)) - draw(st.sampled_from([0.0, 1.0])) * beta * at
    return alpha, beta, v_low, v_low + width


def _arrays(backend: Backend, *values: float) -> list[Array]:
    return [backend.asarray([value]) for value in values]


def _scalar(array: Array) -> float:
    return float(to_numpy(array)[0])


@pytest.mark.parametrize("backend_name", ["numpy", "torch"])
class LikelihoodContract:
    """Inherit, set `likelihood`, define `reference`."""

    likelihood: ClassVar[ScalarLikelihood]
    width: ClassVar[float] = 1e-11
    """Largest width of an enclosure for |F| <= 1, relative to larger F."""
    reach: ClassVar[float] = 1.0
    """Factor of the drawn means and variances, for an F that leaves float64 at the usual ones."""

    def reference(self, mu: arb, v: arb) -> arb:
        """Ball that contains `F(mu, v)`, radius below `LARGEST_RADIUS` for |F| <= 1."""
        raise NotImplementedError

    def _ends(self, backend: Backend, segment: Segment) -> tuple[float, float]:
        """`line_minimum` and `line_maximum`."""
        arguments = _arrays(backend, *self._within(segment))
        lines = (self.likelihood.line_minimum, self.likelihood.line_maximum)
        low, high = (_scalar(line(*arguments)) for line in lines)
        return low, high

    def _within(self, segment: Segment) -> Segment:
        """The segment, `reach` times as large: the same line."""
        alpha, beta, v_low, v_high = segment
        return self.reach * alpha, beta, self.reach * v_low, self.reach * v_high

    @settings(deadline=None, max_examples=examples(60, quick=8))
    @given(mu=means, v=variances)
    def test_enclosure_contains_reference(self, backend_name: str, mu: float, v: float) -> None:
        """`lower <= F <= upper`, and the enclosure is narrow."""
        mu, v = self.reach * mu, self.reach * v
        lower, upper = map(
            _scalar, self.likelihood.enclose(*_arrays(backend_or_skip(backend_name), mu, v))
        )
        with ctx.workprec(BITS):
            assert_encloses(lower, upper, self.reference(arb(mu), arb(v)))
        assert upper <= lower + self.width * max(1.0, abs(lower))

    @settings(deadline=None, max_examples=examples(50, quick=6))
    @given(segment=segments(), where=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=3))
    def test_lines_bound_reference(
        self, backend_name: str, segment: Segment, where: list[float]
    ) -> None:
        """`line_minimum <= F <= line_maximum` at the ends and at drawn points of the segment."""
        alpha, beta, v_low, v_high = self._within(segment)
        low, high = self._ends(backend_or_skip(backend_name), segment)
        assert math.isfinite(low)
        assert math.isfinite(high) or self.likelihood.range[1] == math.inf
        inner = [min(v_low + t * (v_high - v_low), v_high) for t in where]
        with ctx.workprec(BITS):
            for v in [v_low, *inner, v_high]:
                real = self.reference(arb(alpha) + arb(beta) * arb(v), arb(v))
                assert_encloses(low, high, real)

    @settings(deadline=None, max_examples=examples(80, quick=10))
    @given(segment=segments())
    def test_lines_bound_dense_samples(self, backend_name: str, segment: Segment) -> None:
        """The same on 400 points, linear and geometric, against certified enclosures."""
        backend = backend_or_skip(backend_name)
        low, high = self._ends(backend, segment)
        alpha, beta, v_low, v_high = self._within(segment)
        grid = np.linspace(0.0, 1.0, 200)
        inner = v_low + (v_high - v_low) * np.concatenate([grid, np.geomspace(1e-12, 1.0, 200)])
        v = backend.asarray(np.clip(inner, v_low, v_high))
        a, b = backend.asarray(np.full(400, alpha)), backend.asarray(np.full(400, beta))
        _, upper = self.likelihood.enclose(-mean_lower(-a, -b, v), v)
        lower, _ = self.likelihood.enclose(mean_lower(a, b, v), v)
        assert low <= to_numpy(upper).min()
        assert high >= to_numpy(lower).max()

    def test_bounds_hold_along_tangents(self, backend_name: str) -> None:
        """On tangents of level curves, where a curvature bound bites, F stays between the lines.

        2000 segments, 101 points each, against certified enclosures; a curvature ten times too
        small for the smoothed links fails here.
        """
        backend, rng = backend_or_skip(backend_name), np.random.default_rng(1)
        v_low = rng.integers(0, 2, 2000) * 10.0 ** rng.uniform(-3.0, 3.0, 2000)
        v_high = v_low + 10.0 ** rng.uniform(-2.0, 3.0, 2000)
        v = 0.5 * (v_low + v_high)
        mu = 1.5 * rng.normal(size=2000) * np.sqrt(1.0 + v)
        by_mu, by_variance = self.likelihood.slopes(mu, v)
        beta = -by_variance / by_mu
        a, b, low, high = map(backend.asarray, (mu - beta * v, beta, v_low, v_high))
        least = to_numpy(self.likelihood.line_minimum(a, b, low, high))
        most = to_numpy(self.likelihood.line_maximum(a, b, low, high))
        inner = v_low[:, None] + (v_high - v_low)[:, None] * np.linspace(0.0, 1.0, 101)
        points = backend.asarray(np.clip(inner, v_low[:, None], v_high[:, None]))
        _, upper = self.likelihood.enclose(-mean_lower(-a[:, None], -b[:, None], points), points)
        lower, _ = self.likelihood.enclose(mean_lower(a[:, None], b[:, None], points), points)
        assert np.all(least <= to_numpy(upper).min(axis=1))
        assert np.all(most >= to_numpy(lower).max(axis=1))

    @settings(deadline=None, max_examples=examples(60))
    @given(segment=segments())
    def test_never_below_the_monotone_bound(self, backend_name: str, segment: Segment) -> None:
        """The line form is at least the paper's bound, up to the width of an enclosure."""
        if not isinstance(self.likelihood, BinaryLikelihood):
            pytest.skip("the monotone bound is one for two classes")
        arguments = _arrays(backend_or_skip(backend_name), *segment)
        low = _scalar(self.likelihood.line_minimum(*arguments))
        assert low >= _scalar(monotone_minimum(self.likelihood, *arguments)) - self.width

    @settings(deadline=None, max_examples=examples(60))
    @given(mu=means, v=variances)
    def test_slopes_and_value_are_finite(self, backend_name: str, mu: float, v: float) -> None:
        """No NaN or infinity where the search looks for guidance; F does not decrease in mu."""
        arguments = _arrays(backend_or_skip(backend_name), mu, v)
        by_mu, by_variance = map(_scalar, self.likelihood.slopes(*arguments))
        assert math.isfinite(_scalar(self.likelihood.value(*arguments)))
        assert math.isfinite(by_variance)
        assert math.isfinite(by_mu)
        assert by_mu >= 0.0

    @pytest.mark.parametrize("mu", [-2.5, 0.0, 0.3, 4.0])
    @pytest.mark.parametrize("v", [0.1, 1.0, 30.0])
    def test_slopes_are_derivatives(self, backend_name: str, mu: float, v: float) -> None:
        """Central differences agree with `slopes`."""
        backend, step = backend_or_skip(backend_name), 1e-4

        def value(m: float, w: float) -> float:
            return _scalar(self.likelihood.value(*_arrays(backend, m, w)))

        slopes = list(map(_scalar, self.likelihood.slopes(*_arrays(backend, mu, v))))
        rises = [
            value(mu + step, v) - value(mu - step, v),
            value(mu, v + step) - value(mu, v - step),
        ]
        assert slopes == pytest.approx([rise / (2 * step) for rise in rises], rel=1e-7, abs=1e-7)

    @pytest.mark.parametrize("mu", [-1.2, 0.4, 2.0])
    @pytest.mark.parametrize("v", [0.5, 3.0])
    def test_second_order_on_level_curves(self, backend_name: str, mu: float, v: float) -> None:
        """Along the tangent of a level curve the slack falls at least with the square."""
        backend = backend_or_skip(backend_name)
        by_mu, by_variance = map(_scalar, self.likelihood.slopes(*_arrays(backend, mu, v)))
        beta = -by_variance / by_mu
        slack = []
        for half in (0.4, 0.1, 0.025):
            arguments = _arrays(backend, mu - beta * v, beta, v - half, v + half)
            grid = backend.asarray(np.linspace(v - half, v + half, 401))
            line = (mu - beta * v) + beta * grid
            least = float(to_numpy(self.likelihood.value(line, grid)).min())
            slack.append(max(least - _scalar(self.likelihood.line_minimum(*arguments)), 0.0))
        assert slack[0] < 1e-3
        for coarse, fine in pairwise(slack):
            # 4^2 = 16 a step, less a quarter for the higher orders, until rounding takes over
            assert fine <= coarse / 12.0 + 2.0 * self.width

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_rejects_what_is_not_finite(self, backend_name: str, bad: float) -> None:
        """NaN, infinity, a negative variance and crossed ends raise; none becomes a bound."""
        backend = backend_or_skip(backend_name)
        for arguments in ((bad, 1.0), (0.0, bad), (0.0, -1.0)):
            with pytest.raises(InputError):
                self.likelihood.enclose(*_arrays(backend, *arguments))
        good = (0.0, 0.0, 1.0, 2.0)
        lines = [(*good[:i], bad, *good[i + 1 :]) for i in range(4)]
        for segment in [*lines, (0.0, 0.0, 2.0, 1.0), (0.0, 0.0, -1.0, 1.0)]:
            for line in (self.likelihood.line_minimum, self.likelihood.line_maximum):
                with pytest.raises(InputError):
                    line(*_arrays(backend, *segment))

    def test_batches_broadcast(self, backend_name: str) -> None:
        """Arrays of any shape, broadcast together, give the numbers of single segments."""
        backend = backend_or_skip(backend_name)
        alpha, v_high = backend.asarray([[-1.0], [2.0]]), backend.asarray([0.5, 0.7, 9.0])
        beta, v_low = backend.asarray(0.3), backend.asarray(0.5)
        batch = to_numpy(self.likelihood.line_minimum(alpha, beta, v_low, v_high))
        assert batch.shape == (2, 3)
        for i, a in enumerate((-1.0, 2.0)):
            for j, high in enumerate((0.5, 0.7, 9.0)):
                one = self.likelihood.line_minimum(*_arrays(backend, a, 0.3, 0.5, high))
                assert batch[i, j] == pytest.approx(_scalar(one), abs=self.width)

    @pytest.mark.parametrize("kind", ["float32", "int64"])
    def test_other_numbers_are_read_as_float64(self, backend_name: str, kind: str) -> None:
        """Single precision and whole numbers are the reals they stand for, and get their bounds."""
        backend = backend_or_skip(backend_name)
        xp = backend.xp
        rows = ([1.3, -2.1, 0.0, 3.7], [-0.1, 1.2, 1.6, -2.3], [0.0, 0.3, 0.0, 5.9])
        alpha, beta, v = (xp.astype(backend.asarray(row), getattr(xp, kind)) for row in rows)
        a, b, w = (xp.astype(part, xp.float64) for part in (alpha, beta, v))
        computed, exact = [*self.likelihood.enclose(alpha, v)], [*self.likelihood.enclose(a, w)]
        for line in (self.likelihood.line_minimum, self.likelihood.line_maximum):
            computed.append(line(alpha, beta, v, 2 * v))
            exact.append(line(a, b, w, 2 * w))
        for x, y in zip(computed, exact, strict=True):
            np.testing.assert_array_equal(to_numpy(x), to_numpy(y))

    def test_backends_agree(self, backend_name: str) -> None:
        """The same bounds as NumPy's, to 1e-12 and the width of an enclosure."""
        backend, rng = backend_or_skip(backend_name), np.random.default_rng(0)
        alpha, beta = rng.normal(size=(2, 500)) * [[2.0], [0.4]]
        v_low, width = rng.uniform(0.0, 3.0, (2, 500))
        host = (alpha, beta, v_low, v_low + width)
        here = self.likelihood.line_minimum(*map(backend.asarray, host))
        expected = self.likelihood.line_minimum(*host)
        np.testing.assert_allclose(to_numpy(here), expected, rtol=0, atol=max(1e-12, self.width))
