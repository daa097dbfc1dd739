"""Mutants of the kernels, their composition and their plain Taylor models."""

from __future__ import annotations

from mutant import Mutant

__all__ = ["KERNEL_MUTANTS"]

ANY = ("tests/enclosures/test_enclosure_kernels.py",)
BEYOND = ("tests/kernels/test_radial_remainder.py",)
RADIAL = ("tests/kernels/test_radial_contract.py", "tests/kernels/test_radial_nodes.py")
COMPOSED = ("tests/kernels/test_compose_nodes.py", "tests/kernels/test_compose_sizes.py")
LINES = ("tests/kernels/test_compose_lines.py",)
TERMS = ("tests/kernels/test_taylor_terms.py",)
INDEFINITE = ("tests/enclosures/test_enclosure_indefinite.py",)

KERNEL_MUTANTS = (
    Mutant(
        "tensor-without-its-trace",
        "kernels/nodes/radial_remainder.py",
        "return cubic - g @ once, quartic - H @ twice + low[0] * both",
        "return cubic, quartic - H @ twice + low[0] * both",
        "the cubic tensor lacks `3 F_2 (v.d) |d|^2`",
        BEYOND,
    ),
    Mutant(
        "fifth-order-of-the-nearest-share",
        "kernels/nodes/radial_variations.py",
        "PARTS = (0.25, 0.5, 1.0)",
        "PARTS = (0.25,)",
        "the end of a displacement has no fifth derivative",
        BEYOND,
    ),
    Mutant(
        "own-quartic-third",
        "kernels/nodes/radial.py",
        "(curvature / 8.0)",
        "(curvature / 24.0)",
        "a third of what the kernel's own function leaves",
        BEYOND,
    ),
    Mutant(
        "taylor-degree-swapped",
        "kernels/expansions/taylor.py",
        "tails = [finite_product(norm, sizes.remainder(n)) for n in range(3)]",
        "tails = [finite_product(norm, sizes.remainder(min(n + 1, 2))) for n in range(3)]",
        "the remainder of the next order",
        ANY,
    ),
    Mutant(
        "taylor-pointwise-halved",
        "kernels/expansions/taylor_terms.py",
        "smooth = up(third / 6.0, 1)",
        "smooth = up(third / 60.0, 1)",
        "a tenth of the remainder point by point",
        ANY,
    ),
    Mutant(
        "taylor-near-points-forgotten",
        "kernels/expansions/taylor_terms.py",
        "left = xp.where(near, first, smooth)",
        "left = xp.where(near, 0.0 * first, smooth)",
        "points left out of the derivatives cost nothing",
        ANY,
    ),
    Mutant(
        "own-term-remainder",
        "kernels/expansions/taylor_terms.py",
        "dropped = up(0.5 * sizes.remainder(0) ** 2, 4)",
        "dropped = up(0.25 * sizes.remainder(0) ** 2, 4)",
        "half of what the kernel's own function loses",
        TERMS,
    ),
    Mutant(
        "step-without-young",
        "kernels/expansions/taylor_terms.py",
        "error = up(error * (1.0 + eta) + safe * safe * (1.0 + 1.0 / eta), 8)",
        "error = up(error * (1.0 + eta), 8)",
        "the remainder of a step is forgotten",
        TERMS,
    ),
    Mutant(
        "gain-forgotten",
        "enclosures/square.py",
        "gain * step.matrix, above_error)",
        "step.matrix, above_error)",
        "an indefinite precision adds no variance",
        INDEFINITE,
    ),
    Mutant(
        "negative-factor-sign",
        "enclosures/precision.py",
        "own.product - other.product,",
        "own.product + other.product,",
        "the negative factor explains variance",
        INDEFINITE,
    ),
    Mutant(
        "sum-of-remainders",
        "kernels/nodes/feature_sizes.py",
        "_hypotenuse(self.remainder(n), other.remainder(n)) for n in range(3)",
        "self.remainder(n) for n in range(3)",
        "a sum bends like its first part",
        COMPOSED,
    ),
    Mutant(
        "leibniz-without-binomials",
        "kernels/nodes/feature_sizes.py",
        "term = _times(a, b) * float(math.comb(n, j) * math.comb(m, i))",
        "term = _times(a, b)",
        "Leibniz' rule without its coefficients",
        COMPOSED,
    ),
    Mutant(
        "crossed-term-dropped",
        "kernels/nodes/product.py",
        "(first.hessian + second.hessian) + (crossed + xp.matrix_transpose(crossed)),",
        "(first.hessian + second.hessian),",
        "the crossed term of a product's Hessian",
        COMPOSED,
    ),
    Mutant(
        "mccormick-wrong-end",
        "kernels/lines/product.py",
        "on_second = xp.where(usable, xp.where(choice, first.low, first.high), none)",
        "on_second = xp.where(usable, xp.where(choice, first.high, first.low), none)",
        "McCormick's inequality with the other end",
        LINES,
    ),
    Mutant(
        "radial-gradient-sign",
        "kernels/nodes/radial.py",
        "hessian = hessian - slope[:, None, None] * (identity * node.scale**2)",
        "hessian = hessian + slope[:, None, None] * (identity * node.scale**2)",
        "the flat part of a radial Hessian",
        RADIAL,
    ),
    Mutant(
        "radial-range-too-short",
        "kernels/nodes/radial.py",
        "low = xp.maximum(low - spread, near - (4.0 * U) * self.r)",
        "low = xp.maximum(low - spread, self.r)",
        "the cell's near end is taken at its centre",
        RADIAL,
    ),
)
