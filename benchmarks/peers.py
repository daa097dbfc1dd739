"""Results of MAiNGO: read from the cache, or computed by its own interpreter in a subprocess."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from problems import Regression

RUNNER = Path(__file__).parent / "maingo_run.py"
LIMIT = 300.0
"""CPU seconds after which MAiNGO ends; its ratio is then a lower bound."""

GRACE = 3600.0
"""Further wall-clock seconds: on a busy machine CPU seconds take longer."""


class Peer:
    """MAiNGO's results by problem, in one JSON file."""

    def __init__(self, cache: Path, interpreter: str | None) -> None:
        self.cache = cache
        self.interpreter = interpreter

    def result(self, problem: Regression, quantity: str) -> dict[str, Any] | None:
        """The cached or new result; None without either."""
        key = f"{quantity} {problem.key}"
        known = self._load().get(key)
        if known is not None:
            self._check(known, problem, key)
            return known
        if self.interpreter is None:
            return None
        result = self._run(problem, quantity) | {"center_mean": _center_mean(problem)}
        self.cache.parent.mkdir(parents=True, exist_ok=True)
        self.cache.write_text(json.dumps(self._load() | {key: result}, indent=2) + "\n")
        return result

    def _load(self) -> dict[str, Any]:
        return json.loads(self.cache.read_text()) if self.cache.exists() else {}

    def _check(self, known: dict[str, Any], problem: Regression, key: str) -> None:
        if not np.isclose(known["center_mean"], _center_mean(problem), atol=1e-6, rtol=0):
            raise SystemExit(f"{self.cache.name}: {key!r} belongs to another problem; delete it")

    def _run(self, problem: Regression, quantity: str) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            given, answer = Path(folder) / "problem.json", Path(folder) / "result.json"
            given.write_text(json.dumps(problem.for_maingo()))
            command = [str(self.interpreter), str(RUNNER), str(given), str(answer)]
            command += ["--quantity", quantity, "--seconds", str(LIMIT)]
            subprocess.run(command, check=True, cwd=folder, timeout=LIMIT + GRACE)
            return json.loads(answer.read_text())


def _center_mean(problem: Regression) -> float:
    return float(problem.posterior().predict(problem.center[None])[0][0, 0])
