"""Positive lower bounds of latent functions over a box, from smaller and smaller faces of it.

Where a slope of a function has one sign on the cell, it is positive on the cell if it is on one of
its faces. That is smaller, has a centre of its own, and on it the function is monotone in more
features: a few rounds lead to a face on which a quadratic model leaves next to nothing.

Proofs: docs/mathematics.md, statement 5.11.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from gpcert.enclosures.classes.outputs import LatentOutputs
from gpcert.enclosures.evaluation import Evaluation
from gpcert.kernels.expansions.base import FormFunction
from gpcert.kernels.expansions.capabilities import QuadraticForms
from gpcert.numerics.arrays import Array, PerCell, namespace
from gpcert.numerics.rounding import EXP_ULPS, down
from gpcert.regions import Cells

ROUNDS = 12
"""Faces of faces that are looked at; mostly three or four do."""


def has_faces(latent: LatentOutputs) -> bool:
    """Whether faces are looked for: of one box, for functions of one squared exponential."""
    evaluation = latent.evaluation
    return (
        latent.together
        and len(latent.cells) == 1
        and latent.cells.is_box
        and latent.geometry.is_plain
        and isinstance(evaluation.local.kernel, QuadraticForms)
        and evaluation.local.trend is None
    )


def least_on_faces(
    latent: LatentOutputs, function: FormFunction, bound: Callable[[LatentOutputs], Array]
) -> PerCell:
    """A positive lower bound (1,) of the function over the one cell, or some number <= 0.

    `bound` gives certified lower bounds of it over cells. With omega the weight about a cell's
    centre and x' the point of the face below x, `omega f(x) >= omega f(x')`, so that f(x) is at
    least `f(x') exp(-rho2 / 2)`, if that is positive.
    """
    xp = namespace(latent.cells.lower)
    least, factor = bound(latent), xp.ones_like(latent.geometry.rho2)
    for _ in range(ROUNDS):
        if bool(least[0] > 0):
            break
        local, expansion = latent.evaluation.local, latent.evaluation.expansion
        assert isinstance(local.kernel, QuadraticForms)
        signs = local.kernel.monotone_signs(expansion, function)
        if not bool(xp.any(signs != 0)):
            break
        factor = down(factor * xp.exp(-0.5 * latent.geometry.rho2), EXP_ULPS + 8)
        latent = face_of(latent, signs)
        least = bound(latent)
    return xp.where(least > 0, down(least * factor, 2), least)


def face_of(latent: LatentOutputs, signs: Annotated[Array, "f"]) -> LatentOutputs:
    """The cell's lower end where a sign (f,) is positive, the upper one where it is negative."""
    xp, cells = namespace(signs), latent.cells
    lower = xp.where((signs < 0)[None], cells.upper, cells.lower)
    upper = xp.where((signs > 0)[None], cells.lower, cells.upper)
    evaluation = latent.evaluation
    face = Cells(cells.region, lower, upper, choice=cells.choice)
    return LatentOutputs(Evaluation(evaluation.members, face, portfolio=evaluation.portfolio))
