"""Effects in shap's own type, so that shap's pictures draw them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpcert.extras import optional

if TYPE_CHECKING:
    from gpcert.explain.effects import Effects


def shap_explanation(effects: Effects, output: int) -> Any:
    """`shap.Explanation` (n, features): values, lower_bounds, upper_bounds, data, feature_names.

    Effects are no Shapley values: they do not sum to the prediction, so there is no base value.
    """
    shap = optional("shap", "to_shap")
    return shap.Explanation(
        values=effects.values[:, output],
        lower_bounds=effects.lower[:, output],
        upper_bounds=effects.upper[:, output],
        base_values=np.zeros(len(effects.lower)),
        data=effects.X[:, list(effects.features)],
        feature_names=list(effects.feature_names),
    )
