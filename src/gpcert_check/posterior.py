"""The model of a certificate: its numbers, the linear features, and what bounds need of the whole
data set, computed once.

    mu_c(x) = offset_c + scale_c (k(z, Z) t_c + slope_c.z),   z = W x + b,
    V_c(x)  = scale_c^2 max(v_c(z), 0) + noise_c,
    v_c(z)  = k(z, z) - k(z, Z) (K + Sigma_c)^-1 k(Z, z), or k(z, z) - |A_c k|^2 + |C_c k|^2
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from flint import arb, arb_mat

from gpcert_check.balls import TINY, dot, gamma, root, square, total
from gpcert_check.cell import Frame
from gpcert_check.container import Numbers
from gpcert_check.jets import Column, column, exact, scaled_rows
from gpcert_check.kernels import Kernel, read_kernel
from gpcert_check.links import rational
from gpcert_check.region import Region
from gpcert_check.verdicts import BadFile, NotCovered

SQUARINGS = 6


class Posterior:
    """A model, read."""

    def __init__(
        self,
        header: dict[str, Any],
        arrays: dict[str, Numbers],
        region: Region,
        shared: dict[Any, Any] | None = None,
    ) -> None:
        self.shared: dict[Any, Any] = {} if shared is None else shared
        """What other regions' readings of the same model have computed."""
        try:
            self._read(header, arrays, region)
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise BadFile(f"model: {error!r}") from error

    def _read(self, header: dict[str, Any], arrays: dict[str, Numbers], region: Region) -> None:
        if header.get("levels"):
            raise NotCovered("categories (one-hot columns) in front of the model")
        if header.get("curves"):
            raise NotCovered("functions of inputs (logarithms, quantiles) in front of the model")
        if header.get("mean_function"):
            raise NotCovered("a mean that is not linear")
        if header.get("coupled"):
            raise NotCovered("a model of coupled outputs")
        self.points = arrays["points"].rows()
        N, q = arrays["points"].shape
        weights = arrays["weights"]
        self.outputs = m = weights.shape[0]
        matrix = arrays["matrix"].rows() if "matrix" in arrays else None
        shift = list(arrays["shift"].values) if "shift" in arrays else None
        inputs = q if matrix is None else arrays["matrix"].shape[1]
        right = weights.shape == (m, N) and inputs == region.dim and N > 0 and q > 0
        right = right and (matrix is None or (len(matrix) == q and len(shift or []) == q))
        if not right or any(len(arrays[n].values) != m for n in ("offset", "scale", "noise")):
            raise BadFile("model: the shapes of its arrays do not belong together")
        for name, part in arrays.items():
            if name != "training_noise" and not all(map(math.isfinite, part.values)):
                raise BadFile(f"{name}: expected finite numbers")
        self.frame, self.map = Frame(region, matrix, shift), matrix and (matrix, shift or [])
        self.kernel: Kernel = read_kernel(header["kernel"], list(range(q)))
        self.kernel.bind(self.points, self.frame)
        self.weights = [list(map(arb, row)) for row in weights.rows()]
        self.offset, self.scale, self.noise = (
            list(map(arb, arrays[name].values)) for name in ("offset", "scale", "noise")
        )
        if not all(s > 0 for s in self.scale) or not all(v >= 0 for v in self.noise):
            raise BadFile("model: expected scale > 0 and noise >= 0")
        slopes = arrays.get("slope")
        self.slope = (
            [[arb(0)] * q] * m if slopes is None else [list(map(arb, r)) for r in slopes.rows()]
        )
        if len(self.slope) != m or any(len(row) != q for row in self.slope):
            raise BadFile("model: expected a slope for every output")
        self.has_trend = slopes is not None
        self.arrays, self.likelihood = arrays, header["likelihood"]

    @cached_property
    def gram(self) -> arb_mat:
        """K(Z, Z)."""
        if "gram" not in self.shared:
            rows = [self.kernel.column(list(map(arb, z))) for z in self.points]
            self.shared["gram"] = arb_mat(rows)
        return self.shared["gram"]

    @cached_property
    def norms(self) -> list[arb]:
        """Upper bounds of the lengths of k(., Z) t in the kernel's space: `(t^T K t)^(1/2)`, or
        until that is needed `sum |t_i| |phi(z_i)|`, where all features have the same length."""
        size = getattr(self.kernel, "variance", None)  # k(z, z), where it is the same for all z
        self.sharp = size is None or "gram" in self.shared
        if size is None or self.sharp:
            columns = map(column, self.weights)
            return [root((t.transpose() * (self.gram * t))[0, 0]) for t in columns]
        return [total(map(abs, t)) * root(size) for t in self.weights]

    def sharpen(self) -> bool:
        """Take the better norms from now on; whether these are new."""
        if vars(self).get("sharp"):
            return False
        known = vars(self).pop("norms", None) is not None
        _ = self.gram, self.norms
        return known

    def difference(self, first: int, second: int) -> int:
        """The number of a new output, whose mean is that of one output less that of another."""
        pairs = zip(self.weights[first], self.weights[second], strict=True)
        a, b = self.scale[first], self.scale[second]
        self.weights.append([a * s - b * t for s, t in pairs])
        pairs = zip(self.slope[first], self.slope[second], strict=True)
        self.slope.append([a * s - b * t for s, t in pairs])
        self.offset.append(self.offset[first] - self.offset[second])
        self.scale.append(arb(1))
        return len(self.weights) - 1

    def float64_error(self, goal: Any) -> arb:
        """At most how far a goal in float64, summed in any order, lies from the real one at the
        floats of the region (statements 13 and 16)."""
        if goal.kind == "probability":
            raise NotCovered("claims of kind B about probabilities")
        c = goal.output
        region, d, q = self.frame.region, self.frame.region.dim, len(self.points[0])
        ends = zip(region.low, region.high, strict=True)
        reach = [rational(max(abs(a), abs(b))) for a, b in ends]
        if self.map is not None:
            rows = zip(*self.map, strict=True)
            reach = [dot(map(abs, map(arb, row)), reach) + abs(arb(b)) for row, b in rows]
        points = [*(list(map(arb, z)) for z in self.points), reach]  # the last one: of k(x, x)
        size, (*errors, at_x) = self.kernel.computed(reach, points, 2 * (d + 8))
        count, weights = len(errors), list(map(abs, self.weights[c]))
        most = [size + e for e in errors]
        sums = dot(weights, errors) + gamma(count + 2) * dot(weights, most)
        whole = dot(weights, most)
        if self.has_trend:
            along = dot(map(abs, self.slope[c]), reach)
            sums, whole = sums + gamma(d + q + 11) * along, whole + 2 * along
        scale, offset, tiny = self.scale[c], abs(self.offset[c]), TINY * (count + 1)
        whole = scale * whole + offset
        mean = scale * sums + gamma(4) * whole + tiny * (1 + scale)
        if not goal.by_variance:
            return mean
        error, top = self.precision(c).float64_error(size, errors, at_x)
        noise, by = self.noise[c], square(scale)
        error = by * error + gamma(6) * (by * (top + error) + noise) + tiny * (1 + by)
        if goal.kind == "variance":
            return error
        change, top = root(error), root(by * top + noise)
        change = change.min(error / root(noise)) if noise > 0 else change
        change += gamma(4) * (top + change)
        if goal.kind == "std":
            return change
        change, top = abs(goal.beta) * change, abs(goal.beta) * top
        return mean + change + gamma(4) * (whole + mean + top + change)

    @property
    def of_one_variance(self) -> bool:
        """Whether the variances of all outputs are the same by what they are made of."""
        shared = ("factor", "negative_factor", "training_noise")
        alike = all(len(set(self.arrays[name].values)) == 1 for name in ("scale", "noise"))
        return alike and all(self.arrays[n].shape[0] == 1 for n in shared if n in self.arrays)

    def precision(self, output: int) -> Precision:
        """What the variance of an output rests on."""
        if output not in self.shared:
            self.shared[output] = Precision(self, output)
        return self.shared[output]


class Precision:
    """S = (K + Sigma)^-1 where the noise Sigma of the training points is known, else
    A^T A - C^T C.

    `least` and `most` bound the posterior's covariance operator P (`v = <phi, P phi>`):
    `-least <= P <= most`.
    """

    def __init__(self, model: Posterior, output: int) -> None:
        noises, factors = model.arrays.get("training_noise"), model.arrays.get("factor")
        if factors is None or len(factors.shape) != 3:
            raise BadFile("model: expected a factor of its precision, which the variance needs")

        def row(part: Numbers) -> Numbers:
            if part.shape[0] not in (1, model.outputs) or part.shape[-1] != len(model.points):
                raise BadFile("model: the shapes of its factors do not belong together")
            return part.part(output if part.shape[0] > 1 else 0)

        self.gram = model.gram
        self.factor = exact(row(factors).rows() or [[0.0] * len(model.points)])
        self.noise = None if noises is None else list(row(noises).values)
        if self.noise is not None and not all(v > 0 for v in self.noise):
            raise BadFile("model: expected training noise > 0")
        self.least, self.most, self.negative = arb(0), arb(1), None
        negative = model.arrays.get("negative_factor")
        if self.noise is None:
            if negative is not None and 0 not in negative.shape:
                self.negative = exact(row(negative).rows())
                self.most = 1 + (self.negative * self.gram * self.negative.transpose()).trace()
            largest = largest_eigenvalue(self.factor * self.gram * self.factor.transpose())
            self.least = (largest - 1).nonnegative_part()

    def float64_error(self, size: arb, errors: Column, at_x: arb) -> tuple[arb, arb]:
        """At most how far v in float64, by its factors, lies from the real one, and a bound of v:
        of kernel values within `errors`, k(x, x) within `at_x`, all at most `size`."""
        error, parts, most = at_x, size + at_x, size
        for factor in (self.factor, self.negative):
            if factor is None:
                continue
            rows = factor.tolist()
            more = [e + gamma(len(errors) + 2) * (size + e) for e in errors]
            lost = root(total(square(dot(map(abs, row), more)) for row in rows))
            longest = size * largest_eigenvalue(factor * self.gram * factor.transpose())
            whole = square(root(longest) + lost)
            error += whole - longest + gamma(len(rows) + 4) * whole
            parts += whole
            if factor is self.factor:
                error += longest * self.distance()
            else:
                most += whole
        return error + gamma(4) * parts, most

    def distance(self) -> arb:
        """How far `|A k|^2` can be from `k^T (K + Sigma)^-1 k`, as a part of it."""
        if self.noise is None:
            return arb(0)
        rows = range(len(self.noise))
        if math.inf in self.noise or self.negative or self.factor.nrows() != len(rows):
            raise NotCovered("claims of kind B about a variance whose factor is not square")
        noise = arb_mat([[self.noise[i] if i == j else 0 for j in rows] for i in rows])
        one = arb_mat([[int(i == j) for j in rows] for i in rows])
        gap = self.factor * (self.gram + noise) * self.factor.transpose() - one
        length = root(total(map(square, gap.entries())))
        if not length < 1:
            raise NotCovered("claims of kind B about a variance whose factor is another one")
        return length / (1 - length)

    def forms(self, columns: arb_mat, prior: arb_mat) -> tuple[arb_mat, arb_mat, arb_mat]:
        """For vectors e_a of the kernel's space with inner products `prior` and values `columns`
        at the data points: matrices Q, R, L with `Q <= <e_a, P e_b> <= R` as quadratic forms, and
        `<P e_a, P e_b> <= L` (times `most`, where S is known by its noise).

        By noise: with any weights Y, `J = prior - Y^T c - c^T Y + Y^T (K + Sigma) Y` is above, and
        above by `r^T (K + Sigma)^-1 r <= r^T Sigma^-1 r`, r = (K + Sigma) Y - c.
        """
        half = self.factor * columns
        hint = self.factor.transpose() * half
        if self.negative is not None:
            hint -= self.negative.transpose() * (self.negative * columns)
        if self.noise is None:
            upper = prior - half.transpose() * half
            if self.negative is not None:
                other = self.negative * columns
                upper += other.transpose() * other
            # P e = e - Phi y, y = S c, of which `hint` is an enclosure
            cross = hint.transpose() * columns
            length = prior - cross - cross.transpose() + hint.transpose() * (self.gram * hint)
            return upper, upper, length
        keep = [v != math.inf for v in self.noise]
        noise = [arb(v) if k else arb(0) for v, k in zip(self.noise, keep, strict=True)]
        weights = scaled_rows(hint.mid(), list(map(arb, keep)))
        product = self.gram * weights + scaled_rows(weights, noise)
        cross = weights.transpose() * columns
        upper = prior - cross - cross.transpose() + weights.transpose() * product
        parts = [1 / root(v) if k else v for v, k in zip(noise, keep, strict=True)]
        residual = scaled_rows(product - columns, parts)
        return upper - residual.transpose() * residual, upper, upper


def largest_eigenvalue(matrix: arb_mat) -> arb:
    """Upper bound of the largest eigenvalue of a symmetric positive semi-definite matrix: the
    Frobenius norm of a power of it, and its root."""
    for _ in range(SQUARINGS):
        matrix = matrix * matrix
    bound = total(map(square, matrix.entries())).upper().nonnegative_part()
    for _ in range(SQUARINGS + 1):
        bound = bound.sqrt()
    return bound


def column_rows(values: Column, gradients: arb_mat) -> arb_mat:
    """(N, 1 + f): values in front of gradients."""
    rows = gradients.tolist()
    return arb_mat([[v, *row] for v, row in zip(values, rows, strict=True)])
