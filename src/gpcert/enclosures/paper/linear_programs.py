"""Linear programs of one cell by HiGHS: one model, its objective changed, warm-started.

Proofs: docs/mathematics.md, statement 12.6.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from gpcert.enclosures.paper.relaxation import Relaxation
from gpcert.enclosures.paper.system import System, cell_system
from gpcert.extras import optional

PRIMAL_SIMPLEX = 4
"""HiGHS' number of it: after a change of objective the last basis stays primal feasible."""


class CellPrograms:
    """The linear model of one cell; built when first asked."""

    def __init__(self, relaxation: Relaxation, b: int) -> None:
        self.system = cell_system(relaxation, b)
        self._model: Any = None

    def minimise(
        self, c: np.ndarray, iterations: int | None = None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Multipliers (y, z), each (N,), of `min c.r`; None where the solver has nothing to say.

        Whatever they are, `safe_dual` makes a bound of them. `iterations` stops it early.
        """
        if not (self.system.sound and np.all(np.isfinite(c))):
            return None
        if self._model is None:
            self._model = _highs(self.system)
        model, N, K = self._model, self.system.points, self.system.lifted
        columns = np.arange(K, K + N, dtype=np.int32)
        model.changeColsCost(N, columns, np.ascontiguousarray(c, dtype=np.float64))
        if iterations is not None:
            model.setOptionValue("simplex_iteration_limit", iterations)
        with contextlib.suppress(RuntimeError):
            model.run()
        dual = np.asarray(model.getSolution().row_dual, dtype=np.float64)
        if len(dual) < 2 * N:
            return None
        return np.maximum(dual[:N], 0.0), np.maximum(dual[N : 2 * N], 0.0)


def _highs(system: System) -> Any:
    highspy = optional("highspy", "variance_bound='solver' (not 'analytic')")
    lp: Any = highspy.HighsLp()
    rows, columns = len(system.lower), len(system.low)
    lp.num_col_, lp.num_row_ = columns, rows
    lp.col_cost_ = np.zeros(columns)
    lp.col_lower_, lp.col_upper_ = system.low, system.high
    lp.row_lower_, lp.row_upper_ = system.lower, np.full(rows, highspy.kHighsInf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = system.matrix.indptr
    lp.a_matrix_.index_ = system.matrix.indices
    lp.a_matrix_.value_ = system.matrix.data
    model: Any = highspy.Highs()
    for name, value in (
        ("output_flag", False),
        ("threads", 1),
        ("presolve", "off"),
        ("solver", "simplex"),
        ("simplex_strategy", PRIMAL_SIMPLEX),
    ):
        model.setOptionValue(name, value)
    model.passModel(lp)
    return model
