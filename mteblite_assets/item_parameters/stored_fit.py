"""A fitted task rebuilt from its stored tables, so that later stages use the fit that is stored."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mteblite_assets.item_parameters.abilities import MIN_MODELS, MIN_SPREAD, Abilities
from mteblite_assets.item_parameters.fitting import ItemFit
from mteblite_assets.item_parameters.response_model import ItemParameters


def fit_from_tables(item_parameters: pd.DataFrame, abilities: pd.DataFrame) -> ItemFit:
    """Return the fit that `fit_items` gave.

    Args:
        item_parameters: rows of one task: item_id, response_model, slope, intercept,
            residual_sd, n_models.
        abilities: rows of the same task: model, theta, theta_mean, theta_sd.

    Raises:
        ValueError: either table is empty.
    """
    if item_parameters.empty or abilities.empty:
        raise ValueError("no stored item parameters: materialize the item_parameters stage first")
    items = item_parameters.sort_values("item_id", ignore_index=True)
    models = abilities.sort_values("model", ignore_index=True)
    sd = float(models["theta_sd"].iloc[0])
    return ItemFit(
        response_model=str(items["response_model"].iloc[0]),
        item_ids=tuple(items["item_id"]),
        models=tuple(models["model"]),
        parameters=ItemParameters(
            slope=items["slope"].to_numpy(float),
            intercept=items["intercept"].to_numpy(float),
            residual_sd=items["residual_sd"].to_numpy(float),
            n_models=items["n_models"].to_numpy(np.int64),
        ),
        ability=Abilities(
            theta=models["theta"].to_numpy(float),
            mean=float(models["theta_mean"].iloc[0]),
            sd=sd,
            usable=len(models) >= MIN_MODELS and sd >= MIN_SPREAD,
        ),
    )
