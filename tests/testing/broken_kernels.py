"""A kernel with one seeded defect: every answer comes from a sound kernel and is then spoiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpcert.kernels import Kernel
from gpcert.kernels.nodes.base import LocalNode, NodeBatch
from gpcert.paper.lines import affine_relaxation

Changes = Mapping[str, Callable[..., Any]]
"""By the name of a method or attribute: the wrong answer, from the right one and the batch."""


class BrokenBatch(NodeBatch):
    def __init__(self, inner, changes: Changes):
        self.inner, self.changes = inner, changes
        for name in ("value", "sizes", "errors"):
            setattr(self, name, self.spoiled(name, getattr(inner, name)))

    def spoiled(self, name, answer):
        return self.changes[name](answer, self.inner) if name in self.changes else answer

    def contract(self, coefficients):
        return self.spoiled("contract", self.inner.contract(coefficients))

    def gradients(self):
        return self.spoiled("gradients", self.inner.gradients())

    def variations(self):
        return self.spoiled("variations", self.inner.variations())

    def diagonal_jet(self):
        return self.spoiled("diagonal_jet", self.inner.diagonal_jet())

    def mixed(self):
        return self.spoiled("mixed", self.inner.mixed())


@affine_relaxation.register
def _(batch: BrokenBatch):
    return batch.spoiled("affine_relaxation", affine_relaxation(batch.inner))


class BrokenNode(LocalNode):
    def __init__(self, inner, changes: Changes):
        self.inner, self.changes = inner, changes

    def derivative_bounds(self, reach):
        found = self.inner.derivative_bounds(reach)
        return (
            self.changes["derivative_bounds"](found)
            if "derivative_bounds" in self.changes
            else found
        )

    def at(self, reach):
        batch = self.inner.at(reach)
        batch.__dict__["reach_of_test"] = reach
        return BrokenBatch(batch, self.changes)


class BrokenKernel(Kernel):
    """Looks like `inner` (its name and configuration), answers with `changes`."""

    def __init__(self, inner: Kernel, changes: Changes):
        self.inner, self.changes, self.name = inner, changes, inner.name  # type: ignore[misc]

    def _spoiled(self, name, answer):
        return self.changes[name](answer) if name in self.changes else answer

    def value(self, X, Y):
        return self._spoiled("kernel_value", self.inner.value(X, Y))

    def diagonal(self, X):
        return self._spoiled("diagonal", self.inner.diagonal(X))

    def gradient(self, X, Y):
        return self._spoiled("gradient", self.inner.gradient(X, Y))

    def gradient_product(self, X, Y, C):
        return self._spoiled("gradient_product", self.inner.gradient_product(X, Y, C))

    def typical_lengths(self, d):
        return self.inner.typical_lengths(d)

    def node(self, points, frame):
        return BrokenNode(self.inner.node(points, frame), self.changes)

    def rescaled(self, scale, shift):
        return self._spoiled("rescaled", self.inner.rescaled(scale, shift))

    def check_dimension(self, d):
        self.inner.check_dimension(d)

    def config(self):
        return self.inner.config()
