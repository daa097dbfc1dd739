"""Steps in front of a model, folded into its posterior: regions stay in the user's own units.

The folded float64 arrays define the certified model; `gpcert.adapters.agreement` measures what
their rounding changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from gpcert.adapters.conversion import Conversion, LibraryPrediction, fitted_names, with_names
from gpcert.adapters.sklearn_features import feature_map, folded, outputs_of
from gpcert.extras import optional


def convert_pipeline(pipeline: Pipeline, convert: Callable[[Any], Conversion]) -> Conversion:
    """Convert the last step with `convert`, and fold the steps before it from last to first."""
    steps = [
        (name, step) for name, step in pipeline.steps[:-1] if step not in (None, "passthrough")
    ]
    maps = []
    inputs = getattr(steps[0][1], "n_features_in_", 0) if steps else 0
    for name, step in steps:
        maps.append(feature_map(name, step, inputs))
        inputs = outputs_of(maps[-1])
    inner = convert(pipeline.steps[-1][1])
    posterior = inner.posterior
    for each in reversed(maps):
        posterior = folded(each, posterior)
    # the last step may know names too: those of what the steps before it hand on
    first = steps[0][1] if steps else pipeline.steps[-1][1]
    names = fitted_names(first)
    posterior = with_names(posterior, names)

    def predict(X: np.ndarray) -> LibraryPrediction:
        found = _framed(X, names)
        for _, step in steps:
            found = step.transform(found)
        return inner.predict(np.asarray(found, dtype=np.float64))

    return Conversion(posterior, predict, inner.tolerance)


def _framed(X: np.ndarray, names: tuple[str, ...] | None) -> Any:
    """X as the steps were fitted with it: columns chosen by their names need a data frame."""
    if names is None:
        return X
    pandas = optional("pandas", "a pipeline fitted on columns by name")
    return pandas.DataFrame(X, columns=list(names))
