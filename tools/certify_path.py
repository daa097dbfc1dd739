"""Which files does a call of `certify` pass?

    python tools/certify_path.py

Prints the files of gpcert whose functions are entered, for the sign of a mean and for a
probability, by a model with a squared exponential; ARCHITECTURE.md draws them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import gpcert
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit

ROOT = Path(gpcert.__file__).parent


def files_of(call: Callable[[], Any]) -> list[str]:
    """Of functions that are entered while `call` runs."""
    seen = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        path, name = Path(frame.f_code.co_filename), frame.f_code.co_name
        if event == "call" and name != "<module>" and path.is_relative_to(ROOT):
            seen.add(str(path.relative_to(ROOT)))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return sorted(seen)


def files_entered() -> dict[str, list[str]]:
    """A mean against 0, a probability against 0.3; what is made once per model is made before."""
    entered = {}
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (60, 3))
    kernel = SquaredExponential(0.8)
    L = np.linalg.cholesky(kernel.value(X, X) + 0.01 * np.eye(60))
    factor = np.linalg.inv(L)
    weights = factor.T @ (factor @ np.sin(X.sum(axis=1)))
    for name, likelihood, level in (("mean", None, 0.0), ("probability", Probit(), 0.3)):
        options = {} if likelihood is None else {"likelihood": likelihood}
        model = gpcert.Posterior(kernel, X, weights, factor, **options)
        ask = partial(gpcert.certify, model, X[1], radius=0.12, threshold=level)
        ask()
        entered[name] = files_of(ask)
    return entered


def main() -> None:
    """Print them."""
    for name, files in files_entered().items():
        sys.stdout.write("\n  ".join([f"{name}: {len(files)} files", *files]) + "\n")


if __name__ == "__main__":
    main()
