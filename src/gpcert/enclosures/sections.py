"""A model on many sections `x + t e_j`, ready to be enclosed over batches of intervals of t.

Proofs: docs/mathematics.md, statements 1.2 and 15.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from gpcert.arrays import Backend, Inputs
from gpcert.committee import Model
from gpcert.enclosures.evaluation import Evaluation, Portfolio
from gpcert.enclosures.local_posterior import CHEAP_WORK, LocalCommittee, LocalPosterior
from gpcert.kernels.expansions.squared_exponential_sections import Sections
from gpcert.posterior import Posterior
from gpcert.regions import Ball, Box, Cells

MOST_CELLS = 2048
"""Cells of one batch, however small the model is."""


def has_sections(model: Model) -> bool:
    """Whether the model's kernels are known on many sections at once; trends are not."""
    return all(
        member.kernel.has_sections and member.features is None and not member.has_trend
        for member in model.members
    )


@dataclass(frozen=True, eq=False)
class SectionModel:
    """The model's members without a place, and the sections as each of them sees them.

    All is in unit form (`gpcert.unit_form`), as in `LocalPosterior`.

    A member's function on a section has at most the norm that it has over all features: restricting
    a function of a reproducing kernel's space to a subset never lengthens it (Aronszajn 1950,
    *Theory of reproducing kernels*, part I, section 5).
    """

    model: Model
    members: tuple[LocalPosterior, ...]
    sections: tuple[Sections, ...]
    hull: Box
    """All of t that is asked about: it is of positive length, and sets the batches' units."""
    backend: Backend

    @staticmethod
    def parts_of(model: Model, backend: Backend, variance: bool) -> tuple[LocalPosterior, ...]:
        """What does not depend on the sections, once per model."""
        parts = []
        for member in model.members:
            nowhere = Ball(member.points[0], 0.0)  # its kernel and norms are not used
            parts.append(LocalPosterior.build(member, nowhere, backend, variance))
        return tuple(parts)

    @staticmethod
    def on(
        parts: tuple[LocalPosterior, ...],
        model: Model,
        X: Inputs,
        sections: tuple[np.ndarray, np.ndarray],
        extent: Annotated[np.ndarray, "Q"],
        backend: Backend,
    ) -> SectionModel:
        """The sections (rows of X, features), asked about for |t| <= extent (Q,)."""
        found = tuple(
            part.unit.kernel.sections(part.unit.points, X, sections, extent) for part in parts
        )
        reach = float(extent.max(initial=0.0)) or 1.0
        return SectionModel(model, parts, found, Box([-reach], [reach]), backend)

    def evaluation(
        self,
        question: Annotated[np.ndarray, "B"],
        low: np.ndarray,
        high: np.ndarray,
        optional: bool = True,
        learnt: Portfolio | None = None,
    ) -> Evaluation:
        """Enclosures over the intervals [low, high] (B, 1) of the sections `question` (B,)."""
        bound = tuple(
            replace(part, kernel=sections.batch(question, self.backend), one_batch=True)
            for part, sections in zip(self.members, self.sections, strict=True)
        )
        local = bound[0] if isinstance(self.model, Posterior) else LocalCommittee(bound)
        cells = Cells(self.hull, self.backend.asarray(low), self.backend.asarray(high))
        return Evaluation(local, cells, optional, learnt)

    @property
    def cells_at_once(self) -> int:
        """As many as leave the derivatives' covariance cheap."""
        largest = max(len(part.posterior.points) for part in self.members)
        return int(np.clip(CHEAP_WORK / largest**2, 16, MOST_CELLS))
